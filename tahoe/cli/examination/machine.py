"""Examines this machine: Python, PySpark, Java, the workers' Python, memory and other packages. Judgements are pure; facts are read below."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tahoe.cli.examination.findings import Finding, State

_OLDEST_PYTHON = (3, 11)
_OLDEST_JAVA = 17
_LEAST_MEMORY = 2 << 30
_SECONDS = 20
_RELEASES = ("4.0", "4.1", "4.2", "4.3")
_NEEDED_BY_WORKERS = "import pyarrow, pyroaring, sys; print('%d.%d' % sys.version_info[:2]); print(sys.prefix)"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can import what Spark's workers need.

    Args:
        version: as ``3.12``.
        prefix: the folder of its environment.
    """

    version: str
    prefix: str


def of_python(version: tuple[int, int]) -> Finding:
    """Judge the version of this Python."""
    text = ".".join(map(str, version))
    if version < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        return Finding("Python", State.PROBLEM, f"Version {text} is too old.", f"Install Python {oldest} or newer.")
    return Finding("Python", State.OK, f"Version {text}, in {sys.prefix}.")


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
    if not spark.startswith(tuple(f"{release}." for release in _RELEASES)):
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


def of_workers(python: str, started: Interpreter | None) -> Finding:
    """Judge the interpreter of Spark's Python workers.

    Args:
        python: the command that PySpark runs.
        started: the started interpreter; None if it does not start, or cannot import what workers need.
    """
    remedy = "Activate the environment before you start the program, or set PYSPARK_PYTHON to its Python."
    if started is None:
        sentence = f"Spark's Python workers run {python!r}, which cannot import pyarrow and pyroaring."
        return Finding("workers", State.PROBLEM, sentence, remedy)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if started.version != here:
        sentence = f"Spark's Python workers run {python!r} with Python {started.version}, and the driver has {here}."
        return Finding("workers", State.PROBLEM, sentence, remedy)
    if Path(started.prefix).resolve() != Path(sys.prefix).resolve():
        sentence = (
            f"Spark's Python workers run {python!r} of {started.prefix}, another environment than the driver's {sys.prefix}."
        )
        return Finding("workers", State.NOTE, sentence, f"{remedy} Otherwise keep the versions of the packages equal.")
    return Finding("workers", State.OK, f"Spark's Python workers run {python!r} of the driver's environment.")


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
            "memory",
            State.NOT_EXAMINED,
            "This system does not report its memory in /proc/meminfo.",
            "Give Spark at least 1 GB (spark.driver.memory).",
        )
    sentence = f"{available / (1 << 30):.1f} GiB available."
    if available < _LEAST_MEMORY:
        return Finding("memory", State.PROBLEM, sentence, "Spark and its workers need 2 GiB: stop other programs.")
    return Finding("memory", State.OK, sentence)


# -- facts -----------------------------------------------------------------------------------------------------------


def installed(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    # Imported here, because every command imports this module, and `importlib.metadata` imports the parsers of e-mail.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def java_version(environment: Mapping[str, str]) -> int | None:
    """Return the major version of the Java runtime that PySpark would start; None if there is none."""
    home = environment.get("JAVA_HOME")
    launcher = str(Path(home, "bin/java")) if home else shutil.which("java")
    printed = _printed([launcher, "-XshowSettings:properties", "-version"]) if launcher else None
    match = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", printed or "")
    return int(match[1]) if match else None


def worker_python(environment: Mapping[str, str]) -> tuple[str, Interpreter | None]:
    """Return the command that PySpark runs for its workers, and the interpreter that it starts (see `of_workers`)."""
    python = environment.get("PYSPARK_PYTHON") or "python3"
    printed = _printed([python, "-c", _NEEDED_BY_WORKERS])
    return python, None if printed is None else Interpreter(*printed.splitlines()[:2])


def memory_bytes() -> int | None:
    """Return the memory that programs can get, which includes the cache of files; None where the system has no such file."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    match = re.search(r"^MemAvailable: +(\d+) kB$", text, re.MULTILINE)
    return 1024 * int(match[1]) if match else None


def _printed(command: list[str]) -> str | None:
    """Return the output of a command; None if it does not start, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr
