"""Starts writers as separate processes, and reads their acknowledgements."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def writer_process(
    path: str, writer: int, *, appends: int, rows: int = 3, options: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A started writer (`tests.race.writer`)."""
    task = {"path": path, "options": dict(options or {}), "writer": writer, "appends": appends, "rows": rows}
    with started("tests.race.writer", task) as process:
        yield process


@contextmanager
def started(module: str, task: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A module as a process with its task, one line of JSON; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            _tell(process, json.dumps(task))
            yield process
        finally:
            process.kill()


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    line = process.stdout.readline()
    if line != "ready\n":
        raise AssertionError(f"the writer did not start: {line}{process.communicate()[1]}")


def start(process: subprocess.Popen[str]) -> None:
    _tell(process, "start")


def acknowledged(text: str) -> list[tuple[int, int]]:
    """(version, first id) of each whole line."""
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n") and line != "ready\n"]
    return [(int(version), int(first)) for version, first in lines]


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
