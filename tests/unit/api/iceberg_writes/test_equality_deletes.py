"""Delete files with values: the rows of the table with these values are deleted, and not those that the same snapshot adds."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.iceberg_writes import equality_deletes
from tests.unit.api.iceberg_writes.hand_made import KINDS, UNIFORM, Writer, rows
from tests.unit.uniform.serve.serving import refused

COMPAT = {**UNIFORM, "delta.enableIcebergCompatV2": "true"}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted_by_value_and_those_of_the_same_snapshot_stay(tmp_path: Path, kind: str) -> None:
    writer = Writer(tmp_path, **KINDS[kind])
    writer.table.append(rows(1, 2, 3, 4))
    writer.table.append(rows(5, 2))
    deletes = writer.equality_deletes(pa.table({"id": pa.array([2, 99], pa.int64())}), 1)
    assert writer.commit("overwrite", writer.data_file(2, 7), deletes).status == 200
    writer.assert_rows(1, 2, 3, 4, 5, 7)
    metrics = writer.table.history(1)[0]["operationMetrics"]
    assert metrics["numDeletedRows"] == "2"
    assert writer.table.check(deep=True) == []


def table_with(root: Path, data: pa.Table, **options: Any) -> Writer:
    """Return a writer of a table of these rows, in two files."""
    table = tahoe.Table.create(root / "t", data.schema, properties=COMPAT, **options)
    table.append(data.slice(0, len(data) // 2))
    table.append(data.slice(len(data) // 2))
    return Writer(root)


def test_null_equals_null_and_values_of_several_columns_belong_together(tmp_path: Path) -> None:
    data = pa.table({"a": pa.array([1, 1, 2, None, None, 2], pa.int64()), "b": ["x", "y", "x", "x", None, None]})
    writer = table_with(tmp_path, data)
    deletes = pa.table({"a": pa.array([1, None, 2], pa.int64()), "b": pa.array(["y", None, "y"])})
    assert writer.commit("delete", writer.equality_deletes(deletes, 1, 2)).status == 200
    actual = sorted(map(str, writer.table.to_arrow().to_pylist()))
    assert actual == sorted(map(str, [row for row in data.to_pylist() if (row["a"], row["b"]) not in {(1, "y"), (None, None)}]))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [1, 2, None]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("2.50"), None]),
        (pa.timestamp("us", "UTC"), [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]),
        (pa.date32(), [datetime.date(2026, 1, day) for day in (1, 2)]),
        (pa.binary(), [b"a", b"b", None]),
        (pa.string(), ["a", "b", ""]),
        (pa.bool_(), [True, False, None]),
        (pa.float64(), [1.5, float("nan"), None]),
    ],
)
def test_values_of_each_type_are_compared(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    data = pa.table({"v": pa.array(values * 2, kind), "n": pa.array(range(2 * len(values)), pa.int64())})
    writer = table_with(tmp_path, data)
    for number, value in enumerate(values):
        assert writer.commit("delete", writer.equality_deletes(pa.table({"v": pa.array([value], kind)}), 1)).status == 200
        assert sorted(writer.table.to_arrow()["n"].to_pylist()) == [
            place for place in range(2 * len(values)) if place % len(values) > number
        ]


def test_random_deletes_agree_with_a_set_of_tuples(tmp_path: Path) -> None:
    source = random.Random(5)
    numbers, letters = [None, *range(6)], [None, *"abcd"]

    def drawn(count: int) -> pa.Table:
        return pa.table(
            {
                "a": pa.array([source.choice(numbers) for _ in range(count)], pa.int64()),
                "b": pa.array([source.choice(letters) for _ in range(count)]),
                "c": pa.array([source.choice(numbers) for _ in range(count)], pa.int32()),
            }
        )

    data = drawn(400)
    writer, expected = table_with(tmp_path, data), [tuple(row.values()) for row in data.to_pylist()]
    for columns, count in (((1, 2, 3), 40), ((3, 1), 12), ((2,), 2)):
        deletes = drawn(count)
        assert writer.commit("delete", writer.equality_deletes(deletes, *columns)).status == 200
        gone = {tuple(list(row.values())[number - 1] for number in columns) for row in deletes.to_pylist()}
        expected = [row for row in expected if tuple(row[number - 1] for number in columns) not in gone]
    assert sorted(map(str, (tuple(row.values()) for row in writer.table.to_arrow().to_pylist()))) == sorted(map(str, expected))
    assert 0 < len(expected) < 400


def test_files_beyond_the_range_of_the_values_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, **KINDS["position deletes of vectors"])
    for first in (0, 100, 200):
        writer.table.append(rows(*range(first, first + 3)))
    read, parts = [], equality_deletes.parts_with_positions
    monkeypatch.setattr(
        equality_deletes,
        "parts_with_positions",
        lambda snapshot, add, *more: read.append(add.path) or parts(snapshot, add, *more),
    )
    deletes = writer.equality_deletes(pa.table({"id": pa.array([100, 102], pa.int64())}), 1)
    assert writer.commit("delete", deletes).status == 200
    writer.assert_rows(0, 1, 2, 101, 200, 201, 202)
    assert len(read) == 1


def test_rows_that_an_earlier_version_lacked_a_column_for_are_null(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    writer.table.add_columns({"more": "long"})
    writer.table.append(pa.table({"id": [3], "more": [7]}))
    number = writer.table.schema().field("more").field_id
    values = pa.table({"id": pa.array([None], pa.int64()), "more": pa.array([None], pa.int64())})
    assert number == 2
    assert writer.commit("delete", writer.equality_deletes(values, 2)).status == 200
    writer.assert_ids(3)


def test_deletes_that_contradict_the_table_or_their_manifest_are_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    version, values = writer.table.version(), pa.table({"id": pa.array([1], pa.int64())})
    cases = [
        (writer.equality_deletes(values, 1, rows=5), "has 1 rows, and 5 by its manifest", "BadRequestException"),
        (writer.equality_deletes(values, 1, size=5), "and 5 by its manifest", "BadRequestException"),
        (writer.equality_deletes(values), "names no column to compare", "BadRequestException"),
        (writer.equality_deletes(values, 9), "the column with the id 9", "UnsupportedOperationException"),
        (writer.equality_deletes(values, 1, file_format="avro"), "of the format AVRO", "UnsupportedOperationException"),
        (writer.equality_deletes(pa.table({"id": ["no number"]}), 1), "cannot be read", "BadRequestException"),
    ]
    for deletes, problem, kind in cases:
        assert problem in refused(writer.commit("delete", deletes), 400, kind)
    assert writer.table.version() == version


def test_an_append_only_table_refuses_them(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    writer.table.set_properties({"delta.appendOnly": "true"})
    deletes = writer.equality_deletes(pa.table({"id": pa.array([1], pa.int64())}), 1)
    assert "append" in refused(writer.commit("delete", deletes), 400, "BadRequestException")
    writer.assert_rows(1, 2)


def test_a_concurrent_change_of_rows_is_a_conflict(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    request = writer.request("delete", writer.equality_deletes(pa.table({"id": pa.array([1], pa.int64())}), 1))
    writer.table.append(rows(1))
    assert writer.send(request).status == 409
    writer.assert_rows(1, 1, 2)
