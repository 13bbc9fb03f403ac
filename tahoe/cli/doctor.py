"""`tahoe doctor`: whether this machine can run Tahoe, with Spark and without, and whether it reaches a table."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path as LocalPath
from typing import TYPE_CHECKING, Annotated

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import late_modules
from tahoe.base.secrets import without_secrets
from tahoe.base.version import __version__
from tahoe.cli.examination.findings import Finding, State
from tahoe.cli.run import has_startup_file
from tahoe.cli.shell.arguments import FOUND_SOMETHING, StorageOptions, open_table, options_of
from tahoe.cli.shell.output import ROWS, Output, prints
from tahoe.cli.shell.text import visible

if TYPE_CHECKING:
    from tahoe.cli import support_bundle
    from tahoe.cli.examination import catalogs, machine, spark_jars, table_storage
else:
    (support_bundle,) = late_modules("tahoe.cli", "support_bundle")
    catalogs, machine, spark_jars, table_storage = late_modules(
        "tahoe.cli.examination", "catalogs", "machine", "spark_jars", "table_storage"
    )

_MOST_SKEW_MS = 60_000
_COLUMNS = (("subject", "left"), ("state", "left"), ("finding", "left"))

Path = Annotated[str | None, typer.Argument(help="A table to open, too: dir, s3://bucket/table, …", show_default=False)]

Write = Annotated[
    bool,
    typer.Option(
        "--write", help="Examine conditional writes and the storage's clock, by hidden files in the log of an existing table."
    ),
]
Bundle = Annotated[
    LocalPath | None,
    typer.Option(
        "--bundle", metavar="FILE.zip", help="Write a file for a bug report: findings, versions and the log's state, no secrets."
    ),
]


@prints(ROWS)
def doctor(
    output: Output,
    path: Path = None,
    option: StorageOptions = [],  # noqa: B006 - read by typer
    write: Write = False,
    bundle: Bundle = None,
) -> None:
    """Examine Python, PySpark, Java, workers, memory and JARs; with a path, its storage, credentials, catalogs and clock too.

    Nothing is written, except by --write and --bundle. Exit code 1 if there is a problem.
    """
    findings = [_without_secrets(finding, option) for finding in examine(path, option, write)]
    cells = [(each.subject, each.state, f"{each.sentence} {each.remedy}".strip()) for each in findings]
    records = [asdict(finding) for finding in findings]
    if bundle is not None:
        support_bundle.write_bundle(bundle, records, path, option)
    output.records(records, lambda: output.texts(_COLUMNS, cells))
    if bundle is not None and output.is_text:
        typer.echo(f"bundle in {visible(str(bundle))}")
    if any(finding.state is State.PROBLEM for finding in findings):
        raise typer.Exit(FOUND_SOMETHING)


def examine(path: str | None, option: list[str], writes: bool = False) -> Iterator[Finding]:
    """Yield the findings of all examinations.

    Args:
        path: a table; None for none.
        option: its storage options, as ``name=value``.
        writes: also examine what needs a write to the table's log.
    """
    yield Finding("Tahoe", State.OK, f"Version {__version__} on {platform.system()}.")
    yield machine.of_python(sys.version_info[:2])
    yield machine.of_startup(has_startup_file())
    spark = machine.installed("pyspark")
    yield machine.of_pyspark(spark)
    if spark is None:
        for subject in ("Java", "workers", "JARs", "private members", "private attributes"):
            yield Finding(subject, State.NOT_EXAMINED, "PySpark is not installed.", "Install it to use Spark.")
    else:
        yield from _of_spark()
    yield machine.of_delta_package(None if (spec := find_spec("delta")) is None else spec.origin)
    yield machine.of_memory(machine.memory_bytes())
    if path is not None:
        yield from table_storage.of_storage(path, options_of(option), writes=writes)
        yield from _of_table(path, option)
    elif writes:
        yield Finding("storage", State.NOT_EXAMINED, "--write needs a table.", "Add its path.")


def of_clock(skew_ms: int) -> Finding:
    """Judge how far the newest commit lies in this machine's future, in milliseconds."""
    if skew_ms > _MOST_SKEW_MS:
        sentence = f"The newest commit lies {skew_ms / 1000:,.0f} seconds in the future of this machine."
        return Finding(
            "clock", State.PROBLEM, sentence, "Synchronize the clocks (NTP): time travel by timestamp depends on them."
        )
    return Finding("clock", State.OK, "The newest commit is not in this machine's future.")


def _of_spark() -> Iterator[Finding]:
    folders = spark_jars.jar_folders(os.environ)
    yield machine.of_java(machine.java_version(os.environ))
    yield machine.of_workers(*machine.worker_python(os.environ))
    yield spark_jars.of_jars(spark_jars.jars_in(folders), spark_jars.jar_settings(os.environ))
    yield spark_jars.of_private_members(folders[0] if folders else None)
    yield spark_jars.of_private_attributes(spark_jars.pyspark_folder())


def _of_table(path: str, option: list[str]) -> Iterator[Finding]:
    """Open the table and judge it, the time of its newest commit, and its catalogs."""
    try:
        table = open_table(path, option)
        snapshot, newest = table_storage.in_time(lambda: (table.snapshot(), table.history(1)[0]), table_storage.SECONDS)
    except (TahoeError, TimeoutError) as error:
        sentence = str(error) or f"{path} could not be read within {table_storage.SECONDS:g} seconds."
        yield Finding("table", State.PROBLEM, sentence, "Check the path, the credentials and the network.")
        for subject in ("clock", "catalogs"):
            yield Finding(subject, State.NOT_EXAMINED, "The table could not be read.", "Solve that problem first.")
        return
    yield Finding("table", State.OK, f"{table.url} can be read: version {newest['version']}.")
    yield of_clock(round(newest["timestamp"].timestamp() * 1000) - SYSTEM_CLOCK.now_ms())
    yield from catalogs.of_catalogs(table.url, snapshot.metadata.configuration)


def _without_secrets(finding: Finding, option: list[str]) -> Finding:
    sentence = without_secrets(finding.sentence, sys.argv[1:] + option, os.environ)
    return replace(finding, sentence=sentence, remedy=without_secrets(finding.remedy, sys.argv[1:] + option, os.environ))
