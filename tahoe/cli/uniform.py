"""`tahoe uniform enable|status|sync|repair`: the Iceberg side of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.wording import counted
from tahoe.cli.shell.arguments import Path, StorageOptions, open_table
from tahoe.cli.shell.hints import for_shell
from tahoe.cli.shell.output import RECORD, Output, prints
from tahoe.cli.shell.startup import import_anything

if TYPE_CHECKING:
    from tahoe.uniform.external.repair import Repair
    from tahoe.uniform.status import CatalogStatus, UniformStatus


_CATALOG_SECONDS = 5.0

uniform = typer.Typer(no_args_is_help=True, help="The Iceberg side of a table: status, conversion and repair.")


@uniform.command(short_help="show how far the Iceberg side is behind the Delta table")
@prints(RECORD)
def status(path: Path, output: Output, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer, never changed
    """Show the state of the Iceberg side: versions, lag, its location by path and in catalogs, and errors."""
    from tahoe.uniform.catalogs.configured import catalog_names

    table = open_table(path, option)
    if any(catalog_names(table.snapshot().metadata.configuration)):
        import_anything()
    state = table.uniform.status(catalog_seconds=_CATALOG_SECONDS)
    output.record(asdict(state), lambda: output.pairs(_of_status(state)))


@uniform.command(short_help="make the table readable as Iceberg")
@prints(RECORD)
def enable(
    path: Path,
    output: Output,
    option: StorageOptions = [],  # noqa: B006
    compat: Annotated[
        int, typer.Option("--compat", metavar="2|3", help="The version of IcebergCompat; 3 keeps deletion vectors.")
    ] = 2,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report the changes without making them.")] = False,
) -> None:
    """Enable UniForm, rewrite the files that Iceberg readers could misread, and convert the newest version."""
    import_anything()
    table = open_table(path, option)
    done = table.uniform.upgrade(compat, dry_run=dry_run)
    if not dry_run:
        table.uniform.sync()
    pairs = [
        ("version", str(done.version)),
        *(("property", f"{name} = {value}") for name, value in sorted(done.properties.items())),
        ("files", f"{len(done.rewritten):,} {'to be rewritten' if dry_run else 'rewritten'}"),
    ]
    output.record(asdict(done), lambda: output.pairs(pairs))


@uniform.command(short_help="convert the newest version now")
@prints(RECORD)
def sync(
    path: Path,
    output: Output,
    option: StorageOptions = [],  # noqa: B006
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild everything, and point catalogs to it again.")] = False,
) -> None:
    """Convert the newest version now, and print the result."""
    import_anything()
    done = open_table(path, option).uniform.sync(rebuild=rebuild)
    pairs = [
        ("conversion", done.kind if done.reason is None else f"{done.kind}: {done.reason}"),
        ("version", str(done.version)),
        ("metadata", done.metadata_location),
        ("files", f"{done.files_added} added, {done.files_removed} removed"),
    ]
    members = {**asdict(done), "catalog_errors": {name: str(error) for name, error in done.catalog_errors.items()}}
    output.record(members, lambda: output.pairs(pairs))


@uniform.command(short_help="settle another writer's changes to the Iceberg side")
@prints(RECORD)
def repair(
    path: Path,
    output: Output,
    option: StorageOptions = [],  # noqa: B006
    adopt: Annotated[bool, typer.Option("--adopt", help="Append its rows to the Delta table.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Discard its changes; its files stay in place.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report the changes without making them.")] = False,
) -> None:
    """Settle another writer's changes to the Iceberg side, which is read-only."""
    import_anything()
    done = open_table(path, option).uniform.repair(adopt=adopt, discard=discard, dry_run=dry_run)
    output.record(asdict(done), lambda: output.pairs(_of_repair(done, dry_run)))


def _of_status(state: UniformStatus) -> list[tuple[str, str]]:
    errors = [state.last_error, *(catalog.last_error for catalog in state.catalogs)]
    pairs = [
        ("table", state.table),
        ("enabled", "yes" if state.enabled else "no"),
        ("Delta version", str(state.delta_version)),
        ("Iceberg shows", "nothing" if state.iceberg_version is None else f"version {state.iceberg_version}"),
        ("behind", "" if state.lag_versions is None else f"{counted(state.lag_versions, 'version')}, {state.lag_seconds:.1f} s"),
        ("metadata", state.metadata_location),
        *(("catalog", _of_catalog(catalog)) for catalog in state.catalogs),
        *(("error", f"[{error.code}] {for_shell(error.message)}") for error in dict.fromkeys(errors) if error is not None),
    ]
    return [(name, value) for name, value in pairs if value]


def _of_catalog(state: CatalogStatus) -> str:
    if state.metadata_location is None:
        shows = "does not know the table"
    elif state.delta_version is None:
        shows = f"points to {state.metadata_location}"
    elif state.lag_versions:
        shows = f"shows version {state.delta_version}, {counted(state.lag_versions, 'version')} behind"
    else:
        shows = f"shows version {state.delta_version}"
    if state.answered:
        return f"{state.name} {shows}"
    if state.metadata_location is None:
        return f"{state.name} does not answer; as far as is known, it was never reached"
    return f"{state.name} does not answer; at its last answer, it {shows}"


def _of_repair(done: Repair, dry_run: bool) -> list[tuple[str, str]]:
    if done.kind == "none":
        return [("repair", "no other writer was found; nothing to do")]
    pairs: list[tuple[str, Any]] = [("repair", f"{done.kind}{', dry run: nothing was changed' if dry_run else ''}")]
    pairs += [("found", finding.sentence) for finding in done.findings]
    if done.kind == "adopt":
        pairs.append(("rows", f"{done.adopted_rows} in {counted(done.adopted_files, 'file')}"))
    if done.version is not None:
        pairs.append(("Delta version", str(done.version)))
    if done.metadata_location is not None:
        pairs.append(("metadata", done.metadata_location))
    return pairs
