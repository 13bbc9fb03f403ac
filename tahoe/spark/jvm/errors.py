"""Errors that pass through the JVM: an error raised in a callback reaches the user unchanged, without a Java stack.

Spark calls Python while it plans; an error raised there becomes a Java exception on its way back. This module stores the Python error, and
the text of the Java exception contains its number. PySpark's function that converts Java exceptions then returns the stored error.
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
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions import captured
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.base import exceptions
from tahoe.base.exceptions import TahoeError
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic

logger = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MARK = re.compile(r"tahoe-error-(\d+)-kept(?:-([0-9A-F]+)-)?")
_OF_WORKER = re.compile(
    r"PythonException: .*?^tahoe\.(?:base\.)?exceptions\.(?P<kind>\w+): \[(?P<code>\w+)\] (?P<message>.*?)$(?=\n SQLSTATE|\n*^\tat |\n*\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The end of the traceback of a Python worker in Spark's exception."""
_LONGEST_VALUE = 200
ErrorFactory = Callable[[list[str | None]], BaseException]
"""Creates an error from the values of the row that caused it."""
_MAX_STORED = 1024


class _StoredError(RuntimeError):
    """Carries the number of a stored error through the JVM."""


class _Errors:
    """The newest errors of callbacks, by number. If Spark drops a query silently, its error stays here, so their number is limited."""

    def __init__(self) -> None:
        self._errors: OrderedDict[int, BaseException | ErrorFactory] = OrderedDict()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def store(self, error: BaseException | ErrorFactory) -> int:
        with self._lock:
            number = next(self._numbers)
            self._errors[number] = error
            while len(self._errors) > _MAX_STORED:
                self._errors.popitem(last=False)
            return number

    def stored(self, text: str) -> BaseException | None:
        """Return the error whose number is in a Java exception's text."""
        mark = _MARK.search(text)
        error = None if mark is None else self._errors.get(int(mark[1]))
        if error is None or isinstance(error, BaseException):
            return error
        assert mark is not None
        return error(json.loads(bytes.fromhex(mark[2] or "5B5D").decode("utf-8", "replace")))


_ERRORS = _Errors()
# py4j passes a JVM object to the JVM by its number, and releases the object when Python does: possibly on another connection if threads are
# not pinned, and so before the JVM looks the number up. When a thread is called again, its last answer has been read.
_RETURNED = threading.local()


def stores_errors(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method that the JVM calls: store its errors for the Python caller of the query, and its result until the JVM has read it."""

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            _RETURNED.last = answer = function(*arguments, **named)
            return answer
        except Exception as error:
            raise _StoredError(f"tahoe-error-{_ERRORS.store(error)}-kept") from error

    return call


def java_exception(jvm: Jvm, error: Exception) -> JavaObject:
    """Return the exception that ends a query running on its own: the JVM's exception if it raised one, otherwise one with the error's text.

    Spark shows that text in its reports on the query. The error's number is hidden in the exception's stack.
    """
    origin = origin_of(error)
    if origin is not None:
        return origin
    text = str(error) if isinstance(error, TahoeError) else f"{type(error).__name__}: {error}"
    exception = jvm.java_class("org.apache.spark.SparkException")(text)
    frame = "java.lang.StackTraceElement"
    mark = jvm.java_class(frame)("tahoe", f"tahoe-error-{_ERRORS.store(error)}-kept", None, -1)
    exception.setStackTrace(jvm.array(frame, [mark]))
    return exception


def stored_error(text: str) -> BaseException | None:
    """Return the error of a callback whose number is in the text of a Java exception."""
    return _ERRORS.stored(text)


def origin_of(error: BaseException | None) -> JavaObject | None:
    """Return the JVM exception that a Python one was created from."""
    if isinstance(error, captured.CapturedException):
        return error._origin
    return error.java_exception if isinstance(error, Py4JJavaError) else None


def raising(error: TahoeError) -> Column:
    """Return an expression that fails when it is evaluated, so that the caller of the query gets this error."""
    return sf.raise_error(sf.lit(f"tahoe-error-{_ERRORS.store(error)}-kept"))


def raising_with_values(factory: ErrorFactory) -> Callable[[Sequence[Column]], Column]:
    """Like `raising`, for an error with values of the row: the returned function takes columns, whose values the error gets as text.

    The returned function may be called many times; all calls share one stored error.
    """
    number = _ERRORS.store(factory)

    def failing(values: Sequence[Column]) -> Column:
        texts = sf.array(*(sf.substring(value.cast("string"), 1, _LONGEST_VALUE) for value in values))
        return sf.raise_error(sf.concat(sf.lit(f"tahoe-error-{number}-kept-"), sf.hex(sf.to_json(texts)), sf.lit("-")))

    return failing


@contextmanager
def quiet_errors(spark: SparkSession) -> Iterator[None]:
    """Suppress printing and logging of errors, by Java and by PySpark, during a command whose caller gets them as one exception. The log of
    a Spark Connect server is its own.
    """
    if not is_classic(spark):
        yield
        return
    with without_query_logs(), without_task_failures(spark):
        yield


@contextmanager
def without_query_logs() -> Iterator[None]:
    """Suppress PySpark's log message on an error, which it writes with the Java stack when it creates the error."""
    _COMMAND.depth = getattr(_COMMAND, "depth", 0) + 1
    try:
        yield
    finally:
        _COMMAND.depth -= 1


@contextmanager
def without_task_failures(spark: SparkSession) -> Iterator[None]:
    """Suppress the log messages on failed tasks during a job whose caller gets the failure; Spark logs each with its Java stack, once per
    component. This changes the levels of Spark's loggers, so it affects concurrent jobs too.
    """
    loggers = _loggers(spark)
    with _SILENCE:
        _SILENCED[0] += 1
        if _SILENCED[0] == 1:
            configured = loggers.context.getConfiguration().getLoggers()
            _PREVIOUS.update({name: configured.get(name) for name in _TASK_LOGGERS})
            _LEVELS.update({name: config.getLevel() for name, config in _PREVIOUS.items() if config is not None})
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
    """The Log4j objects of one JVM, looked up once: naming a class takes a call for each part of its name.

    Args:
        silent: the loggers that report failed tasks, each with the level ``OFF``.
    """

    context: JavaObject
    configurator: JavaObject
    silent: JavaObject


def _loggers(spark: SparkSession) -> _Loggers:
    gateway = spark.sparkContext._gateway
    if gateway not in _LOGGERS:
        jvm = Jvm.of(spark)
        silent = jvm.java_class("java.util.HashMap")()
        off = jvm.java_class("org.apache.logging.log4j.Level").toLevel("OFF")
        for name in _TASK_LOGGERS:
            silent.put(name, off)
        context = jvm.java_class("org.apache.logging.log4j.LogManager").getContext(False)
        _LOGGERS[gateway] = _Loggers(context, jvm.java_class("org.apache.logging.log4j.core.config.Configurator"), silent)
    return _LOGGERS[gateway]


def _restore_levels(loggers: _Loggers) -> None:
    configuration = loggers.context.getConfiguration()
    for name, config in _PREVIOUS.items():
        if config is None:
            configuration.removeLogger(name)
        else:
            config.setLevel(_LEVELS[name])
    loggers.context.updateLoggers()
    _PREVIOUS.clear()
    _LEVELS.clear()


_TASK_LOGGERS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.util.Utils",
)
_COMMAND = threading.local()
"""The nesting depth of `without_query_logs` in this thread."""
_QUERY_EXCEPTION = "org.apache.spark.sql.streaming.StreamingQueryException"
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers, which print an error with the Java stack when they create it, even if it is caught."""
_SILENCE = threading.Lock()
_SILENCED = [0]
_PREVIOUS: dict[str, JavaObject] = {}
"""The previous configuration of the silenced loggers; None for a logger that inherited its level."""
_LEVELS: dict[str, JavaObject] = {}
_LOGGERS: WeakKeyDictionary[JavaGateway, _Loggers] = WeakKeyDictionary()


def install() -> None:
    """Make PySpark return stored errors. Repeated calls do nothing."""
    if getattr(captured.convert_exception, "_tahoe", False):
        return
    original = captured.convert_exception

    def convert_exception(java_error: JavaObject) -> BaseException:
        # A query's own exception identifies the query; its cause is converted separately.
        if str(java_error.getClass().getName()) == _QUERY_EXCEPTION:
            return original(java_error)
        # Utils.exceptionString returns the whole chain of causes in one call.
        text = str(exception_text(java_error))
        error = _ERRORS.stored(text) or _error_of_worker(text)
        return original(unwrapped(java_error)) if error is None else error.with_traceback(None)

    convert_exception._tahoe = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]
    for name in ("py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(_is_not_stored)
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_outside_commands)


def _error_of_worker(text: str) -> TahoeError | None:
    """Return the error of Tahoe that ended a Python worker, from the text of Spark's exception; None if another one did."""
    shown = _OF_WORKER.search(text)
    kind = None if shown is None else getattr(exceptions, shown["kind"], None)
    if shown is None or not (isinstance(kind, type) and issubclass(kind, TahoeError)):
        return None
    return kind(shown["message"], code=shown["code"])


def unwrapped(java_error: JavaObject) -> JavaObject:
    """Return the original exception, if Java wrapped it: Python raised it in a method that does not declare it, or the method was called by
    reflection.
    """
    name = str(java_error.getClass().getName()).removeprefix("java.lang.reflect.")
    return java_error.getCause() if name in ("InvocationTargetException", "UndeclaredThrowableException") else java_error


def exception_text(java_error: JavaObject) -> str:
    """Return the text of a Java exception and of its causes, with their stacks."""
    assert SparkContext._jvm is not None
    return str(getattr(SparkContext._jvm, "org.apache.spark.util.Utils").exceptionString(java_error))


def _is_not_stored(record: logging.LogRecord) -> bool:
    """Filter for py4j, which logs the errors of callbacks; stored errors and errors from the JVM reach the caller instead."""
    return not (record.exc_info and isinstance(record.exc_info[1], (_StoredError, Py4JJavaError)))


def _is_outside_commands(_record: logging.LogRecord) -> bool:
    return not getattr(_COMMAND, "depth", 0)
