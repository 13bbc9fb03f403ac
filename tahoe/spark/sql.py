"""`spark.sql` of a session in which Delta is on: statements of Delta are carried out, and queries that read tables by path go to Spark.

    text ── parse ─┬─ not Delta's ─────────────────────────────► Spark, untouched
                   ├─ a statement (`tahoe.sql.statements`) ────► the core
                   └─ a query ── slices replaced ──────────────► Spark

In a query, each ``delta.`/path` [VERSION AS OF …]`` becomes a call of a table function, ``tahoe_table('/path', …)``, a temporary function of
the session whose body is here. Spark calls it while it resolves the query, with the version or time as an expression that Spark has parsed
and resolved, and takes the plan that it gives. So a temporary view over a table shows the newest version whenever it is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.exceptions import InvalidRequest
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.delete import delete
from tahoe.spark.commands.reorg import purge
from tahoe.spark.commands.update import update
from tahoe.spark.frames import detail_frame, empty_frame, history_frame, properties_frame
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.errors import install, kept_for_the_caller
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.options import ReadRequest, read_request
from tahoe.spark.names.snapshots import requested_snapshot
from tahoe.spark.scan.relation import read_snapshot
from tahoe.sql.parse import parse, with_values
from tahoe.sql.references import Replacement, rewritten
from tahoe.sql.statements import (
    AddConstraint,
    Command,
    Delete,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropConstraint,
    Purge,
    Query,
    SetProperties,
    ShowProperties,
    SyncMetadata,
    UnsetProperties,
    Update,
    UpgradeUniform,
)
from tahoe.table import Table

__all__ = ["TABLE_FUNCTION", "run"]

TABLE_FUNCTION = "tahoe_table"
"""The temporary function that stands for tables by path in queries that Spark gets."""

SparkSql = Callable[..., DataFrame]


def run(original: SparkSql, spark: SparkSession, text: str, args: Any, named: Mapping[str, Any]) -> DataFrame:
    """What ``spark.sql(text, args, **named)`` gives.

    Args:
        original: PySpark's own method, bound to the session.
        args: values of ``:name`` or ``?`` in queries.
        named: values for ``{name}`` in the text.

    Raises:
        Unsupported: a statement of Delta that this version of Tahoe does not know.
        SqlSyntaxError: the text begins as a statement of Delta and goes on otherwise.
    """
    if named:
        # As PySpark does it; what stands in for a frame is dropped afterwards.
        formatter: Any = SQLStringFormatter(spark)
        try:
            return run(original, spark, formatter.format(text, **named), args, {})
        finally:
            formatter.clear()
    statement = parse(text)
    if statement is None:
        return original(text, args)
    if isinstance(statement, Query):
        return _query(original, spark, statement, args)
    if isinstance(statement, DescribeTable):
        return run(original, spark, f"DESCRIBE QUERY SELECT * FROM {statement.table.written}", args, {})
    if args:
        return run(original, spark, with_values(text, _literals(spark, args)), None, {})
    return _carry_out(spark, statement, table_at(spark, statement.table.path, {}))


def _literals(spark: SparkSession, args: Any) -> dict[str, str] | list[str]:
    """The SQL of values for parameters, as Spark itself writes the literals."""
    given = list(args.values() if isinstance(args, dict) else args)
    plan = spark.range(1).select(*(sf.lit(value).alias("value") for value in given))._jdf.queryExecution().analyzed()
    found = [str(plan.projectList().apply(place).child().sql()) for place in range(len(given))]
    return dict(zip(args, found, strict=True)) if isinstance(args, dict) else found


# -- statements --------------------------------------------------------------------------------------------------------------


def _carry_out(spark: SparkSession, statement: Command, table: Table) -> DataFrame:
    match statement:
        case DescribeDetail():
            return detail_frame(spark, table)
        case DescribeHistory(_, limit):
            return history_frame(spark, table, limit)
        case ShowProperties(_, key):
            return properties_frame(spark, _shown_properties(spark, table, key))
        case SetProperties(_, properties):
            table.set_properties(properties)
        case UnsetProperties(_, names, if_exists):
            table.unset_properties(names, if_exists=if_exists)
        case AddConstraint(_, name, condition):
            table.add_constraint(name, condition)
        case DropConstraint(_, name, if_exists):
            table.drop_constraint(name, if_exists=if_exists)
        case SyncMetadata():
            table.uniform.sync()
        case Delete(_, alias, where):
            changed = delete(spark, table, where, alias=alias)
            return spark.createDataFrame([(changed.num_affected_rows,)], _AFFECTED)
        case Update(_, alias, values, where):
            changed = update(spark, table, values, where, alias=alias)
            return spark.createDataFrame([(changed.num_affected_rows,)], _AFFECTED)
        case UpgradeUniform(_, version):
            table.uniform.upgrade(version)
        case Purge(_, where):
            return purge(spark, table, where)
        case _:
            assert_never(statement)
    return empty_frame(spark)


_AFFECTED = StructType([StructField("num_affected_rows", LongType())])


def _shown_properties(spark: SparkSession, table: Table, key: str | None) -> dict[str, str]:
    """As SHOW TBLPROPERTIES tells them: the configuration, and the protocol, without what Spark's settings say is secret."""
    snapshot = table.snapshot()
    protocol = snapshot.protocol
    found = {
        **snapshot.metadata.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{name}": "supported" for name in (protocol.reader_features or ())},
        **{f"delta.feature.{name}": "supported" for name in (protocol.writer_features or ())},
    }
    jvm = Jvm.of(spark)
    found = jvm.dictionary(spark._jsparkSession.sessionState().conf().redactOptions(jvm.map(found)))
    if key is None:
        return found
    if key in found:
        return {key: found[key]}
    return {key: f"Table {table.url} does not have property: {key}"}


# -- queries -----------------------------------------------------------------------------------------------------------------


def _query(original: SparkSql, spark: SparkSession, query: Query, args: Any) -> DataFrame:
    _register(spark)
    number = None if query.is_kept else next(_NUMBERS)
    text, replacements = rewritten(query.text, query.references, TABLE_FUNCTION, number)
    if number is not None:
        _READ[number] = {}
    try:
        return original(text, args)
    except ParseException:
        # To the parser a path is a name as any other, so it finds the same fault in the user's own text, and tells its place there.
        return original(query.text, args)
    except PySparkException as error:
        raise _in_the_users_words(error, replacements) from None
    finally:
        if number is not None:
            del _READ[number]


_Version = tuple[str, int | None, str | None]
_NUMBERS = itertools.count(1)
_READ: dict[int, dict[_Version, Snapshot]] = {}
"""What each statement under way has read, by its number, so that all its references to a table see the same version. The number is an
argument of the table function, for Spark calls it from a thread of its own."""


def _in_the_users_words(error: PySparkException, replacements: tuple[Replacement, ...]) -> PySparkException:
    """The error with the user's text where it quotes what stands there now."""
    for attribute in ("_desc", "_message"):
        message = getattr(error, attribute, None)
        if isinstance(message, str):
            for one in replacements:
                message = message.replace(one.generated, one.written)
            setattr(error, attribute, message)
    return error


def _register(spark: SparkSession) -> None:
    """Have the table function in the session; copies of the session have it too."""
    if spark.conf.get(_REGISTERED, "false") == "true":
        return
    install()
    Jvm.of(spark)
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    registry.createOrReplaceTempFunction(TABLE_FUNCTION, _TableFunction(spark), "scala_udf")
    spark.conf.set(_REGISTERED, "true")


# As `ENABLED`, a setting: copies of a session have it, as they have its temporary functions; new sessions have neither.
_REGISTERED = "spark.tahoe.tableFunction"


class _TableFunction:
    """``tahoe_table(path [, 'version' | 'timestamp', expression] [, statement])``: Spark calls `apply` with the resolved arguments."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @kept_for_the_caller
    def apply(self, arguments: JavaObject) -> JavaObject:
        """The plan of the table; `arguments` is a Scala `Seq` of Catalyst expressions."""
        jvm = Jvm.of(self._spark)
        path = _path_of(arguments.apply(0))
        spark = _active(self._spark, jvm)
        request, count = ReadRequest(path), arguments.size()
        if count > 2:
            kind = str(arguments.apply(1).eval(None).toString())
            request = _travelled(path, kind, arguments.apply(2), spark, jvm)
        known = {} if count % 2 else _READ.get(arguments.apply(count - 1).eval(None), {})
        version = (request.path, request.version, request.timestamp)
        if version not in known:
            known[version] = requested_snapshot(spark, request, {})
        return read_snapshot(spark, known[version])._jdf.logicalPlan()

    class Java:
        implements = ("scala.Function1",)


def _path_of(expression: JavaObject) -> str:
    value = expression.eval(None)
    return value.decode("utf-8", "surrogatepass") if isinstance(value, (bytes, bytearray)) else str(value.toString())


def _active(spark: SparkSession, jvm: Jvm) -> SparkSession:
    """The session that resolves the query: the one that has the function, or a copy of it."""
    java = jvm.java_class("org.apache.spark.sql.classic.SparkSession").active()
    return spark if java.equals(spark._jsparkSession) else SparkSession(spark.sparkContext, java)


def _travelled(path: str, kind: str, expression: JavaObject, spark: SparkSession, jvm: Jvm) -> ReadRequest:
    if kind == "version":
        text = str(expression.eval(None))
        return read_request(path, {"versionAsOf": text}, has_schema=False)
    if jvm.catalyst("expressions.SubqueryExpression").hasSubquery(expression):
        raise InvalidRequest(
            f"TIMESTAMP AS OF takes a constant, found a subquery for table delta.`{path}`. Run the query first and write its answer.",
            code="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
        )
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spec = jvm.catalyst("analysis.TimeTravelSpec").create(jvm.option(expression), jvm.option(None), zone)
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=spec.get().timestamp())
    return ReadRequest(path, timestamp=instant.isoformat())
