"""The name of an error: its error condition, wherever in the chain of the JVM's causes it is, or its class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

__all__ = ["Raised", "raised_by"]

_WRAPPERS = ("TASK_WRITE_FAILED", "STREAM_FAILED", "_LEGACY_ERROR_TEMP_")
"""Conditions that say only that something else failed, or that have no name."""
_OF_A_STREAM = re.compile(r"terminated with exception: \[([\w.]+)\]")
"""The cause of a stream's failure may be an exception of Python, which the JVM knows only by its message."""
_UNKNOWN_TO_SPARK = re.compile(r"Cannot find main error class '(\w+)'")
"""delta-spark raises some of its conditions as an exception of Spark's, whose table of messages does not have them."""
_CLASSES_OF_ANY_ERROR = ("UnknownException", "Py4JJavaError", "SparkException", "StreamingQueryException")


@dataclass(frozen=True)
class Raised:
    """An error of a step.

    Args:
        name: its error condition, or its class where it has none.
        classes: the classes, of Python and of the JVM, by which it can be named too.
        message: the whole message.
    """

    name: str
    classes: frozenset[str]
    message: str

    def is_named(self, expected: str) -> bool:
        """Whether this is the condition, the main condition of a subcondition, or a class of the error."""
        return self.name == expected or self.name.startswith(f"{expected}.") or expected in self.classes

    @property
    def text(self) -> str:
        """The name and the message."""
        return f"{self.name}: {self.message}"


def raised_by(error: Exception, folder: str) -> Raised:
    """The description of an error in a case; `folder` is a path that the message shows as `{folder}`."""
    causes = list(_causes(error))
    conditions = [condition for condition in (_own_condition(error), *map(_jvm_condition, causes)) if condition]
    classes = [type(error).__name__, *(cause.getClass().getSimpleName() for cause in causes)]
    named = [name for name in classes if name not in _CLASSES_OF_ANY_ERROR]
    mro = {base.__name__ for base in type(error).__mro__} - {"object", "BaseException", "Exception"}
    messages = [str(error), *(str(cause.getMessage()) for cause in causes)]
    unknown = [match[1] for match in map(_UNKNOWN_TO_SPARK.search, messages) if match]
    of_stream = [match[1] for match in map(_OF_A_STREAM.search, messages) if match]
    name = next(iter([*unknown, *conditions, *of_stream, *named, *classes]))
    return Raised(name, frozenset({*classes, *mro}), "\n".join(dict.fromkeys(messages)).replace(folder, "{folder}"))


def _own_condition(error: Exception) -> str | None:
    get = getattr(error, "getCondition", None)
    return _named(get()) if get else None


def _causes(error: Exception) -> Iterator[Any]:
    """The exception of the JVM and its causes."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def _jvm_condition(cause: Any) -> str | None:
    gateway = SparkContext._active_spark_context._gateway
    return _named(cause.getCondition()) if is_instance_of(gateway, cause, "org.apache.spark.SparkThrowable") else None


def _named(condition: str | None) -> str | None:
    return condition if condition and not condition.startswith(_WRAPPERS) else None
