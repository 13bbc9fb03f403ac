from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tahoe
from tahoe.base.wording import counted
from tahoe.cli.main import app
from tahoe.cli.shell.hints import for_shell


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("run table.uniform.sync(rebuild=True).", "run tahoe uniform sync --rebuild TABLE."),
        ("settle it: table.uniform.repair(adopt=True) or repair.", "settle it: tahoe uniform repair --adopt TABLE or repair."),
        ("Say one of adopt=True (take) and discard=True (leave).", "Say one of --adopt (take) and --discard (leave)."),
        ("Look with table.check().", "Look with tahoe check TABLE."),
        ("a table of 3 files", "a table of 3 files"),
    ],
)
def test_a_remedy_is_translated_for_the_shell(said: str, typed: str) -> None:
    assert for_shell(said) == typed


def test_one_is_one_file_and_not_one_files() -> None:
    assert [counted(n, "file") for n in (0, 1, 2, 1234)] == ["0 files", "1 file", "2 files", "1,234 files"]


@pytest.mark.parametrize(("columns", "widest"), [(None, 80), ("100", 100), ("nonsense", 80), ("1", 60)])
def test_history_in_a_pipe_has_a_terminal_s_width_and_json_is_complete(tmp_path: Path, columns: str | None, widest: int) -> None:
    table = tahoe.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"a.b": "x" * 300})
    table.append(pa.table({"id": pa.array([1], pa.int64())}))

    def printed(*words: str) -> str:
        result = CliRunner().invoke(app, list(words), env={"COLUMNS": columns})
        assert result.exit_code == 0, result.output
        return result.output

    shown = printed("history", table.url)
    assert max(map(len, shown.splitlines())) <= widest
    assert shown.count("x") >= 300, "folded, and not cut"
    assert "x" * 300 in printed("history", table.url, "--json")
    assert "1 file," in printed("files", table.url)
