"""Conventions of all commands: dry runs change nothing, and exit codes are those of the guide."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.cli.main import app, main
from tests.unit.cli.test_main import run, run_main

GUIDE = Path(__file__).parents[3] / "docs/guide/command-line.md"
READING = {
    *("detail", "history", "schema", "head", "changes", "sql", "diff", "watch", "files", "layout", "stats", "du", "report"),
    *("check", "compat", "doctor", "completion", "uniform status"),
}
WITHOUT_DRY_RUN = {
    "create": "refuses a table that exists",
    "run": "starts a program, which decides",
    "serve": "runs until it is stopped, and changes only the Iceberg metadata",
    "uniform sync": "changes only the Iceberg metadata; `uniform repair --dry-run` shows another writer's changes",
}
DRY_RUNS = {
    "set": ["set", "{table}", "a=b"],
    "append": ["append", "{table}", "{file}"],
    "optimize": ["optimize", "{table}"],
    "vacuum": ["vacuum", "{table}", "--retain-hours", "0", "--no-retention-check"],
    "restore": ["restore", "{table}", "--version", "1"],
    "repair-log": ["repair-log", "{table}"],
    "fsck": ["fsck", "{table}"],
    "analyze": ["analyze", "{table}"],
    "clone": ["clone", "{table}", "{root}/clone"],
    "generate": ["generate", "{table}"],
    "convert": ["convert", "{root}/files"],
    "drop-feature": ["drop-feature", "{table}", "deletionVectors"],
    "uniform enable": ["uniform", "enable", "{table}"],
    "uniform repair": ["uniform", "repair", "{root}/shared", "--discard"],
}


def commands() -> Iterator[tuple[str, TyperCommand]]:
    """Every command with its words."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from (
                (f"{name} {inner}", actual) for inner, actual in command.commands.items() if isinstance(actual, TyperCommand)
            )
        elif isinstance(command, TyperCommand):
            yield name, command


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    table = Table.create(tmp_path / "table", pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"})
    for number in range(3):
        table.append(pa.table({"id": [2 * number, 2 * number + 1]}))
    table.delete("id = 0")
    table.restore(3)
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "files" / "a.parquet")
    shared = Table.create(
        tmp_path / "shared",
        pa.schema([("id", pa.int64())]),
        properties={"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"},
    )
    # No conversion may run when the files are compared, and a conversion writes its record after it has published its version.
    assert UNIFORM_RUNTIME.drain(120, 0, shared.url) == []
    return tmp_path


def test_each_command_that_changes_something_has_a_dry_run() -> None:
    with_dry_run = {
        name for name, command in commands() if "--dry-run" in {text for each in command.params for text in each.opts}
    }
    assert with_dry_run == DRY_RUNS.keys()
    assert {name for name, _ in commands()} == READING | WITHOUT_DRY_RUN.keys() | DRY_RUNS.keys()


@pytest.mark.damages_tables
@pytest.mark.parametrize("name", DRY_RUNS)
def test_a_dry_run_changes_no_byte_and_prints_something(root: Path, name: str) -> None:
    if name == "fsck":
        next((root / "table").glob("part-*.parquet")).unlink()
    if name == "repair-log":
        next((root / "table" / "_delta_log").glob("*.crc")).write_bytes(b"{}")
    before = contents(root)
    words = [word.format(table=root / "table", root=root, file=root / "files" / "a.parquet") for word in DRY_RUNS[name]]
    assert run(*words, "--dry-run").strip()
    assert contents(root) == before


@pytest.mark.damages_tables
def test_exit_codes_are_those_of_the_guide(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*words: object, **values: object) -> None:
        raise KeyboardInterrupt

    path = str(root / "table")
    run("check", path)
    seen = {0}
    seen.add(run_main(monkeypatch, capsys, "detail", str(root / "nothing"))[0])
    assert run_main(monkeypatch, capsys, "no-such-command")[0] in seen
    assert run_main(monkeypatch, capsys, "vacuum", path, "--no-such-option")[0] in seen
    next((root / "table").glob("part-*.parquet")).unlink()
    seen.add(run_main(monkeypatch, capsys, "check", path)[0])
    monkeypatch.setattr(tahoe.Table, "detail", interrupt)
    seen.add(run_main(monkeypatch, capsys, "detail", path)[0])
    table = re.findall(r"^\| (\d+) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {str(code) for code in seen} == set(table)


def test_an_unexpected_error_is_one_sentence_that_names_the_variable_for_more(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*words: object, **values: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.delenv("TAHOE_TRACEBACK", raising=False)
    monkeypatch.setattr(tahoe.Table, "detail", fail)
    code, message = run_main(monkeypatch, capsys, "detail", str(root / "table"))
    assert code == 2
    assert message == "tahoe: unexpected RuntimeError: unforeseen (TAHOE_TRACEBACK=1 shows where)\n"
    monkeypatch.setenv("TAHOE_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["tahoe", "detail", str(root / "table")])
    with pytest.raises(RuntimeError):
        main()
