"""Long text on a terminal, which these tests replace by a pseudo-terminal."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pytest

import tahoe

pty = pytest.importorskip("pty")

PAGER = "sh -c 'echo the pager begins; cat'"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("terminal") / "t"
    columns = {"id": list(range(40)), "text": [f"{'long ' * 40}end{number}" for number in range(40)]}
    tahoe.Table.create(folder, pa.table(columns).schema).append(pa.table(columns))
    return str(folder)


def on_terminal(*words: str, lines: int = 24, columns: int = 80, **variables: str) -> str:
    """Return the output of a command on a terminal of this size."""
    import fcntl
    import struct
    import termios

    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "PAGER", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tahoe", *words],
        stdin=end,
        stdout=end,
        stderr=subprocess.PIPE,
        env={**environment, "TERM": "xterm", **variables},
    )
    os.close(end)
    parts = []
    try:
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    except OSError:  # on Linux, the end of a pseudo-terminal
        pass
    assert process.stderr is not None
    with process.stderr as stream:
        complaints = stream.read()
    assert process.wait() == 0, complaints
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;]*m|\r", "", b"".join(parts).decode())


def test_long_text_goes_through_the_pager_and_short_text_does_not(path: str) -> None:
    long = ("head", path, "--limit", "40")
    assert on_terminal(*long, PAGER=PAGER).startswith("the pager begins")
    assert "the pager begins" not in on_terminal("head", path, "--limit", "2", PAGER=PAGER)
    assert "the pager begins" not in on_terminal(*long, "--no-pager", PAGER=PAGER)
    assert "the pager begins" not in on_terminal(*long, "--json", PAGER=PAGER)
    assert "the pager begins" not in on_terminal(*long, "--output", "csv", PAGER=PAGER)
    assert "the pager begins" not in on_terminal(*long, lines=200, PAGER=PAGER)


def test_without_a_terminal_nothing_is_paged(path: str) -> None:
    words = [sys.executable, "-m", "tahoe", "head", path, "--limit", "40"]
    shown = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PAGER": PAGER}, check=True).stdout
    assert "the pager begins" not in shown and shown.count("end") == 40


@pytest.mark.long
def test_a_missing_pager_and_one_that_ends_early_are_no_errors(path: str) -> None:
    long = ("head", path, "--limit", "40")
    assert on_terminal(*long, PAGER="no-such-pager").count("long") >= 40
    assert on_terminal(*long, PAGER="").count("long") >= 40
    assert "ended" in on_terminal(*long, PAGER=shlex.join(["sh", "-c", "echo ended"]))


@pytest.mark.parametrize("columns", [60, 100])
def test_a_row_is_one_line_of_the_terminal_and_a_note_lists_shortened_columns(path: str, columns: int) -> None:
    shown = on_terminal("head", path, "--limit", "3", columns=columns)
    assert max(map(len, shown.splitlines())) <= columns
    assert sum("long" in line for line in shown.splitlines()) == 3
    assert "…" in shown and "--wide shows all" in shown and "end2" not in shown


@pytest.mark.long
def test_wide_shows_values_completely(path: str) -> None:
    for option in ("--wide", "--no-truncate"):
        shown = on_terminal("head", path, "--limit", "3", option)
        assert "end2" in shown and "--wide shows all" not in shown
