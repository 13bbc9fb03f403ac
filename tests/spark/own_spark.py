"""Programs that start a Spark of their own, in a process of their own."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["CONNECTED", "ROOT", "connect_port", "run"]

ROOT = Path(__file__).parents[2]
_CONNECT_PORT = Path(tempfile.gettempdir(), "tahoe-tests-connect-port.lock")
"""PySpark's local Spark Connect server always listens on port 15002, so programs that start one take turns."""

CONNECTED = """
import sys
from pyspark.sql import SparkSession
import tahoe
java_options = sys.argv[2]
builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
"""
"""The beginning of a program with a session of Spark Connect, ``spark``, and a server of its own, whose options are the second argument."""


@contextmanager
def connect_port() -> Iterator[None]:
    """Wait until no other program of the tests has a Spark Connect server, and keep the port for this one."""
    with _CONNECT_PORT.open("w") as port:
        fcntl.flock(port, fcntl.LOCK_EX)
        yield


def run(program: str, *arguments: str, seconds: float = 900) -> list[str]:
    """The lines that a Python program of its own prints.

    Args:
        seconds: after which it counts as one that hangs.
    """
    if ".remote(" in program:
        with connect_port():
            return _lines(program, arguments, seconds)
    return _lines(program, arguments, seconds)


def _lines(program: str, arguments: Sequence[str], seconds: float) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore"}
    outcome = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment, timeout=seconds, check=False
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    return [line for line in outcome.stdout.splitlines() if line.startswith("= ")]
