"""`tahoe history`: the commits, with author and time, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.cli.arguments import AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import ago, amount, moment, size

Limit = Annotated[int | None, typer.Option("--limit", "-n", help="The maximum number of commits.", min=1)]


def history(path: Path, limit: Limit = None, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006 - read by typer
    """Show the commits in the log, newest first."""
    commits = open_table(path, option).history(limit)
    if json:
        print_json(commits)
        return
    now_ms = SYSTEM_CLOCK.now_ms()
    print_table(_COLUMNS, [_row(commit, now_ms) for commit in commits])


_COLUMNS = (
    ("version", "right"),
    ("age", "left"),
    ("time", "left"),
    ("operation", "left"),
    ("how", "left"),
    ("rows", "right"),
    ("files", "right"),
    ("bytes", "right"),
    ("by", "left"),
)


def _row(commit: Mapping[str, Any], now_ms: int) -> list[str]:
    time = commit["timestamp"]
    metrics = commit["operationMetrics"] or {}
    written = metrics.get("numOutputBytes") or metrics.get("numAddedBytes")
    return [
        str(commit["version"]),
        ago(round(time.timestamp() * 1000), now_ms),
        moment(time),
        commit["operation"] or "",
        _how(commit["operationParameters"] or {}),
        amount(metrics.get("numOutputRows")),
        _files(metrics),
        size(int(written)) if written else "",
        " ".join(filter(None, (commit["userName"], commit["engineInfo"], commit["userMetadata"]))),
    ]


def _how(parameters: Mapping[str, str | None]) -> str:
    """Return the parameters that are not empty."""
    return ", ".join(f"{name} {value}" for name, value in parameters.items() if value not in _NOTHING)


def _files(metrics: Mapping[str, str]) -> str:
    added = metrics.get("numFiles") or metrics.get("numAddedFiles") or "0"
    removed = metrics.get("numRemovedFiles") or "0"
    return " ".join(f"{sign}{amount(count)}" for sign, count in (("+", added), ("−", removed)) if count != "0")


_NOTHING = (None, "", "[]", "{}", "null", '""')
