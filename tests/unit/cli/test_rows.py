"""`tahoe head`, `tahoe changes` and `tahoe append`."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tahoe.api.table import Table
from tahoe.cli.main import app
from tahoe.exceptions import InvalidRequest, NotFound

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("price", pa.decimal128(6, 2))])
ROWS = pa.table(
    {"id": [1, 2], "name": ["a\x1b[31m", None], "day": [date(2026, 1, 1), None], "price": [Decimal("1.50"), Decimal("2.00")]},
    SCHEMA,
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "table", SCHEMA, properties={"delta.enableChangeDataFeed": "true"})
    table.append(ROWS)
    return table


def run(*words: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin, catch_exceptions=False)


def test_head_prints_a_table_without_control_characters(table: Table, tmp_path: Path) -> None:
    printed = run("head", tmp_path / "table").stdout
    assert "\x1b" not in printed
    assert [line.split() for line in printed.splitlines() if "NULL" in line] == [["2", "NULL", "NULL", "2.00"]]


def test_head_takes_a_filter_columns_a_version_and_a_limit(table: Table, tmp_path: Path) -> None:
    table.delete("id = 1")
    printed = run("head", tmp_path / "table", "-f", "price > 1", "-c", "day, id", "--at", 1, "-n", 1, "-o", "json").stdout
    assert json.loads(printed) == [{"day": "2026-01-01", "id": 1}]


def test_rows_as_csv_and_arrow_are_read_by_other_programs(table: Table, tmp_path: Path) -> None:
    text = run("head", tmp_path / "table", "-o", "csv").stdout_bytes
    assert pyarrow.csv.read_csv(io.BytesIO(text)).column_names == SCHEMA.names
    assert pa.ipc.open_stream(run("head", tmp_path / "table", "-o", "arrow").stdout_bytes).read_all() == table.to_arrow()


def test_changes_prints_those_of_the_newest_version_or_of_a_range(table: Table, tmp_path: Path) -> None:
    table.update({"name": "'b'"}, "id = 2")
    newest = json.loads(run("changes", tmp_path / "table", "-o", "json").stdout)
    assert [(row["_change_type"], row["name"]) for row in newest] == [("update_preimage", None), ("update_postimage", "b")]
    both = json.loads(run("changes", tmp_path / "table", "--from", 1, "--to", 2, "-o", "json").stdout)
    assert [row["_commit_version"] for row in both] == [1, 1, 2, 2]
    assert "4 rows, 1 shown" in run("changes", tmp_path / "table", "--from", 1, "-n", 1).stdout


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "arrow", "arrows"])
def test_a_file_of_each_format_is_appended(table: Table, tmp_path: Path, kind: str) -> None:
    more = ROWS.slice(0, 1)
    file = tmp_path / f"more.{kind}"
    if kind == "parquet":
        pq.write_table(more, file)
    elif kind == "csv":
        file.write_text("id,day,price,name\n1,2026-01-01,1.50,a\x1b[31m\n")
    elif kind == "json":
        file.write_text(json.dumps({"price": "1.50", "id": 1, "day": "2026-01-01", "name": "a\x1b[31m"}) + "\n")
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with new(file, more.schema) as writer:
            writer.write_table(more)
    assert run("append", tmp_path / "table", file, "--dry-run").stdout.startswith("would append 1 row to ")
    assert table.version() == 1
    assert run("append", tmp_path / "table", file).stdout == "appended 1 row: version 2\n"
    assert table.to_arrow(filter="id = 1").to_pylist() == more.to_pylist() * 2


def test_standard_input_is_appended(table: Table, tmp_path: Path) -> None:
    assert (
        run("append", tmp_path / "table", "-", "--format", "csv", stdin=b"id,name\n7,x\n").stdout == "appended 1 row: version 2\n"
    )
    assert table.to_arrow(filter="id = 7").to_pylist() == [{"id": 7, "name": "x", "day": None, "price": None}]


def test_new_columns_need_merge_schema(table: Table, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,size\n9,3\n")
    with pytest.raises(Exception, match="size"):
        run("append", tmp_path / "table", tmp_path / "more.csv")
    run("append", tmp_path / "table", tmp_path / "more.csv", "--merge-schema")
    assert table.to_arrow(filter="id = 9", columns=["size"]).to_pylist() == [{"size": 3}]


def test_unreadable_rows_are_an_error_that_names_the_remedy(table: Table, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"There is no file 'nothing\.csv'"):
        run("append", tmp_path / "table", "nothing.csv")
    with pytest.raises(InvalidRequest, match=r"Standard input has no name. Give --format parquet\|csv\|json\|arrow"):
        run("append", tmp_path / "table", "-")
    (tmp_path / "more.txt").touch()
    with pytest.raises(InvalidRequest, match=r"does not end with one of \.parquet, \.csv"):
        run("append", tmp_path / "table", tmp_path / "more.txt")
    (tmp_path / "more.csv").write_text("id\nmany\n")
    with pytest.raises(InvalidRequest, match=r"The file cannot be read as csv: .*many"):
        run("append", tmp_path / "table", tmp_path / "more.csv")
    assert table.version() == 1


def test_csv_texts_that_look_like_null_are_kept(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "table", {"name": "string", "x": "double"})
    run("append", tmp_path / "table", "-", "--format", "csv", stdin=b'name,x\nNA,NaN\n"",1\n,\n')
    assert str(table.to_arrow().to_pylist()) == "[{'name': 'NA', 'x': nan}, {'name': '', 'x': 1.0}, {'name': None, 'x': None}]"
