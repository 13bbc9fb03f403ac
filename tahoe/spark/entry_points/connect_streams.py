"""PySpark's streams in sessions of Spark Connect: the server reads and writes them, by the portable source.

The client checks a query before it starts, and sends what Spark does not tell a data source as options: the columns of `partitionBy` and
`clusterBy`, settings of the session, and the table's rules that Spark evaluates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamReader, DataStreamWriter

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.base.secrets import is_secret_name
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.insert import prepare_schema
from tahoe.ops.tables.create import checked_partition_columns
from tahoe.protocol.features import ENFORCED
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.connect.assigned import cast_to_columns
from tahoe.spark.connect.creation import make_table
from tahoe.spark.connect.requests.server_source import table_with_options, without_secrets
from tahoe.spark.connect.streamed_rows import evaluated_by_server
from tahoe.spark.connect.writes_by_name import existing
from tahoe.spark.entry_points.wrapping import bound_arguments, configure_stream, enabled_table, is_delta, is_enabled, wrap
from tahoe.spark.executors.file_settings import FILE_SETTINGS
from tahoe.spark.executors.shipped import BatchFunction
from tahoe.spark.names.entries import parts_of
from tahoe.spark.names.options import path_of_client, path_option, resolve_path_option
from tahoe.spark.names.settings import settings_of, settings_read_once
from tahoe.spark.portable.data_source_options import CLUSTER_BY, PARTITION_BY, SESSION_SETTINGS, TIME_ZONE, option_of, without_own
from tahoe.spark.sink.sink_request import path_of_stream, sink_request
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.fitting import columns_of, insert_casts
from tahoe.txn.transaction import Transaction

_CHECKPOINT, _CHECKPOINTS = "checkpointLocation", "spark.sql.streaming.checkpointLocation"
_DELTA = "spark.databricks.delta."


def wrap_streams() -> None:
    """Add Delta support to the streams of PySpark's Connect client but `DataStreamReader.load`, in sessions where it is enabled."""
    wrap(DataStreamReader, "table", _stream_table)
    wrap(DataStreamWriter, "foreachBatch", _foreach_batch)
    wrap(DataStreamWriter, "start", _start)
    wrap(DataStreamWriter, "toTable", _to_table)


def _stream_table(original: Callable[..., Any], reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
    spark = reader._client
    named = enabled_table(spark, tableName)
    return original(reader, tableName) if named is None else reader.format("delta").load(named.table.url)


def _foreach_batch(original: Callable[..., Any], writer: Any, func: Callable[..., None]) -> Any:
    return original(writer, BatchFunction(func) if is_enabled(writer._session) else func)


def _start(original: Callable[..., Any], writer: Any, *positional: Any, **named: Any) -> Any:
    spark, proto, operation = writer._session, writer._write_proto, writer._write_stream
    arguments = bound_arguments(original, writer, *positional, **named)
    if _is_for_function(proto) or not is_delta(spark, arguments["format"] or proto.format or None):
        return original(writer, *positional, **named)
    configure_stream(writer, arguments)
    path = path_of_stream(arguments["path"], proto.options)
    with settings_read_once(spark), _kept(writer):
        settings = settings_of(spark)
        request = _request(writer, settings)
        writer.options(**_own_options(writer, settings))
        transaction = _transaction_of_target(spark, path, proto.options)
        if transaction is not None and transaction.snapshot is not None:
            frame = _cast(DataFrame(operation._child, spark), transaction, request, settings)
            rows = evaluated_by_server(frame, transaction.snapshot.config)
            operation._child = rows.frame._plan
            writer.options(**rows.options)
        proto.options.update(without_secrets(spark, proto.options))
        resolve_path_option(proto.options)
        return original(writer, None if arguments["path"] is None else path_of_client(path))


def _is_for_function(proto: Any) -> bool:
    """Whether the server gives the rows to a function, whatever the format of the stream."""
    return bool(proto.HasField("foreach_batch") or proto.HasField("foreach_writer"))


@contextmanager
def _kept(writer: Any) -> Iterator[None]:
    """Restore the options and the plan of a writer, which may be started again."""
    options, operation = writer._write_proto.options, writer._write_stream
    user_options, child = dict(options), operation._child
    try:
        yield
    finally:
        operation._child = child
        options.clear()
        options.update(user_options)


def _request(writer: Any, settings: Mapping[str, str]) -> Insert:
    """Return what the writer asks for. Raises the errors of `sink_request` and `checked_partition_columns`."""
    spark, proto = writer._session, writer._write_proto
    partition_by, cluster_by = list(proto.partitioning_column_names), list(proto.clustering_column_names)
    if partition_by:
        checked_partition_columns(columns_of(DataFrame(writer._write_stream._child, spark)), partition_by)
    options = without_own(proto.options)
    return sink_request(proto.output_mode or "append", partition_by, options, settings, cluster_by=cluster_by or None)


def _own_options(writer: Any, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the client adds."""
    spark, proto = writer._session, writer._write_proto
    columns = {PARTITION_BY: list(proto.partitioning_column_names), CLUSTER_BY: list(proto.clustering_column_names)}
    own = {name: ", ".join(map(quote_identifier, names)) for name, names in columns.items() if names}
    sent = {name: value for name, value in settings.items() if name.startswith(_DELTA) or name in FILE_SETTINGS}
    sent = {name: value for name, value in sent.items() if not is_secret_name(name)}  # the server's plans show it
    own[TIME_ZONE], own[SESSION_SETTINGS] = session_time_zone(spark), json.dumps(sent)
    folder = settings.get(_CHECKPOINTS)
    if folder and not option_of(proto.options, _CHECKPOINT, ""):
        own[_CHECKPOINT] = f"{folder.rstrip('/')}/{proto.query_name or SYSTEM_CLOCK.uuid()}"
    return own


def _transaction_of_target(spark: SparkSession, path: str, options: Mapping[str, str]) -> Transaction | None:
    """Return a transaction of the table that a stream writes, which is not committed; None for a table that only the server can read, whose
    writer refuses rows that it cannot cast, complete or check.
    """
    try:
        return table_with_options(spark, path, options).begin()
    except TahoeError:
        return None


def _cast(frame: Any, transaction: Transaction, request: Insert, settings: Mapping[str, str]) -> Any:
    """Return the rows with the types that the table's columns will have; unchanged rows if the table does not take them."""
    transaction.enforces = ENFORCED
    try:
        config = prepare_schema(transaction, columns_of(frame), request.options)
    except TahoeError:  # the writer raises it, unless the stream's source has an error of its own
        return frame
    return cast_to_columns(frame, config, insert_casts(settings.get))


def _to_table(original: Callable[..., Any], writer: Any, *positional: Any, **named: Any) -> Any:
    spark, proto = writer._session, writer._write_proto
    arguments = bound_arguments(original, writer, *positional, **named)
    name = arguments["tableName"]
    parts = parts_of(spark, name) if is_enabled(spark) else ()
    table = existing(spark, parts) if parts else None
    is_for_function = _is_for_function(proto)
    if table is None and (is_for_function or not is_delta(spark, arguments["format"] or proto.format or None)):
        return original(writer, *positional, **named)
    if is_for_function:
        raise InvalidRequest(
            f"toTable writes the rows of a stream into table {name}, and foreach or foreachBatch gives them to a function. Call start() for "
            "the function, or leave it out.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=name,
        )
    configure_stream(writer, arguments)
    if table is None:
        columns = columns_of(DataFrame(writer._write_stream._child, spark))
        partition_by, cluster_by = tuple(proto.partitioning_column_names), tuple(proto.clustering_column_names)
        definition = TableDefinition(columns, partition_by, cluster_by=cluster_by or None)
        make_table(spark, Creation(parts, "createIfNotExists", definition, path_option(proto.options)))
        table = existing(spark, parts)
    if table is None:
        raise InvalidRequest(f"There is no Delta table {name}.", code="DELTA_MISSING_DELTA_TABLE", table=name)
    for option in [key for key in proto.options if key.lower() == "path"]:
        del proto.options[option]  # the table has its place
    return writer.start(table.table.url, "delta")
