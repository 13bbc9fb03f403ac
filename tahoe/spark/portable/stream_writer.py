"""The portable sink: batches of a stream written by Python workers, each committed once with the query's id and the batch's number.

    tasks ─► files ─► messages ─► commit(messages, number), in a separate process ─► `tahoe.ops.rows.stream_batch`

Spark passes a Python sink the number of a batch, but not the query. The query's id is in its checkpoint, where Spark writes it before the
first batch; so the checkpoint must be set as an option, as it usually is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, MetadataChangedException, NotFound
from tahoe.base.log_fields import about
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch, demands
from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Use, check_columns
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.executors import worker
from tahoe.spark.executors.data_source_tasks import WrittenFiles, written_files
from tahoe.spark.executors.evaluated_rules import EvaluatedRules
from tahoe.spark.executors.shipped import sent_whole
from tahoe.spark.executors.stream_tasks import BatchRows, numbered_files
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.portable.data_source_options import (
    CLUSTER_BY,
    EVALUATED_RULES,
    PARTITION_BY,
    columns_in,
    option_of,
    settings_in,
    storage_settings,
    time_zone_of,
    without_own,
)
from tahoe.spark.portable.sent import Sent, opened
from tahoe.spark.portable.tasks import discard, finish_conversions, note_numbers
from tahoe.spark.sink.sink_request import sink_request
from tahoe.spark.versions.stream_writer_base import TAKES_BATCHES, StreamWriterBase
from tahoe.spark.write.fitting import nullable_schema
from tahoe.store.object_store import open_store
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.transaction import Transaction

_ROWS = 10_000


def stream_writer(table: Table, schema: SparkStruct, options: Mapping[str, str], overwrite: bool) -> DataSourceStreamWriter:
    """Return Spark's writer for the batches of a stream.

    Raises: the errors of `tahoe.spark.sink.sink_request.sink_request`; `InvalidRequest` (``TAHOE_NO_CHECKPOINT_LOCATION``) without the
        option ``checkpointLocation``; the errors of a DataFrame write if the columns do not fit the table.
    """
    if not option_of(options, "checkpointLocation", ""):
        raise InvalidRequest(
            "A stream without a classic session takes the query's id from its checkpoint, so that each batch is written once: give "
            "option('checkpointLocation', …) to the writer.",
            code="TAHOE_NO_CHECKPOINT_LOCATION",
            table=table.url,
        )
    request = sink_request(
        "complete" if overwrite else "append",
        columns_in(options, PARTITION_BY),
        without_own(options),
        settings_in(options),
        cluster_by=columns_in(options, CLUSTER_BY),
    )
    return _StreamWriter(table, schema, request, options)


class _StreamWriter(Sent, StreamWriterBase):
    """Sent to the workers; another instance, in a separate process, commits."""

    kind = StreamWriterBase.__name__

    def __init__(self, table: Table, schema: SparkStruct, request: Insert, options: Mapping[str, str]) -> None:
        self._store = table.store
        files, evaluated = request.files, EvaluatedRules.of_option(option_of(options, EVALUATED_RULES, ""))
        flags = {check.column for check in evaluated.checks}
        rows = nullable_schema(from_spark_schema(SparkStruct([column for column in schema if column.name not in flags])))
        check_columns(rows, Use.CONNECT)
        self._batches = BatchRows(
            rows,
            None if TAKES_BATCHES else schema,  # else Spark passes rows
            request.options,
            WriterOptions(files.max_records_per_file, files.compression),
            settings_in(options),
            time_zone_of(options),
            evaluated,
        )
        self._request = request
        self._checkpoint = option_of(options, "checkpointLocation", "")
        self._storage = storage_settings(self._checkpoint, options)
        self._target = self._batches.target(self._batches.config(table.begin()), table.store)

    def write(self, iterator: Iterator[object]) -> WriterCommitMessage:
        """Write one task's rows: Arrow batches, or rows if this Spark version passes no batches to a stream's sink."""
        write, arguments = self._call()
        return write(*arguments, iterator)

    def _task(self) -> object:
        write, arguments = self._call()
        return sent_whole(worker.message, write, *arguments)

    def _call(self) -> tuple[Callable[..., WrittenFiles], tuple[object, ...]]:
        """Return the function that writes one task's rows, and its first arguments."""
        if self._target.filled_in.identities:
            return numbered_files, (self._batches, self._store)
        return written_files, (self._target,)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Commit the files of a batch, unless the table has it already."""
        files = list(opened(messages, WrittenFiles))
        table = Table(self._store.url, store=self._store)

        def written(transaction: Transaction, config: TableConfig) -> Sequence[AddFile]:
            if any(task_files.adds and task_files.demands != demands(config) for task_files in files) and table.exists():
                raise MetadataChangedException(
                    f"The schema, a property or a constraint of table {table.url} was changed, or another writer numbered rows of it, while "
                    f"batch {batchId} was being written to it. Start the query again.",
                    table=table.url,
                )
            note_numbers(transaction, config, files)
            return [add for task_files in files for add in task_files.adds]

        commit = partial(table.commit, user_metadata=self._request.user_metadata)
        target = CommitsTable(table.url, table.begin, commit)
        if commit_batch(target, Batch(self._query(), batchId, self._batches.schema), self._request.options, written) is None:
            self.abort(messages, batchId)
        with logged_after_commit(
            "batch %d is written to table %s, but not converted", batchId, table.url, extra=about(table.url, batch=batchId)
        ):
            finish_conversions(table.url)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        """Delete the written files."""
        discard(self._store, messages)

    def _query(self) -> str:
        try:
            return str(json.loads(open_store(self._checkpoint, self._storage).get("metadata"))["id"])
        except (NotFound, ValueError, KeyError, TypeError) as error:
            raise InvalidRequest(
                f"The checkpoint {self._checkpoint} does not contain the id of its query (in its file 'metadata'), by which a "
                "batch is written "
                "to a table once. Is it where the processes of Spark's driver can read it?",
                code="TAHOE_NO_CHECKPOINT_LOCATION",
                table=self._store.url,
            ) from error
