"""CREATE TABLE and REPLACE TABLE, with or without AS SELECT, and CREATE TEMPORARY VIEW … USING delta, from the parser's plans.

They are handled before Spark resolves them, because Spark would look up a data source named ``delta``, for which it starts a Python
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.clustering import shown_path
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import GENERATION_EXPRESSION, StructField, StructType, schema_from_json
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.new_entries import in_session_catalog
from tahoe.spark.names.settings import is_on
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.statement_types import SparkStatement
from tahoe.spark.statements.targets import name_parts, option_value
from tahoe.spark.versions.column_types import check_column_types
from tahoe.spark.versions.members import has_field

_GENERATED = "GENERATION_EXPRESSION"
_OF_SPARK = (_GENERATED, CURRENT_DEFAULT, EXISTS_DEFAULT)


def _create(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    return _creation(statement, spark, plan, "createIfNotExists" if plan.ignoreIfExists() else "create")


def _replace(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    return _creation(statement, spark, plan, "createOrReplace" if plan.orCreate() else "replace")


def _creation(statement: SparkStatement, spark: SparkSession, plan: JavaObject, how: str) -> Command | None:
    name = name_parts(spark, plan.name())
    query = plan.query() if statement.node.endswith("AsSelect") else None
    if name is None or not in_session_catalog(spark, name) or not _is_delta(spark, plan.tableSpec(), query is not None):
        return None
    request = _request(spark, plan, name, how, has_query=query is not None)
    if query is not None:
        request = replace(request, query=lambda: Jvm.of(spark).frame(spark._jsparkSession, query, spark))

    def run() -> None:
        make_table(spark, request)

    return statement.execution(run)


def _temporary_view(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Handle CREATE TEMPORARY VIEW … USING delta OPTIONS (path …): a view over a reader with these options.

    Spark would use the portable data source, which reads every row through Python, and always the version at the time of the statement.
    """
    if str(plan.provider()).lower() != "delta":
        return None
    name, options = quote_identifier(str(plan.tableIdent().table())), Jvm.of(spark).dictionary(plan.options())
    if plan.userSpecifiedSchema().isDefined():
        raise InvalidRequest(
            f"The temporary view {name} is given columns, but a Delta table has those of its log. Leave them out, and give OPTIONS (path …).",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            table=name,
        )
    is_global = getattr(plan, "global")()
    method = f"create{'OrReplace' if plan.replace() else ''}{'Global' if is_global else ''}TempView"

    def run() -> None:
        getattr(spark.read.format("delta").options(**options).load(), method)(name)

    return statement.execution(run)


_AS_SELECT = "name partitioning query tableSpec writeOptions"
CREATION_STATEMENTS = (
    SparkStatement("CREATE TABLE", "CreateTable", "name columns partitioning tableSpec ignoreIfExists", _create),
    SparkStatement("CREATE TABLE AS SELECT", "CreateTableAsSelect", f"{_AS_SELECT} ignoreIfExists isAnalyzed", _create),
    SparkStatement("REPLACE TABLE", "ReplaceTable", "name columns partitioning tableSpec orCreate", _replace),
    SparkStatement("REPLACE TABLE AS SELECT", "ReplaceTableAsSelect", f"{_AS_SELECT} orCreate isAnalyzed", _replace),
    SparkStatement(
        "CREATE TEMPORARY VIEW … USING delta",
        "CreateTempViewUsing",
        "tableIdent userSpecifiedSchema replace global provider options",
        _temporary_view,
    ),
)


def _is_delta(spark: SparkSession, spec: JavaObject, has_query: bool) -> bool:
    """Determine a table's provider as Spark does: the named one, Hive's, or the session's default."""
    provider = option_value(spec.provider())
    if provider is not None:
        return str(provider).lower() == "delta"
    settings = spark._jsparkSession.sessionState().conf()
    if spec.serde().isDefined() or str(settings.defaultDataSourceName()).lower() != "delta":
        return False
    by_hive = is_on(spark, "spark.sql.legacy.createHiveTableByDefault")
    return not by_hive or (has_query and bool(settings.convertCTAS()))


def _request(spark: SparkSession, plan: JavaObject, name: tuple[str, ...], how: str, *, has_query: bool) -> Creation:
    spec, jvm = plan.tableSpec(), Jvm.of(spark)
    if has_field(spec, "collation") and option_value(spec.collation()) is not None:
        raise Unsupported(
            f"DEFAULT COLLATION {option_value(spec.collation())} of a table is not supported: its texts would compare otherwise than by "
            "bytes, for which Delta has no table feature yet. Leave it out, and give the collation in queries.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            table=".".join(name),
        )
    if has_field(spec, "constraints") and spec.constraints().size():
        raise _not_yet("A constraint inside of CREATE TABLE", "Create the table, and add it by ALTER TABLE … ADD CONSTRAINT.")
    partition_by, cluster_by = _layout(plan.partitioning())
    definition = TableDefinition(
        StructType() if has_query else _schema(jvm, plan.columns()),
        partition_by,
        jvm.dictionary(spec.properties()),
        option_value(spec.comment()),
        cluster_by=cluster_by,
        by_statement=True,
    )
    return Creation(name, how, definition, option_value(spec.location()), dict(_options(spec)))


def _schema(jvm: Jvm, columns: JavaObject) -> StructType:
    """Return the schema of a parsed column list, with generated columns in the protocol's form."""
    schema = jvm.java_class("org.apache.spark.sql.types.StructType")()
    for column in items(columns):
        schema = schema.add(column.toV1Column())
    text = str(schema.json())
    try:
        parsed = SparkStruct.fromJson(json.loads(text))
    except IllegalArgumentException:  # an SRID that Spark's parser supports, and PySpark does not
        check_column_types(schema_from_json(text))
        raise
    pairs = zip(from_spark_schema(parsed), items(columns), strict=True)
    return StructType(tuple(_with_delta_metadata(column, definition) for column, definition in pairs))


def _with_delta_metadata(column: StructField, parsed: JavaObject) -> StructField:
    """Return the column with Delta's metadata keys for generated, default and identity values instead of Spark's."""
    metadata = {key: value for key, value in column.metadata.items() if key not in _OF_SPARK and not key.startswith("identity.")}
    if _GENERATED in column.metadata:
        metadata[GENERATION_EXPRESSION] = column.metadata[_GENERATED]
    if parsed.defaultValue().isDefined():
        metadata[CURRENT_DEFAULT] = str(parsed.defaultValue().get().originalSQL())
    if parsed.identityColumnSpec().isDefined():
        spec = parsed.identityColumnSpec().get()
        explicit = bool(spec.isAllowExplicitInsert())
        metadata |= identity_metadata(int(spec.getStart()), int(spec.getStep()), allow_explicit=explicit)
    return replace(column, metadata=metadata)


_CLUSTER_BY = ("cluster_by", "temp_cluster_by")
"""The names of the transform of CLUSTER BY; the second is that of delta-spark's parser, if the session has its extension."""


def _layout(partitioning: JavaObject) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the columns of PARTITIONED BY, and those of CLUSTER BY, or None without the clause."""
    transforms = list(items(partitioning))
    clusters = [transform for transform in transforms if str(transform.name()) in _CLUSTER_BY]
    cluster_by = [column_text(column) for transform in clusters for column in items(transform.columnNames())]
    partition_by = _partition_columns(transform for transform in transforms if str(transform.name()) not in _CLUSTER_BY)
    return tuple(partition_by), tuple(cluster_by) if clusters else None


def column_text(reference: JavaObject) -> str:
    """Return a ``NamedReference`` as text, with its parts quoted if necessary."""
    return shown_path(tuple(map(str, reference.fieldNames())))


def _partition_columns(partitioning: Iterable[JavaObject]) -> Iterator[str]:
    for transform in partitioning:
        kind, references = str(transform.name()), transform.references()
        if kind in ("bucket", "sorted_bucket"):
            raise bucketing_not_allowed()
        parts = references[0].fieldNames()
        if kind != "identity" or len(parts) != 1:
            raise expression_not_allowed(str(transform.toString()))
        yield str(parts[0])


def _options(spec: JavaObject) -> Iterator[tuple[str, str]]:
    for pair in items(spec.optionExpression().options()):
        yield str(pair._1()), str(pair._2().eval(None))


def bucketing_not_allowed() -> Unsupported:
    """Return the error for ``CLUSTERED BY … INTO … BUCKETS``."""
    return _not_allowed("Bucketing (CLUSTERED BY … INTO … BUCKETS)", "DELTA_OPERATION_NOT_ALLOWED_DETAIL")


def expression_not_allowed(expression: str) -> Unsupported:
    """Return the error for ``PARTITIONED BY (years(d))``, for instance."""
    return _not_allowed(f"Partitioning by expressions ({expression})")


def _not_allowed(clause: str, code: str = "DELTA_OPERATION_NOT_ALLOWED") -> Unsupported:
    return Unsupported(
        f"{clause} is not supported for Delta tables. Use PARTITIONED BY with plain columns, or leave it out.", code=code
    )


def _not_yet(clause: str, remedy: str) -> Unsupported:
    return Unsupported(f"{clause} is not supported by this version of Tahoe. {remedy}", code="TAHOE_NOT_IN_THIS_VERSION")
