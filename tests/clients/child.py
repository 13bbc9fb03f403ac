"""Programs of clients, each in a process of its own that has Delta only by configuration: its environment and its ``spark-defaults.conf``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ENABLED", "HERE", "command", "needs", "result", "start"]

HERE = Path(__file__).parent
ENABLED = {"TAHOE_ENABLE": "1"}
"""Environment variables that enable Delta."""
_BIN = Path(sys.executable).parent
_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Small sessions without a web page. The master is here so that programs create their sessions as on a cluster."""
_SECONDS = 1800


def needs(*packages: str) -> None:
    """Skip the test unless all these packages are installed."""
    missing = [name for name in packages if not _is_installed(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: run `make clients`")


def start(
    arguments: list[str], folder: Path, *, settings: Mapping[str, str] | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the client's environment in a folder and return its outcome, whether it failed or not.

    Args:
        settings: additional lines of the process's ``spark-defaults.conf``.
        variables: additional environment variables. No others of Tahoe and of Spark reach the process.
    """
    configuration = folder / ".spark"
    configuration.mkdir(exist_ok=True)
    lines = [f"{name} {value}" for name, value in {**_DEFAULTS, **(settings or {})}.items()]
    (configuration / "spark-defaults.conf").write_text("\n".join(lines))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TAHOE_", "SPARK_", "PYTHON", "PYTEST_"))},
        "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(configuration),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **(variables or {}),
    }
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)


def command(arguments: list[str], folder: Path, **configuration: Mapping[str, str]) -> str:
    """Run a command that must succeed and return its output."""
    outcome = start(arguments, folder, **configuration)
    assert outcome.returncode == 0, f"{outcome.stdout[-6000:]}\n{outcome.stderr[-6000:]}"
    return outcome.stdout


def result(program: str, folder: Path, *arguments: str, **configuration: Mapping[str, str]) -> dict[str, Any]:
    """Run a program of ``programs/`` that must succeed and return the object of its last line, which is JSON."""
    path = HERE / "programs" / program
    output = command([sys.executable, str(path), str(folder), *arguments], folder, **configuration)
    actual = json.loads(output.strip().splitlines()[-1])
    assert isinstance(actual, dict)
    return actual


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
