"""`tahoe doctor`: whether this machine can run Tahoe, with Spark and without, and whether it reaches a table."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path as LocalPath
from typing import Annotated

import typer

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeError
from tahoe.base.secrets import without_secrets
from tahoe.base.version import __version__
from tahoe.cli.run import has_startup_file
from tahoe.cli.shell.arguments import FOUND_SOMETHING, StorageOptions, open_table
from tahoe.cli.shell.output import ROWS, Output, prints
from tahoe.cli.shell.text import visible

_OLDEST_JAVA = 17
_LEAST_MEMORY = 2 << 30
_MOST_SKEW_MS = 60_000
_SECONDS = 20
_RELEASES = ("4.0", "4.1", "4.2", "4.3")
_NEEDED_BY_WORKERS = "import pyarrow, pyroaring, sys; print('%d.%d' % sys.version_info[:2])"


class State(StrEnum):
    """The outcome of one examination."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one examination: a sentence, and the remedy unless it is `State.OK`."""

    subject: str
    state: State
    sentence: str
    remedy: str = ""


Path = Annotated[str | None, typer.Argument(help="A table to open, too: dir, s3://bucket/table, …", show_default=False)]

Bundle = Annotated[
    LocalPath | None,
    typer.Option(
        "--bundle", metavar="FILE.zip", help="Write a file for a bug report: findings, versions and the log's state, no secrets."
    ),
]


@prints(ROWS)
def doctor(output: Output, path: Path = None, option: StorageOptions = [], bundle: Bundle = None) -> None:  # noqa: B006 - read by typer
    """Examine Python, PySpark, Java, the workers' Python, memory and conflicting packages; with a path, its storage and clock too.

    Nothing is written, except the file of --bundle. Exit code 1 if there is a problem.
    """
    findings = [_without_secrets(finding) for finding in examine(path, option)]
    cells = [(each.subject, each.state, f"{each.sentence} {each.remedy}".strip()) for each in findings]
    records = [asdict(finding) for finding in findings]
    if bundle is not None:
        from tahoe.cli.support_bundle import write_bundle

        write_bundle(bundle, records, path, option)
    output.records(records, lambda: output.texts(_COLUMNS, cells))
    if bundle is not None and output.is_text:
        typer.echo(f"bundle in {visible(str(bundle))}")
    if any(finding.state is State.PROBLEM for finding in findings):
        raise typer.Exit(FOUND_SOMETHING)


def _without_secrets(finding: Finding) -> Finding:
    return replace(finding, sentence=without_secrets(finding.sentence, sys.argv[1:], os.environ))


_COLUMNS = (("subject", "left"), ("state", "left"), ("finding", "left"))


def examine(path: str | None, option: list[str]) -> Iterator[Finding]:
    """Yield the findings of all examinations."""
    yield Finding("Tahoe", State.OK, f"Version {__version__} on Python {platform.python_version()}, {platform.system()}.")
    yield of_startup(has_startup_file())
    spark = _version("pyspark")
    yield of_pyspark(spark)
    if spark is not None:
        yield of_java(java_version(os.environ))
        yield of_workers(*_worker_python(os.environ))
        yield of_jars(_delta_jars())
    yield of_delta_package(None if (spec := find_spec("delta")) is None else spec.origin)
    yield of_memory(_memory_bytes())
    if path is not None:
        yield _of_table(path, option)


def of_startup(has_startup_file: bool) -> Finding:
    """Judge whether sessions can be enabled by configuration (docs/enabling.md)."""
    if has_startup_file:
        return Finding("start-up file", State.OK, "TAHOE_ENABLE=1 and spark.tahoe.enabled=true work in this environment.")
    sentence = "TAHOE_ENABLE=1 and spark.tahoe.enabled=true have no effect: this environment lacks tahoe_startup.pth."
    return Finding("start-up file", State.NOTE, sentence, "Install Tahoe with pip, use `tahoe run`, or call tahoe.enable(spark).")


def of_pyspark(spark: str | None) -> Finding:
    """Judge the installed version of PySpark; None if there is none."""
    supported = f"{_RELEASES[0]} to {_RELEASES[-1]}"
    if spark is None:
        sentence = "Not installed; tahoe.Table and this command line work without it."
        return Finding("PySpark", State.NOTE, sentence, f"For Spark: pip install 'tahoe-delta[spark]', or pyspark {supported}.")
    if not spark.startswith(_RELEASES):
        return Finding("PySpark", State.PROBLEM, f"Version {spark} is not supported.", f"Install pyspark {supported}.")
    return Finding("PySpark", State.OK, f"Version {spark}.")


def of_java(java: int | None) -> Finding:
    """Judge the version of the Java runtime that PySpark starts; None if there is none."""
    remedy = f"Install Java {_OLDEST_JAVA} or newer, and set JAVA_HOME if it is not on PATH."
    if java is None:
        return Finding("Java", State.PROBLEM, "PySpark finds no Java runtime.", remedy)
    if java < _OLDEST_JAVA:
        return Finding("Java", State.PROBLEM, f"Version {java} is too old for Spark 4.", remedy)
    return Finding("Java", State.OK, f"Version {java}.")


def of_workers(python: str, printed: str | None) -> Finding:
    """Judge the interpreter of Spark's Python workers.

    Args:
        python: the command that PySpark runs.
        printed: its version as ``3.12`` if it can import what workers need; None otherwise.
    """
    remedy = "Activate the environment before you start the program, or set PYSPARK_PYTHON to its Python."
    if printed is None:
        sentence = f"Spark's Python workers run {python!r}, which cannot import pyarrow and pyroaring."
        return Finding("workers", State.PROBLEM, sentence, remedy)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if printed != here:
        sentence = f"Spark's Python workers run {python!r} with Python {printed}, and the driver has {here}."
        return Finding("workers", State.PROBLEM, sentence, remedy)
    return Finding("workers", State.OK, f"Spark's Python workers run {python!r}, with the packages that they need.")


def of_jars(jars: list[str]) -> Finding:
    """Judge the JARs of delta-spark in PySpark's own folder."""
    if not jars:
        return Finding("JARs", State.OK, "PySpark's folder of JARs has none of delta-spark.")
    sentence = f"PySpark's folder of JARs has {', '.join(jars)}: without Tahoe, delta-spark answers for format('delta')."
    return Finding("JARs", State.NOTE, sentence, "Remove them unless sessions without Tahoe use delta-spark.")


def of_delta_package(origin: str | None) -> Finding:
    """Judge whether `import delta` finds another package."""
    if origin is None or origin == "tahoe.as_delta":
        return Finding("import delta", State.OK, "No other package has the name delta; Tahoe can provide it (TAHOE_ENABLE=1).")
    sentence = f"`import delta` finds {origin}, whose classes need delta-spark's JAR."
    return Finding("import delta", State.NOTE, sentence, "Import from tahoe.tables, or uninstall delta-spark.")


def of_memory(available: int | None) -> Finding:
    """Judge the memory that is available, in bytes; None if the system does not report it."""
    if available is None:
        return Finding(
            "memory", State.NOTE, "This system does not report its memory.", "Give Spark at least 1 GB (spark.driver.memory)."
        )
    sentence = f"{available / (1 << 30):.1f} GiB available."
    if available < _LEAST_MEMORY:
        return Finding("memory", State.PROBLEM, sentence, "Spark and its workers need 2 GiB: stop other programs.")
    return Finding("memory", State.OK, sentence)


def of_clock(skew_ms: int) -> Finding:
    """Judge how far the newest commit lies in this machine's future, in milliseconds."""
    if skew_ms > _MOST_SKEW_MS:
        sentence = f"The newest commit lies {skew_ms / 1000:,.0f} seconds in the future of this machine."
        return Finding(
            "clock", State.PROBLEM, sentence, "Synchronize the clocks (NTP): time travel by timestamp depends on them."
        )
    return Finding("clock", State.OK, "The newest commit is not in this machine's future.")


# -- facts -----------------------------------------------------------------------------------------------------------


def _version(package: str) -> str | None:
    # Imported here, because every command imports this module, and `importlib.metadata` imports the parsers of e-mail.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def java_version(environment: Mapping[str, str]) -> int | None:
    """Return the major version of the Java runtime that PySpark would start; None if there is none."""
    home = environment.get("JAVA_HOME")
    launcher = str(LocalPath(home, "bin/java")) if home else shutil.which("java")
    printed = _printed([launcher, "-XshowSettings:properties", "-version"]) if launcher else None
    found = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", printed or "")
    return int(found[1]) if found else None


def _worker_python(environment: Mapping[str, str]) -> tuple[str, str | None]:
    python = environment.get("PYSPARK_PYTHON") or "python3"
    printed = _printed([python, "-c", _NEEDED_BY_WORKERS])
    return python, printed.strip() if printed else None


def _printed(command: list[str]) -> str | None:
    """Return the output of a command; None if it does not start, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr


def _delta_jars() -> list[str]:
    spec = find_spec("pyspark")
    folder = LocalPath(spec.origin).parent / "jars" if spec is not None and spec.origin else None
    return sorted(jar.name for jar in folder.glob("delta-*.jar")) if folder is not None else []


def _memory_bytes() -> int | None:
    """Return the memory that programs can get, which includes the cache of files; None where the system has no such file."""
    try:
        text = LocalPath("/proc/meminfo").read_text()
    except OSError:
        return None
    found = re.search(r"^MemAvailable: +(\d+) kB$", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else None


def _of_table(path: str, option: list[str]) -> Finding:
    """Open the table and judge it, its storage and the clock together: the first problem counts."""
    try:
        table = open_table(path, option)
        (newest,) = table.history(1)
    except TahoeError as error:
        return Finding("table", State.PROBLEM, str(error), "Check the path, the credentials and the network.")
    clock = of_clock(round(newest["timestamp"].timestamp() * 1000) - SYSTEM_CLOCK.now_ms())
    if clock.state is not State.OK:
        return clock
    return Finding("table", State.OK, f"{table.url} can be read: version {newest['version']}.")
