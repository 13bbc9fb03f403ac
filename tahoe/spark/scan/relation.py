"""A snapshot as a DataFrame: Spark's own Parquet scan over Tahoe's file index, and on top of it the log's mapping of files to rows.

    HadoopFsRelation(FileIndex, physical schema) ─► rows that no deletion vector deletes ─► logical names, order, and void columns

If physical and logical schema are the same and no file has a vector, the scan is used alone. Struct fields are renamed by struct updates,
which Catalyst simplifies, so that filters on nested fields reach the Parquet reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.predicate import FALSE, Predicate, quote_identifier
from tahoe.protocol.config import TableConfig
from tahoe.protocol.nan_bounds import is_float
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.collations import physical_collations
from tahoe.schema.mapping import transform_fields
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, leaves
from tahoe.schema.widening import preview_type_changes
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.executors.row_tasks import CHOSEN, FILE, ROW
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import install, raising
from tahoe.spark.jvm.file_systems import moves_in_python
from tahoe.spark.jvm.session_copies import session_with
from tahoe.spark.jvm.translate import (
    Names,
    shown_metadata,
    to_predicate,
    to_spark_schema,
    to_spark_type,
    with_shown_metadata,
)
from tahoe.spark.names.frame_columns import column_in
from tahoe.spark.scan import row_id_columns as row_ids
from tahoe.spark.scan.deleted_rows import DELETED_ROWS, is_live
from tahoe.spark.scan.file_index import FileIndex, has_vectors, opaque_columns
from tahoe.spark.scan.python_scan import IN_PYTHON, IS_CHOSEN, pruned_format, scans_in_python
from tahoe.spark.scan.renewal import follow_tables
from tahoe.spark.versions.column_types import check_column_types

if TYPE_CHECKING:
    from tahoe.api.table import Table

_VOID = PrimitiveType("void")
_POSITION_TYPES = {FILE: PrimitiveType("integer"), CHOSEN: PrimitiveType("binary")}
_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.read.ignoreMissing": "true"}


def read_snapshot(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    files: pa.Table | None = None,
    options: Mapping[str, str] | None = None,
    follows: Table | None = None,
    is_stream: bool = False,
) -> DataFrame:
    """Return the rows of a snapshot, read natively by Spark.

    Args:
        spark: a classic session.
        files: only these files (`tahoe.log.replay.FILES_SCHEMA`).
        options: reader options for Hadoop (``fs.…``).
        follows: the table, if the snapshot is its newest; each execution of the frame then reads the newest version.
        is_stream: whether the rows are a micro-batch of a stream, which Spark's plan must show.
    """
    install()
    if follows is not None:
        follow_tables(spark)
    with_vectors = has_vectors(snapshot, files)
    return _scan(spark, snapshot, _ScanOptions(with_vectors, files, options or {}, follows=follows, is_stream=is_stream))


def refuse_reserved_names(snapshot: Snapshot) -> None:
    """Raise `InvalidRequest` (``TAHOE_RESERVED_COLUMN_NAME``) if a column has the name of one that commands add to the rows."""
    reserved = [name for name in snapshot.schema.names if name.lower() in (FILE, ROW, CHOSEN)]
    if reserved:
        raise InvalidRequest(
            f"Table {snapshot.store.url} has a column '{reserved[0]}', a name that Tahoe needs to change rows on Spark. Rename the column.",
            code="TAHOE_RESERVED_COLUMN_NAME",
            table=snapshot.store.url,
            column=reserved[0],
        )


def read_rows(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, *, options: Mapping[str, str] | None = None, metadata: bool = True
) -> DataFrame:
    """Return the live rows of some files with their locations: the table's columns, then `FILE` and `ROW`, then `CHOSEN` if `files` has it.

    Args:
        files: of the snapshot, each with its number in an extra column `FILE` (int32), and optionally selected rows in `CHOSEN` (binary).
        metadata: whether to provide `_metadata`, which takes Catalyst some time; tables with row tracking always provide it.
    """
    install()
    refuse_reserved_names(snapshot)
    with_vectors = has_vectors(snapshot, files)
    return _scan(spark, snapshot, _ScanOptions(with_vectors, files, options or {}, metadata=metadata))


Alias = str | tuple[str, ...]
"""The name of a table in expressions, or its parts, of which the first may be left out: ``spark_catalog.db.t``, ``db.t``."""


def named(frame: DataFrame, alias: Alias | None) -> DataFrame:
    """Return the frame under the name that the user's expressions use for the table."""
    if alias is None or isinstance(alias, str):
        return frame if alias is None else frame.alias(alias)
    jvm, spark = Jvm.of(frame.sparkSession), frame.sparkSession
    *qualifier, name = alias
    identifier = jvm.catalyst("AliasIdentifier")(name, jvm.seq(*qualifier))
    plan = jvm.catalyst("plans.logical.SubqueryAlias")(identifier, frame._jdf.queryExecution().analyzed())
    return jvm.frame(spark._jsparkSession, plan, spark)


@dataclass(frozen=True, slots=True)
class Condition:
    """A SQL condition as predicates on files.

    Args:
        predicates: a row that fulfills the condition fulfills all of them; none if nothing can be derived.
        exact: whether a row that fulfills them fulfills the condition.
    """

    predicates: tuple[Predicate, ...]
    exact: bool


EVERY_ROW = Condition((), True)
"""The condition that is always true."""


def condition_of(spark: SparkSession, snapshot: Snapshot, condition: str | Column, alias: Alias | None = None) -> Condition:
    """Return Catalyst's analysis of the user's condition, in terms of the table's columns.

    Args:
        alias: a name for the table.

    Raises PySpark's own errors for an invalid condition on these columns.
    """
    plan = named(shape_of(spark, snapshot), alias).where(condition)._jdf.queryExecution().optimizedPlan()
    return condition_of_plan(snapshot, plan)


def shape_of(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Return a frame with the table's columns, only for Catalyst to analyze expressions; it must not run, as no deletion vector
    is applied.
    """
    install()
    return _scan(spark, snapshot, _ScanOptions(with_vectors=False))


def condition_of_plan(snapshot: Snapshot, plan: JavaObject) -> Condition:
    """Return the filters of an optimized plan over `shape_of`, as predicates on the table's columns."""
    names = Names(snapshot.schema, opaque_columns(snapshot))
    kind = plan.getClass().getSimpleName()
    if kind == "LocalRelation":
        return Condition((FALSE,), True)
    loose: list[Predicate | None] = []
    exact: list[Predicate | None] = []
    while kind != "LogicalRelation":
        if kind == "Filter":
            loose.append(to_predicate(plan.condition(), names, exact=False))
            exact.append(to_predicate(plan.condition(), names, exact=True))
        elif kind != "Project":
            return Condition((), False)
        plan = plan.children().head()
        kind = plan.getClass().getSimpleName()
    return Condition(tuple(predicate for predicate in loose if predicate is not None), None not in exact)


@dataclass(frozen=True, slots=True)
class _ScanOptions:
    """The arguments of `read_snapshot` and `read_rows`.

    Args:
        with_vectors: whether to leave out the rows of deletion vectors.
    """

    with_vectors: bool
    files: pa.Table | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)
    metadata: bool = True
    follows: Table | None = None
    is_stream: bool = False


def _scan(spark: SparkSession, snapshot: Snapshot, scan: _ScanOptions) -> DataFrame:
    jvm, files = Jvm.of(spark), scan.files
    more = [] if files is None else [name for name in _POSITION_TYPES if name in files.column_names]
    in_python = moves_in_python(spark, snapshot.store.url)
    hidden = [StructField(name, _POSITION_TYPES[name]) for name in more if not (in_python and name == CHOSEN)]
    if scan.with_vectors:
        hidden.append(StructField(DELETED_ROWS, PrimitiveType("binary")))
    tracked = materialized_columns(snapshot.config)
    in_files = () if tracked is None else row_ids.in_files(tracked)
    if tracked is not None:
        hidden += row_ids.HIDDEN
    if hidden or in_python:
        in_files = (*in_files, row_ids.ROW_INDEX, *((IS_CHOSEN,) if in_python and CHOSEN in more else ()))
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    index = FileIndex(jvm, snapshot, time_zone=time_zone, files=files, hidden=hidden, follows=scan.follows)
    base = scan_of(spark, index, scan.hadoop, in_files, is_stream=scan.is_stream)
    if not hidden and not in_python:
        return without_preview_types(_as_logical(base, snapshot.schema), snapshot)
    file = None
    if scan.metadata or tracked is not None:
        base, file = row_ids.with_file_metadata(jvm, base)
    row_index = row_ids.position(jvm, base)
    if scan.with_vectors:
        base = base.where(is_live(jvm, base[DELETED_ROWS], row_index))
    columns = [logical_column(base, column) for column in snapshot.schema]
    if more:
        columns += [base[FILE], row_index.alias(ROW)]
    if CHOSEN in more:
        columns.append(base[CHOSEN] if in_python else (~is_live(jvm, base[CHOSEN], row_index)).alias(CHOSEN))
    rows = base.select(*columns) if file is None else row_ids.with_metadata(jvm, base, columns, file, tracked)
    return without_preview_types(rows, snapshot)


def without_preview_types(rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Return rows that raise an error if a query reads a column whose old files Spark's Parquet reader cannot read.

    Spark's optimizer removes a column that is not read, and the error with it.
    """
    changes = preview_type_changes(snapshot.schema)
    return (
        rows.withColumns({name: _refused(name, change, rows, snapshot) for name, change in changes.items()}) if changes else rows
    )


def _refused(name: str, change: str, rows: DataFrame, snapshot: Snapshot) -> Column:
    url = snapshot.store.url
    error = Unsupported(
        f"Table {url}, version {snapshot.version}: column '{name}' was changed from {change} by a preview of type widening, and Spark "
        f"cannot read the files from before. Select other columns, or read it without Spark: tahoe.Table({url!r}).to_arrow().",
        code="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
        table=url,
        column=name,
    )
    return raising(error).cast(rows.schema[name].dataType)


def scan_of(
    spark: SparkSession,
    index: FileIndex,
    options: Mapping[str, str],
    in_files: Sequence[StructField] = (),
    *,
    is_stream: bool = False,
) -> DataFrame:
    """Return Spark's own scan.

    Args:
        options: reader options for Hadoop (``fs.…``).
        in_files: columns of the data files that the table lacks.
        is_stream: whether its rows are a micro-batch of a stream.
    """
    config = index.snapshot.config
    check_column_types(config.schema)
    jvm, by_id = Jvm.of(spark), config.column_mapping_mode == "id"
    session = session_with(spark, _BY_ID) if by_id else spark._jsparkSession
    file_format = _parquet(jvm, config.data_schema)
    if scans_in_python(spark, index.snapshot.store.url):
        options, file_format = {**options, IN_PYTHON: "true"}, pruned_format(jvm)
    location = index.to_java()
    relation: JavaObject = jvm.datasources("HadoopFsRelation")(
        location,
        location.partitionSchema(),
        jvm.data_type(StructType((*_file_schema(config, by_id).fields, *in_files)).to_json()),
        jvm.option(None),
        file_format,
        jvm.map(options),
        session,
    )
    if is_stream:
        leaf = getattr(jvm.datasources("LogicalRelation$"), "MODULE$").apply(relation, True)
        return jvm.frame(spark._jsparkSession, leaf, spark)
    return DataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)


def _parquet(jvm: Jvm, schema: StructType) -> JavaObject:
    """Return the file format: for columns that can have NaN, one that reads the row groups that may have it."""
    if any(is_float(leaf[-1].data_type) for leaf in leaves(schema)):
        return jvm.cached("NanSafeParquet", lambda: compiled_object(jvm, "NanSafeParquet"))
    return jvm.datasources("parquet.ParquetFileFormat")()


def _file_schema(config: TableConfig, by_id: bool) -> StructType:
    """Return the schema of the files, with physical names: without partition columns and void."""

    def physical(column: StructField) -> StructField:
        metadata = physical_collations(column, shown_metadata(column))
        if by_id and column.field_id is not None:
            metadata["parquet.field.id"] = column.field_id
        return replace(column, name=column.physical_name, metadata=metadata)

    schema = _without_void(config.data_schema)
    assert isinstance(schema, StructType)
    return transform_fields(schema, physical)


def _as_logical(base: DataFrame, schema: StructType) -> DataFrame:
    logical = with_shown_metadata(schema)
    if base.schema == to_spark_schema(logical):
        return base
    return base.select(*(logical_column(base, column) for column in schema))


def logical_column(base: DataFrame, column: StructField) -> Column:
    """Return one column of the table. An unchanged column keeps its identity: an alias would hide from Spark that two scans are the same."""
    if column.data_type == _VOID:
        return sf.lit(None).alias(column.name)
    values = column_in(base, column.physical_name)
    if column.name == column.physical_name and _is_plain(column.data_type):
        return values
    return _logical(values, column.data_type).alias(column.name)


def _logical(values: Column, data_type: DataType) -> Column:
    """Return the values with the logical names of struct fields, and with void fields."""
    if _is_plain(data_type):
        return values
    match data_type:
        case StructType():
            return _renamed(values, data_type)
        case ArrayType(element) if _contains_void(element):
            return sf.transform(values, lambda part: _logical(part, element))
        case MapType(key, value) if _contains_void(data_type):
            values = sf.transform_values(values, lambda _, part: _logical(part, value))
            return sf.transform_keys(values, lambda part, _: _logical(part, key))
    return values.cast(to_spark_type(with_shown_metadata(data_type)))


def _renamed(values: Column, struct: StructType) -> Column:
    """Drop all old fields, then add all new ones; the mark keeps the struct from being empty in between."""
    stored_fields = [column for column in struct if column.data_type != _VOID]
    renamed = values.withField(_MARK, sf.lit(True)).dropFields(
        *(quote_identifier(column.physical_name) for column in stored_fields)
    )
    for column in struct:
        value = sf.lit(None) if column.data_type == _VOID else _logical(values.getField(column.physical_name), column.data_type)
        renamed = renamed.withField(quote_identifier(column.name), value)
    return renamed.dropFields(_MARK)


_MARK = "__tahoe_mark"


def _is_plain(data_type: DataType) -> bool:
    """Return whether physical and logical form are the same."""
    match data_type:
        case StructType():
            return all(f.name == f.physical_name and f.data_type != _VOID and _is_plain(f.data_type) for f in data_type)
        case ArrayType(element):
            return _is_plain(element)
        case MapType(key, value):
            return _is_plain(key) and _is_plain(value)
    return True


def _contains_void(data_type: DataType) -> bool:
    match data_type:
        case StructType():
            return any(_contains_void(column.data_type) for column in data_type)
        case ArrayType(element):
            return _contains_void(element)
        case MapType(key, value):
            return _contains_void(key) or _contains_void(value)
    return data_type == _VOID


def _without_void(data_type: DataType) -> DataType:
    match data_type:
        case StructType(fields):
            stored_fields = [column for column in fields if column.data_type != _VOID]
            return StructType(tuple(replace(column, data_type=_without_void(column.data_type)) for column in stored_fields))
        case ArrayType(element):
            return replace(data_type, element_type=_without_void(element))
        case MapType(key, value):
            return replace(data_type, key_type=_without_void(key), value_type=_without_void(value))
    return data_type
