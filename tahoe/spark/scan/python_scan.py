"""Scans of tables whose files Spark's JVM cannot open, because it lacks the file system of their store.

    plan with a relation of files ─► Spark's planner ─► `PythonScans`: the columns and filters of the query
        ─► the files, and `mapInArrow` over them (`tahoe.spark.executors.scan_tasks`) ─► the rest of the plan, which is Spark's own

Analysis and optimization see the same relation as for other stores, so names, streams, feeds and statistics need nothing special. Spark
applies all filters again to the rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import all_of
from tahoe.log.replay import add_files
from tahoe.protocol.features import Use, check_columns
from tahoe.protocol.partition import serialize
from tahoe.schema.evolve import as_nullable
from tahoe.schema.mapping import transform_fields
from tahoe.schema.types import PrimitiveType, StructField, StructType, schema_from_json
from tahoe.snapshot.scan import read_task
from tahoe.spark.executors.data_source_tasks import binned
from tahoe.spark.executors.row_tasks import CHOSEN
from tahoe.spark.executors.scan_tasks import PythonScan, ScannedColumns, ScannedFile, scanned_rows
from tahoe.spark.executors.shipped import mapped
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import add_strategy
from tahoe.spark.jvm.file_systems import moves_in_python
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.session_copies import session_with
from tahoe.spark.jvm.translate import Names, filter_predicate, to_spark_schema, with_shown_metadata
from tahoe.spark.scan.deleted_rows import DELETED_ROWS
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.row_id_columns import ROW_INDEX
from tahoe.spark.scan.scan_filters import ScanFilters

IN_PYTHON = "tahoe.scan.inPython"
"""The option of a relation whose files Python workers read."""
IS_CHOSEN = StructField(CHOSEN, PrimitiveType("boolean"))
"""The column of such a relation for `CHOSEN`, in place of one with bits."""
_METADATA_KEY, _FIELD_ID = "__metadata_col", "parquet.field.id"
_TIMESTAMP, _BINARY = PrimitiveType("timestamp"), PrimitiveType("binary")
_ITEM = SparkStruct().add("item", BinaryType())
_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"


def scans_in_python(spark: SparkSession, url: str) -> bool:
    """Return whether Python workers must read the files of a table, and prepare the session's planner for it; copies of the session have it
    too. A stream has a copy from its start, so its session is prepared when it is read.
    """
    if not moves_in_python(spark, url):
        return False
    add_strategy(spark, "PythonScans", lambda: (_PythonScans(spark), _Refusal()), option=IN_PYTHON)
    return True


def pruned_format(jvm: Jvm) -> JavaObject:
    """Return the file format of such a relation, which nothing reads with.

    Spark's optimizer removes unneeded fields of structs only for Parquet and ORC, and for Parquet it replaces variants by the parts that a
    query extracts.
    """
    return jvm.datasources("orc.OrcFileFormat")()


class _PythonScans(Proxied):
    """``(text of a scan's index, its columns as JSON, partition filters, other filters, texts of both) → physical plan``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, text: str, columns: str, partition_filters: JavaObject, data_filters: JavaObject, texts: str) -> JavaObject:
        """Return the plan of a scan with these columns, of the files that can have rows for which the filters are true."""
        index, output = FileIndex.in_use(text), schema_from_json(columns)
        filters = ScanFilters(texts, partition_filters, data_filters)
        files = index.files_of(filters.partition, filters.data)
        scanned = _columns(index, output)
        names = Names(scanned.stored, frozenset(scanned.partition_columns))
        predicates = [filter_predicate(condition, names, exact=False) for condition in filters.data]
        known = [predicate for predicate in predicates if predicate is not None]
        scan = PythonScan(index.snapshot.store, index.snapshot.version, scanned, all_of(known) if known else None)
        return _frame(self._spark, scan, _files(index, files, scanned))._jdf.queryExecution().sparkPlan()

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function5",)


class _Refusal(Proxied):
    """``text of a scan's index → None``, for a query that asks for the file that is being read."""

    @answered
    def apply(self, text: str) -> None:
        """Raise the error."""
        url = FileIndex.in_use(text).snapshot.store.url
        raise Unsupported(
            f"input_file_name() and the functions for its blocks are empty for table {url}, because Spark lacks the file system of its store "
            "and Python workers read its files. Use _metadata.file_path.",
            code="TAHOE_INPUT_FILE_NAME",
            table=url,
        )

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


def _columns(index: FileIndex, output: StructType) -> ScannedColumns:
    """Return the columns of a scan.

    Args:
        output: the columns that Spark's Parquet scan would have: with physical names.
    """
    check_columns(output, Use.CONNECT)
    hidden = {column.name: column for column in index.hidden}
    in_partitions = {column.physical_name for column in index.snapshot.config.partition_schema} | set(hidden)
    narrowing = frozenset(name for name in output.names if name in hidden and hidden[name].data_type == _BINARY)
    made = {*narrowing, CHOSEN, ROW_INDEX.name}
    shown, stored = as_nullable(with_shown_metadata(output)), as_nullable(transform_fields(output, _with_id))
    assert isinstance(shown, StructType)
    assert isinstance(stored, StructType)
    is_stored = [column.name not in made and _METADATA_KEY not in column.metadata for column in output]
    stored = StructType(tuple(column for column, included in zip(stored, is_stored, strict=True) if included))
    return ScannedColumns(
        output=shown if shown.fields else StructType((ROW_INDEX,)),
        stored=stored,
        mapping_mode="id" if index.snapshot.config.column_mapping_mode == "id" else "none",
        partition_columns=tuple(name for name in stored.names if name in in_partitions),
        row_index=ROW_INDEX.name,
        narrowing=narrowing,
        choosing=frozenset({CHOSEN} & set(output.names)),
    )


def _with_id(column: StructField) -> StructField:
    """Return the column with the id of its field in files where `tahoe.snapshot.arrow_reader` finds it."""
    number = column.metadata.get(_FIELD_ID)
    ids = {} if number is None else {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column.name}
    others = {key: value for key, value in column.metadata.items() if key != _FIELD_ID}
    return replace(column, metadata={**others, **ids})


def _files(index: FileIndex, files: pa.Table, scanned: ScannedColumns) -> list[ScannedFile]:
    urls = index.urls_of(files).to_pylist()
    values = {
        column.name: index.values_of(files, column).to_pylist()
        for column in index.hidden
        if column.name in scanned.partition_columns or (column.name in scanned.narrowing and column.name != DELETED_ROWS)
    }
    for name in scanned.choosing:
        values[name] = files[name].to_pylist()
    zoned = [column.physical_name for column in index.snapshot.config.partition_schema if column.data_type == _TIMESTAMP]
    scanned_files = []
    for number, add in enumerate(add_files(files)):
        task, of_file = read_task(index.snapshot, add), {name: column[number] for name, column in values.items()}
        texts = {name: _in_utc(text, index.time_zone) if name in zoned else text for name, text in task.partition_values.items()}
        texts |= {name: value for name, value in of_file.items() if name in scanned.partition_columns}
        selected = {name: value for name, value in of_file.items() if name not in scanned.partition_columns}
        task = replace(task, partition_values=texts)
        scanned_files.append(ScannedFile(task, urls[number], add.modification_time, selected))
    return scanned_files


def _in_utc(text: str | None, time_zone: str) -> str | None:
    """Return a partition value with its time zone; one without a zone is in the session's, as Spark reads it."""
    if not text:
        return text
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return text  # the reader of the files raises the error
    return text if value.tzinfo is not None else serialize(value.replace(tzinfo=zone_of(time_zone)), _TIMESTAMP)


def _frame(spark: SparkSession, scan: PythonScan, files: Sequence[ScannedFile]) -> DataFrame:
    columns = to_spark_schema(scan.columns.output)
    if not files:
        return local_frame(spark, (), columns)
    jvm, cores = Jvm.of(spark), spark.sparkContext.defaultParallelism
    items = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in binned(files, cores)]
    rows = local_frame(spark, [(item,) for item in items], _ITEM)
    if len(items) > int(str(spark.conf.get(_PARALLELISM, str(cores)))):
        # So that each item is a task.
        session = session_with(spark, {_PARALLELISM: str(len(items))})
        rows = jvm.frame(session, rows._jdf.queryExecution().analyzed(), spark)
    return mapped(rows, columns, scanned_rows, scan)
