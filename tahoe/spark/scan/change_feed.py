"""The change data feed as a DataFrame: Spark's own Parquet scan over the files of all commits of a range at once.

    Feed.files ─┬─ data files ────────► scan; kind, version, time and the rows meant are hidden partition values ─┐
                └─ change data files ─► scan; version and time are hidden partition values ──────────────────────┴─► union

There are two scans at most, however many commits the range has. A filter on the commit's version or time, or on the kind of change, leaves
whole files out; filters on the table's columns skip files by statistics and reach the Parquet reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from tahoe.exceptions import TahoeError
from tahoe.log.replay import files_table
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.snapshot.changes import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, Bounds, ChangedFile, Feed, feed, feed_schema
from tahoe.snapshot.data_reader import VectorReader
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.translate import to_spark_schema, with_shown_metadata
from tahoe.spark.names.options import ChangeRange
from tahoe.spark.names.settings import is_on
from tahoe.spark.names.snapshots import moment
from tahoe.spark.scan.deleted_rows import DELETED_ROWS, is_alive, packed
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.relation import logical_column, scan_of, without_preview_types
from tahoe.spark.scan.row_id_columns import ROW_INDEX, position
from tahoe.table import Table

__all__ = ["OUT_OF_RANGE", "read_changed_files", "read_changes"]

OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
"""The setting of a session that makes a range after the newest commit empty instead of an error."""

_AFTER_LATEST = ("DELTA_CDC_START_VERSION_AFTER_LATEST", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT")
_NONE: Mapping[str, str] = {}

_KIND = StructField("__tahoe_change_type", PrimitiveType("string"))
_VERSION = StructField("__tahoe_commit_version", PrimitiveType("long"))
_TIME = StructField("__tahoe_commit_timestamp", PrimitiveType("timestamp"))
_MEANT = StructField("__tahoe_rows_meant", PrimitiveType("binary"))
_DEAD = StructField(DELETED_ROWS, PrimitiveType("binary"))
# The number of a file among those that are to be read; a column of the files alone.
_NUMBER = "__tahoe_number"


def read_changes(spark: SparkSession, table: Table, asked: ChangeRange, *, options: Mapping[str, str] | None = None) -> DataFrame:
    """The changed rows of a range of commits, read natively by Spark.

    Args:
        spark: a classic session; timestamps without a zone are in its time zone.
        options: of the reader, for Hadoop (``fs.…``).

    Returns:
        The table's columns as of the end of the range, then ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

    Raises: see `tahoe.snapshot.changes.feed`, `tahoe.snapshot.changes.Bounds` and `tahoe.spark.names.snapshots.moment`.
    """
    install()
    first, last = (
        None if text is None else _milliseconds(moment(spark, text)) for text in (asked.start_timestamp, asked.end_timestamp)
    )
    bounds, latest = Bounds(asked.start_version, asked.end_version, first, last), table.snapshot()
    try:
        changes = feed(table.store, latest, bounds)
    except TahoeError as error:
        if error.code in _AFTER_LATEST and is_on(spark, OUT_OF_RANGE):
            return _no_changes(spark, latest)
        raise
    rows = read_changed_files(spark, changes, list(changes.files()), options=options or _NONE)
    return _no_changes(spark, changes.snapshot) if rows is None else rows


def read_changed_files(
    spark: SparkSession,
    changes: Feed,
    files: Sequence[ChangedFile],
    *,
    options: Mapping[str, str] = _NONE,
    is_stream: bool = False,
) -> DataFrame | None:
    """The changed rows of some files of a feed; None where there is no file.

    Args:
        is_stream: whether the rows are a batch of a stream.
    """
    groups = ([file for file in files if file.kind is not None], [file for file in files if file.kind is None])
    frames = [_scan(spark, changes, group, options, is_stream=is_stream) for group in groups if group]
    return reduce(DataFrame.union, frames) if frames else None


def _no_changes(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    return spark.createDataFrame([], to_spark_schema(with_shown_metadata(feed_schema(snapshot.schema))))


def _scan(
    spark: SparkSession, changes: Feed, files: Sequence[ChangedFile], options: Mapping[str, str], *, is_stream: bool
) -> DataFrame:
    """The rows of files that all are change data files, or all are not."""
    jvm, snapshot = Jvm.of(spark), changes.snapshot
    told = files[0].kind is None
    some, dead = (any(flags) for flags in zip(*((f.within is not None, _deleted(f) is not None) for f in files), strict=True))
    hidden = [_VERSION, _TIME]
    if not told:
        hidden.append(_KIND)
    if some:
        hidden.append(_MEANT)
    if dead:
        hidden.append(_DEAD)
    in_files = ([CHANGE_TYPE] if told else []) + ([ROW_INDEX] if some or dead else [])
    index = FileIndex(
        jvm,
        snapshot,
        time_zone=str(spark.conf.get("spark.sql.session.timeZone")),
        files=_files(changes, files),
        hidden=hidden,
        computed={_MEANT.name: _rows_meant(changes, files)},
    )
    base = scan_of(spark, index, snapshot.config, options, in_files, is_stream=is_stream)
    if some:
        meant = base[_MEANT.name]
        base = base.where(meant.isNull() | ~is_alive(jvm, meant, position(jvm, base)))
    if dead:
        base = base.where(is_alive(jvm, base[DELETED_ROWS], position(jvm, base)))
    kind: Column = base[(CHANGE_TYPE if told else _KIND).name]
    rows = base.select(
        *(logical_column(base, column) for column in snapshot.schema),
        kind.alias(CHANGE_TYPE.name),
        base[_VERSION.name].alias(COMMIT_VERSION.name),
        base[_TIME.name].alias(COMMIT_TIMESTAMP.name),
    )
    return without_preview_types(rows, snapshot)


def _deleted(file: ChangedFile) -> DeletionVectorDescriptor | None:
    """The vector whose rows are not meant, where that is all that is to be said of the rows."""
    return file.without if file.within is None else None


def _files(changes: Feed, files: Sequence[ChangedFile]) -> pa.Table:
    """The files as an index takes them, with the hidden columns but `_MEANT`, and `_NUMBER`."""

    def added(file: ChangedFile) -> AddFile:
        values, time = file.partition_values, changes.times[file.version]
        return AddFile(file.path, values, file.size, time, True, stats=file.stats, deletion_vector=_deleted(file))

    times = pa.array([changes.times[file.version] for file in files], pa.timestamp("ms", "UTC"))
    table = files_table(added(file) for file in files)
    table = table.append_column(_VERSION.name, pa.array([file.version for file in files], pa.int64()))
    table = table.append_column(_TIME.name, times)
    table = table.append_column(_KIND.name, pa.array([file.kind for file in files], pa.string()))
    return table.append_column(_NUMBER, pa.array(range(len(files)), pa.int64()))


def _rows_meant(changes: Feed, files: Sequence[ChangedFile]) -> Callable[[pa.Table], pa.Array]:
    """Makes packed bits of the rows that are meant of those files that a query reads; null where nothing narrows them down."""
    store = changes.store

    def made(chosen: pa.Table) -> pa.Array:
        vectors = VectorReader(store)
        chosen_files: Iterable[ChangedFile] = (files[number] for number in chosen[_NUMBER].to_pylist())
        rows = (file.rows(vectors.bitmap) for file in chosen_files)
        return pa.array([None if one is None else packed(one, store.url) for one in rows], pa.binary())

    return made


def _milliseconds(moment: datetime) -> int:
    # Whole milliseconds are what a commit's time has.
    return int(moment.timestamp() * 1000)
