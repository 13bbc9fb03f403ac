"""One batch of a stream into its table: rows written once, committed with the number of the batch.

    number there already? ─► schema ─► rows, fitted and checked ─► data files ─► [removals] ─► commit with (query, batch)
                                                            ▲                          │
                                                            └── another writer won: the same files once more

The rows of a batch are made once: a query that keeps state would count a second run of it as another one. So where another writer wins,
the files that are written are committed anew, if they are still what the table wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from tahoe.exceptions import ConcurrentTransactionException, DeltaConcurrentModificationException, InvalidRequest
from tahoe.ops.rows.insert import already_written, prepare_schema, stage_adds
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.enforced import ENFORCED
from tahoe.schema.mapping import explode
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.write.enforce import enforced
from tahoe.spark.write.fitting import nullable_schema
from tahoe.spark.write.writer import write_files
from tahoe.table import Table
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Batch", "write_batch"]

_ATTEMPTS = 10
_OUTPUT_MODES = {"append": "Append", "overwrite": "Complete"}
_VOID = PrimitiveType("void")


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query.

    Args:
        query: the query's id, the same after each restart from its checkpoint.
        number: of the batch; the same rows have the same number.
        data: its rows, as they may be written by a job of their own.
        reads_target: the query reads the table that it writes, as a join with it does.
    """

    query: str
    number: int
    data: DataFrame
    reads_target: bool = False


def write_batch(table: Table, batch: Batch, request: Insert) -> int | None:
    """Write the rows and commit; the version, or None where the table has the batch already.

    Raises:
        InvalidRequest: ``DELTA_NULL_SCHEMA_IN_STREAMING_WRITE``.
        SchemaMismatch, Unsupported: as of a write of a DataFrame.
        ConcurrentTransactionException: another run of the same query has written the batch meanwhile.
        DeltaConcurrentModificationException: another writer changed the table so that the files no longer fit it.
    """
    _refuse_void(batch.data, table)
    written: _Written | None = None
    for attempt in range(1, _ATTEMPTS + 1):
        transaction = table.begin()
        transaction.enforces = ENFORCED
        if already_written(transaction, (batch.query, batch.number)):
            if written is None:
                return None
            raise _written_by_another(table, batch)
        if batch.reads_target:
            transaction.read_whole_table()
        try:
            written, operation = _staged(transaction, batch, request, written)
            return table.commit(transaction, operation, user_metadata=request.user_metadata).version
        except DeltaConcurrentModificationException as error:
            # A number that was written meanwhile is told: another run of the query is at work.
            told = isinstance(error, ConcurrentTransactionException)
            if told or written is None or attempt == _ATTEMPTS or not _fits(written, table, batch, request):
                raise
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class _Written:
    """Files, and the table that they were written for."""

    config: TableConfig
    adds: Sequence[AddFile]


def _staged(transaction: Transaction, batch: Batch, request: Insert, written: _Written | None) -> tuple[_Written, Operation]:
    options = replace(request.options, app=(batch.query, batch.number))
    snapshot = transaction.snapshot
    if snapshot is not None and options.mode == "overwrite":
        snapshot.config.refuse_if_append_only()
    config = prepare_schema(transaction, _columns_of(batch.data), options)
    if written is None:
        with shown_jobs(batch.data.sparkSession, transaction.clock):
            adds = write_files(
                enforced(batch.data, config), config, transaction.store, transaction.clock, request.files
            )
        written = _Written(config, adds)
    stage_adds(transaction, config, written.adds, None, options)
    return written, _operation(transaction, batch, options.mode)


def _operation(transaction: Transaction, batch: Batch, mode: str) -> Operation:
    """STREAMING UPDATE with the reference's parameters and metrics."""
    adds = transaction.adds
    return Operation(
        "STREAMING UPDATE",
        {"outputMode": _OUTPUT_MODES[mode], "queryId": batch.query, "epochId": str(batch.number)},
        {
            "numAddedFiles": len(adds),
            "numRemovedFiles": len(transaction.removes),
            "numOutputRows": sum(add.num_records or 0 for add in adds),
            "numOutputBytes": sum(add.size for add in adds),
        },
    )


def _fits(written: _Written, table: Table, batch: Batch, request: Insert) -> bool:
    """Whether files that are written are what the table, as it is now, would have had written."""
    transaction = table.begin()
    transaction.enforces = ENFORCED
    config = prepare_schema(transaction, _columns_of(batch.data), request.options)
    return _demands(config) == _demands(written.config)


def _demands(config: TableConfig) -> tuple[object, ...]:
    metadata = config.metadata
    return metadata.schema_string, tuple(metadata.partition_columns), dict(metadata.configuration), config.protocol


def _columns_of(data: DataFrame) -> StructType:
    return nullable_schema(from_spark_schema(data.schema))


def _refuse_void(data: DataFrame, table: Table) -> None:
    for path, column in explode(from_spark_schema(data.schema)):
        if _holds_void(column.data_type):
            raise InvalidRequest(
                f"Column '{'.'.join(path)}' of the stream that is written to table {table.url} has the type void, of a value that is always "
                "null. Cast it to a type, or drop it.",
                code="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                table=table.url,
                column=".".join(path),
            )


def _holds_void(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element):
            return _holds_void(element)
        case MapType(key, value):
            return _holds_void(key) or _holds_void(value)
    return data_type == _VOID


def _written_by_another(table: Table, batch: Batch) -> ConcurrentTransactionException:
    return ConcurrentTransactionException(
        f"Batch {batch.number} of query {batch.query} was written to table {table.url} by another run of the same query while this one was "
        "writing it: two runs share a checkpoint. Nothing was committed here. Stop one of them.",
        table=table.url,
    )
