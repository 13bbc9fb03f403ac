"""Rows of a stream: each appended row once, with any concurrent commit, and wherever the reader is stopped and restarted."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.stream.position import Position
from tahoe.stream.source import Source
from tahoe.stream.tail_batch import TailBatch
from tests.sampling import examples

PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 5)),
    st.tuples(st.sampled_from(["delete", "update"]), st.integers(2, 4)),
    st.tuples(st.sampled_from(["overwrite", "optimize", "set", "delete all"]), st.just(0)),
    st.tuples(st.just("read"), st.integers(0, 3)),
)
LIMITS = st.fixed_dictionaries(
    {"max_files_per_trigger": st.none() | st.integers(1, 4), "max_bytes_per_trigger": st.none() | st.integers(1, 2000)}
)


class Life:
    """A table, its operations, and the rows that each version appended."""

    def __init__(self) -> None:
        self.table = Table.create(f"memory://{uuid.uuid4()}/t", SCHEMA, properties=PROPERTIES)
        self.next = 0

    def do(self, step: str, number: int) -> None:
        match step:
            case "append":
                self.table.append(self._rows(number), max_rows_per_file=2)
            case "overwrite":
                self.table.overwrite(self._rows(3), max_rows_per_file=2)
            case "delete":
                self.table.delete(f"id % {number} = 0")
            case "delete all":
                self.table.delete()
            case "update":
                self.table.update({"v": "v + 1"}, f"id % {number} = 0")
            case "optimize":
                self.table.optimize()
            case "set":
                self.table.set_properties({"delta.appendOnly": "false"})

    def _rows(self, count: int) -> pa.Table:
        ids = range(self.next, self.next + count)
        self.next += count
        return pa.table({"id": ids, "v": [0] * count}, schema=SCHEMA)

    def written(self, version: int, *, by_appends_alone: bool) -> Iterator[tuple[int, int]]:
        """Yield the rows of the files that a commit wrote, one by one."""
        actions = read_commit(self.table.store, version)
        if by_appends_alone and any(isinstance(action, RemoveFile) and action.data_change for action in actions):
            return
        for action in actions:
            if isinstance(action, AddFile) and action.data_change:
                yield from rows_of(self.table.snapshot(version).scan().read([action]))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Reader:
    """Reads a stream, restarting before each batch; each batch is read twice, as after a crash, and must be the same."""

    def __init__(self, life: Life, **options: Any) -> None:
        self.life, self.options = life, options
        self.stored: str | None = None
        self.rows: Counter[tuple[Any, ...]] = Counter()

    def read(self, batches: int | None = None) -> None:
        while batches is None or batches > 0:
            table = Table(self.life.table.url, store=self.life.table.store)
            batch = next(table.tail(position=self.stored, **self.options), None)
            if batch is None:
                return
            start = None if self.stored is None else Position.parse(self.stored)
            again = Source(table.snapshot(), table.snapshot, batch.source.options)
            assert tuple(again.files(start or again.begin, batch.position)) == batch.files
            self.rows.update(rows_of(batch.to_arrow()))
            self.stored = str(batch.position)
            batches = None if batches is None else batches - 1


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STEPS, max_size=5), st.lists(STEPS, max_size=7), LIMITS, st.sampled_from(["skip_change_commits", "ignore_changes"])
)
def test_a_stream_returns_each_appended_row_once(before: list[Any], after: list[Any], limits: Any, option: str) -> None:
    life = Life()
    for step in before:
        life.do(*step)
    begun = life.table.version()
    expected = Counter(rows_of(life.table.to_arrow()))
    reader = Reader(life, **limits, **{option: True})
    reader.read(1)
    for step, number in after:
        reader.read(number) if step == "read" else life.do(step, number)
    reader.read()
    for version in range(begun + 1, life.table.version() + 1):
        expected.update(life.written(version, by_appends_alone=option == "skip_change_commits"))
    assert reader.rows == expected


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=4), st.lists(STEPS, max_size=7), LIMITS, st.booleans())
def test_a_stream_of_changes_returns_the_table_s_changes(before: list[Any], after: list[Any], limits: Any, whole: bool) -> None:
    life = Life()
    for step in before:
        life.do(*step)
    begun = life.table.version()
    first = Counter((*row, "insert", begun) for row in rows_of(life.table.to_arrow()))
    reader = Reader(life, **limits, read_change_feed=True, from_version=0 if whole else None)
    reader.read(1)
    for step, number in after:
        reader.read(number) if step == "read" else life.do(step, number)
    reader.read()
    if whole:
        assert reader.rows == Counter(rows_of(life.table.changes(0)))
        return
    came = life.table.changes(begun + 1) if life.table.version() > begun else pa.table({})
    expected = first + Counter(row[:-1] for row in rows_of(came))
    assert Counter(row[:-1] for row in reader.rows.elements()) == expected


def ids(batch: TailBatch) -> list[int]:
    return batch.to_arrow()["id"].to_pylist()


def test_a_feed_begins_with_the_table_s_current_rows(make: Callable[..., Table]) -> None:
    table = make([1, 2], [3])
    table.delete("id = 2")
    table.optimize()
    version = table.version()
    feed_rows = [row for batch in table.tail(read_change_feed=True) for row in batch.to_arrow().to_pylist()]
    assert sorted((row["id"], row["_change_type"], row["_commit_version"]) for row in feed_rows) == [
        (1, "insert", version),
        (3, "insert", version),
    ]


@pytest.mark.damages_tables
def test_a_batch_is_read_when_its_rows_are_requested(make: Callable[..., Table]) -> None:
    table = make([1])
    batch = next(table.tail())
    assert batch.schema == batch.to_batches().schema == batch.to_arrow().schema == pa.schema([("id", pa.int64())])
    table.store.delete(batch.files[0].action.path)
    with pytest.raises(NotFound, match=batch.files[0].action.path):
        batch.to_arrow()


def test_a_batch_without_files_has_a_schema_and_no_rows(make: Callable[..., Table]) -> None:
    (batch,) = make().tail()
    assert batch.files == () and batch.to_arrow().num_rows == 0 and batch.to_arrow().column_names == ["id"]


@pytest.mark.parametrize(("most", "batches"), [(2, [[1, 2], [3]]), (3, [[1, 2, 3]]), (9, [[1, 2, 3]])])
def test_a_commit_that_changes_rows_stops_the_stream_at_its_position(
    make: Callable[..., Table], most: int, batches: list[list[int]]
) -> None:
    table = make([1], [2, 3])
    table.update({"id": "id + 10"}, "id = 3")
    stream = table.tail(0, max_files_per_trigger=most)
    assert [ids(next(stream)) for _ in batches] == batches
    with pytest.raises(InvalidRequest) as caught:
        next(stream)
    assert caught.value.code == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


def test_older_rows_are_read_with_the_current_schema(make: Callable[..., Table]) -> None:
    table = make([1])
    table.append(pa.table({"id": [2], "more": ["x"]}), merge_schema=True)
    rows = pa.concat_tables(batch.to_arrow() for batch in table.tail(0))
    assert rows.schema.types == [pa.int64(), pa.string()]
    assert rows_of(rows) == [(1, None), (2, "x")]


@pytest.mark.parametrize("feed", [False, True])
def test_a_column_that_was_renamed_stops_the_stream_before_it_and_a_new_stream_continues(
    make: Callable[..., Table], feed: bool
) -> None:
    table = make([1], properties={**PROPERTIES, "delta.columnMapping.mode": "name"})
    stream = table.tail(0, read_change_feed=feed, follow=True)
    assert ids(next(stream)) == [1]
    renamed = table.rename_column("id", "number")
    table.append(pa.table({"number": [2]}))
    with pytest.raises(InvalidRequest, match=f"from version {renamed} on") as caught:
        next(stream)
    assert caught.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    (batch,) = table.tail(renamed, read_change_feed=feed)
    assert batch.to_arrow()["number"].to_pylist() == [2]


def test_a_stream_stops_if_the_first_commit_after_its_position_drops_a_column(make: Callable[..., Table]) -> None:
    table = make([1], properties={**PROPERTIES, "delta.columnMapping.mode": "name"})
    table.append(pa.table({"id": [2], "more": ["x"]}), merge_schema=True)
    *_, last = table.tail()
    table.drop_columns("more")
    table.append(pa.table({"id": [3]}))
    with pytest.raises(InvalidRequest) as caught:
        next(table.tail(position=last.position))
    assert caught.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


@pytest.mark.parametrize("vacuumed", [False, True])
def test_maintenance_adds_no_rows_to_a_stream(make: Callable[..., Table], vacuumed: bool) -> None:
    table = make([1, 2], [3])
    *_, last = table.tail()
    table.optimize()
    if vacuumed:
        table.vacuum(0, retention_check=False)
    table.append(pa.table({"id": [4]}))
    assert [ids(batch) for batch in table.tail(position=last.position)] == [[4]]


def test_restoring_a_table_changes_rows(make: Callable[..., Table]) -> None:
    table = make([1], [2])
    *_, last = table.tail()
    table.restore(1)
    with pytest.raises(InvalidRequest) as caught:
        list(table.tail(position=last.position))
    assert caught.value.code == "DELTA_SOURCE_IGNORE_DELETE"
    changes = [row for batch in table.tail(position=last.position, read_change_feed=True) for row in batch.to_arrow().to_pylist()]
    assert [(row["_change_type"], row["id"]) for row in changes] == [("delete", 2)]
