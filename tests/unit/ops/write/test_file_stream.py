"""Files that are written row group by row group: their contents, and their actions in the log."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK, SeededClock
from tahoe.base.exceptions import StorageFailure
from tahoe.ops.write import file_stream
from tahoe.ops.write.file_stream import NewFile, new_name, write_stream
from tahoe.ops.write.parquet_files import ParquetFormat, parquet_writer
from tahoe.protocol.config import TableConfig
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns
from tahoe.schema.arrow import from_arrow_schema
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store

SCHEMA = pa.schema({"v": pa.int64(), "f": pa.float64(), "t": pa.string(), "p": pa.string()})


@pytest.fixture
def store() -> LogStore:
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


@pytest.fixture
def config(store: LogStore) -> TableConfig:
    return Table.create(store.url, SCHEMA, partition_by=["p"], store=store).snapshot().config


def batches(*floats: float) -> Iterator[pa.RecordBatch]:
    for i, value in enumerate(floats):
        yield pa.record_batch([[i, None], [value, 1.0], [f"text {i}", None], ["x", "x"]], schema=SCHEMA)


def written(store: LogStore, config: TableConfig, rows: Iterator[pa.RecordBatch]) -> tuple[pq.FileMetaData, str | None]:
    name = new_name(config, SeededClock(), {"p": "x"})
    add = write_stream(config, store, rows, SeededClock(), NewFile(name, {"p": "x"}))
    assert add is not None
    assert (add.size, add.partition_values, add.data_change) == (len(store.get(name)), {"p": "x"}, False)
    with store.open_input(name) as source:
        return pq.read_metadata(source), add.stats


def test_statistics_are_those_of_all_row_groups(store: LogStore, config: TableConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_stream, "ROWS_OF_A_GROUP", 4)
    footer, stats = written(store, config, batches(-0.0, 5.0, 0.0, 2.0, 3.0))
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [4, 4, 2]
    assert stats == (
        '{"numRecords":10,"minValues":{"v":0,"f":-0.0,"t":"text 0"},"maxValues":{"v":4,"f":5.0,"t":"text 4"},'
        '"nullCount":{"v":5,"f":0,"t":5}}'
    )


def test_a_bound_of_a_footer_never_hides_nan_of_a_later_group(
    store: LogStore, config: TableConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_stream, "ROWS_OF_A_GROUP", 2)
    footer, stats = written(store, config, batches(1.0, math.nan))
    assert not any(footer.row_group(i).column(1).is_stats_set for i in range(2))
    assert all(footer.row_group(i).column(0).is_stats_set for i in range(2))
    assert stats is not None
    assert '"minValues":{"v":0,"f":1.0,' in stats
    assert '"maxValues":{"v":1,"t"' in stats


def test_floats_of_a_single_group_have_bounds(store: LogStore, config: TableConfig) -> None:
    footer, _ = written(store, config, batches(1.0, 2.0))
    assert (footer.num_row_groups, footer.row_group(0).column(1).statistics.max) == (1, 2.0)


def test_groups_end_where_they_have_bytes_enough(store: LogStore, config: TableConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_stream, "BYTES_OF_A_GROUP", 1)
    footer, _ = written(store, config, batches(1.0, 2.0, 3.0))
    assert footer.num_row_groups == 3


def test_no_rows_make_no_file(store: LogStore, config: TableConfig) -> None:
    before = list(store.walk())
    assert write_stream(config, store, iter(()), SeededClock(), NewFile("name", {})) is None
    assert list(store.walk()) == before


TEXTS = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["", "\U0010ffff" * 40, "z" * 5000, "a" * 4096, "a" * 4097]))


@given(st.lists(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3), min_size=1, max_size=4))
def test_texts_that_are_left_to_the_writer_have_the_statistics_that_looking_gives(groups: list[list[tuple[str, str]]]) -> None:
    schema = pa.schema({"s": pa.string(), "a": pa.struct({"b": pa.string()}), "a.b": pa.string()})
    tables = [
        pa.table([[s for s, _ in rows], [{"b": other} for _, other in rows], [other for _, other in rows]], schema=schema)
        for rows in groups
    ]
    indexed = indexed_columns(from_arrow_schema(schema), (), {})
    looking, left, footers = StatisticsCollector(indexed, 32), StatisticsCollector(indexed, 32, texts_by_footer=True), list[Any]()
    with parquet_writer(
        pa.BufferOutputStream(), tables[0], ParquetFormat("snappy", "1.0"), are_all=False, footers=footers
    ) as writer:
        for table in tables:
            writer.write_table(table)
            looking.add(table)
            left.add(table)
    assert left.statistics(footers[0]).to_json() == looking.statistics().to_json()


def test_a_disk_that_fills_up_raises_the_error_of_storage_and_leaves_nothing(tmp_path, config: TableConfig) -> None:
    class Full:
        """A file on a disk that takes the first bytes only."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, data: Any) -> int:
            if self._file.tell() > 100:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self._file.write(data)

    class FullStore(LocalLogStore):
        @contextmanager
        def open_output(self, name: str) -> Iterator[Any]:
            with super().open_output(name) as file:
                yield Full(file)

    full = FullStore(tmp_path / "t")
    with pytest.raises(StorageFailure, match="No space left on device"):
        write_stream(config, full, batches(1.0, 2.0), SeededClock(), NewFile("x.parquet", {"p": "x"}))
    assert [*full.walk()] == [] and not list((tmp_path / "t").glob("**/*.*"))
