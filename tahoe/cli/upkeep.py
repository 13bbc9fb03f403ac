"""The maintenance commands `tahoe check`, `optimize`, `vacuum`, `restore`, `repair-log`, `fsck`, `analyze`, `convert`, `clone`,
`generate`, `drop-feature` and `compat`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from tahoe.base.method_options import ChangeOptions
from tahoe.cli.shell.arguments import FOUND_SOMETHING, Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import RECORD, ROWS, Output, prints
from tahoe.cli.shell.text import visible
from tahoe.ops.check.subjects.violation import Violation
from tahoe.ops.tables.requests import (
    AnalyzeOptions,
    CloneOptions,
    ConvertOptions,
    DropRequest,
    OptimizeOptions,
    RestoreOptions,
    VacuumRequest,
)

Deep = Annotated[bool, typer.Option("--deep", help="Read every data file, and compare its rows with the log's statistics.")]
Strict = Annotated[bool, typer.Option("--strict", help="Check the whole log against every rule of Delta's specification.")]


@prints(ROWS)
def check(path: Path, output: Output, option: StorageOptions = [], deep: Deep = False, strict: Strict = False) -> None:  # noqa: B006 - read by typer, never changed
    """Check the table: gaps in the log, contradictory checkpoints and checksums, missing files, corrupt vectors; with --deep
    every row against its statistics, with --strict every rule of Delta's specification."""
    table = open_table(path, option)
    violations = table.check(deep=deep, strict=strict)

    def show() -> None:
        if violations:
            lines = [[each.code, _text(each.version), _text(each.file), _finding(each)] for each in violations]
            output.texts(_COLUMNS, lines)
        else:
            typer.echo(f"{visible(table.url)}: version {table.version()}, no problems found")

    output.records(
        [_members(violation) for violation in violations], show, names=("code", "message", "version", "file", "section")
    )
    if violations:
        raise typer.Exit(FOUND_SOMETHING)


_COLUMNS = (("code", "left"), ("version", "right"), ("file", "left"), ("finding", "left"))


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)


def _members(violation: Violation) -> dict[str, object]:
    """Return the members for JSON; the section only for a rule of the strict check."""
    return {name: value for name, value in asdict(violation).items() if name != "section" or value is not None}


def _finding(violation: Violation) -> str:
    return violation.message if violation.section is None else f"{violation.message} (PROTOCOL.md, {violation.section})"


@prints(RECORD)
@with_flags(OptimizeOptions)
def optimize(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Rewrite small files, and files with many deleted rows, as few large ones, and cluster a clustered table. Concurrent reads and
    writes are safe."""
    done = open_table(path, option).optimize(**flags)
    plan = done.plan
    planned = {"files": plan.files, "bytes": plan.size, "bins": len(plan.bins), "newFiles": plan.new_files}
    _print_result(
        done, output, flags, {"table": plan.table, "version": done.version, "planned": planned, "metrics": done.metrics}
    )


_MOST_SHOWN = 20


@prints(RECORD)
@with_flags(VacuumRequest)
def vacuum(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Delete the files that no readable version needs. Concurrent reads and writes are safe."""
    done = open_table(path, option).vacuum(**flags)
    plan, dry_run = done.plan, flags["dry_run"]
    if dry_run and output.is_text:
        for entry in plan.files[:_MOST_SHOWN]:
            typer.echo(visible(entry.name))
        if len(plan.files) > _MOST_SHOWN:
            typer.echo(f"… and {len(plan.files) - _MOST_SHOWN:,} more (--json shows all)")
    files = [{"name": entry.name, "bytes": entry.size} for entry in plan.files]
    planned = {"files": files, "bytes": plan.size, "folders": plan.folders, "lostVersions": list(plan.lost_versions)}
    _print_result(done, output, flags, {"table": plan.table, "version": done.version, "deleted": done.deleted, **planned})


@prints(RECORD)
@with_flags(RestoreOptions)
def restore(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Make the newest version equal to an older one: rows, schema and properties."""
    done = open_table(path, option).restore(**flags)
    summary = {"table": done.table, "target": done.target, "version": done.version}
    _print_result(done, output, flags, {**summary, "metrics": done.metrics, "missing": list(done.missing)})


@prints(RECORD)
@with_flags(ChangeOptions)
def repair_log(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Rewrite the checkpoint and the checksum of the newest version, from its commits and intact files."""
    done = open_table(path, option).repair_log(**flags)
    output.record(asdict(done), lambda: typer.echo(visible(str(done))))


@prints(RECORD)
@with_flags(ChangeOptions)
def fsck(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Remove the files that are missing from storage from the log, so that the rest can be read."""
    done = open_table(path, option).fsck(**flags)
    summary = {"table": done.table, "checked": done.checked, "version": done.version, "rows": done.rows}
    _print_result(done, output, flags, {**summary, "lost": [asdict(file) for file in done.lost]})


@prints(RECORD)
@with_flags(AnalyzeOptions)
def analyze(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Recompute the statistics of every file from its rows, by the table's current properties."""
    done = open_table(path, option).compute_statistics(**flags)
    summary = {"table": done.table, "version": done.version, "files": done.files, "changed": done.changed}
    _print_result(done, output, flags, summary)


@prints(RECORD)
@with_flags(ConvertOptions)
def convert(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Convert the Parquet files of a folder, or an Iceberg table, to a Delta table in place."""
    done = open_table(path, option).convert_to_delta(**flags)
    summary = {"table": done.table, "version": done.version, "wasDelta": done.was_delta}
    _print_result(done, output, flags, {**summary, "files": done.files, "bytes": done.size})


Target = Annotated[str, typer.Argument(metavar="TARGET", help="The clone's location: a folder or a URL.", show_default=False)]


@prints(RECORD)
@with_flags(CloneOptions)
def clone(path: Path, target: Target, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Create an independent table with the rows of this one."""
    done = open_table(path, option).clone(open_table(target, option), **flags)
    summary = {"table": done.table, "source": done.source, "sourceVersion": done.source_version, "version": done.version}
    _print_result(done, output, flags, {**summary, "metrics": done.metrics})


@prints(RECORD)
@with_flags(ChangeOptions)
def generate(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Write lists of the live files for readers without Delta support (symlink_format_manifest)."""
    done = open_table(path, option).generate(**flags)
    summary = {"table": done.table, "version": done.version, "files": done.files}
    _print_result(done, output, flags, {**summary, "written": list(done.written), "deleted": list(done.deleted)})


Feature = Annotated[str, typer.Argument(metavar="FEATURE", help="A feature listed by `tahoe detail`.", show_default=False)]


@prints(RECORD)
@with_flags(DropRequest)
def drop_feature(path: Path, feature: Feature, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Remove a feature from the table, so that clients without it can use the table."""
    done = open_table(path, option).drop_feature(feature, **flags)
    summary = {"table": done.table, "feature": done.feature, "version": done.version, "steps": list(done.steps)}
    removed = {"files": done.files, "bytes": done.size, "protocol": done.protocol.to_json_value()}
    _print_result(done, output, flags, {**summary, **removed, "obstacle": done.obstacle, "gained": list(done.gained)})


def _print_result(done: object, output: Output, flags: Flags, members: Mapping[str, object]) -> None:
    """Print the result of an operation as a sentence, or these members as JSON."""
    output.record({**members, "dryRun": flags["dry_run"]}, lambda: typer.echo(visible(str(done))))


@prints(ROWS)
def compat(path: Path, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Show which engines can read and write the table, and what prevents them, according to their documentation."""
    engines = open_table(path, option).compat()
    cells = [[engine.engine, engine.versions, engine.reads, engine.writes, engine.why] for engine in engines]
    output.records([asdict(engine) for engine in engines], lambda: output.texts(_ENGINE_COLUMNS, cells))


_ENGINE_COLUMNS = (
    ("engine", "left"),
    ("versions", "left"),
    ("reads", "left"),
    ("writes", "left"),
    ("reason", "left"),
)
