"""The maintenance commands `tahoe check`, `optimize`, `vacuum`, `restore`, `repair-log`, `fsck`, `analyze`, `convert`, `clone`,
`generate`, `drop-feature` and `compat`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.cli.arguments import FOUND_SOMETHING, AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import visible
from tahoe.ops.check.subjects.violation import Violation

__all__ = [
    "TargetSize",
    "analyze",
    "bytes_of",
    "check",
    "clone",
    "compat",
    "convert",
    "drop_feature",
    "fsck",
    "generate",
    "optimize",
    "repair_log",
    "restore",
    "vacuum",
]

Deep = Annotated[bool, typer.Option("--deep", help="Read every data file, and compare its rows with the log's statistics.")]
Strict = Annotated[bool, typer.Option("--strict", help="Check the whole log against every rule of Delta's specification.")]


def check(path: Path, option: StorageOptions = [], json: AsJson = False, deep: Deep = False, strict: Strict = False) -> None:  # noqa: B006 - read by typer, never changed
    """Check the table: gaps in the log, contradictory checkpoints and checksums, missing files, corrupt vectors; with --deep
    every row against its statistics, with --strict every rule of Delta's specification."""
    table = open_table(path, option)
    violations = table.check(deep=deep, strict=strict)
    if json:
        print_json([_members(violation) for violation in violations])
    elif violations:
        lines = [[each.code, _text(each.version), _text(each.file), _finding(each)] for each in violations]
        print_table(_COLUMNS, lines)
    else:
        typer.echo(f"{visible(table.url)}: version {table.version()}, no problems found")
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


Where = Annotated[str | None, typer.Option("--where", "-w", help="Only these partitions: \"month = '2026-03'\".")]
ZOrderBy = Annotated[
    list[str], typer.Option("--zorder-by", "-z", metavar="COLUMN", help="Cluster the rows by this column; repeatable.")
]
Curve = Annotated[str, typer.Option("--curve", help="How rows are clustered: kd, hilbert or z.")]
TargetSize = Annotated[
    str | None,
    typer.Option("--target-size", metavar="SIZE", help="The size of new files: 128mb; default: delta.targetFileSize, or 1gb."),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="For a clustered table: also recluster files that are clustered by former columns."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report the changes without making them.")]


def optimize(
    path: Path,
    where: Where = None,
    zorder_by: ZOrderBy = [],  # noqa: B006 - read by typer, never changed
    curve: Curve = "kd",
    target_size: TargetSize = None,
    full: Full = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Rewrite small files, and files with many deleted rows, as few large ones, and cluster a clustered table. Concurrent reads and
    writes are safe."""
    table = open_table(path, option)
    size = None if target_size is None else bytes_of(target_size)
    done = table.optimize(where, zorder_by=zorder_by, curve=curve, target_file_size=size, full=full, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    plan = done.plan
    planned = {"files": plan.files, "bytes": plan.size, "bins": len(plan.bins), "newFiles": plan.new_files}
    print_json({"table": plan.table, "version": done.version, "dryRun": dry_run, "planned": planned, "metrics": done.metrics})


RetainHours = Annotated[
    float | None,
    typer.Option(
        "--retain-hours", metavar="HOURS", help="Keep files removed more recently; default: the table's retention, or 168."
    ),
]
Lite = Annotated[bool, typer.Option("--lite", help="Find the files in the log; files left by crashed writers stay.")]
NoCheck = Annotated[bool, typer.Option("--no-retention-check", help="Allow less than the table's retention.")]
_MOST_SHOWN = 20


def vacuum(
    path: Path,
    dry_run: DryRun = False,
    retain_hours: RetainHours = None,
    lite: Lite = False,
    no_retention_check: NoCheck = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Delete the files that no readable version needs. Concurrent reads and writes are safe."""
    table = open_table(path, option)
    done = table.vacuum(retain_hours, dry_run=dry_run, retention_check=not no_retention_check, lite=lite)
    plan = done.plan
    if not json:
        for entry in plan.files[:_MOST_SHOWN] if dry_run else ():
            typer.echo(visible(entry.name))
        if dry_run and len(plan.files) > _MOST_SHOWN:
            typer.echo(f"… and {len(plan.files) - _MOST_SHOWN:,} more (--json shows all)")
        typer.echo(visible(str(done)))
        return
    files = [{"name": entry.name, "bytes": entry.size} for entry in plan.files]
    planned = {"files": files, "bytes": plan.size, "folders": plan.folders, "lostVersions": list(plan.lost_versions)}
    print_json({"table": plan.table, "version": done.version, "dryRun": dry_run, "deleted": done.deleted, **planned})


ToVersion = Annotated[int | None, typer.Option("--version", "-v", metavar="N", help="Restore this version.")]
ToTimestamp = Annotated[
    str | None, typer.Option("--timestamp", "-t", metavar="TIME", help="Restore the version at this time, in UTC.")
]
IgnoreMissing = Annotated[bool, typer.Option("--ignore-missing-files", help="Restore even if files of that version are missing.")]


def restore(
    path: Path,
    version: ToVersion = None,
    timestamp: ToTimestamp = None,
    dry_run: DryRun = False,
    ignore_missing_files: IgnoreMissing = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Make the newest version equal to an older one: rows, schema and properties."""
    table = open_table(path, option)
    done = table.restore(version, timestamp, ignore_missing_files=ignore_missing_files, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {"table": done.table, "target": done.target, "version": done.version, "dryRun": dry_run}
    print_json({**summary, "metrics": done.metrics, "missing": list(done.missing)})


def repair_log(
    path: Path,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
    json: AsJson = False,
) -> None:
    """Rewrite the checkpoint and the checksum of the newest version, from its commits and intact files."""
    done = open_table(path, option).repair_log(dry_run=dry_run)
    if json:
        print_json(asdict(done))
    else:
        typer.echo(visible(str(done)))


def fsck(path: Path, dry_run: DryRun = False, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Remove the files that are missing from storage from the log, so that the rest can be read."""
    done = open_table(path, option).fsck(dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {"table": done.table, "checked": done.checked, "version": done.version, "dryRun": dry_run, "rows": done.rows}
    print_json({**summary, "lost": [asdict(file) for file in done.lost]})


def analyze(
    path: Path,
    where: Where = None,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
    json: AsJson = False,
) -> None:
    """Recompute the statistics of every file from its rows, by the table's current properties."""
    done = open_table(path, option).compute_statistics(where, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    print_json({"table": done.table, "version": done.version, "dryRun": dry_run, "files": done.files, "changed": done.changed})


PartitionBy = Annotated[
    list[str],
    typer.Option(
        "--partition-by", "-p", metavar="COLUMN:TYPE", help="A partition column of the folders, such as day:date; repeatable."
    ),
]
NoStatistics = Annotated[bool, typer.Option("--no-statistics", help="Do not collect statistics for data skipping.")]


def convert(
    path: Path,
    partition_by: PartitionBy = [],  # noqa: B006
    no_statistics: NoStatistics = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Convert the Parquet files of a folder, or an Iceberg table, to a Delta table in place."""
    columns = dict(_column(text) for text in partition_by)
    done = open_table(path, option).convert_to_delta(columns, statistics=not no_statistics, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {"table": done.table, "version": done.version, "dryRun": dry_run, "wasDelta": done.was_delta}
    print_json({**summary, "files": done.files, "bytes": done.size})


Target = Annotated[str, typer.Argument(metavar="TARGET", help="The clone's location: a folder or a URL.", show_default=False)]
Shallow = Annotated[bool, typer.Option("--shallow", help="Refer to the files of PATH instead of copying them.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an existing table; a deep clone copies only new files.")]
AtVersion = Annotated[int | None, typer.Option("--version", "-v", metavar="N", help="The version of PATH; default: the newest.")]
AtTimestamp = Annotated[
    str | None, typer.Option("--timestamp", "-t", metavar="TIME", help="The version of PATH at this time, in UTC.")
]


def clone(
    path: Path,
    target: Target,
    shallow: Shallow = False,
    replace: Replace = False,
    version: AtVersion = None,
    timestamp: AtTimestamp = None,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Create an independent table with the rows of this one."""
    table, clone_table = open_table(path, option), open_table(target, option)
    done = table.clone(clone_table, shallow=shallow, version=version, timestamp=timestamp, replace=replace, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {"table": done.table, "source": done.source, "sourceVersion": done.source_version, "version": done.version}
    print_json({**summary, "dryRun": dry_run, "metrics": done.metrics})


def generate(path: Path, dry_run: DryRun = False, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Write lists of the live files for readers without Delta support (symlink_format_manifest)."""
    done = open_table(path, option).generate(dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {"table": done.table, "version": done.version, "dryRun": dry_run, "files": done.files}
    print_json({**summary, "written": list(done.written), "deleted": list(done.deleted)})


Feature = Annotated[str, typer.Argument(metavar="FEATURE", help="A feature listed by `tahoe detail`.", show_default=False)]
Truncate = Annotated[
    bool,
    typer.Option(
        "--truncate-history", help="First remove older versions from the log, instead of hiding them behind checkpoints."
    ),
]


def drop_feature(
    path: Path,
    feature: Feature,
    truncate_history: Truncate = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Remove a feature from the table, so that clients without it can use the table."""
    done = open_table(path, option).drop_feature(feature, truncate_history=truncate_history, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    summary = {
        "table": done.table,
        "feature": done.feature,
        "version": done.version,
        "dryRun": dry_run,
        "steps": list(done.steps),
    }
    print_json(
        {
            **summary,
            "files": done.files,
            "bytes": done.size,
            "protocol": done.protocol.to_json_value(),
            "obstacle": done.obstacle,
            "gained": list(done.gained),
        }
    )


def compat(path: Path, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Show which engines can read and write the table, and what prevents them, according to their documentation."""
    engines = open_table(path, option).compat()
    if json:
        print_json([asdict(engine) for engine in engines])
        return
    print_table(
        _ENGINE_COLUMNS, [[engine.engine, engine.versions, engine.reads, engine.writes, engine.why] for engine in engines]
    )


_ENGINE_COLUMNS = (
    ("engine", "left"),
    ("versions", "left"),
    ("reads", "left"),
    ("writes", "left"),
    ("reason", "left"),
)


def _column(text: str) -> tuple[str, str]:
    name, colon, kind = text.partition(":")
    if not (name and colon and kind):
        raise InvalidRequest(
            f"--partition-by takes a column and its type, such as day:date, not '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="partition-by",
        )
    return name, kind


def bytes_of(text: str) -> int:
    """Parse a size such as ``128mb`` to bytes. Raises `InvalidRequest` for an invalid size."""
    from tahoe.protocol.properties import parse_size  # not loaded by `tahoe --help`

    try:
        return parse_size(text)
    except ValueError as error:
        raise InvalidRequest(
            f"--target-size takes a size such as 134217728, 128mb or 1gb, not '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="target-size",
        ) from error
