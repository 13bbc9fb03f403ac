"""`check(deep=True)` finds every false statement about data, and reports none for sound tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.ops.check.table_check import Violation, check_table
from tahoe.protocol.statistics.bounds import NAN_COUNTED
from tahoe.store.local_store import LocalLogStore

pytestmark = pytest.mark.damages_tables

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("half", pa.float64()),
        ("single", pa.float32()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("list", pa.list_(pa.int32())),
    ]
)


def rows(start: int, count: int = 100) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": numbers,
            "half": [None if n % 10 == 0 else n / 2 for n in numbers],
            "single": [n / 3 for n in numbers],
            "name": [f"{'é' * 40}{n}" for n in numbers],
            "day": [date(2020, 1, 1 + n % 28) for n in numbers],
            "moment": [datetime(2020, 1, 1, 0, 0, n % 60, 123_456, UTC) for n in numbers],
            "price": [Decimal(n) / 4 for n in numbers],
            "inner": [{"a": n, "b": None if n % 2 else "x"} for n in numbers],
            "list": [[n, None] for n in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    table = Table.create(tmp_path, SCHEMA)
    table.append(rows(0))
    table.append(rows(100))
    assert deep(tmp_path) == []
    return tmp_path


def deep(root: Path) -> list[Violation]:
    return check_table(LocalLogStore(root), deep=True)


def change_add(root: Path, version: int, change: Callable[[dict[str, Any]], None]) -> str:
    """Change an `add` of a commit, and delete the checksums, which would reveal it; return the data file's name."""
    commit = root / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    change(add)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in root.glob("_delta_log/*.crc"):
        checksum.unlink()
    return str(add["path"])


def statistics(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def of_add(add: dict[str, Any]) -> None:
        actual = json.loads(add["stats"])
        change(actual)
        add["stats"] = json.dumps(actual)

    return of_add


def put(tree: str, value: Any, *path: str) -> Callable[[dict[str, Any]], None]:
    def change(stats: dict[str, Any]) -> None:
        inner = stats[tree]
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value

    return statistics(change)


LIES = {
    "minValues of column id is 101": put("minValues", 101, "id"),
    "maxValues of column id is 198": put("maxValues", 198, "id"),
    "minValues of column id is 99 and called tight": put("minValues", 99, "id"),
    "maxValues of column id is 200 and called tight": put("maxValues", 200, "id"),
    "nullCount of column half is 0": put("nullCount", 0, "half"),
    "nullCount of column half is 11": put("nullCount", 11, "half"),
    "nullCount of column id is 100": put("nullCount", 100, "id"),
    "nullCount of column inner.b is 7": put("nullCount", 7, "inner", "b"),
    "nullCount of column list is 1": put("nullCount", 1, "list"),
    "minValues of column half is 60.0": put("minValues", 60, "half"),
    "maxValues of column single is 10.0": put("maxValues", 10, "single"),
    "minValues of column name is 'ê'": put("minValues", "ê", "name"),
    "maxValues of column name is 'e'": put("maxValues", "e", "name"),
    "minValues of column day is": put("minValues", "2020-01-02", "day"),
    "maxValues of column moment is": put("maxValues", "2020-01-01T00:00:59.122Z", "moment"),
    "minValues of column moment is": put("minValues", "2020-01-01T00:00:00.124Z", "moment"),
    "maxValues of column price is 49.74": put("maxValues", 49.74, "price"),
    "minValues of column inner.a is 150": put("minValues", 150, "inner", "a"),
    "numRecords of": statistics(lambda stats: stats.update(numRecords=99)),
}


@pytest.mark.parametrize("lie", LIES)
def test_false_statistics_are_reported(root: Path, lie: str) -> None:
    name = change_add(root, 2, LIES[lie])
    actual = deep(root)
    assert [item.code for item in actual] == ["statistics"]
    assert lie in actual[0].message and actual[0].file == name


@pytest.mark.parametrize(
    "truth",
    [
        put("maxValues", "2020-01-01T00:00:59.123Z", "moment"),  # cut to milliseconds, as the reference writes it
        put("maxValues", "2020-01-01T00:59:59.123+00:59", "moment"),
        put("minValues", "\u00e9", "name"),
        put("maxValues", "\U0010ffff", "name"),
        put("minValues", 33.33, "single"),
        put("maxValues", "NaN", "half"),
        statistics(lambda stats: stats.pop("maxValues")),
        statistics(lambda stats: [stats["minValues"].update(id=-5), stats.update(tightBounds=False)]),
        statistics(lambda stats: [stats["nullCount"].update(half=3), stats.update(tightBounds=False)]),
        lambda add: add.pop("stats"),
    ],
)
def test_bounds_that_hold_are_no_lie(root: Path, truth: Callable[[dict[str, Any]], None]) -> None:
    change_add(root, 2, truth)
    assert deep(root) == []


def test_nan_that_a_bound_leaves_out_is_reported(tmp_path: Path) -> None:
    Table(tmp_path).append(pa.table({"x": [1.0, float("nan")]}))
    assert deep(tmp_path) == []
    change_add(tmp_path, 0, statistics(lambda stats: stats.setdefault("maxValues", {}).update(x=1.0)))
    assert deep(tmp_path) == [], "writers that leave NaN out do so; their greatest floats are not used"
    change_add(tmp_path, 0, lambda add: add.update(tags={NAN_COUNTED: "true"}))
    assert "NaN" in deep(tmp_path)[0].message


def test_swapped_files_are_reported(tmp_path: Path) -> None:
    """Of equal size, so that only their rows differ, and the footers' statistics of them."""
    for value in (1, 2):
        Table(tmp_path).append(pa.table({"id": pa.array([value] * 10)}))
    left, other = tmp_path.glob("*.parquet")
    first, second = left.read_bytes(), other.read_bytes()
    assert len(first) == len(second)
    left.write_bytes(second)
    other.write_bytes(first)
    assert {actual.file for actual in check_table(LocalLogStore(tmp_path))} == {left.name, other.name}
    assert {actual.file for actual in deep(tmp_path)} == {left.name, other.name}


def replaced(root: Path, data: pa.Table, **options: Any) -> Path:
    """The file of version 2 rewritten, and the log made to agree with its size."""
    name = change_add(root, 2, lambda add: None)
    pq.write_table(data, root / name, store_schema=False, **options)
    change_add(root, 2, lambda add: add.update(size=(root / name).stat().st_size))
    return root / name


def test_a_column_that_only_the_statistics_have_is_reported(root: Path) -> None:
    path = replaced(root, rows(100).drop_columns(["price"]))
    messages = [actual.message for actual in deep(root)]
    assert f"the statistics of {path.name} give values of column price, which the file does not have." in messages


def test_a_column_that_nobody_mentions_may_be_missing(root: Path) -> None:
    replaced(root, rows(100).drop_columns(["price"]))

    def forget(stats: dict[str, Any]) -> None:
        for tree in ("minValues", "maxValues", "nullCount"):
            del stats[tree]["price"]

    change_add(root, 2, statistics(forget))
    assert deep(root) == []


def test_a_flipped_bit_in_a_page_is_reported_where_pages_have_checksums(root: Path) -> None:
    """Values that are not compressed: without the checksum the file reads, with another value inside the bounds."""
    options = {"compression": "none", "use_dictionary": False}
    values = rows(100).column("id").combine_chunks().buffers()[1].to_pybytes()
    for checksums in (True, False):
        path = replaced(root, rows(100), write_page_checksum=checksums, **options)
        content = bytearray(path.read_bytes())
        at = content.index(values) + 8 * 50
        content[at] ^= 1
        path.write_bytes(content)
        actual = deep(root)
        assert bool(actual) is checksums, "a flipped bit in a page without a checksum cannot be told"
        if checksums:
            assert actual[0].code == "data" and path.name in actual[0].message


def test_rows_of_a_vector_beyond_the_file_are_reported_though_the_statistics_agree(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": range(10)}))
    table.delete("id = 9")
    assert deep(tmp_path) == []
    (name,) = {path.name for path in tmp_path.glob("*.parquet")}
    pq.write_table(pa.table({"id": range(9)}), tmp_path / name, store_schema=False)

    def shorter(add: dict[str, Any]) -> None:
        add["size"] = (tmp_path / name).stat().st_size
        add.pop("stats")

    change_add(tmp_path, 2, shorter)
    (actual,) = [item for item in deep(tmp_path) if item.code == "data"]
    assert "removes row 9, but the file has 9 rows" in actual.message and actual.file == name


def test_bounds_need_hold_for_living_rows_alone(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": [1, 5, None, 9]}))
    table.delete("id = 9 or id is null")
    assert deep(tmp_path) == []
    change_add(tmp_path, 2, statistics(lambda stats: [stats["maxValues"].update(id=5), stats["nullCount"].update(id=0)]))
    assert deep(tmp_path) == []
    change_add(tmp_path, 2, statistics(lambda stats: stats["maxValues"].update(id=4)))
    assert "maxValues of column id is 4, but 5 is in the file" in deep(tmp_path)[0].message


def test_a_partition_column_in_the_file_must_be_the_partition_value(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.int32())])
    table = Table.create(tmp_path, schema, partition_by=["part"])
    table.append(pa.table({"id": [1], "part": pa.array([3], pa.int32())}))
    (path,) = tmp_path.glob("part=3/*.parquet")
    for content, reported in ((3, False), (4, True)):
        pq.write_table(pa.table({"id": [1], "part": pa.array([content], pa.int32())}), path, store_schema=False)
        change_add(tmp_path, 1, lambda add: add.update(size=path.stat().st_size))
        assert [item.code for item in deep(tmp_path)] == (["partition"] if reported else [])


def test_change_data_that_is_damaged_is_reported(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})
    table.append(pa.table({"id": range(10)}))
    table.update({"id": "id + 100"}, "id = 3")
    (path,) = tmp_path.glob("_change_data/*.parquet")
    assert deep(tmp_path) == []
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert [(item.code, item.version) for item in deep(tmp_path)] == [("change-data", 2)]
    path.write_bytes(bytes(len(content)))
    assert [(item.code, item.version) for item in deep(tmp_path)] == [("change-data", 2)]
    path.unlink()
    assert deep(tmp_path) == [], "VACUUM removes change data before its commits go"


def test_row_ids_in_files_are_below_the_high_water_mark(tmp_path: Path) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]), properties={"delta.enableRowTracking": "true"})
    table.append(pa.table({"id": range(10)}))
    table.update({"id": "id + 100"}, "id = 3")
    assert deep(tmp_path) == []
    version = table.version()
    commit = tmp_path / "_delta_log" / f"{version:020d}.json"
    (path,) = [tmp_path / json.loads(line)["add"]["path"] for line in commit.read_text().splitlines() if '"add"' in line]
    data = pq.read_table(path)
    (column,) = [name for name in data.column_names if name.startswith("_row-id-col")]
    mad = data.set_column(data.schema.get_field_index(column), column, pa.array([10**9 + n for n in range(len(data))]))
    pq.write_table(mad, path, store_schema=False)
    change_add(tmp_path, version, lambda add: add.update(size=path.stat().st_size))
    assert [item.code for item in deep(tmp_path)] == ["row-ids"]
