"""`Table.diff`: the differences between two versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.exceptions import InvalidRequest

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("tags", pa.list_(pa.string()))])


def rows(*values: tuple[int | None, float | None, list[str] | None]) -> pa.Table:
    return pa.table(list(map(list, zip(*values, strict=True))), SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows((1, 1.0, ["a"]), (2, float("nan"), None), (3, None, [])))
    return table


def changes(table: Table, start: int, *key: str) -> list[tuple[object, ...]]:
    sample = table.diff(start, rows=True, key=key).rows
    assert sample is not None
    return [(row["_change"], row["id"]) for row in sample.sample.to_pylist()]


def test_a_deleted_row_is_found_though_its_file_stays(table: Table) -> None:
    table.delete("id = 2")
    difference = table.diff(1, rows=True)
    assert (difference.files.with_other_vector, difference.files.added, difference.files.removed) == (1, 0, 0)
    assert (difference.files.rows_before, difference.files.rows_after) == (3, 2)
    assert changes(table, 1) == [("deleted", 2)]


def test_rewritten_files_with_equal_rows_have_no_row_changes(table: Table) -> None:
    table.append(rows((4, 4.0, None)))
    table.optimize()
    difference = table.diff(2, rows=True)
    assert difference.files.removed == 2
    assert difference.rows is not None
    assert (difference.rows.inserted, difference.rows.deleted) == (0, 0)


def test_a_key_recognizes_updated_rows(table: Table) -> None:
    table.update({"x": "7.5"}, "id = 1")
    table.delete("id = 3")
    table.append(rows((9, None, None)))
    assert sorted(changes(table, 1, "id")) == [("deleted", 3), ("inserted", 9), ("updated", 1)]
    assert sorted(changes(table, 1)) == [("deleted", 1), ("deleted", 3), ("inserted", 1), ("inserted", 9)]


def test_one_of_two_equal_rows_counts_once(table: Table) -> None:
    table.append(rows((1, 1.0, ["a"])))
    assert changes(table, 1) == [("inserted", 1)]
    table.append(rows((5, None, None), (5, None, None)))
    with pytest.raises(InvalidRequest, match="do not identify the rows"):
        table.diff(1, key=["id"])


def test_schema_and_properties(table: Table) -> None:
    table.add_columns({"note": "string"})
    table.set_properties({"delta.appendOnly": "true"})
    difference = table.diff(1)
    assert [str(change) for change in (*difference.columns, *difference.properties)] == [
        "+ note string",
        "+ delta.appendOnly true",
    ]
    assert difference.rows is None
    assert "column + note string" in str(difference)
    back = table.diff(table.version(), 1)
    assert [str(change) for change in back.columns] == ["− note string"]


def test_unknown_key_columns_are_named(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="Key column 'nr' is not a column of both versions"):
        table.diff(0, key=["nr"])


def test_html_escapes_values(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"name": "string"})
    table.append(pa.table({"name": ["<script>alert(1)</script>"]}))
    html = table.diff(0, rows=True)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)" in html
