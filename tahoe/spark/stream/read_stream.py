"""A table as a streaming DataFrame: the plan of ``spark.readStream``, from which each query creates its own source.

    readStream ──► StreamingRelation(StreamedTable) ──each query that starts──► TableStream ──each trigger──► latestOffset, getBatch

`StreamedTable` and `TableStream` are Java classes. They store only constants and call Python for the rest. Offsets are transferred as JSON.
If a call returns a JVM exception, the class throws it, so that the query reports exactly its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.snapshot.read_errors import no_columns_to_stream
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import install, java_exception
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.names.error_names import STREAMS, with_classes
from tahoe.spark.names.options import hadoop_options
from tahoe.spark.names.settings import LATE_RANGES, is_on, look_at_settings
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.spark.scan.python_scan import scans_in_python
from tahoe.spark.stream.batch_frames import shown_schema
from tahoe.spark.stream.micro_batches import MicroBatches, StreamedTable
from tahoe.spark.stream.running_query import has_completed_last_batch
from tahoe.spark.stream.schema_logs import read_for_columns
from tahoe.spark.stream.stream_options import stream_options, with_ignored_changes
from tahoe.spark.stream.watermarks import event_time_column
from tahoe.spark.versions.column_types import check_column_types
from tahoe.spark.versions.source_names import name_argument, name_of_table
from tahoe.spark.versions.streaming_package import streaming_package
from tahoe.stream.source_options import SourceOptions


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
    source_options = stream_options(options, partial(parsed_timestamp, spark), may_start_late=is_on(spark, LATE_RANGES))
    hadoop = hadoop_options(options)
    with with_classes(STREAMS):
        newest = table.snapshot()
    scans_in_python(spark, table.url)
    snapshot = read_for_columns(spark, newest, with_ignored_changes(source_options, partial(is_on, spark)), hadoop)
    jvm = Jvm.of(spark)
    columns = _columns(jvm, snapshot, source_options)
    if schema is not None:
        _check_schema(jvm, snapshot, columns, schema)
    create = _Create(StreamedTable(spark, table, source_options, hadoop), str(columns.json()))
    streamed = _streamed_table(jvm, spark._jsparkSession, {"path": table.url, **options}, _source_name(jvm, name), create)
    return jvm.frame(spark._jsparkSession, _streaming_relation(jvm, streamed, columns), spark)


def _columns(jvm: Jvm, snapshot: Snapshot, options: SourceOptions) -> JavaObject:
    if not snapshot.schema.fields:
        raise no_columns_to_stream(snapshot.store.url)
    columns = shown_schema(snapshot, read_change_feed=options.read_change_feed)
    check_column_types(columns)
    return jvm.data_type(columns.to_json())


def _check_schema(jvm: Jvm, snapshot: Snapshot, columns: JavaObject, schema: JavaObject) -> None:
    same = jvm.catalyst("types.DataTypeUtils").equalsIgnoreNullability(columns, schema)
    if schema.nonEmpty() and not same:
        raise InvalidRequest(
            f"schema(…) says that table {snapshot.store.url} has the columns {schema.toDDL()}, and it has {columns.toDDL()}. Leave schema(…) "
            "out: a Delta table has its own.",
            code="DELTA_READ_SOURCE_SCHEMA_CONFLICT",
            table=snapshot.store.url,
        )


def _source_name(jvm: Jvm, name: str | None) -> JavaObject:
    return jvm.option(None if name is None else jvm.catalyst("streaming.UserProvided")(name))


class _Create(Proxied):
    """Creates the source of a starting query; a ``scala.Function3``."""

    def __init__(self, streamed: StreamedTable, schema: str) -> None:
        self._streamed, self._schema = streamed, schema

    @answered
    def apply(self, folder: str, query_id: str | None, streamed: JavaObject) -> JavaObject:
        """Return the ``Source`` of a query.

        Args:
            folder: the source's folder in the query's checkpoint.
            streamed: the streamed table in the query's plan.
        """
        jvm = Jvm.of(self._streamed.spark)
        try:
            return self._source(jvm, folder, query_id, streamed)
        except TahoeError as error:
            return java_exception(jvm, error)

    def _source(self, jvm: Jvm, folder: str, query_id: str | None, streamed: JavaObject) -> JavaObject:
        spark, options, url = self._streamed.spark, self._streamed.options, self._streamed.table.url
        event_time = event_time_column(spark, streamed, query_id, options.with_event_time_order, url)
        # The query itself would keep its source, and so this object, from being released.
        batches = MicroBatches(self._streamed, folder, event_time, partial(has_completed_last_batch, spark, query_id))
        columns = _columns(jvm, batches.read, options)
        if str(columns.json()) != self._schema:
            raise InvalidRequest(
                f"The columns of table {url} have changed since it was read by spark.readStream, from {jvm.data_type(self._schema).toDDL()} "
                f"to {columns.toDDL()} in version {batches.read.version}. Read it again, and start the query of that DataFrame.",
                code="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                table=url,
                version=batches.read.version,
            )
        limits = options.limits
        reads = jvm.java_class("org.apache.spark.sql.connector.read.streaming.ReadLimit")
        limit = reads.maxFiles(limits.files) if limits.files is not None else reads.maxBytes(limits.bytes)
        return _table_stream(jvm, f"DeltaSource[{url}]", columns, limit, _Answers(jvm, batches))

    class Java:
        implements = ("scala.Function3",)


class _Answers(Proxied):
    """``(method, start, end) → answer``, a ``scala.Function3``."""

    def __init__(self, jvm: Jvm, batches: MicroBatches) -> None:
        self._jvm, self._batches = jvm, batches

    @answered
    def apply(self, question: str, start: object, end: object) -> Any:
        try:
            return getattr(self._batches, question)(start, end)
        except TahoeError as error:
            return java_exception(self._jvm, error)

    class Java:
        implements = ("scala.Function3",)


# -- Java classes --------------------------------------------------------------------------------------------------------

_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"


def _table_stream(jvm: Jvm, text: str, schema: JavaObject, limit: JavaObject, answers: Proxied) -> JavaObject:
    """Return the source by which one query reads a table.

    Args:
        text: the name of the source in the query's progress.
        limit: the ``ReadLimit`` of a trigger without a limit.
        answers: a ``scala.Function3`` that is called with a method name, and the JSON of a start and an end or null.
    """
    return compiled_object(jvm, "TableStream", text, schema, limit, answers, offsets=package_of_streams(jvm))


def _streamed_table(jvm: Jvm, session: JavaObject, options: Mapping[str, str], name: JavaObject, create: Proxied) -> JavaObject:
    """Return a streamed table for a plan.

    Args:
        name: an ``Option`` with the user's name for the source, if Spark supports names.
        create: a ``scala.Function2`` that creates a `_table_stream` for a query, from the query's folder for the source, and its id.
    """
    parameters = jvm.reflected(_DATA_SOURCE).getConstructors()[0].getParameterTypes()
    java_session = f"({parameters[0].getName()}) session"
    return compiled_object(
        jvm,
        "StreamedTable",
        session,
        jvm.map(options),
        name,
        create,
        name_argument=name_argument(parameters),
        session=java_session,
    )


def _streaming_relation(jvm: Jvm, table: JavaObject, schema: JavaObject) -> JavaObject:
    """Return the plan leaf for a `_streamed_table`."""
    attributes = jvm.catalyst("types.DataTypeUtils").toAttributes(schema)
    relation = f"{package_of_streams(jvm)}.StreamingRelation"
    parameters = jvm.reflected(relation).getConstructors()[0].getParameterTypes()
    return jvm.java_class(relation)(table, "delta", attributes, *name_of_table(table, parameters))


def package_of_streams(jvm: Jvm) -> str:
    """Return `streaming_package` of this Spark."""
    loader = jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader
    return str(jvm.cached("the package of streaming", lambda: streaming_package(loader())))
