"""Errors on their way through the JVM: what Tahoe raises inside a callback reaches the user as it was raised, without Java in it.

Spark calls Python while it plans; an error raised there becomes a Java exception on its way back. The Python error is kept here, its
number travels in the Java exception's text, and PySpark's one function that makes Python errors of Java's gives it back.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pyspark.errors.exceptions import captured
from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.exceptions import TahoeError

__all__ = ["install", "kept_for_the_caller", "raising"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MARK = re.compile(r"tahoe-error-(\d+)-kept")
_MOST_KEPT = 1024


class _Kept(RuntimeError):
    """Carries the number of a kept error through the JVM."""


class _Errors:
    """The newest errors of callbacks, by number. A query that Spark gives up silently leaves its error here, so there is a bound."""

    def __init__(self) -> None:
        self._errors: OrderedDict[int, BaseException] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def keep(self, error: BaseException) -> int:
        with self._lock:
            number = next(self._numbers)
            self._errors[number] = error
            while len(self._errors) > _MOST_KEPT:
                self._errors.popitem(last=False)
            return number

    def get(self, number: int) -> BaseException | None:
        return self._errors.get(number)


_ERRORS = _Errors()


def kept_for_the_caller(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """For methods that the JVM calls: keeps what they raise for the Python caller of the query."""

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise _Kept(f"tahoe-error-{_ERRORS.keep(error)}-kept") from error

    return call


def raising(error: TahoeError) -> Column:
    """An expression that fails, wherever it is evaluated, so that the caller of the query gets this error."""
    return sf.raise_error(sf.lit(f"tahoe-error-{_ERRORS.keep(error)}-kept"))


def install() -> None:
    """Make PySpark give kept errors back. Once is enough; more often does nothing."""
    if getattr(captured.convert_exception, "_tahoe", False):
        return
    original = captured.convert_exception

    def convert_exception(java_error: Any) -> Any:
        # Utils.exceptionString has the whole chain of causes in one call.
        found = _MARK.search(str(_exception_text(java_error)))
        kept = None if found is None else _ERRORS.get(int(found[1]))
        return original(java_error) if kept is None else kept.with_traceback(None)

    convert_exception._tahoe = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(_is_not_kept)


def _exception_text(java_error: Any) -> str:
    from pyspark import SparkContext

    assert SparkContext._jvm is not None
    return str(getattr(SparkContext._jvm, "org.apache.spark.util.Utils").exceptionString(java_error))


def _is_not_kept(record: logging.LogRecord) -> bool:
    """py4j logs what callbacks raise; a kept error is told to the caller instead."""
    return not (record.exc_info and isinstance(record.exc_info[1], _Kept))
