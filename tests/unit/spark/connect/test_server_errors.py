"""Tahoe's errors in the texts of a server's errors."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvariantViolation, SchemaMismatch, TahoeError
from tahoe.spark.connect.requests.server_errors import error_of_tahoe, error_text

TRACEBACK = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):
  File "<worker>", line 257, in schema
tahoe.exceptions.InvariantViolation: [DELTA_X] Constraint c is violated by a row with values:
 - v : None
Nothing was committed.
 SQLSTATE: 38000

JVM stacktrace:
org.apache.spark.sql.AnalysisException
"""


def test_the_last_line_of_a_traceback_is_the_error() -> None:
    error = error_of_tahoe(TRACEBACK)
    assert isinstance(error, InvariantViolation)
    assert (error.code, error.message) == (
        "DELTA_X",
        "Constraint c is violated by a row with values:\n - v : None\nNothing was committed.",
    )


def test_an_expression_raises_the_error_of_its_text() -> None:
    raised = f"[USER_RAISED_EXCEPTION] {error_text(SchemaMismatch('no fit', code='CAST_X'))} SQLSTATE: P0001"
    error = error_of_tahoe(raised)
    assert isinstance(error, SchemaMismatch)
    assert error.code == "CAST_X"


@pytest.mark.parametrize(
    "text",
    [
        "[UNRESOLVED_COLUMN] nope",
        "in a line tahoe.exceptions.InvalidRequest: [A] b",
        "\ntahoe.exceptions.os: [A] b",
        "\ntahoe.exceptions.CommitStateUnknown: [A] b",
        "\ntahoe.exceptions.TahoeWarning: [A] b",
    ],
)
def test_other_texts_are_errors_of_spark(text: str) -> None:
    assert error_of_tahoe(text) is None


def test_every_error_is_a_class_of_tahoe() -> None:
    assert issubclass(type(error_of_tahoe("\ntahoe.exceptions.NotFound: [A] b")), TahoeError)
