"""`tahoe drop-feature` and `tahoe compat`: what a table's protocol loses, and who can read and write the table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tahoe.cli.arguments import AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import visible

__all__ = ["compat", "drop_feature"]

Feature = Annotated[str, typer.Argument(metavar="FEATURE", help="As `tahoe detail` lists it.", show_default=False)]
Truncate = Annotated[
    bool,
    typer.Option(
        "--truncate-history", help="Have older versions leave the log first, in place of hiding them behind checkpoints."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Tell what would be done and who could read the table then, and do nothing.")
]


def drop_feature(
    path: Path,
    feature: Feature,
    truncate_history: Truncate = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006 - typer reads it, nobody changes it
    json: AsJson = False,
) -> None:
    """Let the table lose a feature, so that clients which do not know it can use the table."""
    done = open_table(path, option).drop_feature(feature, truncate_history=truncate_history, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "feature": done.feature, "version": done.version, "dryRun": dry_run, "steps": list(done.steps)}
    print_json(
        {
            **told,
            "files": done.files,
            "bytes": done.size,
            "protocol": done.protocol.to_json_value(),
            "obstacle": done.obstacle,
            "gained": list(done.gained),
        }
    )


def compat(path: Path, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006 - typer reads it, nobody changes it
    """Which engines can read and write the table as it is now, and what is in the way; as far as their makers say."""
    found = open_table(path, option).compat()
    if json:
        print_json([asdict(one) for one in found])
        return
    print_table(_COLUMNS, [[one.engine, one.versions, one.reads, one.writes, one.why] for one in found])


_COLUMNS = (("engine", "left"), ("versions", "left"), ("reads", "left"), ("writes", "left"), ("why not, or not known", "left"))
