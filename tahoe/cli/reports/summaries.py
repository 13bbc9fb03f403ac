"""`tahoe diff`, `tahoe stats`, `tahoe du` and `tahoe report`: facts about a table, without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as LocalPath
from typing import Annotated

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import option
from tahoe.base.wording import counted
from tahoe.cli.shell.arguments import AtVersion, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import RECORD, ROWS, Format, Output, print_json, prints, write_page
from tahoe.cli.shell.text import amount, size, visible

From = Annotated[int, typer.Argument(metavar="FROM", help="The older version.", min=0, show_default=False)]
To = Annotated[
    int | None, typer.Argument(metavar="[TO]", help="The newer version; default: the newest.", min=0, show_default=False)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The options of `tahoe diff`."""

    rows: bool = option(False, "--rows", help="Read and compare the rows too.")
    key: Sequence[str] = option(
        (), "--key", "-k", metavar="COLUMN", help="A column that identifies a row; repeatable. Implies --rows."
    )
    limit: int = option(20, "--limit", "-n", help="The maximum number of rows to print.")


@prints(ROWS)
@with_flags(DiffOptions)
def diff(
    path: Path,
    start: From,
    end: To = None,
    *,
    flags: Flags,
    output: Output,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
) -> None:
    """Compare two versions: schema, properties, protocol and files; with --rows or --key their rows too."""
    if output.format in (Format.CSV, Format.ARROW) and not (flags["rows"] or flags["key"]):
        raise InvalidRequest(
            f"--output {output.format} prints rows that differ: add --rows or --key, or use --output json.",
            code="TAHOE_OUTPUT_FORMAT",
            option="--output",
        )
    difference = open_table(path, option).diff(start, end, **flags)
    if output.format is Format.JSON:
        print_json(difference.to_json_value())
        return
    if output.is_text:
        typer.echo("\n".join(map(visible, str(difference).splitlines())))
    if difference.rows is not None and (len(difference.rows.sample) or not output.is_text):
        output.rows(difference.rows.sample)


@prints(ROWS)
def stats(path: Path, output: Output, at: AtVersion = None, option: StorageOptions = []) -> None:  # noqa: B006
    """Show each column's nulls, bounds, and the number of files with statistics, from the log."""
    statistics = open_table(path, option).column_statistics(at)
    rows = [
        [
            column.column,
            column.data_type,
            amount(column.files),
            amount(column.nulls),
            *(_bound(value) or "" for value in (column.least, column.greatest)),
        ]
        for column in statistics.columns
    ]

    def show() -> None:
        output.table(_STATISTICS, rows, names=True)
        without = f", {amount(statistics.files_without)} of them without statistics" if statistics.files_without else ""
        typer.echo(f"{counted(statistics.rows, 'row')} in {counted(statistics.files, 'file')}{without}")

    document = asdict(statistics)
    # Bounds of several columns are of several types, and a column of Arrow has one.
    records = [{**column, **{name: _bound(column[name]) for name in ("least", "greatest")}} for column in document["columns"]]
    output.records(records, show, document=document)


def _bound(value: object) -> str | None:
    return None if value is None else str(value)


@prints(ROWS)
def du(path: Path, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Show the storage that the table uses, by kind of file."""
    use = open_table(path, option).storage_use()

    def show() -> None:
        output.table(_STORAGE, [[kind.kind, amount(kind.files), size(kind.size)] for kind in use.kinds])
        typer.echo(f"{size(use.size)} in {visible(use.table)}")

    document = asdict(use)
    output.records(document["kinds"], show, document=document)


Html = Annotated[LocalPath, typer.Option("--html", metavar="FILE", help="Where to write the page.")]


@prints(RECORD)
def report(path: Path, output: Output, html: Html = LocalPath("report.html"), option: StorageOptions = []) -> None:  # noqa: B006
    """Write a report as one HTML page, and print the recommended actions. --json prints the facts and writes no page."""
    result = open_table(path, option).report()

    def show() -> None:
        write_page(html, result.to_html())
        typer.echo("\n".join(map(visible, str(result).splitlines())))
        typer.echo(f"report in {visible(str(html))}")

    output.record(result.to_json_value(), show)


_STATISTICS = (
    ("column", "left"),
    ("type", "left"),
    ("files", "right"),
    ("nulls", "right"),
    ("least", "left"),
    ("greatest", "left"),
)
_STORAGE = (("kind", "left"), ("files", "right"), ("size", "right"))
