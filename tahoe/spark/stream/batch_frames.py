"""The files of one micro-batch as a DataFrame that Spark accepts as a stream's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.log.files.live_files import files_table
from tahoe.protocol.actions import AddFile
from tahoe.schema.types import StructType
from tahoe.snapshot.changes import COMMIT_VERSION, Feed, feed_schema
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.translate import to_spark_schema, with_shown_metadata
from tahoe.spark.scan.change_feed import read_changed_files
from tahoe.spark.scan.relation import read_snapshot
from tahoe.stream.event_time_order import Bucket
from tahoe.stream.source import Source
from tahoe.stream.streamed_commit import IndexedFile
from tahoe.stream.tail_batch import changes_in


def shown_schema(snapshot: Snapshot, *, read_change_feed: bool) -> StructType:
    """Return the columns of a stream, as Spark shows them."""
    return with_shown_metadata(feed_schema(snapshot.schema) if read_change_feed else snapshot.schema)


def batch_frame(
    spark: SparkSession, source: Source, files: Sequence[IndexedFile], hadoop: Mapping[str, str], bucket: Bucket | None = None
) -> DataFrame:
    """Return the rows of a micro-batch.

    Args:
        files: of the batch (`tahoe.stream.source.Source.files`).
        hadoop: reader options for Hadoop (``fs.…``).
        bucket: of the batch, if the initial snapshot is read in event time order (`tahoe.stream.source.Source.bucket`).
    """
    if source.options.read_change_feed and files:
        changes = changes_in(source, tuple(files))
        feed = Feed(source.read, files[0].version, files[-1].version, source.times(files))
        rows = read_changed_files(spark, feed, changes, options=hadoop, is_stream=True)
        if rows is not None:
            # Changes that were committed after the snapshot have later versions, and are returned unfiltered.
            version = quote_identifier(COMMIT_VERSION.name)
            return rows if bucket is None else rows.where(f"{version} <> {bucket.version} OR ({bucket.predicate})")
        files = ()
    rows = _rows(spark, source, files, hadoop, bucket)
    if not source.options.read_change_feed:
        return rows
    feed_columns = to_spark_schema(feed_schema(source.read.schema)).fields[len(rows.columns) :]
    return rows.select("*", *(sf.lit(None).cast(field.dataType).alias(field.name) for field in feed_columns))


def _rows(
    spark: SparkSession, source: Source, files: Sequence[IndexedFile], hadoop: Mapping[str, str], bucket: Bucket | None
) -> DataFrame:
    def read(selected: Iterable[IndexedFile]) -> DataFrame:
        adds = files_table(file.action for file in selected if isinstance(file.action, AddFile))
        return read_snapshot(spark, source.read, files=adds, options=hadoop, is_stream=True)

    if bucket is None:
        return read(files)
    rows = read(file for file in files if file.version == bucket.version).where(str(bucket.predicate))
    later = [file for file in files if file.version != bucket.version]
    return rows.unionAll(read(later)) if later else rows
