"""A statement on Delta tables as a plan: Spark's own node for external commands, which runs once, when the statement is executed.

EXPLAIN shows the node without running it. The node returns one text column, so a subclass is compiled whose columns and rows are those of
the command (`tahoe.spark.jvm.compiled`). Parameters of the statement are expressions of the node, which Spark replaces by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.local_rows import scala_rows
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.records import items
from tahoe.spark.names.error_names import COMMANDS, with_classes
from tahoe.txn.after_commit import logged_after_commit

Rows = Iterable[Sequence[Any]] | None
"""The rows of a result; None for a statement without a result."""


@dataclass(frozen=True, slots=True)
class Command:
    """The execution of a statement.

    Args:
        described: its name, for EXPLAIN and the log of Spark's queries.
        run: executes it and returns its rows, each a tuple of `columns`.
        columns: of the result; none for a statement without a result.
        parameters: expressions whose values are known when the statement is executed.
        run_with: replaces `run` if there are parameters: takes their values, also as expressions.
        is_query: whether it changes nothing. The rows of any other statement are created after its commit, and cannot make it fail.
    """

    described: str
    run: Callable[[], Rows]
    columns: StructType = field(default_factory=StructType)
    parameters: Sequence[JavaObject] = ()
    run_with: Callable[[Sequence[JavaObject]], Rows] | None = None
    is_query: bool = False


def as_plan(spark: SparkSession, command: Command) -> JavaObject:
    """Return the logical plan that runs a command."""
    jvm = Jvm.of(spark)
    output = jvm.catalyst("types.DataTypeUtils").toAttributes(jvm.data_type(command.columns.json()))
    arguments = (_Runner(), command.described, jvm.map({}), jvm.seq(*command.parameters), output, _Rows(spark, command))
    return compiled_object(jvm, "TableCommand", *arguments)


class _Rows(Proxied):
    """``values of parameters → rows``."""

    def __init__(self, spark: SparkSession, command: Command) -> None:
        self._spark, self._command = spark, command

    @answered
    def apply(self, values: JavaObject) -> JavaObject:
        """Run the command and return its rows."""
        command, jvm = self._command, Jvm.of(self._spark)
        no_rows = jvm.seq()
        with with_classes(COMMANDS.get(command.described, COMMANDS[""])):
            answer = command.run() if command.run_with is None else command.run_with(list(items(values)))
            rows = list(answer or ())
        if command.is_query:
            return scala_rows(jvm, rows, command.columns)
        with logged_after_commit("%s is committed, but its result could not be made, and is empty", command.described):
            return scala_rows(jvm, rows, command.columns)
        return no_rows

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


class _Runner(Proxied):
    """The Java interface ``ExternalCommandRunner``, which the node requires but does not call; EXPLAIN shows it."""

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("org.apache.spark.sql.connector.ExternalCommandRunner",)
