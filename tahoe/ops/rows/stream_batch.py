"""One batch of a stream into its table: its files, committed with the number of the batch, once however often the batch comes.

    number there already? ─► schema ─► data files ─► [removals] ─► commit with (query, number)
                                           ▲                             │
                                           └── another writer won: the same files once more

The rows of a batch are made once: a query that keeps state would count a second run of it as another one. So where another writer wins,
the files that are written are committed anew, if they are still what the table wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tahoe.exceptions import ConcurrentTransactionException, DeltaConcurrentModificationException, InvalidRequest
from tahoe.ops.rows.insert import WriteOptions, already_written, prepare_schema, stage_adds
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.enforced import ENFORCED
from tahoe.schema.mapping import explode
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Batch", "CommitsTable", "WriteFiles", "commit_batch", "demands"]

WriteFiles = Callable[[Transaction, TableConfig], Sequence[AddFile]]
"""Writes the rows of a batch as the table wants them."""

_ATTEMPTS = 10
_OUTPUT_MODES = {"append": "Append", "overwrite": "Complete"}
_VOID = PrimitiveType("void")


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query.

    Args:
        query: the query's id, the same after each restart from its checkpoint.
        number: of the batch; the same rows have the same number.
        columns: of its rows.
        reads_target: the query reads the table that it writes, as a join with it does.
    """

    query: str
    number: int
    columns: StructType
    reads_target: bool = False


@dataclass(frozen=True, slots=True)
class CommitsTable:
    """What is asked of a table.

    Args:
        begin: gives a transaction on the newest version.
        commit: of `tahoe.table.Table`.
    """

    url: str
    begin: Callable[[], Transaction]
    commit: Callable[[Transaction, Operation], Committed]


def commit_batch(table: CommitsTable, batch: Batch, options: WriteOptions, write: WriteFiles) -> int | None:
    """Write the rows and commit; the version, or None where the table has the batch already.

    Args:
        options: their mode is ``append``, or ``overwrite`` for a stream in output mode complete.

    Raises:
        InvalidRequest: ``DELTA_NULL_SCHEMA_IN_STREAMING_WRITE``.
        SchemaMismatch, Unsupported: as of any write.
        ConcurrentTransactionException: another run of the same query has written the batch meanwhile.
        DeltaConcurrentModificationException: another writer changed the table so that the files no longer fit it.
    """
    _refuse_void(batch.columns, table.url)
    options = replace(options, app=(batch.query, batch.number))
    written: _Written | None = None
    for attempt in range(1, _ATTEMPTS + 1):
        transaction = _begun(table)
        if already_written(transaction, options.app):
            if written is None:
                return None
            raise _written_by_another(table.url, batch)
        if batch.reads_target:
            transaction.read_whole_table()
        try:
            config = _config(transaction, batch, options)
            if written is None:
                written = _Written(config, write(transaction, config), bool(transaction.marks))
            stage_adds(transaction, config, written.adds, None, options)
            return table.commit(transaction, _operation(transaction, batch, options.mode)).version
        except DeltaConcurrentModificationException as error:
            # A number that was written meanwhile is told: another run of the query is at work.
            told = isinstance(error, ConcurrentTransactionException)
            if (
                told
                or written is None
                or written.is_numbered
                or attempt == _ATTEMPTS
                or not _fits(written, table, batch, options)
            ):
                raise
    raise AssertionError("the last attempt returns or raises")


def demands(config: TableConfig) -> tuple[object, ...]:
    """What of a table data files are written for: files written for one of equal demands may be committed to the other."""
    metadata = config.metadata
    return metadata.schema_string, tuple(metadata.partition_columns), dict(metadata.configuration), config.protocol


@dataclass(frozen=True, slots=True)
class _Written:
    """Files, and the table that they were written for.

    Args:
        is_numbered: their rows have values of identity columns, which another writer may have handed out meanwhile.
    """

    config: TableConfig
    adds: Sequence[AddFile]
    is_numbered: bool


def _begun(table: CommitsTable) -> Transaction:
    transaction = table.begin()
    transaction.enforces = ENFORCED
    return transaction


def _config(transaction: Transaction, batch: Batch, options: WriteOptions) -> TableConfig:
    """The table as it will be."""
    if transaction.snapshot is not None and options.mode == "overwrite":
        transaction.snapshot.config.refuse_if_append_only()
    return prepare_schema(transaction, batch.columns, options)


def _fits(written: _Written, table: CommitsTable, batch: Batch, options: WriteOptions) -> bool:
    """Whether files that are written are what the table, as it is now, would have had written."""
    return demands(_config(_begun(table), batch, options)) == demands(written.config)


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


def _refuse_void(columns: StructType, table: str) -> None:
    for path, column in explode(columns):
        if _holds_void(column.data_type):
            raise InvalidRequest(
                f"Column '{'.'.join(path)}' of the stream that is written to table {table} has the type void, of a value that is always "
                "null. Cast it to a type, or drop it.",
                code="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                table=table,
                column=".".join(path),
            )


def _holds_void(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element):
            return _holds_void(element)
        case MapType(key, value):
            return _holds_void(key) or _holds_void(value)
    return data_type == _VOID


def _written_by_another(table: str, batch: Batch) -> ConcurrentTransactionException:
    return ConcurrentTransactionException(
        f"Batch {batch.number} of query {batch.query} was written to table {table} by another run of the same query while this one was "
        "writing it: two runs share a checkpoint. Nothing was committed here. Stop one of them.",
        table=table,
    )
