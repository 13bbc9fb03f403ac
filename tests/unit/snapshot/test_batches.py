"""Tables as streams: bounded memory, order, early ends, errors, threads; and as pandas, Polars, DuckDB and PyCapsule consumers take them."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import closing
from datetime import date

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.exceptions import InvalidRequest, NotFound, TahoeError, Unsupported
from tahoe.snapshot import arrow_reader, scan
from tahoe.snapshot.polars_predicate import implied_predicate
from tahoe.snapshot.read_ahead import read_ahead
from tahoe.table import Table


def batch(number, rows=10):
    return pa.record_batch({"n": pa.array([number] * rows, pa.int64())})


def threads_of_ours():
    return [one for one in threading.enumerate() if one.name == "tahoe-read-ahead"]


def no_thread_is_left():
    deadline = time.monotonic() + 10
    while threads_of_ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not threads_of_ours()


@pytest.fixture
def table(tmp_path):
    made = Table.create(
        tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.int32())]), partition_by=["p"]
    )
    for part in range(4):
        made.append(pa.table({"id": range(part * 10, part * 10 + 10), "v": [f"v{i}" for i in range(10)], "p": [part] * 10}))
    return made


@pytest.fixture
def with_threads(monkeypatch):
    """Small tables are read as large ones are."""
    monkeypatch.setattr(scan, "_BYTES_WORTH_THREADS", 0)
    monkeypatch.setattr(scan, "_THREADS", 3)


# -- read ahead ---------------------------------------------------------------------------------------------------------------


def test_batches_come_stream_by_stream_in_order_however_the_threads_run():
    def stream(number):
        def begin():
            for i in range(3):
                time.sleep(0.001 * ((number * 7) % 4))
                yield batch(number * 10 + i)

        return begin

    found = read_ahead([stream(n) for n in range(40)], threads=4, most_open=4, most_bytes=1 << 20)
    assert [one.column(0)[0].as_py() for one in found] == [n * 10 + i for n in range(40) for i in range(3)]
    assert no_thread_is_left()


def test_no_more_is_read_ahead_than_there_is_room_for():
    made = []

    def endless():
        while True:
            made.append(1)
            yield batch(0)

    size = batch(0).nbytes
    found = read_ahead([endless, endless, endless], threads=3, most_open=3, most_bytes=10 * size)
    next(found)
    assert no_thread_is_left(), "a caller who stops asking is left with no thread"
    assert len(made) <= 10 + 3 + 1
    for _ in range(200):
        next(found)
    assert no_thread_is_left()
    assert len(made) <= 201 + 10 + 3
    found.close()


def test_only_so_many_streams_are_begun_at_once():
    begun, most = set(), 0
    lock = threading.Lock()

    def stream(number):
        def begin():
            nonlocal most
            with lock:
                begun.add(number)
                most = max(most, len(begun))
            yield batch(number)
            with lock:
                begun.discard(number)

        return begin

    assert len(list(read_ahead([stream(n) for n in range(50)], threads=2, most_open=3, most_bytes=1 << 20))) == 50
    assert most <= 3


def test_an_error_comes_in_its_turn_after_the_rows_before_it():
    def fails():
        yield batch(1)
        raise NotFound("it is gone")

    found = read_ahead([lambda: iter([batch(0)]), fails, lambda: iter([batch(2)])], threads=2, most_open=3, most_bytes=1 << 20)
    assert [next(found).column(0)[0].as_py() for _ in range(2)] == [0, 1]
    with pytest.raises(NotFound, match="it is gone"):
        next(found)
    assert no_thread_is_left()


def test_a_stream_that_is_left_in_the_middle_is_closed():
    closed = []

    def stream(number):
        def begin():
            try:
                while True:
                    yield batch(number)
            finally:
                closed.append(number)

        return begin

    found = read_ahead([stream(0), stream(1)], threads=2, most_open=2, most_bytes=1000)
    next(found)
    found.close()
    assert no_thread_is_left()
    assert sorted(closed) in ([0], [0, 1])  # the second may not have begun


def test_a_keyboard_interrupt_while_waiting_ends_the_work(monkeypatch):
    gate = threading.Event()

    def slow():
        gate.wait(10)
        yield batch(0)

    found = read_ahead([slow, slow], threads=2, most_open=2, most_bytes=1000)
    wait = threading.Condition.wait

    def interrupted(self, timeout=None):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return wait(self, timeout)

    monkeypatch.setattr(threading.Condition, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(found)
    monkeypatch.undo()
    gate.set()
    assert no_thread_is_left()


# -- tables -------------------------------------------------------------------------------------------------------------------


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
    assert [one for part in made.to_batches() for one in part.column(0).to_pylist()] == list(range(600))
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
    monkeypatch.setattr(arrow_reader, "_BYTES_OF_A_BATCH", 200_000)
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


# -- other libraries ------------------------------------------------------------------------------------------------------------


def test_arrow_polars_and_duckdb_take_a_table_as_it_is(table):
    assert pa.table(table).equals(table.to_arrow())
    assert pa.schema(table) == table.to_arrow().schema
    assert pl.DataFrame(table).shape == (40, 3)
    flights = table  # noqa: F841 - DuckDB finds it by this name
    assert duckdb.sql("select count(*), sum(id) from flights where p < 2").fetchall() == [(20, 190)]


def test_a_requested_schema_chooses_columns_and_types(table):
    reader = pa.RecordBatchReader.from_stream(table, schema=pa.schema([("p", pa.int64()), ("id", pa.int32())]))
    found = reader.read_all()
    assert found.schema.types == [pa.int64(), pa.int32()] and found.column("id").to_pylist() == list(range(40))
    with pytest.raises(InvalidRequest, match="nothing"):
        pa.RecordBatchReader.from_stream(table, schema=pa.schema([("nothing", pa.int64())]))


def test_pandas_gets_a_plain_index(table):
    frame = table.to_pandas("id >= 35", ["id", "v"])
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["id", "v"]
    assert list(frame.index) == [0, 1, 2, 3, 4] and list(frame["id"]) == [35, 36, 37, 38, 39]
    assert table.to_pandas(limit=3).shape == (3, 3)


def test_duckdb_reads_one_version_as_often_as_it_likes(table):
    relation = table.to_duckdb("id < 20", ["id"])
    table.append(pa.table({"id": [5], "v": ["x"], "p": [0]}))
    for _ in range(2):
        assert relation.aggregate("count(*), sum(id)").fetchall() == [(20, 190)]
    assert table.to_duckdb(connection=duckdb.connect()).aggregate("count(*)").fetchall() == [(41,)]


def test_polars_reads_lazily_only_the_columns_and_files_that_a_query_needs(table, monkeypatch):
    asked = []
    batches = scan.Scan.batches

    def noted(self, limit=None):
        asked.append((self.columns, len(self.add_files()), limit))
        return batches(self, limit)

    monkeypatch.setattr(scan.Scan, "batches", noted)
    lazy = table.to_polars()
    assert isinstance(lazy, pl.LazyFrame) and not asked
    found = lazy.filter((pl.col("id") > 32) & pl.col("v").str.contains("v")).select("v").collect()
    assert found["v"].to_list() == [f"v{i}" for i in range(3, 10)]
    assert lazy.filter(pl.col("p") == 1).select(pl.len()).collect().item() == 10
    assert lazy.head(3).filter(pl.col("id") > 0).collect()["id"].to_list() == [1, 2]
    assert lazy.filter(pl.col("id") > 5).head(3).collect()["id"].to_list() == [6, 7, 8]
    assert lazy.select(pl.len()).collect().item() == 40
    assert [count for _, count, _ in asked[:2]] == [1, 1]
    assert "p" not in asked[0][0]
    assert asked[2][2] == 3
    assert table.to_polars("id < 5", ["v"], limit=2).collect().shape == (2, 1)


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("i") > 3,
        pl.lit(3) >= pl.col("i"),
        pl.col("i") != 2,
        ~(pl.col("i") > 3),
        (pl.col("i") == 1) | (pl.col("s") == "b"),
        (pl.col("i") == 1) | pl.col("s").str.starts_with("b"),
        pl.col("d") < date(2020, 1, 3),
        pl.col("f") > 1.5,
        pl.col("f") == float("nan"),
        pl.col("f") <= 1,
        pl.col("s").is_null() & pl.col("i").is_not_null(),
        pl.col("i").is_in([1, 2]),
        pl.col("i") > 2.5,
        pl.col("i") + 1 > 3,
        pl.col("b"),
        pl.col("b") == True,  # noqa: E712 - Polars' way
        pl.col("i").eq_missing(None),
        pl.col("i") > 1 << 40,
        pl.col("s") > "a",
    ],
    ids=str,
)
def test_what_is_left_out_for_polars_is_never_what_it_would_keep(tmp_path, expression):
    rows = pa.table(
        {
            "i": pa.array([1, 2, 3, 4, None, 5], pa.int32()),
            "s": ["a", "b", None, "bb", "", "ä"],
            "d": [date(2020, 1, day) for day in range(1, 7)],
            "f": [1.0, 2.0, float("nan"), None, -0.0, float("inf")],
            "b": [True, False, None, True, False, None],
        }
    )
    made = Table.create(tmp_path / "t", rows.schema)
    made.append(rows, max_rows_per_file=1)
    wanted = pl.DataFrame(rows).filter(expression)
    assert made.to_polars().filter(expression).collect().equals(wanted)
    implied = made.snapshot().scan(implied_predicate(expression, made.schema())).to_arrow()
    assert set(wanted["d"]) <= set(implied.column("d").to_pylist())


def test_a_missing_library_is_named_with_its_remedy(table, monkeypatch):
    for package, method in (("pandas", table.to_pandas), ("polars", table.to_polars), ("duckdb", table.to_duckdb)):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(Unsupported, match=f"pip install {package}"):
            method()


# -- frames as what is written ----------------------------------------------------------------------------------------------------


def test_an_index_without_a_name_is_no_column_and_one_with_a_name_is(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3]})[lambda rows: rows.a > 1]
    made = Table(tmp_path / "t")
    made.append(frame)
    made.append(pa.Table.from_pandas(frame))
    made.append(pa.RecordBatch.from_pandas(frame))
    made.append(pl.DataFrame({"a": [7]}))
    assert made.to_arrow().sort_by("a").to_pydict() == {"a": [2, 2, 2, 3, 3, 3, 7]}
    made.overwrite(frame.rename_axis("key"), overwrite_schema=True)
    assert made.to_arrow().to_pydict() == {"a": [2, 3], "key": [1, 2]}
    several = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)]))
    made.overwrite(several, overwrite_schema=True)
    assert made.to_arrow().to_pydict() == {"a": [1]}


def test_a_table_that_has_a_column_of_an_indexes_name_keeps_getting_it(tmp_path):
    schema = pa.schema([("a", pa.int64()), ("__index_level_0__", pa.int64())])
    made = Table.create(tmp_path / "t", schema)
    made.append(pd.DataFrame({"a": [1]}, index=[5]))
    assert made.to_arrow().to_pydict() == {"a": [1], "__index_level_0__": [5]}


def test_a_table_is_written_from_a_table(table, tmp_path):
    copy = Table(tmp_path / "copy")
    copy.append(table)
    assert copy.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))


def test_a_lazy_frame_is_refused_with_its_remedy(tmp_path):
    with pytest.raises(InvalidRequest, match="Collect a lazy frame first"):
        Table(tmp_path / "t").append(pl.LazyFrame({"a": [1]}))
