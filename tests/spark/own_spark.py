"""Programs that start a Spark of their own, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["CONNECTED", "run"]

ROOT = Path(__file__).parents[2]

CONNECTED = """
import sys
from pyspark.sql import SparkSession
import tahoe
java_options = sys.argv[2]
builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
"""
"""The beginning of a program with a session of Spark Connect, ``spark``, and a server of its own, whose options are the second argument."""


def run(program: str, *arguments: str) -> list[str]:
    """The lines that a Python program of its own prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore"}
    outcome = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment, timeout=900, check=False
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    return [line for line in outcome.stdout.splitlines() if line.startswith("= ")]
