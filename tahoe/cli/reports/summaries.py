"""`tahoe diff`, `tahoe stats`, `tahoe du` and `tahoe report`: facts about a table, without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as LocalPath
from typing import Annotated

import typer

from tahoe.base.method_options import option
from tahoe.base.wording import counted
from tahoe.cli.shell.arguments import AsJson, AtVersion, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import print_json, print_table, write_page
from tahoe.cli.shell.row_output import Output, print_rows
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


@with_flags(DiffOptions)
def diff(
    path: Path,
    start: From,
    end: To = None,
    *,
    flags: Flags,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
    json: AsJson = False,
) -> None:
    """Compare two versions: schema, properties, protocol and files; with --rows or --key their rows too."""
    difference = open_table(path, option).diff(start, end, **flags)
    if json:
        print_json(difference.to_json_value())
        return
    typer.echo("\n".join(map(visible, str(difference).splitlines())))
    if difference.rows is not None and len(difference.rows.sample):
        print_rows(difference.rows.sample, Output.TABLE)


def stats(path: Path, at: AtVersion = None, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Show each column's nulls, bounds, and the number of files with statistics, from the log."""
    statistics = open_table(path, option).column_statistics(at)
    if json:
        print_json(asdict(statistics))
        return
    rows = [
        [
            column.column,
            column.data_type,
            amount(column.files),
            amount(column.nulls),
            *("" if bound is None else str(bound) for bound in (column.least, column.greatest)),
        ]
        for column in statistics.columns
    ]
    print_table(_STATISTICS, rows, wide=True)
    without = f", {amount(statistics.files_without)} of them without statistics" if statistics.files_without else ""
    typer.echo(f"{counted(statistics.rows, 'row')} in {counted(statistics.files, 'file')}{without}")


def du(path: Path, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Show the storage that the table uses, by kind of file."""
    use = open_table(path, option).storage_use()
    if json:
        print_json(asdict(use))
        return
    print_table(_STORAGE, [[kind.kind, amount(kind.files), size(kind.size)] for kind in use.kinds])
    typer.echo(f"{size(use.size)} in {visible(use.table)}")


Html = Annotated[LocalPath, typer.Option("--html", metavar="FILE", help="Where to write the page.")]


def report(path: Path, html: Html = LocalPath("report.html"), option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Write a report as one HTML page, and print the recommended actions. --json prints the facts and writes no page."""
    result = open_table(path, option).report()
    if json:
        print_json(result.to_json_value())
        return
    write_page(html, result.to_html())
    typer.echo("\n".join(map(visible, str(result).splitlines())))
    typer.echo(f"report in {visible(str(html))}")


_STATISTICS = (
    ("column", "left"),
    ("type", "left"),
    ("files", "right"),
    ("nulls", "right"),
    ("least", "left"),
    ("greatest", "left"),
)
_STORAGE = (("kind", "left"), ("files", "right"), ("size", "right"))
