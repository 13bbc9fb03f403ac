"""A statement on Delta tables as a plan: Spark's own node for commands of others, which runs once, when the statement is executed.

EXPLAIN shows it and does not run it; in views and queries it cannot stand. Rows come back as JSON, one text each, which is all that the
node can give, and a projection over it gives them their columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.stand_ins import answered

__all__ = ["Command", "as_plan"]

_EXECUTOR = "org.apache.spark.sql.execution.command.ExternalCommandExecutor"
_OUTPUT = "command_output"


@dataclass(frozen=True, slots=True)
class Command:
    """What a statement will do.

    Args:
        described: its name, for EXPLAIN and the log of Spark's queries.
        run: does it, and gives its rows, each a tuple of `columns`.
        columns: of the answer; none for a statement without one.
    """

    described: str
    run: Callable[[], Iterable[Sequence[Any]] | None]
    columns: StructType = field(default_factory=StructType)


def as_plan(spark: SparkSession, command: Command) -> JavaObject:
    """The logical plan that runs a command."""
    jvm = Jvm.of(spark)
    node = jvm.java_class(_EXECUTOR)(_Runner(jvm, command), command.described, jvm.map({}))
    row = sf.from_json(sf.col(_OUTPUT), command.columns, {"timeZone": "UTC"})
    columns = [row.getField(column.name).alias(column.name) for column in command.columns]
    return jvm.catalyst("plans.logical.Project")(jvm.seq(*(jvm.expression(column) for column in columns)), node)


class _Runner:
    """The Java interface ``ExternalCommandRunner``."""

    def __init__(self, jvm: Jvm, command: Command) -> None:
        self._jvm, self._command = jvm, command

    @answered
    def executeCommand(self, text: str, options: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """The rows, as JSON."""
        columns = self._command.columns
        rows = self._command.run() or ()
        return self._jvm.array("java.lang.String", [json.dumps(_plain(tuple(row), columns)) for row in rows])

    def toString(self) -> str:  # noqa: N802 - Java's name
        """For EXPLAIN."""
        return "Tahoe"

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """Goes with `equals`."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Identity."""
        return other is self

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("org.apache.spark.sql.connector.ExternalCommandRunner",)


def _plain(value: Any, data_type: DataType) -> Any:
    """A value as JSON that `from_json` reads back."""
    if value is None:
        return None
    match data_type:
        case StructType():
            return {column.name: _plain(one, column.dataType) for column, one in zip(data_type, value, strict=True)}
        case ArrayType():
            return [_plain(one, data_type.elementType) for one in value]
        case MapType():
            return {str(key): _plain(one, data_type.valueType) for key, one in value.items()}
        case TimestampType():
            instant = value if value.tzinfo is not None else value.astimezone()
            assert isinstance(instant, datetime)
            return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value
