"""The formats of commands: table, JSON, CSV and Arrow, by one mechanism."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tahoe
from tahoe.cli.main import app
from tahoe.cli.shell.output import print_json
from tests.unit.cli.test_conventions import commands
from tests.unit.cli.test_main import run_main

ROWS = {
    "history": [],
    "files": [],
    "schema": [],
    "stats": [],
    "du": [],
    "head": [],
    "changes": ["--from", "1"],
    "sql": ["FROM t"],
    "diff": ["0", "--rows"],
    "check": [],
    "compat": [],
    "layout": ["--by", "id"],
}
"""Commands that print rows, with their further words."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = tahoe.Table.create(
        tmp_path / "t", pa.schema([("id", pa.int64()), ("name", pa.string())]), properties={"delta.enableChangeDataFeed": "true"}
    )
    table.append(pa.table({"id": [1, 2], "name": ["a, b", None]}))
    return str(tmp_path / "t")


def printed(*words: str) -> bytes:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "240"})
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


@pytest.mark.parametrize("command", ROWS)
def test_rows_are_printed_in_every_format(path: str, command: str) -> None:
    words = [command, path, *ROWS[command]]
    as_json = json.loads(printed(*words, "--output", "json"))
    assert printed(*words, "--json") == printed(*words, "-o", "json")
    arrow = pa.ipc.open_stream(printed(*words, "--output", "arrow")).read_all()
    lines = list(csv.DictReader(io.StringIO(printed(*words, "--output", "csv").decode())))
    assert printed(*words) == printed(*words, "--output", "table")
    assert len(arrow) == len(lines)
    if lines:
        assert list(lines[0]) == arrow.column_names
    if isinstance(as_json, list):
        assert len(as_json) == len(arrow)
        assert {name for record in as_json for name in record} <= set(arrow.column_names)
    if command != "check":
        assert len(arrow) > 0


def test_every_command_that_prints_has_the_option_or_a_reason(path: str) -> None:
    with_output = {name for name, command in commands() if "--output" in {text for each in command.params for text in each.opts}}
    without = {name for name, _ in commands()} - with_output
    # A stream of commits, a server, a program and a script have formats of their own.
    assert without == {"watch", "serve", "run", "completion"}
    assert ROWS.keys() <= with_output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["detail", "--output", "csv"], "--output csv is for commands that print rows, and this one prints one record"),
        (["optimize", "--output", "arrow"], "--output arrow is for commands that print rows"),
        (["history", "--json", "--output", "csv"], "--json and --output csv contradict each other"),
        (["history", "--json", "--wide"], "--wide is for --output table"),
        (["diff", "0", "--output", "csv"], "add --rows or --key"),
    ],
)
def test_conflicting_options_are_refused_before_the_command_runs(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    before = tahoe.Table(path).version()
    code, message = run_main(monkeypatch, capsys, words[0], path, *words[1:])
    assert (code, tahoe.Table(path).version()) == (2, before)
    assert "TAHOE_OUTPUT_FORMAT" in message and sentence in message


def test_an_unknown_format_is_refused_with_those_that_exist(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = run_main(monkeypatch, capsys, "history", path, "--output", "xml")
    assert code == 2 and "'csv'" in message


def test_in_csv_members_with_members_are_json(path: str) -> None:
    first = next(csv.DictReader(io.StringIO(printed("files", path, "--output", "csv").decode())))
    assert json.loads(first["stats"])["numRecords"] == 2
    history = next(csv.DictReader(io.StringIO(printed("history", path, "--output", "csv").decode())))
    assert json.loads(history["operationMetrics"])["numOutputRows"] == "2"


def test_columns_are_there_without_rows(path: str) -> None:
    tahoe.Table(path).delete()
    assert printed("files", path, "--output", "csv").startswith(b'"path","partitionValues","size"')


def test_changes_are_printed_as_one_record(path: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,name\n3,c\n")
    appended = json.loads(printed("append", path, str(file), "--json"))
    assert (appended["rows"], appended["version"], appended["dryRun"]) == (1, 2, False)
    changed = json.loads(printed("set", path, "team=a", "my.password=x", "--dry-run", "--json"))
    assert changed["properties"] == {"team": {"before": None, "after": "a"}, "my.password": {"before": None, "after": "***"}}
    created = json.loads(printed("create", str(tmp_path / "new"), "id:long", "--json"))
    assert created["version"] == 0


def test_json_is_one_line_with_times_and_sorted_sets(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2024, 1, 2, tzinfo=UTC)
    values = {
        "at": at,
        "day": date(2024, 1, 2),
        "set": {"b", "a"},
        "text": "ü",
        "d": Decimal("1.50"),
        "t": time(1),
        "l": timedelta(1),
    }
    print_json(values)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "ü" in said
    assert json.loads(said) == {
        "at": "2024-01-02T00:00:00+00:00",
        "day": "2024-01-02",
        "set": ["a", "b"],
        "text": "ü",
        "d": "1.50",
        "t": "01:00:00",
        "l": "1 day, 0:00:00",
    }
    with pytest.raises(TypeError, match="object cannot be converted to JSON"):
        print_json(object())
