"""Tables as streams: bounded memory, order, early ends, errors, threads."""

from __future__ import annotations

import gc
import os
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeError
from tahoe.snapshot import file_row_groups, scan
from tests.unit.snapshot.streams import no_thread_is_left


@pytest.mark.usefixtures("with_threads")
def test_batches_hold_the_rows_of_to_arrow(table):
    for arguments in ({}, {"filter": "id > 12"}, {"columns": ["p", "v"]}, {"filter": "p = 2 or v = 'v3'", "columns": ["id"]}):
        reader = table.to_batches(**arguments)
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.read_all().equals(table.to_arrow(**arguments))
    assert table.to_batches(version=2).read_all().num_rows == 20
    assert no_thread_is_left()


def test_the_schema_is_right_without_a_row(table):
    reader = table.to_batches("id > 1000", ["v", "p"])
    assert reader.schema == table.to_arrow(columns=["v", "p"]).schema
    assert reader.read_all().num_rows == 0


@pytest.mark.parametrize("limit", [0, 1, 10, 11, 39, 40, 1000])
@pytest.mark.damages_tables
def test_a_limit_gives_so_many_rows_and_reads_no_file_that_it_does_not_need(table, limit):
    adds = table.snapshot().scan().add_files()
    needed = -(-limit // 10)
    for add in adds[needed:]:
        table.store.delete(add.path)
    assert table.to_batches(limit=limit).read_all().num_rows == min(limit, 40)


def test_a_negative_limit_and_an_unknown_column_are_refused_before_a_row_is_read(table):
    with pytest.raises(InvalidRequest, match="limit must be 0 or more"):
        table.to_batches(limit=-1)
    with pytest.raises(InvalidRequest, match="nothing"):
        table.to_batches(columns=["nothing"])


@pytest.mark.usefixtures("with_threads")
@pytest.mark.damages_tables
def test_an_error_in_the_middle_of_a_stream_is_tahoes_own(table):
    adds = table.snapshot().scan().add_files()
    table.store.delete(adds[2].path)
    reader = table.to_batches()
    with pytest.raises(NotFound, match="is in the table's log but not in storage") as caught:
        reader.read_all()
    assert isinstance(caught.value, TahoeError) and caught.value.code == "DELTA_FILE_NOT_FOUND"
    assert no_thread_is_left()


@pytest.mark.usefixtures("with_threads")
def test_a_reader_that_is_dropped_leaves_no_thread_and_no_open_file(table):
    reader = table.to_batches()
    next(reader)
    del reader
    gc.collect()
    assert no_thread_is_left()
    if os.path.isdir("/proc/self/fd"):
        opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        assert not [name for name in opened if name.endswith(".parquet")]


@pytest.mark.usefixtures("with_threads")
def test_batches_can_be_closed_at_a_certain_place(table):
    with closing(table.snapshot().scan().batches()) as batches:
        assert next(batches).num_rows == 10
    assert no_thread_is_left()
    assert next(batches, None) is None, "nothing is read after the end"


@pytest.mark.usefixtures("with_threads")
def test_many_small_files_are_streamed(tmp_path):
    made = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": range(600)}), max_rows_per_file=2)
    assert made.snapshot().num_files == 300
    assert [item for part in made.to_batches() for item in part.column(0).to_pylist()] == list(range(600))
    assert no_thread_is_left()


@pytest.mark.usefixtures("with_threads")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # 3.12 warns of forks beside threads, of which Arrow has some
def test_a_forked_child_reads_while_its_parent_is_in_the_middle(table):
    reader = table.to_batches()
    next(reader)
    child = os.fork()
    if child == 0:
        rows = sum(part.num_rows for part in Table(table.url).snapshot().scan().batches(limit=20))
        os._exit(0 if rows == 20 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(part.num_rows for part in reader) == 30


@pytest.mark.parametrize("mapped", [1, 1 << 40], ids=["read in pieces", "mapped"])
def test_memory_is_bounded_by_batches_and_not_by_row_groups_or_files(tmp_path, monkeypatch, mapped):
    monkeypatch.setattr("tahoe.store.local_store._MOST_BYTES_MAPPED", mapped)
    monkeypatch.setattr(file_row_groups, "_BYTES_OF_A_BATCH", 200_000)
    monkeypatch.setattr(scan, "MOST_BYTES_AHEAD", 400_000)
    numbers = pa.arange(0, 400_000)
    texts = pc.utf8_lpad(pc.subtract(pa.scalar(10**12), pc.multiply(numbers, 7919)).cast(pa.string()), 30, "0")
    rows = pa.table({"id": numbers, "x": texts})
    made = Table.create(tmp_path / "t", rows.schema)
    for start in range(0, 400_000, 200_000):
        made.append(rows.slice(start, 200_000))  # one row group of some 8 MB each
    del rows, numbers, texts
    gc.collect()
    before, most, count = pa.total_allocated_bytes(), 0, 0
    for part in made.to_batches():
        most, count = max(most, pa.total_allocated_bytes() - before), count + part.num_rows
    assert count == 400_000
    assert most < 5_000_000, f"{most:,} bytes of 18 MB were in memory at once"
