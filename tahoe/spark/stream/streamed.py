"""A table as a streaming DataFrame: the plan of ``spark.readStream``, from which each query creates its own source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.errors import install, thrown
from tahoe.spark.jvm.stand_ins import Proxied, answered
from tahoe.spark.names.error_names import STREAMS, with_classes
from tahoe.spark.names.options import hadoop_options
from tahoe.spark.names.settings import look_at_settings
from tahoe.spark.names.snapshots import moment
from tahoe.spark.stream.batch_frames import shown_schema
from tahoe.spark.stream.java_classes import streamed_table, streaming_relation, table_stream
from tahoe.spark.stream.micro_batches import MicroBatches
from tahoe.spark.stream.schema_logs import read_for_columns, tracking_of
from tahoe.spark.stream.stream_options import stream_options
from tahoe.spark.stream.watermarks import event_time_column
from tahoe.spark.versions.geospatial_types import check_geospatial_types
from tahoe.stream.source_options import SourceOptions

__all__ = ["read_stream"]


def read_stream(
    spark: SparkSession, table: Table, options: Mapping[str, str], schema: JavaObject | None = None, name: str | None = None
) -> DataFrame:
    """Return a table as a stream, for ``writeStream``.

    Args:
        spark: a classic session.
        options: of the reader, in the user's spelling.
        schema: the user's schema (a ``StructType`` of the JVM); None if not specified.
        name: the user's name for the source.

    Raises:
        InvalidRequest, Unsupported: see `tahoe.spark.stream.stream_options.stream_options`; ``DELTA_SCHEMA_NOT_SET`` for a table without
            columns, ``DELTA_READ_SOURCE_SCHEMA_CONFLICT`` if they differ from the user's schema; and the errors of
            `tahoe.spark.stream.schema_logs.read_for_columns`.
    """
    install()
    look_at_settings(spark)
    meant = stream_options(options, partial(moment, spark))
    hadoop = hadoop_options(options)
    with with_classes(STREAMS):
        newest = table.snapshot()
    snapshot = read_for_columns(spark, newest, meant, hadoop)
    jvm = Jvm.of(spark)
    columns = _columns(jvm, snapshot, meant)
    if schema is not None:
        _check_schema(jvm, snapshot, columns, schema)
    create = _Create(spark, table, meant, hadoop, str(columns.json()))
    given = {"path": table.url, **options}
    create.table = streamed_table(jvm, spark._jsparkSession, given, _source_name(jvm, name), create)
    return jvm.frame(spark._jsparkSession, streaming_relation(jvm, create.table, columns), spark)


def _columns(jvm: Jvm, snapshot: Snapshot, options: SourceOptions) -> JavaObject:
    if not snapshot.schema.fields:
        raise InvalidRequest(
            f"Table {snapshot.store.url} has no columns yet, so there is nothing that a stream could read. Write rows, or add columns first.",
            code="DELTA_SCHEMA_NOT_SET",
            table=snapshot.store.url,
        )
    columns = shown_schema(snapshot, read_change_feed=options.read_change_feed)
    check_geospatial_types(columns)
    return jvm.data_type(columns.to_json())


def _check_schema(jvm: Jvm, snapshot: Snapshot, columns: JavaObject, given: JavaObject) -> None:
    same = jvm.catalyst("types.DataTypeUtils").equalsIgnoreNullability(columns, given)
    if given.nonEmpty() and not same:
        raise InvalidRequest(
            f"schema(…) says that table {snapshot.store.url} has the columns {given.toDDL()}, and it has {columns.toDDL()}. Leave schema(…) "
            "out: a Delta table has its own.",
            code="DELTA_READ_SOURCE_SCHEMA_CONFLICT",
            table=snapshot.store.url,
        )


def _source_name(jvm: Jvm, name: str | None) -> JavaObject:
    return jvm.option(None if name is None else jvm.catalyst("streaming.UserProvided")(name))


class _Create(Proxied):
    """Creates the source of a starting query; a ``scala.Function2``.

    Attributes:
        table: the streamed table in the plan.
    """

    table: JavaObject

    def __init__(self, spark: SparkSession, table: Table, options: SourceOptions, hadoop: Mapping[str, str], schema: str) -> None:
        self._spark, self._table, self._options, self._hadoop, self._schema = spark, table, options, hadoop, schema

    @answered
    def apply(self, folder: str, query: str | None) -> JavaObject:
        """Return the ``Source`` of a query.

        Args:
            folder: the source's folder in the query's checkpoint.
            query: the query's id.
        """
        jvm = Jvm.of(self._spark)
        try:
            return self._made(jvm, folder, query)
        except TahoeError as error:
            return thrown(jvm, error)

    def _made(self, jvm: Jvm, folder: str, query: str | None) -> JavaObject:
        newest = self._table.snapshot()
        event_time = event_time_column(self._spark, self.table, query, self._options.with_event_time_order, self._table.url)
        tracking = tracking_of(self._spark, newest, self._options, self._hadoop, folder)
        batches = MicroBatches(self._spark, self._table, self._options, self._hadoop, folder, newest, tracking, event_time)
        columns = _columns(jvm, batches.read, self._options)
        if str(columns.json()) != self._schema:
            url = self._table.url
            raise InvalidRequest(
                f"The columns of table {url} have changed since it was read by spark.readStream, from {jvm.data_type(self._schema).toDDL()} "
                f"to {columns.toDDL()} in version {batches.read.version}. Read it anew, and start the query of that DataFrame.",
                code="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                table=url,
                version=batches.read.version,
            )
        limits = self._options.limits
        reads = jvm.java_class("org.apache.spark.sql.connector.read.streaming.ReadLimit")
        limit = reads.maxFiles(limits.files) if limits.files is not None else reads.maxBytes(limits.bytes)
        return table_stream(jvm, f"DeltaSource[{self._table.url}]", columns, limit, _Answers(jvm, batches))

    class Java:
        implements = ("scala.Function2",)


class _Answers(Proxied):
    """``(method, start, end) → answer``, a ``scala.Function3``."""

    def __init__(self, jvm: Jvm, batches: MicroBatches) -> None:
        self._jvm, self._batches = jvm, batches

    @answered
    def apply(self, question: str, start: Any, end: Any) -> Any:
        try:
            return getattr(self._batches, question)(start, end)
        except TahoeError as error:
            return thrown(self._jvm, error)

    class Java:
        implements = ("scala.Function3",)
