"""`tahoe check`, `optimize`, `vacuum`, `restore`, `repair-log`, `fsck`, `analyze`, `convert`, `clone`, `generate`, `drop-feature` and
`compat`: what is wrong with a table, what keeps it in order, what is made of it, and who can use it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tahoe.cli.arguments import FOUND_SOMETHING, AsJson, Path, StorageOptions, open_table
from tahoe.cli.output import print_json, print_table
from tahoe.cli.text import visible
from tahoe.exceptions import InvalidRequest
from tahoe.ops.upkeep.check_violation import Violation

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

Deep = Annotated[bool, typer.Option("--deep", help="Read every data file, and hold its rows against the log's statistics.")]
Strict = Annotated[bool, typer.Option("--strict", help="Hold the whole log against every rule of Delta's specification.")]


def check(path: Path, option: StorageOptions = [], json: AsJson = False, deep: Deep = False, strict: Strict = False) -> None:  # noqa: B006 - typer reads it, nobody changes it
    """What is wrong with the table: gaps in the log, disagreeing checkpoints and checksums, missing files, broken vectors; with --deep
    every row against its statistics, with --strict every rule of Delta's specification."""
    table = open_table(path, option)
    violations = table.check(deep=deep, strict=strict)
    if json:
        print_json([_members(violation) for violation in violations])
    elif violations:
        told = [[found.code, _text(found.version), _text(found.file), _finding(found)] for found in violations]
        print_table(_COLUMNS, told)
    else:
        typer.echo(f"{visible(table.url)}: version {table.version()}, nothing is wrong")
    if violations:
        raise typer.Exit(FOUND_SOMETHING)


_COLUMNS = (("what", "left"), ("version", "right"), ("file", "left"), ("finding", "left"))


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)


def _members(found: Violation) -> dict[str, object]:
    """For programs; the section is there where a rule of the strict check speaks."""
    return {name: value for name, value in asdict(found).items() if name != "section" or value is not None}


def _finding(found: Violation) -> str:
    return found.message if found.section is None else f"{found.message} (PROTOCOL.md, {found.section})"


Where = Annotated[str | None, typer.Option("--where", "-w", help="Only these partitions: \"month = '2026-03'\".")]
ZOrderBy = Annotated[
    list[str], typer.Option("--zorder-by", "-z", metavar="COLUMN", help="Cluster the rows by this column; again for each.")
]
Curve = Annotated[str, typer.Option("--curve", help="How rows are clustered: kd, hilbert or z.")]
TargetSize = Annotated[
    str | None,
    typer.Option("--target-size", metavar="SIZE", help="Of a new file: 128mb; the table's delta.targetFileSize, or 1gb."),
]
Full = Annotated[
    bool,
    typer.Option("--full", help="Of a clustered table: cluster files anew too that are clustered by other columns than today's."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")]


def optimize(
    path: Path,
    where: Where = None,
    zorder_by: ZOrderBy = [],  # noqa: B006 - typer reads it, nobody changes it
    curve: Curve = "kd",
    target_size: TargetSize = None,
    full: Full = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Write small files, and files with many deleted rows, anew as few large ones, and cluster a clustered table, while others read and
    write."""
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
    typer.Option("--retain-hours", metavar="HOURS", help="Keep files that went so lately; the table's own retention, or 168."),
]
Lite = Annotated[bool, typer.Option("--lite", help="Find the files in the log; what dead writers left stays.")]
NoCheck = Annotated[bool, typer.Option("--no-retention-check", help="Allow to retain less than the table's own retention.")]
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
    """Delete the files that no version needs which may still be read, while others read and write."""
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
    told = {"files": files, "bytes": plan.size, "folders": plan.folders, "lostVersions": list(plan.lost_versions)}
    print_json({"table": plan.table, "version": done.version, "dryRun": dry_run, "deleted": done.deleted, **told})


ToVersion = Annotated[int | None, typer.Option("--version", "-v", metavar="N", help="As this version was.")]
ToTimestamp = Annotated[str | None, typer.Option("--timestamp", "-t", metavar="TIME", help="As the table was then, in UTC.")]
IgnoreMissing = Annotated[bool, typer.Option("--ignore-missing-files", help="Restore although files of that version are gone.")]


def restore(
    path: Path,
    version: ToVersion = None,
    timestamp: ToTimestamp = None,
    dry_run: DryRun = False,
    ignore_missing_files: IgnoreMissing = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Make the newest version be as an older one was: rows, schema and properties."""
    table = open_table(path, option)
    done = table.restore(version, timestamp, ignore_missing_files=ignore_missing_files, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "target": done.target, "version": done.version, "dryRun": dry_run}
    print_json({**told, "metrics": done.metrics, "missing": list(done.missing)})


def repair_log(
    path: Path,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006 - typer reads it, nobody changes it
    json: AsJson = False,
) -> None:
    """Write the checkpoint and the checksum of the newest version anew, from its commits and what is whole beside them."""
    done = open_table(path, option).repair_log(dry_run=dry_run)
    if json:
        print_json(asdict(done))
    else:
        typer.echo(visible(str(done)))


def fsck(path: Path, dry_run: DryRun = False, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Remove from the log the files that are gone from storage, so that the rest can be read."""
    done = open_table(path, option).fsck(dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "checked": done.checked, "version": done.version, "dryRun": dry_run, "rows": done.rows}
    print_json({**told, "lost": [asdict(one) for one in done.lost]})


def analyze(
    path: Path,
    where: Where = None,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006 - typer reads it, nobody changes it
    json: AsJson = False,
) -> None:
    """Make the statistics of every file anew of its rows, as the table's properties ask for them now."""
    done = open_table(path, option).compute_statistics(where, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    print_json({"table": done.table, "version": done.version, "dryRun": dry_run, "files": done.files, "changed": done.changed})


PartitionBy = Annotated[
    list[str],
    typer.Option("--partition-by", "-p", metavar="COLUMN:TYPE", help="A column that the folders tell: day:date; again for each."),
]
NoStatistics = Annotated[bool, typer.Option("--no-statistics", help="Leave out what lets queries skip files.")]


def convert(
    path: Path,
    partition_by: PartitionBy = [],  # noqa: B006
    no_statistics: NoStatistics = False,
    dry_run: DryRun = False,
    option: StorageOptions = [],  # noqa: B006
    json: AsJson = False,
) -> None:
    """Make a Delta table of the Parquet files of a folder, or of an Iceberg table, where it is."""
    columns = dict(_column(text) for text in partition_by)
    done = open_table(path, option).convert_to_delta(columns, statistics=not no_statistics, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "version": done.version, "dryRun": dry_run, "wasDelta": done.was_delta}
    print_json({**told, "files": done.files, "bytes": done.size})


Target = Annotated[str, typer.Argument(metavar="TARGET", help="Where the clone shall be: a folder or a URL.", show_default=False)]
Shallow = Annotated[bool, typer.Option("--shallow", help="Name the files of PATH; else copy them.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Take the place of what is there; a deep clone copies only what is new.")
]
AtVersion = Annotated[int | None, typer.Option("--version", "-v", metavar="N", help="Of PATH; the newest by default.")]
AtTimestamp = Annotated[str | None, typer.Option("--timestamp", "-t", metavar="TIME", help="Of PATH, in UTC.")]


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
    """Make a table of its own with the rows of this one."""
    table, other = open_table(path, option), open_table(target, option)
    done = table.clone(other, shallow=shallow, version=version, timestamp=timestamp, replace=replace, dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "source": done.source, "sourceVersion": done.source_version, "version": done.version}
    print_json({**told, "dryRun": dry_run, "metrics": done.metrics})


def generate(path: Path, dry_run: DryRun = False, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Write lists of the live files for readers that know no log (symlink_format_manifest)."""
    done = open_table(path, option).generate(dry_run=dry_run)
    if not json:
        typer.echo(visible(str(done)))
        return
    told = {"table": done.table, "version": done.version, "dryRun": dry_run, "files": done.files}
    print_json({**told, "written": list(done.written), "deleted": list(done.deleted)})


Feature = Annotated[str, typer.Argument(metavar="FEATURE", help="As `tahoe detail` lists it.", show_default=False)]
Truncate = Annotated[
    bool,
    typer.Option(
        "--truncate-history", help="Have older versions leave the log first, in place of hiding them behind checkpoints."
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


def compat(path: Path, option: StorageOptions = [], json: AsJson = False) -> None:  # noqa: B006
    """Which engines can read and write the table as it is now, and what is in the way; as far as their makers say."""
    found = open_table(path, option).compat()
    if json:
        print_json([asdict(one) for one in found])
        return
    print_table(_ENGINE_COLUMNS, [[one.engine, one.versions, one.reads, one.writes, one.why] for one in found])


_ENGINE_COLUMNS = (
    ("engine", "left"),
    ("versions", "left"),
    ("reads", "left"),
    ("writes", "left"),
    ("why not, or not known", "left"),
)


def _column(text: str) -> tuple[str, str]:
    name, colon, kind = text.partition(":")
    if not (name and colon and kind):
        raise InvalidRequest(
            f"--partition-by takes a column and its type, such as day:date, found '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="partition-by",
        )
    return name, kind


def bytes_of(text: str) -> int:
    """The bytes that a size means, as ``128mb``. Raises `InvalidRequest` for what is none."""
    from tahoe.protocol.properties import parse_size  # what `tahoe --help` need not load

    try:
        return parse_size(text)
    except ValueError as error:
        raise InvalidRequest(
            f"--target-size takes a size such as 134217728, 128mb or 1gb, found '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="target-size",
        ) from error
