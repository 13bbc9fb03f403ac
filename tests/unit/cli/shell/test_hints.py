from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tahoe
from tahoe.base.wording import counted
from tahoe.cli.main import app
from tahoe.cli.shell.hints import for_shell

ROOT = Path(tahoe.__file__).parent


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("run table.uniform.sync(rebuild=True).", "run tahoe uniform sync --rebuild TABLE."),
        ("settle it: table.uniform.repair(adopt=True) or repair.", "settle it: tahoe uniform repair --adopt TABLE or repair."),
        ("Say one of adopt=True (take) and discard=True (leave).", "Say one of --adopt (take) and --discard (leave)."),
        ("Look with table.check().", "Look with tahoe check TABLE."),
        ("switch it off: retention_check=False, or spark.a.b.enabled = false.", "switch it off: --no-retention-check."),
        ("set spark.a.useLog to false (use_stream_log=False).", "use --no-stream-log."),
        ("or DROP FEATURE x (Table.drop_feature).", "or DROP FEATURE x (tahoe drop-feature TABLE NAME)."),
        ("Recompute it (Table.compute_statistics()).", "Recompute it (tahoe analyze TABLE)."),
        ("a table of 3 files", "a table of 3 files"),
        ("file replace=True/part-0.parquet", "file replace=True/part-0.parquet"),
    ],
)
def test_a_remedy_is_translated_for_the_shell(said: str, typed: str) -> None:
    assert for_shell(said) == typed


_IN_PYTHON = {
    "coordinated_store.py": "administration of a coordinator, which has no command",
    "outside.py": "registration of shallow clones, which has no command",
    "removals.py": "constraints, which have no command",
    "table_definition.py": "defaults of columns, which have no command",
    "altering.py": "constraints, which have no command",
    "create.py": "constraints, which have no command",
    "symlink_manifests.py": "purging, which has no command",
}
"""Modules whose messages name Python calls for which there is no command, with the reason."""

_CALL = re.compile(r"\b\w+=(?:True|False)\b|\b[Tt]able\.[a-z_.]+|\btahoe\.Table\(|\bresolve\(\)")
_WITHOUT_COMMANDS = ("spark", "testing", "settings")


def messages() -> Iterator[tuple[Path, str]]:
    """The texts of all errors that commands can raise, with `…` for values, and their modules."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] not in (*_WITHOUT_COMMANDS, "tables.py", "as_delta.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and any(keyword.arg == "code" for keyword in node.keywords) and node.args:
                    text = node.args[0]
                    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                    yield path, "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)


def test_no_error_of_a_command_names_an_argument_of_python() -> None:
    translated = [(path, text, for_shell(text)) for path, text in messages()]
    assert sum(text != shell for _, text, shell in translated) > 10, "the messages were found"
    left = {path.name: shell for path, _, shell in translated if _CALL.search(shell)}
    assert {name: shell for name, shell in left.items() if name not in _IN_PYTHON} == {}
    assert _IN_PYTHON.keys() - left.keys() == set(), "exceptions that are no longer needed"


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
