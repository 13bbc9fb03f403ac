"""`tahoe files` and `tahoe layout`: the live files, the files that a filter would read, and how well they are clustered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as LocalPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.wording import counted
from tahoe.cli.shell.arguments import AtVersion, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import bytes_of
from tahoe.cli.shell.output import ROWS, Output, prints, write_page
from tahoe.cli.shell.text import ago, amount, size, visible

if TYPE_CHECKING:
    from tahoe.ops.layout.boxes import ColumnLayout, PredicateCost


Filter = Annotated[
    str | None, typer.Option("--filter", "-f", help='Only files that may contain matching rows: "month = 3 and id > 7".')
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", help="The maximum number of files.", min=1)]


@prints(ROWS)
def files(
    path: Path,
    output: Output,
    filter: Filter = None,
    limit: Limit = None,
    at: AtVersion = None,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
) -> None:
    """Show the live files with their partition, rows and size; with --filter, only those that a reader would open."""
    table = open_table(path, option)
    live_files = table.files(filter=filter, version=at)
    rows = [_values(row) for row in (live_files if limit is None else live_files.slice(0, limit)).to_pylist()]

    def show() -> None:
        now_ms = SYSTEM_CLOCK.now_ms()
        logical_names = {column.physical_name: column.name for column in table.snapshot(at).schema}
        output.table(_COLUMNS, [_row(row, logical_names, now_ms) for row in rows], names=True)
        total = sum(live_files.column("size").to_pylist())
        cut = f", {amount(len(rows))} shown" if len(rows) < live_files.num_rows else ""
        typer.echo(f"{counted(live_files.num_rows, 'file')}, {size(total)}{cut}")

    output.records(rows, show, names=_MEMBERS)


_MEMBERS = (
    *("path", "partitionValues", "size", "modificationTime", "numRecords", "deletionVector", "stats"),
    *("baseRowId", "defaultRowCommitVersion", "clusteringProvider", "tags"),
)
_COLUMNS = (("path", "left"), ("partition", "left"), ("rows", "right"), ("deleted", "right"), ("size", "right"), ("age", "left"))


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's members by their names in the specification, with `numRecords` from the statistics; missing ones are omitted."""
    from json import loads

    statistics = loads(row["stats"]) if row["stats"] else None
    vector = row["deletionVector"]
    values: dict[str, Any] = {
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


By = Annotated[list[str], typer.Option("--by", "-b", metavar="COLUMN", help="OPTIMIZE would cluster by this column; repeatable.")]
Axes = Annotated[
    list[str], typer.Option("--axis", "-a", metavar="COLUMN", help="Draw the files over this column, and over another one.")
]
TargetSize = Annotated[
    str | None,
    typer.Option("--target-size", metavar="SIZE", help="The size of new files: 128mb; default: delta.targetFileSize, or 1gb."),
]
Html = Annotated[LocalPath | None, typer.Option("--html", metavar="FILE", help="Draw the layout as a self-contained page.")]


@prints(ROWS)
def layout(
    path: Path,
    output: Output,
    by: By = [],  # noqa: B006 - read by typer, never changed
    axis: Axes = [],  # noqa: B006
    target_size: TargetSize = None,
    html: Html = None,
    option: StorageOptions = [],  # noqa: B006
) -> None:
    """Show how well the files are clustered by each column: how many a typical point predicate reads, and one for a tenth of the values,
    now and after OPTIMIZE. Reads no data file."""
    target = None if target_size is None else bytes_of(target_size)
    result = open_table(path, option).layout(by, axes=axis, target_file_size=target)
    if html is not None:
        write_page(html, result.to_html())

    def show() -> None:
        output.table(_MEASURES, [_measures(column) for column in result.columns], names=True)
        typer.echo(visible(f"{amount(len(result.before))} files, {size(result.size)}. {result.gain()}"))
        if html is not None:
            typer.echo(f"Layout in {visible(str(html))}.")

    document = result.to_json_value()
    output.records(document["columns"], show, document=document)


_MEASURES = (
    ("column", "left"),
    ("point", "right"),
    ("bytes", "right"),
    ("tenth", "right"),
    ("bytes", "right"),
    ("deepest", "right"),
    ("point then", "right"),
    ("tenth then", "right"),
)


def _measures(column: ColumnLayout) -> list[str]:
    name = f"{column.name}{' *' if column.is_key else ''}"
    if column.now is None or column.then is None:
        return [name, *[""] * (len(_MEASURES) - 1)]
    now, then = column.now, column.then
    return [name, *_read(now), str(now.deepest), f"{then.point_files:,.1f}", f"{then.range_files:,.1f}"]


def _read(measured: PredicateCost) -> list[str]:
    return [
        f"{measured.point_files:,.1f}",
        size(round(measured.point_bytes)),
        f"{measured.range_files:,.1f}",
        size(round(measured.range_bytes)),
    ]
