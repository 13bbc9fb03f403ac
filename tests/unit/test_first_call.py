"""What the first call of a process may import: each of these costs every short program and every command its own time."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from tahoe.table import Table

NEVER = {
    "asyncio",
    "deltalake",
    "duckdb",
    "fsspec",
    "http",
    "multiprocessing",
    "pandas",
    "polars",
    "py4j",
    "pyiceberg",
    "pyspark",
    "sqlglot",
}
"""What none of the calls may import."""
SCREEN = {"rich", "typer", "click"}
"""What the command line needs, and nothing else may import."""

CALLS = {
    "nothing": ("pass", SCREEN | {"numpy", "pyarrow", "obstore"}),
    "files": ("table.files()", SCREEN | {"pyroaring"}),
    "files with a filter": ("table.files(filter='id > 3 and v != \\'x\\'')", SCREEN | {"pyroaring"}),
    "to_arrow": ("table.to_arrow(filter='id in (1, 2)')", SCREEN | {"pyroaring"}),
    "to_batches": ("table.to_batches(columns=['id'], limit=3).read_all()", SCREEN | {"pyroaring"}),
    "append": ("table.append(pa.table({'id': pa.arange(0, 3), 'v': pa.nulls(3, pa.string())}))", SCREEN | {"pyroaring"}),
    "delete": ("table.delete('id = 3')", SCREEN),
    "history": ("table.history(); table.detail(); table.version()", SCREEN | {"pyroaring"}),
    "checkpoint": ("table.checkpoint(); tahoe.Table(table.url).files('id > 3')", SCREEN | {"pyroaring"}),
    "check": ("table.check()", SCREEN),
}
COMMANDS = {
    "detail": ("detail",),
    "history": ("history",),
    "files": ("files", "--filter", "id > 3"),
    "check": ("check",),
}


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    made.append(pa.table({"id": range(10), "v": ["a"] * 10}))
    made.append(pa.table({"id": range(10, 20), "v": ["b"] * 10}))
    return made


def imported_by(program: str) -> set[str]:
    told = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"{program}\nimport sys\nprint('imported', *{{n.split('.')[0] for n in sys.modules}})",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(told.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("call", CALLS)
def test_a_first_call_imports_only_what_it_needs(table, call):
    text, forbidden = CALLS[call]
    opening = "import tahoe" if call == "nothing" else f"import tahoe, pyarrow as pa\ntable = tahoe.Table({table.url!r})"
    assert not imported_by(f"{opening}\n{text}") & (NEVER | forbidden)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_answers_in_json_imports_only_what_it_needs(table, command):
    words = ["tahoe", *COMMANDS[command], table.url, "--json"]
    program = f"""
import sys
sys.argv = {words!r}
from tahoe.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    assert not imported_by(program) & (NEVER | {"numpy", "rich"})
