"""A batch of a stream, without Spark: written once, beside any other writer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import ConcurrentTransactionException, InvalidRequest, MetadataChangedException
from tahoe.ops.rows.insert import WriteOptions
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch
from tahoe.ops.write.writer import write_arrow
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import from_arrow_schema
from tahoe.txn.transaction import Transaction

APPEND, COMPLETE = WriteOptions(), WriteOptions("overwrite")


def a_table(*ids: int) -> Table:
    table = Table(f"memory://{uuid.uuid4()}/table")
    table.append(rows(*ids))
    return table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def put(
    table: Table, number: int, data: pa.Table, options: WriteOptions = APPEND, meanwhile: Callable[[], object] = lambda: None
) -> tuple[int | None, int]:
    """The version, and how often the rows were written."""
    runs = []

    def write(transaction: Transaction, config: TableConfig) -> Sequence[AddFile]:
        runs.append(number)
        adds = write_arrow(config, transaction.store, data.to_reader(), SYSTEM_CLOCK)
        meanwhile()
        return adds

    asked = CommitsTable(table.url, table.begin, partial(table.commit))
    version = commit_batch(asked, Batch("q", number, from_arrow_schema(data.schema)), options, write)
    return version, len(runs)


def test_a_batch_is_written_once_and_older_ones_with_it() -> None:
    table = a_table(0)
    assert put(table, 0, rows(1)) == (1, 1)
    assert put(table, 0, rows(1)) == (None, 0)
    assert put(table, 2, rows(2)) == (2, 1)
    assert put(table, 1, rows(9)) == (None, 0)
    assert ids(table) == [0, 1, 2]


def test_a_batch_without_rows_still_has_its_number() -> None:
    table = a_table(0)
    assert put(table, 0, rows()) == (1, 1)
    assert table.snapshot().state.transactions["q"].version == 0


def test_where_another_writer_wins_the_same_files_are_committed() -> None:
    table = a_table(0)
    assert put(table, 0, rows(1), COMPLETE, lambda: table.delete("id = 0")) == (2, 1)
    assert ids(table) == [1]


def test_files_that_no_longer_fit_are_not_committed() -> None:
    table = a_table(0)
    with pytest.raises(MetadataChangedException):
        put(table, 0, rows(20), meanwhile=lambda: table.add_constraint("small", "id < 10"))
    assert ids(table) == [0]


def test_another_run_of_the_query_is_reported() -> None:
    table = a_table(0)
    with pytest.raises(ConcurrentTransactionException):
        put(table, 0, rows(1), meanwhile=lambda: put(table, 0, rows(1)))
    assert ids(table) == [0, 1]


def test_a_column_of_nothing_is_refused() -> None:
    data = pa.table({"id": [1], "n": pa.nulls(1)})
    with pytest.raises(InvalidRequest, match="'n'") as caught:
        put(a_table(0), 0, data)
    assert caught.value.code == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
