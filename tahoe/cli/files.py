"""`tahoe files`: the live files, or those that a filter would have to open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tahoe.cli.arguments import AsJson, AtVersion, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import ago, amount, size
from tahoe.clock import SYSTEM_CLOCK
from tahoe.wording import counted

__all__ = ["files"]

Filter = Annotated[
    str | None, typer.Option("--filter", "-f", help='Only files that may hold matching rows: "month = 3 and id > 7".')
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", help="Only so many files.", min=1)]


def files(
    path: Path,
    filter: Filter = None,
    limit: Limit = None,
    at: AtVersion = None,
    option: StorageOptions = [],  # noqa: B006 - typer reads it, nobody changes it
    json: AsJson = False,
) -> None:
    """The live files with their partition, rows and size; with --filter, only those that a reader would open."""
    table = open_table(path, option)
    found = table.files(filter=filter, version=at)
    rows = [_values(row) for row in (found if limit is None else found.slice(0, limit)).to_pylist()]
    if json:
        print_json(rows)
        return
    now_ms = SYSTEM_CLOCK.now_ms()
    logical_names = {column.physical_name: column.name for column in table.snapshot(at).schema}
    print_table(_COLUMNS, [_row(row, logical_names, now_ms) for row in rows], wide=True)
    total = sum(found.column("size").to_pylist())
    cut = f", {amount(len(rows))} shown" if len(rows) < found.num_rows else ""
    typer.echo(f"{counted(found.num_rows, 'file')}, {size(total)}{cut}")


_COLUMNS = (("path", "left"), ("partition", "left"), ("rows", "right"), ("deleted", "right"), ("size", "right"), ("age", "left"))


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    """One file as the specification names its facts, with `numRecords` taken out of the statistics; absent facts are left out."""
    from json import loads

    statistics = loads(row["stats"]) if row["stats"] else None
    vector = row["deletionVector"]
    values = {
        "path": row["path"],
        "partitionValues": dict(row["partitionValues"] or ()),
        "size": row["size"],
        "modificationTime": row["modificationTime"],
        "numRecords": statistics.get("numRecords") if statistics else None,
        "deletionVector": {name: value for name, value in vector.items() if value is not None} if vector else None,
        "stats": statistics,
        "baseRowId": row["baseRowId"],
        "defaultRowCommitVersion": row["defaultRowCommitVersion"],
        "clusteringProvider": row["clusteringProvider"],
        "tags": dict(row["tags"]) if row["tags"] else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _row(values: Mapping[str, Any], logical_names: Mapping[str, str], now_ms: int) -> list[str]:
    vector = values.get("deletionVector")
    partition = values["partitionValues"].items()
    return [
        values["path"],
        ", ".join(f"{logical_names.get(name, name)}={'null' if value is None else value}" for name, value in partition),
        amount(values.get("numRecords")),
        amount(vector["cardinality"]) if vector else "",
        size(values["size"]),
        ago(values["modificationTime"], now_ms),
    ]
