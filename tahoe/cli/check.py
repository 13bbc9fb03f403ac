"""`tahoe check`: what is wrong with the table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tahoe.cli.arguments import FOUND_SOMETHING, AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import visible

__all__ = ["check"]

Deep = Annotated[bool, typer.Option("--deep", help="Read every data file, and hold its rows against the log's statistics.")]


def check(path: Path, option: StorageOptions = [], json: AsJson = False, deep: Deep = False) -> None:  # noqa: B006 - typer reads it, nobody changes it
    """What is wrong with the table: gaps in the log, disagreeing checkpoints and checksums, missing files, broken vectors; with --deep
    every row against its statistics."""
    table = open_table(path, option)
    violations = table.check(deep=deep)
    if json:
        print_json([asdict(violation) for violation in violations])
    elif violations:
        print_table(_COLUMNS, [[found.code, _text(found.version), _text(found.file), found.message] for found in violations])
    else:
        typer.echo(f"{visible(table.url)}: version {table.version()}, nothing is wrong")
    if violations:
        raise typer.Exit(FOUND_SOMETHING)


_COLUMNS = (("what", "left"), ("version", "right"), ("file", "left"), ("finding", "left"))


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)
