"""An error of Tahoe that ends a Python worker of Spark gets its class back from Spark's text."""

from __future__ import annotations

from tahoe.base.exceptions import NotFound
from tahoe.spark.jvm.errors import _error_of_worker

TEXT = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the worker: Traceback (most recent call last):
  File "<worker>", line 164, in stream
{error}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""


def test_the_class_the_code_and_the_message_come_back() -> None:
    error = _error_of_worker(
        TEXT.format(error="tahoe.exceptions.NotFound: [DELTA_FILE_NOT_FOUND] Data file 'a' is gone.\nRestore it.")
    )
    assert isinstance(error, NotFound)
    assert (error.code, error.message) == ("DELTA_FILE_NOT_FOUND", "Data file 'a' is gone.\nRestore it.")


def test_other_errors_stay_as_spark_has_them() -> None:
    for text in (
        "ValueError: no",
        "tahoe.exceptions.os: [X] y",
        "tahoe.exceptions.NoSuchClass: [X] y",
        "tahoe.exceptions.NotFound: no code",
    ):
        assert _error_of_worker(TEXT.format(error=text)) is None
    assert _error_of_worker("tahoe.exceptions.NotFound: [X] of no worker") is None
