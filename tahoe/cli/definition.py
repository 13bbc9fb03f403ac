"""`tahoe create`, `tahoe schema` and `tahoe set`: the definition of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import option
from tahoe.base.secrets import shown_value
from tahoe.cli.shell.arguments import AtVersion, Path, StorageOptions, named_coordinator, open_table, options_of
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import RECORD, ROWS, Output, prints
from tahoe.cli.shell.text import visible

if TYPE_CHECKING:
    from tahoe.schema.types import StructField

Columns = Annotated[
    list[str],
    typer.Argument(metavar="NAME:TYPE...", help="The columns: id:long day:date 'price:decimal(12,2)'.", show_default=False),
]
Properties = Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Table properties.", show_default=False)]
Unset = Annotated[list[str], typer.Option("--unset", metavar="NAME", help="Remove this property; repeatable.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes, and commit nothing.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions:
    """The options of `tahoe create`."""

    partition_by: Sequence[str] = option((), "--partition-by", metavar="NAME", help="A partition column; repeatable.")
    cluster_by: Sequence[str] = option(
        (), "--cluster-by", metavar="NAME", help="A column by which OPTIMIZE clusters the rows; repeatable."
    )
    property: Sequence[str] = option((), "--property", metavar="NAME=VALUE", help="A table property; repeatable.")


@prints(RECORD)
@with_flags(CreateOptions)
def create(path: Path, columns: Columns, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer
    """Create an empty table. Columns are nullable; other schemas need Spark or Python."""
    from tahoe.api.table import Table

    table = Table.create(
        path,
        dict(_pair(text, ":", "a column", "id:long") for text in columns),
        partition_by=flags["partition_by"],
        cluster_by=flags["cluster_by"] or None,
        properties=dict(_pair(text, "=", "a property", "delta.appendOnly=true") for text in flags["property"]),
        storage_options=options_of(option),
        coordinator=named_coordinator(),
    )
    version = table.version()
    output.record(
        {"table": table.url, "version": version}, lambda: typer.echo(f"created {visible(table.url)}: version {version}")
    )


@prints(ROWS)
def schema(path: Path, output: Output, at: AtVersion = None, option: StorageOptions = []) -> None:  # noqa: B006
    """Show the columns with their types; --json prints the schema as it is in the log."""
    columns = open_table(path, option).snapshot(at).schema
    cells = [list(_cells(column)) for column in columns]
    names = [name for name, _ in _COLUMNS]
    output.records(
        [dict(zip(names, row, strict=True)) for row in cells],
        lambda: output.table(_COLUMNS, cells, names=True),
        document=columns.to_json_value(),
        names=names,
    )


_COLUMNS = (("column", "left"), ("type", "left"), ("null", "left"), ("comment", "left"))


def _cells(column: StructField) -> Iterator[str]:
    yield column.name
    yield str(column.data_type)
    yield "yes" if column.nullable else "no"
    yield str(column.metadata.get("comment", ""))


@prints(RECORD)
def set_properties(
    path: Path,
    output: Output,
    properties: Properties = None,
    unset: Unset = [],  # noqa: B006 - read by typer, never changed
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
) -> None:
    """Set table properties, or remove them."""
    changed = dict(_pair(text, "=", "a property", "delta.appendOnly=true") for text in properties or [])
    if bool(changed) == bool(unset):
        raise InvalidRequest("Give either NAME=VALUE or --unset NAME: each is one commit.", code="TAHOE_NO_PROPERTIES")
    table, version = open_table(path, option), None
    current = table.snapshot().metadata.configuration
    after = {**changed, **dict.fromkeys(unset)}
    if not dry_run:
        version = table.set_properties(changed) if changed else table.unset_properties(unset)

    def show() -> None:
        if version is not None:
            typer.echo(f"version {version}")
            return
        for name, value in after.items():
            typer.echo(visible(f"{name}: {_shown(name, current.get(name))} → {_shown(name, value)}"))

    changes = {name: {"before": _hidden(name, current.get(name)), "after": _hidden(name, value)} for name, value in after.items()}
    output.record({"table": table.url, "version": version, "properties": changes, "dryRun": dry_run}, show)


def _hidden(name: str, value: str | None) -> str | None:
    return None if value is None else shown_value(name, value)


def _shown(name: str, value: str | None) -> str:
    return "not set" if value is None else shown_value(name, value)


def _pair(text: str, separator: str, role: str, example: str) -> tuple[str, str]:
    name, sign, value = text.partition(separator)
    if not name or not sign or not value:
        raise InvalidRequest(f"{text!r} is not {role}: write it as {example}.", code="TAHOE_ARGUMENT_PAIR", argument=text)
    return name, value
