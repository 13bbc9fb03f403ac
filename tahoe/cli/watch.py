"""`tahoe watch`: new commits as they appear."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import option
from tahoe.cli.shell.arguments import AsJson, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import print_json
from tahoe.cli.shell.text import visible
from tahoe.cli.versions import commit_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tahoe.api.table import Table


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
