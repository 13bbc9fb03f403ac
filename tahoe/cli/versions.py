"""`tahoe detail`: the state of a table; `tahoe history`: its commits, with author and time, newest first; `tahoe watch`: new commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import option
from tahoe.base.secrets import shown_properties
from tahoe.cli.shell.arguments import AsJson, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import RECORD, ROWS, Output, print_json, prints
from tahoe.cli.shell.text import ago, amount, moment, size, visible

if TYPE_CHECKING:
    from tahoe.api.table import Table

Limit = Annotated[int | None, typer.Option("--limit", "-n", help="The maximum number of commits.", min=1)]


@prints(ROWS)
def history(path: Path, output: Output, limit: Limit = None, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer
    """Show the commits in the log, newest first."""
    commits = open_table(path, option).history(limit)
    now_ms = SYSTEM_CLOCK.now_ms()
    output.records(commits, lambda: output.table(_COLUMNS, [commit_cells(commit, now_ms) for commit in commits]))


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


def commit_cells(commit: Mapping[str, Any], now_ms: int) -> list[str]:
    """Return the texts of a commit of `Table.history`, one for each column that `tahoe history` prints."""
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


@prints(RECORD)
def detail(path: Path, output: Output, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer, never changed
    """Show the table's schema, partitioning, size, protocol and properties."""
    table = open_table(path, option)
    snapshot = table.snapshot()
    facts = {**table.detail(), "version": snapshot.version}
    facts["properties"] = shown_properties(facts.get("properties") or {})
    columns = ((f"  {column.name}", _type(column)) for column in snapshot.schema)
    output.record({**facts, "schema": snapshot.schema.to_json_value()}, lambda: output.pairs([*_pairs(facts), *columns]))


def _pairs(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "table", str(facts["location"])
    for name in ("name", "description"):
        if facts.get(name):
            yield name, str(facts[name])
    yield "id", str(facts["id"])
    yield "version", f"{facts['version']}, {_when(facts['lastModified'])}"
    if facts.get("createdAt"):
        yield "created", _when(facts["createdAt"])
    yield "files", f"{amount(facts['numFiles'])}, {size(facts['sizeInBytes'])}"
    for name, key in (("partitioned by", "partitionColumns"), ("clustered by", "clusteringColumns")):
        if facts.get(key):
            yield name, ", ".join(facts[key])
    yield "protocol", f"reader {facts['minReaderVersion']}, writer {facts['minWriterVersion']}"
    if facts.get("tableFeatures"):
        yield "features", ", ".join(facts["tableFeatures"])
    for name, value in sorted(facts["properties"].items()):
        yield "property", f"{name} = {value}"
    yield "columns", ""


def _when(time: datetime) -> str:
    return f"{ago(round(time.timestamp() * 1000), SYSTEM_CLOCK.now_ms())} ({moment(time)})"


def _type(column: Any) -> str:
    return f"{column.data_type}{'' if column.nullable else ' not null'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The options of `tahoe watch`."""

    start: int | None = option(None, "--from", metavar="VERSION", help="The first version to print; default: the next one.")
    every: float = option(2.0, "--every", metavar="SECONDS", help="How often to look for new commits.")
    limit: int | None = option(None, "--limit", "-n", metavar="COMMITS", help="Stop after this number of commits.")


@with_flags(WatchOptions)
def watch(path: Path, flags: Flags, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006 - read by typer
    """Print each new commit when it appears, one line each. Ctrl-C stops it."""
    if flags["every"] <= 0:
        raise InvalidRequest(
            f"--every takes a number of seconds greater than 0, not {flags['every']}.",
            code="DELTA_ILLEGAL_OPTION",
            option="every",
        )
    with suppress(KeyboardInterrupt):
        for number, commit in enumerate(
            _new_commits(open_table(path, option), flags["start"], flags["every"], flags["limit"]), start=1
        ):
            if json:
                print_json(commit, on_one_line=True)
            else:
                typer.echo("  ".join(map(visible, filter(None, commit_cells(commit, SYSTEM_CLOCK.now_ms())))))
            if number == flags["limit"]:
                return


def _new_commits(table: Table, start: int | None, every: float, limit: int | None) -> Iterator[Mapping[str, Any]]:
    following = table.version() + 1 if start is None else start
    while limit != 0:
        newest = table.version()
        if newest >= following:
            commits = [commit for commit in table.history(newest - following + 1) if commit["version"] >= following]
            yield from reversed(commits)
            following = newest + 1
        else:
            SYSTEM_CLOCK.sleep(every)
