"""Write a micro-batch of a stream to a table exactly once: commit its files with the number of the batch.

    already committed? ─► schema ─► data files ─► [removals] ─► commit with (query, number)
                                         ▲                            │
                                         └── another writer committed first: the same files again

The rows of a batch are computed once: a stateful query would count a second run as another batch. If another writer commits first, the same
files are committed again, provided that they still fit the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tahoe.base.exceptions import ConcurrentTransactionException, DeltaConcurrentModificationException, InvalidRequest
from tahoe.ops.rows.insert import WriteOptions, already_written, prepare_schema, stage_adds
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.schema.mapping import explode
from tahoe.schema.types import PrimitiveType, StructType, parts_of
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

WriteFiles = Callable[[Transaction, TableConfig], Sequence[AddFile]]
"""Writes the rows of a batch to data files for a table configuration."""

_ATTEMPTS = 10
_OUTPUT_MODES = {"append": "Append", "overwrite": "Complete"}
_VOID = PrimitiveType("void")


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch of a query.

    Args:
        query: the query's id, the same after each restart from its checkpoint.
        number: the number of the batch; a repeated batch has the same number.
        columns: the schema of its rows.
        reads_target: whether the query reads its target table, for example in a join.
    """

    query: str
    number: int
    columns: StructType
    reads_target: bool = False


@dataclass(frozen=True, slots=True)
class CommitsTable:
    """The operations of a table that a streaming write needs.

    Args:
        begin: starts a transaction on the newest version.
        commit: `tahoe.api.table.Table.commit`.
    """

    url: str
    begin: Callable[[], Transaction]
    commit: Callable[[Transaction, Operation], Committed]


def commit_batch(table: CommitsTable, batch: Batch, options: WriteOptions, write: WriteFiles) -> int | None:
    """Write the rows and commit them; return the version, or None if the table contains the batch already.

    Args:
        options: the write options; the mode is ``append``, or ``overwrite`` for a stream in output mode complete.
        write: writes the data files.

    Raises:
        InvalidRequest: ``DELTA_NULL_SCHEMA_IN_STREAMING_WRITE``.
        SchemaMismatch, Unsupported: as for any write.
        ConcurrentTransactionException: another run of the same query has written the batch meanwhile.
        DeltaConcurrentModificationException: another writer changed the table so that the files no longer fit it.
    """
    _refuse_void(batch.columns, table.url)
    options = replace(options, app=(batch.query, batch.number))
    written: _BatchFiles | None = None
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
                written = _BatchFiles(config, write(transaction, config), bool(transaction.marks))
            stage_adds(transaction, config, written.adds, None, options)
            return table.commit(transaction, _operation(transaction, batch, options.mode)).version
        except DeltaConcurrentModificationException as error:
            # If the batch was committed meanwhile, another run of the query is active: raise the error.
            is_duplicate = isinstance(error, ConcurrentTransactionException)
            if (
                is_duplicate
                or written is None
                or written.is_numbered
                or attempt == _ATTEMPTS
                or not _fits(written, table, batch, options)
            ):
                raise
    raise AssertionError("the last attempt returns or raises")


def demands(config: TableConfig) -> tuple[object, ...]:
    """Return the parts of a configuration on which data files depend: if they are equal, files can be committed to either table state."""
    metadata = config.metadata
    return metadata.schema_string, tuple(metadata.partition_columns), dict(metadata.configuration), config.protocol


@dataclass(frozen=True, slots=True)
class _BatchFiles:
    """Data files, and the table configuration for which they were written.

    Args:
        is_numbered: whether their rows have generated identity values, which another writer may have assigned meanwhile.
    """

    config: TableConfig
    adds: Sequence[AddFile]
    is_numbered: bool


def _begun(table: CommitsTable) -> Transaction:
    transaction = table.begin()
    transaction.enforces = ENFORCED
    return transaction


def _config(transaction: Transaction, batch: Batch, options: WriteOptions) -> TableConfig:
    """Return the configuration of the table after the commit."""
    if transaction.snapshot is not None and options.mode == "overwrite":
        transaction.snapshot.config.refuse_if_append_only()
    return prepare_schema(transaction, batch.columns, options)


def _fits(written: _BatchFiles, table: CommitsTable, batch: Batch, options: WriteOptions) -> bool:
    """Whether written files still fit the newest version of the table."""
    return demands(_config(_begun(table), batch, options)) == demands(written.config)


def _operation(transaction: Transaction, batch: Batch, mode: str) -> Operation:
    """Return the operation STREAMING UPDATE with delta-spark's parameters and metrics."""
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
        if _VOID in parts_of(column.data_type):
            raise InvalidRequest(
                f"Column '{'.'.join(path)}' of the stream that is written to table {table} has the type void, of a value that is always "
                "null. Cast it to a type, or drop it.",
                code="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                table=table,
                column=".".join(path),
            )


def _written_by_another(table: str, batch: Batch) -> ConcurrentTransactionException:
    return ConcurrentTransactionException(
        f"Batch {batch.number} of query {batch.query} was written to table {table} by another run of the same query while this one was "
        "writing it: two runs share a checkpoint. Nothing was committed here. Stop one of them.",
        table=table,
    )
