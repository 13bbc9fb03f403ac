"""The portable sink: batches of a stream written by Python workers, each committed once with the query's id and the batch's number.

    tasks ─► files ─► messages ─► commit(messages, number), in a process of its own ─► `tahoe.ops.rows.stream_batch`

Spark tells a Python sink the number of a batch, and not the query. Its id stands in the query's checkpoint, where Spark writes it before
the first batch; so the checkpoint must be given as an option, as it mostly is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import InvalidRequest, MetadataChangedException, NotFound
from tahoe.ops.rows.insert import prepare_schema
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch, demands
from tahoe.ops.write.writer import write_arrow
from tahoe.process import UNIFORM_RUNTIME
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.enforced import ENFORCED
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.portable.given import option_of, partition_columns, refuse_geospatial, storage_settings
from tahoe.spark.portable.tasks import WrittenFiles, discard, filled_in, note_numbers
from tahoe.spark.sink.sink_request import sink_request
from tahoe.spark.write.fitting import nullable_schema
from tahoe.store.object_store import open_store
from tahoe.table import Table
from tahoe.txn.transaction import Transaction

__all__ = ["stream_writer"]

_ROWS = 10_000
_UNIFORM_SECONDS = 60.0
_CATALOG_SECONDS = 5.0  # a catalog may never answer


def stream_writer(table: Table, schema: SparkStruct, options: Mapping[str, str], overwrite: bool) -> DataSourceStreamWriter:
    """What Spark writes the batches of a stream by.

    Raises: as `tahoe.spark.sink.sink_request.sink_request`; `InvalidRequest` (``TAHOE_NO_CHECKPOINT_LOCATION``) without the option
        ``checkpointLocation``; as a write of a DataFrame where its columns do not fit the table.
    """
    checkpoint = option_of(options, "checkpointLocation", "")
    if not checkpoint:
        raise InvalidRequest(
            "A stream without a classic session takes the query's id from its checkpoint, so that each batch is written once: give "
            "option('checkpointLocation', …) to the writer.",
            code="TAHOE_NO_CHECKPOINT_LOCATION",
            table=table.url,
        )
    own = {key: text for key, text in options.items() if key.lower() != "partitionby"}
    request = sink_request("complete" if overwrite else "append", partition_columns(options), own, {})
    return _KIND(table, schema, request, checkpoint, storage_settings(checkpoint, options))


class _StreamWriter(DataSourceStreamWriter):
    """Sent to the workers; another one of it, in a process of its own, commits."""

    def __init__(self, table: Table, schema: SparkStruct, request: Insert, checkpoint: str, storage: Mapping[str, str]) -> None:
        self._store = table.store
        self._given = schema
        self._schema = nullable_schema(from_spark_schema(schema))
        refuse_geospatial(self._schema)
        self._request = request
        self._checkpoint, self._storage = checkpoint, dict(storage)
        self._config = self._config_now(table)
        self._filled_in = filled_in(self._config, self._schema.names, None)

    def write_batches(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write what one task has."""
        first = next(batches, None)
        if first is None:
            return WrittenFiles(())
        config, filled = self._config, self._filled_in
        if filled.identities:  # each batch begins where the one before it has left off
            config = self._config_now(Table(self._store.url, store=self._store))
            filled = filled_in(config, self._schema.names, None)
        completion = filled.of_this_task()
        adds = write_arrow(
            config,
            self._store,
            pa.RecordBatchReader.from_batches(first.schema, chain((first,), batches)),
            SYSTEM_CLOCK,
            max_rows_per_file=self._request.files.max_records_per_file,
            compression=self._request.files.compression,
            completion=completion,
        )
        return WrittenFiles(tuple(adds), demands(config), completion.furthest)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Rows, where this version of Spark gives no Arrow batches to the sink of a stream."""
        from pyspark.sql.conversion import LocalDataToArrowConversion

        def batches() -> Iterator[pa.RecordBatch]:
            while rows := list(islice(iterator, _ROWS)):
                yield from LocalDataToArrowConversion.convert(rows, self._given, use_large_var_types=False).to_batches()

        return self.write_batches(batches())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Commit the files of a batch, unless the table has it."""
        files = [message for message in messages if isinstance(message, WrittenFiles)]
        table = Table(self._store.url, store=self._store)

        def written(transaction: Transaction, config: TableConfig) -> Sequence[AddFile]:
            if any(one.adds and one.asked != demands(config) for one in files) and table.exists():
                raise MetadataChangedException(
                    f"The schema, a property or a constraint of table {table.url} was changed, or another writer numbered rows of it, while "
                    f"batch {batchId} was being written to it. Start the query again.",
                    table=table.url,
                )
            note_numbers(transaction, config, files)
            return [add for one in files for add in one.adds]

        commit = partial(table.commit, user_metadata=self._request.user_metadata)
        asked = CommitsTable(table.url, table.begin, commit)
        if commit_batch(asked, Batch(self._query(), batchId, self._schema), self._request.options, written) is None:
            self.abort(messages, batchId)
        # This process ends without looking back; what the commit set going must be done before.
        UNIFORM_RUNTIME.drain(_UNIFORM_SECONDS, _CATALOG_SECONDS, table.url)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Delete what was written."""
        for message in messages:
            for add in message.adds if isinstance(message, WrittenFiles) else ():
                discard(self._store, add)

    def _config_now(self, table: Table) -> TableConfig:
        """The table as it is, or will be made for the rows."""
        transaction = table.begin()
        transaction.enforces = ENFORCED
        return prepare_schema(transaction, self._schema, self._request.options)

    def _query(self) -> str:
        try:
            return str(json.loads(open_store(self._checkpoint, self._storage).get("metadata"))["id"])
        except (NotFound, ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(
                f"The checkpoint {self._checkpoint} does not tell the id of its query (in its file 'metadata'), by which a batch is written "
                "to a table once. Is it where the processes of Spark's driver can read it?",
                code="TAHOE_NO_CHECKPOINT_LOCATION",
                table=self._store.url,
            ) from error


if hasattr(datasource, "DataSourceStreamArrowWriter"):

    class _OfArrow(_StreamWriter, datasource.DataSourceStreamArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return self.write_batches(iterator)

    _KIND: type[_StreamWriter] = _OfArrow
else:
    _KIND = _StreamWriter
