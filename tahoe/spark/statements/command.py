"""A statement on Delta tables as a plan: Spark's own node for commands of others, which runs once, when the statement is executed.

EXPLAIN shows it and does not run it. The node answers one column of text; so a class of its own is derived from it, whose columns and rows
are those of the command (`tahoe.spark.jvm.compiled`). Parameters of the statement are expressions of the node, which
Spark exchanges for their values.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.stand_ins import Proxied, answered

__all__ = ["Command", "as_plan"]

_NODE = """
package tahoe;

public class TableCommand extends org.apache.spark.sql.execution.command.ExternalCommandExecutor {
  private final scala.collection.immutable.Seq values;
  private final scala.collection.immutable.Seq output;
  private final scala.Function1 rows;

  public TableCommand(
      org.apache.spark.sql.connector.ExternalCommandRunner runner,
      String command,
      scala.collection.immutable.Map options,
      scala.collection.immutable.Seq values,
      scala.collection.immutable.Seq output,
      scala.Function1 rows) {
    super(runner, command, options);
    this.values = values;
    this.output = output;
    this.rows = rows;
  }

  public scala.collection.immutable.Seq output() { return output; }

  public int productArity() { return 4; }

  public Object productElement(int place) { return place == 3 ? values : super.productElement(place); }

  public scala.collection.immutable.Seq run(org.apache.spark.sql.SparkSession session) {
    try {
      return (scala.collection.immutable.Seq) rows.apply(values);
    } catch (java.lang.reflect.UndeclaredThrowableException error) {
      org.apache.spark.unsafe.Platform.throwException(error.getCause());
      return null;
    }
  }

  public scala.collection.immutable.Seq otherCopyArgs() {
    return ((scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$.$colon$colon(rows)).$colon$colon(output);
  }
}
"""


@dataclass(frozen=True, slots=True)
class Command:
    """What a statement will do.

    Args:
        described: its name, for EXPLAIN and the log of Spark's queries.
        run: does it, and gives its rows, each a tuple of `columns`.
        columns: of the answer; none for a statement without one.
        parameters: expressions whose values are known when the statement is executed.
        run_with: in the place of `run` where there are parameters: takes their values, expressions too.
    """

    described: str
    run: Callable[[], Iterable[Sequence[Any]] | None]
    columns: StructType = field(default_factory=StructType)
    parameters: Sequence[JavaObject] = ()
    run_with: Callable[[Sequence[JavaObject]], Iterable[Sequence[Any]] | None] | None = None


def as_plan(spark: SparkSession, command: Command) -> JavaObject:
    """The logical plan that runs a command."""
    jvm = Jvm.of(spark)
    output = jvm.catalyst("types.DataTypeUtils").toAttributes(jvm.data_type(command.columns.json()))
    arguments = (_Runner(), command.described, jvm.map({}), jvm.seq(*command.parameters), output, _Rows(spark, command))
    return compiled_object(jvm, "TableCommand", lambda: ("TableCommand", _NODE), *arguments)


class _Rows(Proxied):
    """``values of parameters → rows``."""

    def __init__(self, spark: SparkSession, command: Command) -> None:
        self._spark, self._command = spark, command

    @answered
    def apply(self, values: JavaObject) -> JavaObject:
        """Run the command; its rows, made by Spark of JSON, on the driver, without a job."""
        columns = ArrayType(self._command.columns)
        command = self._command
        answer = command.run() if command.run_with is None else command.run_with(list(items(values)))
        rows = [tuple(row) for row in answer or ()]
        jvm, spark = Jvm.of(self._spark), self._spark
        if not rows:
            return jvm.seq()
        text = sf.lit(json.dumps(_plain(rows, columns)))
        one_row = jvm.catalyst("plans.logical.OneRowRelation")()
        made = jvm.frame(spark._jsparkSession, one_row, spark).select(
            sf.from_json(text, columns, {"timeZone": "UTC"}).alias("rows")
        )
        return made._jdf.head().getSeq(0).toSeq()

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


class _Runner(Proxied):
    """The Java interface ``ExternalCommandRunner``, which the node has but does not ask; EXPLAIN shows it."""

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("org.apache.spark.sql.connector.ExternalCommandRunner",)


def _plain(value: Any, data_type: DataType) -> Any:
    """A value as JSON that `from_json` reads back."""
    if value is None:
        return None
    match data_type:
        case StructType() if isinstance(value, dict):
            return {column.name: _plain(value.get(column.name), column.dataType) for column in data_type}
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
        case BinaryType():
            return b64encode(value).decode()
        case DateType() | TimestampNTZType() | DecimalType():
            return str(value).replace(" ", "T")
    return value
