"""Columns of every name and kind, through all that happens to a table without Spark: made, filled, changed, laid out, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tahoe.api.table import Table
from tahoe.base.exceptions import SchemaMismatch, TahoeError, Unsupported
from tahoe.cli.main import app
from tahoe.expr.tree.predicate import quote_identifier

ANYWHERE = (
    "a.b",
    "a`b",
    'a"b',
    "a'b",
    "ä€😀",
    "e\u0301",
    "İ",
    "a/b%20",
    "a\\b",
    "select",
    "1st",
    "#x",
    "a--b",
    "/*c*/",
    "element.x",
    "*",
)
"""Names that data files without column mapping may have too."""
MAPPED = ("a b", "a,b", "a;b{c}(d)", "a=b", "a\tb\nc", " lead", "trail ")
"""Those that need column mapping."""


def schema_of(names: tuple[str, ...]) -> pa.Schema:
    columns = [pa.field(name, pa.string()) for name in names]
    # The struct first: the first 32 columns have statistics.
    return pa.schema([("id", pa.int64()), ("s", pa.struct([pa.field(name, pa.int64()) for name in names])), *columns])


def rows_of(names: tuple[str, ...], *ids: int) -> pa.Table:
    rows = [{"id": i, **dict.fromkeys(names, f"v{i % 3}"), "s": dict.fromkeys(names, i)} for i in ids]
    return pa.Table.from_pylist(rows, schema_of(names))


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_a_column_may_have_any_name(tmp_path: Path, mode: str) -> None:
    names = ANYWHERE + (MAPPED if mode != "none" else ())
    parts = ["a.b", "a`b", names[-1]]
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": mode,
        "delta.checkpoint.writeStatsAsStruct": "true",
    }
    table = Table.create(tmp_path / "t", schema_of(names), partition_by=parts, properties=properties)
    table.append(rows_of(names, *range(6)))
    expected: dict[int, dict[str, Any]] = {row["id"]: row for row in rows_of(names, *range(6)).to_pylist()}
    for name in names:
        column = quote_identifier(name)
        assert sorted(table.to_arrow(columns=["id"], filter=f"{column} = 'v1'")["id"].to_pylist()) == [1, 4], name
        assert table.to_arrow(columns=[name], filter=f"s.{column} > 4").to_pydict() == {name: ["v2"]}
        # Statistics of the column are found again.
        assert len(table.files(filter=f"s.{column} > 100")) == 0, name
    for number, name in enumerate((names[0], *names[-2:])):
        column = quote_identifier(name)
        table.update({column: "'new'", f"s.{column}": "70"}, f"{column} = 'v1' AND id = 1")
        expected[1][name], expected[1]["s"][name] = "new", 70
        source = table.to_arrow(filter="id = 2").set_column(0, "id", pa.array([10 + number]))
        merged = table.merge(source, f"source.{column} = target.{column} AND source.id = target.id")
        merged.when_not_matched_insert_all().execute()
        expected[10 + number] = {**expected[2], "s": dict(expected[2]["s"]), "id": 10 + number}
        matched = table.merge(source, "source.id = target.id")
        matched.when_matched_update({column: f"concat(source.{column}, '!')"}).execute()
        expected[10 + number][name] = "v2!"
        table.delete(f"{column} = 'v2!'")
        del expected[10 + number]
    assert {row["id"]: row for row in table.to_arrow().to_pylist()} == expected
    table.optimize(zorder_by=[quote_identifier(name) for name in names if name not in parts][:5])
    assert set(table.changes(1).column_names) >= set(names)
    table.checkpoint()
    again = Table(tmp_path / "t")
    assert {row["id"]: row for row in again.to_arrow().to_pylist()} == expected
    assert all(len(again.files(filter=f"s.{quote_identifier(name)} > 100")) == 0 for name in names)
    assert again.check(deep=True, strict=True) == []
    named = ",".join(f"s.{quote_identifier(name)}" for name in names)
    again.set_properties({"delta.dataSkippingStatsColumns": named})
    again.append(rows_of(names, 20))
    newest = (
        max(json.loads(text) for text in again.files(filter="id = 20")["stats"].to_pylist())["minValues"]
        if mode == "none"
        else {}
    )
    assert set(newest) <= {"s"} and set(newest.get("s", names)) == set(names)
    if mode != "none":
        for name in names:
            again.rename_column(quote_identifier(name), name + "2")
        assert set(again.to_arrow().column_names) == {"id", "s", *(name + "2" for name in names)}
        assert again.check(deep=True) == []


def test_changes_that_need_column_mapping_are_refused_without_it(tmp_path: Path) -> None:
    for name in MAPPED:
        for schema in (pa.schema([(name, pa.int64())]), pa.schema([("l", pa.list_(pa.struct([(name, pa.int64())])))])):
            with pytest.raises(TahoeError) as error:
                Table.create(tmp_path / "t", schema)
            assert error.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"


def test_the_command_line_takes_any_name(tmp_path: Path) -> None:
    names = ("a.b", "a,b", " c")
    table = Table.create(tmp_path / "t", schema_of(names), properties={"delta.columnMapping.mode": "name"})
    table.append(rows_of(names, 1))
    table.append(rows_of(names, 2))
    for arguments in (["files", "--filter", "`a.b` = 'v1' AND `a,b` = 'v1' AND s.` c` = 1"], ["layout"], ["detail"]):
        shown = CliRunner().invoke(app, [arguments[0], str(tmp_path / "t"), *arguments[1:]])
        assert shown.exit_code == 0, shown.output
    done = CliRunner().invoke(app, ["optimize", str(tmp_path / "t"), "--zorder-by", "`a,b`", "--zorder-by", "`a.b`"])
    assert done.exit_code == 0, done.output
    assert len(table.files()) == 1


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("a", pa.int64()), ("A", pa.int64())]),
        pa.schema([("s", pa.struct([("a", pa.int64()), ("A", pa.int64())]))]),
        pa.schema([("l", pa.list_(pa.struct([("ä", pa.int64()), ("Ä", pa.int64())])))]),
    ],
)
def test_names_differ_in_more_than_their_case(tmp_path: Path, schema: pa.Schema) -> None:
    with pytest.raises(SchemaMismatch) as error:
        Table.create(tmp_path / "t", schema)
    assert error.value.code == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"
    table = Table.create(tmp_path / "u", pa.schema([("a", pa.int64())]))
    with pytest.raises(SchemaMismatch):
        table.append(pa.table([[1], [2]], ["a", "A"]), merge_schema=True)
    table.append(pa.table({"A": [1]}))
    assert table.to_arrow().to_pydict() == {"a": [1]}


NO_TYPES = (
    pa.duration("us"),
    pa.time64("us"),
    pa.time32("s"),
    pa.month_day_nano_interval(),
    pa.uint64(),
    pa.decimal256(40, 2),
    pa.uuid(),
)


@pytest.mark.parametrize("kind", NO_TYPES, ids=str)
def test_a_type_that_delta_has_none_for_is_refused_with_its_column(tmp_path: Path, kind: pa.DataType) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    for inner, path in (
        (kind, "x"),
        (pa.struct([("y", kind)]), "x.y"),
        (pa.list_(kind), "x.element"),
        (pa.map_(pa.string(), kind), "x.value"),
    ):
        for attempt in (
            lambda inner=inner: Table.create(tmp_path / "u", pa.schema([("x", inner)])),
            lambda inner=inner: table.append(pa.table({"id": [1], "x": pa.nulls(1, inner)}), merge_schema=True),
        ):
            with pytest.raises(Unsupported, match=f"of column '{path}'") as error:
                attempt()
            assert error.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert table.version() == 0


def test_nanoseconds_are_taken_where_microseconds_hold_them_and_else_refused(tmp_path: Path) -> None:
    kind = pa.timestamp("ns", "UTC")
    table = Table.create(tmp_path / "t", pa.schema([("at", kind), ("local", pa.timestamp("ns"))]))
    assert str(table.schema()) == "struct<at:timestamp,local:timestamp_ntz>"
    table.append(pa.table({"at": pa.array([1_000], kind)}))
    for column in ("at", "local"):
        with pytest.raises(SchemaMismatch, match=f"'{column}'.*would lose data: 1001") as error:
            table.append(pa.table({column: pa.array([1_001], table_kind(column))}))
        assert error.value.code == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    assert table.to_arrow()["at"].cast(pa.int64()).to_pylist() == [1]


def table_kind(column: str) -> pa.DataType:
    return pa.timestamp("ns", "UTC" if column == "at" else None)


def test_a_void_column_is_null_in_every_row_until_it_gets_a_type(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    kind = pa.struct([("x", pa.null()), ("y", pa.int64())])
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.null()), ("s", kind)]), properties=properties)
    table.append(pa.table({"id": [1, 2, 3], "s": pa.array([{"x": None, "y": 1}] * 3, kind)}))
    table.delete("id = 1")
    table.update({"id": "20", "n": "NULL"}, "id = 2")
    table.merge(pa.table({"id": [5]}), "source.id = target.id").when_not_matched_insert({"id": "source.id"}).execute()
    table.optimize()
    table.checkpoint()
    assert table.check(deep=True, strict=True) == []
    assert sorted(table.to_arrow(filter="n IS NULL AND s.x IS NULL")["id"].to_pylist()) == [3, 5, 20]
    assert table.to_arrow(filter="n IS NOT NULL").num_rows == 0
    assert table.changes(1)["n"].null_count == len(table.changes(1))
    for values in (pa.table({"n": [1]}), pa.table({"s": [{"x": 1}]})):
        with pytest.raises(SchemaMismatch, match="void"):
            table.append(values)
    table.append(pa.table({"id": [7], "n": ["typed"]}), merge_schema=True)
    assert table.to_arrow(filter="n = 'typed'")["id"].to_pylist() == [7]
    for kind in (pa.schema([("n", pa.null())]), pa.schema([("id", pa.int64()), ("l", pa.list_(pa.null()))])):
        empty = Table.create(tmp_path / str(len(kind)), kind)
        with pytest.raises(SchemaMismatch, match="void"):
            empty.append(pa.table([pa.nulls(1, column.type) for column in kind], kind))
