"""The change data feed as a DataFrame: Spark's own Parquet scan over the files of all commits of a range at once.

    Feed.files ─┬─ data files ────────► scan; kind, version, time and the chosen rows are hidden partition values ────┐
                └─ change data files ─► scan; version and time are hidden partition values ──────────────────────────┴─► union

There are at most two scans, however many commits the range has. A filter on the commit's version or timestamp, or on the change type, skips
whole files; filters on the table's columns skip files by statistics and reach the Parquet reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.snapshot.changes import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, Bounds, ChangedFile, Feed, feed, feed_schema
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.translate import to_spark_schema, with_shown_metadata
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.options import ChangeRange, milliseconds, read_request
from tahoe.spark.names.requested_changes import ChangesRequest
from tahoe.spark.names.settings import LATE_RANGES, is_on
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.spark.scan.changed_files import KIND, ROW_CONDITIONS, TIME, VERSION, ChangedFilesIndex, OpenRange, groups_of
from tahoe.spark.scan.relation import logical_column, scan_of, without_preview_types
from tahoe.spark.scan.row_id_columns import ROW_INDEX, position

"""The session setting that makes a range after the newest commit empty instead of an error."""

_NONE: Mapping[str, str] = {}


def read_changes(
    spark: SparkSession, table: Table, requested: ChangeRange, *, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the changed rows of a range of commits, read natively by Spark. Without an end, each query reads up to the newest commit.

    Args:
        spark: a classic session; its time zone applies to timestamps without a zone.
        options: reader options for Hadoop (``fs.…``).

    Returns:
        The table's columns as of the end of the range, then ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

    Raises: see `tahoe.snapshot.changes.feed`, `tahoe.snapshot.changes.Bounds` and `tahoe.spark.names.snapshots.parsed_timestamp`.
    """
    install()
    first, last = (
        None if text is None else milliseconds(parsed_timestamp(spark, text))
        for text in (requested.start_timestamp, requested.end_timestamp)
    )
    bounds = Bounds(requested.start_version, requested.end_version, first, last, is_on(spark, LATE_RANGES))
    with reading(table):
        latest = table.snapshot()
    is_open = requested.end_version is None and requested.end_timestamp is None
    changes = feed(table.store, latest, bounds)
    if is_open:
        return _following(spark, changes, OpenRange(table, bounds, latest), options or _NONE)
    rows = read_changed_files(spark, changes, list(changes.files()), options=options or _NONE)
    return _no_changes(spark, changes.snapshot) if rows is None else rows


def read_requested_changes(spark: SparkSession, table: Table, request: ChangesRequest, *, has_schema: bool = False) -> DataFrame:
    """Return the changed rows for ``spark.read.changes``.

    Args:
        has_schema: whether the reader has one.

    Raises: see `read_changes` and `tahoe.spark.names.options.read_request`.
    """
    read = read_request(table.url, request.options, has_schema)
    assert read.changes is not None
    return request.labelled(read_changes(spark, table, read.changes, options=read.hadoop))


def read_changed_files(
    spark: SparkSession,
    changes: Feed,
    files: Sequence[ChangedFile],
    *,
    options: Mapping[str, str] = _NONE,
    is_stream: bool = False,
) -> DataFrame | None:
    """Return the changed rows of some files of a feed; None if there is no file.

    Args:
        is_stream: whether the rows are a micro-batch of a stream.
    """
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    indexes = [ChangedFilesIndex(Jvm.of(spark), changes, group, time_zone) for group in groups_of(files) if group]
    frames = [_scan(spark, changes, index, options, is_stream=is_stream) for index in indexes]
    return reduce(DataFrame.union, frames) if frames else None


def _following(spark: SparkSession, changes: Feed, follows: OpenRange, options: Mapping[str, str]) -> DataFrame:
    """Return two scans, even if one has no file yet: a later commit may add some."""
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    indexes = [
        ChangedFilesIndex(Jvm.of(spark), changes, group, time_zone, is_change_data=bool(number), range_of=follows)
        for number, group in enumerate(groups_of(list(changes.files())))
    ]
    return reduce(DataFrame.union, (_scan(spark, changes, index, options, is_stream=False) for index in indexes))


def _no_changes(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    return local_frame(spark, (), to_spark_schema(with_shown_metadata(feed_schema(snapshot.schema))))


def _scan(
    spark: SparkSession, changes: Feed, index: ChangedFilesIndex, options: Mapping[str, str], *, is_stream: bool
) -> DataFrame:
    """Return the rows of files that are either all change data files or all data files."""
    jvm, snapshot = Jvm.of(spark), changes.snapshot
    hidden = [column.name for column in index.hidden]
    is_change_data = KIND.name not in hidden
    narrowing = [name for name in hidden if name in ROW_CONDITIONS]
    in_files = ([CHANGE_TYPE] if is_change_data else []) + ([ROW_INDEX] if narrowing else [])
    base = scan_of(spark, index, options, in_files, is_stream=is_stream)
    for name in narrowing:
        base = base.where(ROW_CONDITIONS[name](jvm, base[name], position(jvm, base)))
    kind: Column = base[(CHANGE_TYPE if is_change_data else KIND).name]
    rows = base.select(
        *(logical_column(base, column) for column in snapshot.schema),
        kind.alias(CHANGE_TYPE.name),
        base[VERSION.name].alias(COMMIT_VERSION.name),
        base[TIME.name].alias(COMMIT_TIMESTAMP.name),
    )
    return without_preview_types(rows, snapshot)
