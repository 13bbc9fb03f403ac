"""Errors on their way through the JVM: what Tahoe raises inside a callback reaches the user as it was raised, without Java in it.

Spark calls Python while it plans; an error raised there becomes a Java exception on its way back. The Python error is kept here, its
number travels in the Java exception's text, and PySpark's one function that makes Python errors of Java's gives it back.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions import captured
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import TahoeError
from tahoe.spark.jvm.bridge import JavaObject, Jvm

__all__ = [
    "install",
    "kept_for_the_caller",
    "origin_of",
    "raising",
    "raising_with_values",
    "thrown",
    "told_once",
    "without_task_failures",
]

logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MARK = re.compile(r"tahoe-error-(\d+)-kept(?:-([0-9A-F]+)-)?")
_LONGEST_VALUE = 200
Made = Callable[[list[str | None]], BaseException]
"""Makes an error of the values of the row that brought it."""
_MOST_KEPT = 1024


class _Kept(RuntimeError):
    """Carries the number of a kept error through the JVM."""


class _Errors:
    """The newest errors of callbacks, by number. A query that Spark gives up silently leaves its error here, so there is a bound."""

    def __init__(self) -> None:
        self._errors: OrderedDict[int, BaseException | Made] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def keep(self, error: BaseException | Made) -> int:
        with self._lock:
            number = next(self._numbers)
            self._errors[number] = error
            while len(self._errors) > _MOST_KEPT:
                self._errors.popitem(last=False)
            return number

    def found(self, text: str) -> BaseException | None:
        """The error that a Java exception's text names."""
        mark = _MARK.search(text)
        kept = None if mark is None else self._errors.get(int(mark[1]))
        if kept is None or isinstance(kept, BaseException):
            return kept
        assert mark is not None
        return kept(json.loads(bytes.fromhex(mark[2] or "5B5D").decode("utf-8", "replace")))


_ERRORS = _Errors()
# py4j gives the JVM the number of an object of the JVM, and forgets the object when Python does: on another connection, where threads are
# not pinned, and so perhaps before the number is looked up. A thread that is called again has had its last answer read.
_RETURNED = threading.local()


def kept_for_the_caller(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """For methods that the JVM calls: keeps what they raise for the Python caller of the query, and what they return until the JVM has it."""

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            _RETURNED.last = answer = function(*arguments, **named)
            return answer
        except Exception as error:
            raise _Kept(f"tahoe-error-{_ERRORS.keep(error)}-kept") from error

    return call


def thrown(jvm: Jvm, error: Exception) -> JavaObject:
    """What a query that runs by itself shall stop with: the JVM's own exception where it raised one, else one with the error's own text.

    Spark shows that text wherever it tells of the query. The error's number stands where none is shown, in the exception's stack.
    """
    origin = origin_of(error)
    if origin is not None:
        return origin
    text = str(error) if isinstance(error, TahoeError) else f"{type(error).__name__}: {error}"
    exception = jvm.java_class("org.apache.spark.SparkException")(text)
    frame = "java.lang.StackTraceElement"
    mark = jvm.java_class(frame)("tahoe", f"tahoe-error-{_ERRORS.keep(error)}-kept", None, -1)
    exception.setStackTrace(jvm.array(frame, [mark]))
    return exception


def origin_of(error: BaseException | None) -> JavaObject | None:
    """The JVM's exception that a Python one was made of."""
    if isinstance(error, captured.CapturedException):
        return error._origin
    return error.java_exception if isinstance(error, Py4JJavaError) else None


def raising(error: TahoeError) -> Column:
    """An expression that fails, wherever it is evaluated, so that the caller of the query gets this error."""
    return sf.raise_error(sf.lit(f"tahoe-error-{_ERRORS.keep(error)}-kept"))


def raising_with_values(made: Made) -> Callable[[Sequence[Column]], Column]:
    """As `raising`, for an error that tells of the row: give it columns, and it is made of their values, as texts, when it is met.

    What it returns may be used many times; one error is kept for all of them.
    """
    number = _ERRORS.keep(made)

    def failing(values: Sequence[Column]) -> Column:
        texts = sf.array(*(sf.substring(value.cast("string"), 1, _LONGEST_VALUE) for value in values))
        return sf.raise_error(sf.concat(sf.lit(f"tahoe-error-{number}-kept-"), sf.hex(sf.to_json(texts)), sf.lit("-")))

    return failing


@contextmanager
def told_once(spark: SparkSession) -> Iterator[None]:
    """A command whose caller gets what goes wrong as one error: nothing of it is printed or logged besides, by Java or by PySpark."""
    _COMMAND.depth = getattr(_COMMAND, "depth", 0) + 1
    try:
        with without_task_failures(spark):
            yield
    finally:
        _COMMAND.depth -= 1


@contextmanager
def without_task_failures(spark: SparkSession) -> Iterator[None]:
    """A job whose failure the caller is told of: that a task of it failed is not logged, with all of Java's stack, once for each part of
    Spark that hears of it. As the levels of Spark's loggers are all there is for that, the same holds for other jobs meanwhile.
    """
    loggers = _loggers(spark)
    with _SILENCE:
        _SILENCED[0] += 1
        if _SILENCED[0] == 1:
            known = loggers.context.getConfiguration().getLoggers()
            _OWN.update({name: known.get(name) for name in _TELLING_OF_TASKS})
            _LEVELS.update({name: config.getLevel() for name, config in _OWN.items() if config is not None})
            loggers.configurator.setLevel(loggers.silent)
    try:
        yield
    finally:
        with _SILENCE:
            _SILENCED[0] -= 1
            if not _SILENCED[0]:
                try:
                    _restore_levels(loggers)
                except Py4JError:  # the command itself may have succeeded
                    logger.warning("The levels of Spark's loggers could not be restored", exc_info=True)


@dataclass(frozen=True, slots=True)
class _Loggers:
    """Log4j's objects of one JVM, asked for once: naming a class takes a question for each part of its name.

    Args:
        silent: the loggers that tell of failed tasks, each with the level ``OFF``.
    """

    context: Any
    configurator: Any
    silent: Any


def _loggers(spark: SparkSession) -> _Loggers:
    gateway = spark.sparkContext._gateway
    if gateway not in _LOGGERS:
        jvm = Jvm.of(spark)
        silent = jvm.java_class("java.util.HashMap")()
        off = jvm.java_class("org.apache.logging.log4j.Level").toLevel("OFF")
        for name in _TELLING_OF_TASKS:
            silent.put(name, off)
        context = jvm.java_class("org.apache.logging.log4j.LogManager").getContext(False)
        _LOGGERS[gateway] = _Loggers(context, jvm.java_class("org.apache.logging.log4j.core.config.Configurator"), silent)
    return _LOGGERS[gateway]


def _restore_levels(loggers: _Loggers) -> None:
    configuration = loggers.context.getConfiguration()
    for name, config in _OWN.items():
        if config is None:
            configuration.removeLogger(name)
        else:
            config.setLevel(_LEVELS[name])
    loggers.context.updateLoggers()
    _OWN.clear()
    _LEVELS.clear()


_TELLING_OF_TASKS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.util.Utils",
)
_COMMAND = threading.local()
"""How many of `told_once` this thread is in."""
_OF_QUERIES = "org.apache.spark.sql.streaming.StreamingQueryException"
_TELLING_OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers, which print an error with the Java stack when they make it, whether or not somebody catches it."""
_SILENCE = threading.Lock()
_SILENCED = [0]
_OWN: dict[str, Any] = {}
"""What was configured for the silenced loggers; None for one that had the level of those above it."""
_LEVELS: dict[str, Any] = {}
_LOGGERS: WeakKeyDictionary[Any, _Loggers] = WeakKeyDictionary()


def install() -> None:
    """Make PySpark give kept errors back. Once is enough; more often does nothing."""
    if getattr(captured.convert_exception, "_tahoe", False):
        return
    original = captured.convert_exception

    def convert_exception(java_error: Any) -> Any:
        # A query's own exception tells which query it was; what it stopped with is its cause, and comes here by itself.
        if str(java_error.getClass().getName()) == _OF_QUERIES:
            return original(java_error)
        # Utils.exceptionString has the whole chain of causes in one call.
        kept = _ERRORS.found(str(_exception_text(java_error)))
        return original(_undeclared(java_error)) if kept is None else kept.with_traceback(None)

    convert_exception._tahoe = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(_is_not_kept)
    for name in _TELLING_OF_QUERIES:
        PySparkLogger.getLogger(name).addFilter(_is_of_no_command)


def _undeclared(java_error: Any) -> Any:
    """The exception itself, where Java wrapped it because Python threw it in a method that does not declare it."""
    name = str(java_error.getClass().getName())
    return java_error.getCause() if name == "java.lang.reflect.UndeclaredThrowableException" else java_error


def _exception_text(java_error: Any) -> str:
    from pyspark import SparkContext

    assert SparkContext._jvm is not None
    return str(getattr(SparkContext._jvm, "org.apache.spark.util.Utils").exceptionString(java_error))


def _is_not_kept(record: logging.LogRecord) -> bool:
    """py4j logs what callbacks raise; a kept error, and one that the JVM raised and gets back, is told to the caller instead."""
    return not (record.exc_info and isinstance(record.exc_info[1], (_Kept, Py4JJavaError)))


def _is_of_no_command(_record: logging.LogRecord) -> bool:
    return not getattr(_COMMAND, "depth", 0)
