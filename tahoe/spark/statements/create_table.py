"""CREATE TABLE and REPLACE TABLE, with or without AS SELECT, from the parser's plans.

They are handled before Spark resolves them, because Spark would look up a data source named ``delta``, for which it starts a Python
process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import Unsupported
from tahoe.protocol.clustering import shown_path
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import StructField, StructType, schema_from_json
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.new_entries import in_session_catalog
from tahoe.spark.names.settings import is_on
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import name_parts
from tahoe.spark.versions.geospatial_types import check_geospatial_types

__all__ = ["CREATION_STATEMENTS", "column_text", "given"]

_GENERATED = "GENERATION_EXPRESSION"
_OF_SPARK = (_GENERATED, CURRENT_DEFAULT, EXISTS_DEFAULT)


def _create(spark: SparkSession, plan: JavaObject) -> Command | None:
    return _command(spark, plan, "createIfNotExists" if plan.ignoreIfExists() else "create", "CREATE TABLE")


def _replace(spark: SparkSession, plan: JavaObject) -> Command | None:
    return _command(spark, plan, "createOrReplace" if plan.orCreate() else "replace", "REPLACE TABLE")


CREATION_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "CreateTable": _create,
    "CreateTableAsSelect": _create,
    "ReplaceTable": _replace,
    "ReplaceTableAsSelect": _replace,
}
"""Handlers by the name of the plan node."""


def _command(spark: SparkSession, plan: JavaObject, how: str, words: str) -> Command | None:
    name = name_parts(spark, plan.name())
    query = plan.query() if str(plan.nodeName()).endswith("AsSelect") else None
    if name is None or not in_session_catalog(spark, name) or not _is_delta(spark, plan.tableSpec(), query is not None):
        return None
    asked = _asked(spark, plan, name, how)
    if query is not None:
        asked = replace(asked, query=lambda: Jvm.of(spark).frame(spark._jsparkSession, query, spark))

    def run() -> None:
        make_table(spark, asked)

    return Command(words if query is None else f"{words} AS SELECT", run)


def _is_delta(spark: SparkSession, spec: JavaObject, has_query: bool) -> bool:
    """Determine a table's provider as Spark does: the named one, Hive's, or the session's default."""
    provider = given(spec.provider())
    if provider is not None:
        return str(provider).lower() == "delta"
    settings = spark._jsparkSession.sessionState().conf()
    if spec.serde().isDefined() or str(settings.defaultDataSourceName()).lower() != "delta":
        return False
    by_hive = is_on(spark, "spark.sql.legacy.createHiveTableByDefault")
    return not by_hive or (has_query and bool(settings.convertCTAS()))


def _asked(spark: SparkSession, plan: JavaObject, name: tuple[str, ...], how: str) -> Creation:
    spec, jvm = plan.tableSpec(), Jvm.of(spark)
    fields = str(spec.productElementNames().mkString(",")).split(",")
    if "collation" in fields and given(spec.collation()) is not None:
        raise Unsupported(
            f"DEFAULT COLLATION {given(spec.collation())} of a table is not supported: its texts would compare otherwise than by bytes, "
            "for which Delta has no table feature yet. Leave it out, and give the collation in queries.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            table=".".join(name),
        )
    if "constraints" in fields and spec.constraints().size():
        raise _not_yet("A constraint inside of CREATE TABLE", "Create the table, and add it by ALTER TABLE … ADD CONSTRAINT.")
    has_query = str(plan.nodeName()).endswith("AsSelect")
    partition_by, cluster_by = _layout(plan.partitioning())
    definition = TableDefinition(
        StructType() if has_query else _schema(jvm, plan.columns()),
        partition_by,
        jvm.dictionary(spec.properties()),
        given(spec.comment()),
        cluster_by=cluster_by,
        by_statement=True,
    )
    return Creation(name, how, definition, given(spec.location()), dict(_options(spec)))


def _schema(jvm: Jvm, columns: JavaObject) -> StructType:
    """Return the schema of a parsed column list, with generated columns in the protocol's form."""
    schema = jvm.java_class("org.apache.spark.sql.types.StructType")()
    for column in items(columns):
        schema = schema.add(column.toV1Column())
    text = str(schema.json())
    try:
        parsed = SparkStruct.fromJson(json.loads(text))
    except IllegalArgumentException:  # an SRID that Spark's parser supports, and PySpark does not
        check_geospatial_types(schema_from_json(text))
        raise
    found = from_spark_schema(parsed)
    return StructType(tuple(_with_delta_metadata(one, given) for one, given in zip(found, items(columns), strict=True)))


def _with_delta_metadata(column: StructField, parsed: JavaObject) -> StructField:
    """Return the column with Delta's metadata keys for generated, default and identity values instead of Spark's."""
    kept = {key: value for key, value in column.metadata.items() if key not in _OF_SPARK and not key.startswith("identity.")}
    if _GENERATED in column.metadata:
        kept["delta.generationExpression"] = column.metadata[_GENERATED]
    if parsed.defaultValue().isDefined():
        kept[CURRENT_DEFAULT] = str(parsed.defaultValue().get().originalSQL())
    if parsed.identityColumnSpec().isDefined():
        spec = parsed.identityColumnSpec().get()
        explicit = bool(spec.isAllowExplicitInsert())
        kept |= identity_metadata(int(spec.getStart()), int(spec.getStep()), allow_explicit=explicit)
    return replace(column, metadata=kept)


def _layout(partitioning: JavaObject) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the columns of PARTITIONED BY, and those of CLUSTER BY, or None without the clause."""
    transforms = list(items(partitioning))
    clusters = [one for one in transforms if str(one.name()) == "cluster_by"]
    cluster_by = [column_text(reference) for one in clusters for reference in one.references()]
    partition_by = _partition_columns(one for one in transforms if str(one.name()) != "cluster_by")
    return tuple(partition_by), tuple(cluster_by) if clusters else None


def column_text(reference: JavaObject) -> str:
    """Return a ``NamedReference`` as text, with its parts quoted if necessary."""
    return shown_path(tuple(map(str, reference.fieldNames())))


def _partition_columns(partitioning: Iterable[JavaObject]) -> Iterator[str]:
    for transform in partitioning:
        kind, references = str(transform.name()), transform.references()
        if kind in ("bucket", "sorted_bucket"):
            raise _not_allowed("Bucketing (CLUSTERED BY … INTO … BUCKETS)", "DELTA_OPERATION_NOT_ALLOWED_DETAIL")
        parts = references[0].fieldNames()
        if kind != "identity" or len(parts) != 1:
            raise _not_allowed(f"Partitioning by expressions ({transform.toString()})")
        yield str(parts[0])


def _options(spec: JavaObject) -> Iterator[tuple[str, str]]:
    for pair in items(spec.optionExpression().options()):
        yield str(pair._1()), str(pair._2().eval(None))


def given(option: JavaObject) -> Any:
    """Return the value of a Scala ``Option``, or None."""
    return option.get() if option.isDefined() else None


def _not_allowed(what: str, code: str = "DELTA_OPERATION_NOT_ALLOWED") -> Unsupported:
    return Unsupported(
        f"{what} is not supported for Delta tables. Use PARTITIONED BY with plain columns, or leave it out.", code=code
    )


def _not_yet(what: str, remedy: str) -> Unsupported:
    return Unsupported(f"{what} is not supported by this version of Tahoe. {remedy}", code="TAHOE_NOT_IN_THIS_VERSION")
