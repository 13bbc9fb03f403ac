"""Shared parts of the Spark benchmarks: the session, the rows, and alternating measurements."""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from _processes import in_turn
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession

import tahoe

# Six columns of the kinds that tables have; about 20 bytes a row in Parquet.
COLUMNS = (
    "id",
    "cast(id % 1000 as int) k",
    "rand(1) x",
    "rand(2) y",
    "concat('s', id % 100000) s",
    "timestamp_micros(id * 1000000) t",
)


def session(cores: int = 2, settings: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """A local session with Delta enabled.

    Args:
        settings: more settings of Spark.
    """
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", "4g")
    for key, value in {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}.items():
        builder = builder.config(key, value)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return tahoe.enable(builder.getOrCreate())


def beside_delta_spark() -> tuple[SparkSession, SparkSession]:
    """Tahoe's session and one of delta-spark 4.0.1, in one JVM, with the setting that suits delta-spark best.

    Needs PySpark 4.0 and Maven Central: the environment of `make interop`.
    """
    from tests.jvm.conftest import SETTINGS

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    theirs = builder.getOrCreate()
    mine = theirs.newSession()
    mine.conf.unset("spark.sql.catalog.spark_catalog")
    return tahoe.enable(mine), theirs


def rows(spark: SparkSession, count: int, files: int) -> DataFrame:
    return spark.range(0, count, 1, files).selectExpr(*COLUMNS)


def numbered(command: Callable[..., object], *arguments: object) -> Callable[[], object]:
    """Return the run of a command that gets the next number, from 0, as its last argument: each run changes other rows."""
    numbers = itertools.count()
    return lambda: command(*arguments, next(numbers))


def by_turns(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each run in each round but the first; the runs alternate, so that other load on the machine affects all of them, in the
    opposite order in every second round.
    """
    measured: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in in_turn(runs, turn):
            started = time.perf_counter()
            run()
            if turn:
                measured[name].append(time.perf_counter() - started)
    return measured


def show(title: str, first: str, table: Mapping[str, Mapping[str, list[float]]], base: str, goals: Mapping[str, str]) -> None:
    """One line a case, one pair of columns a way: the median of its seconds, and of the ratios to `base` in the same round."""
    ways = list(next(iter(table.values())))
    grid = Grid(title=title)
    grid.add_column(first)
    for way in ways:
        grid.add_column(f"{way}, s", justify="right")
        if way != base:
            grid.add_column(f"ratio, goal {goals[way]}" if way in goals else "ratio", justify="right")
    for case, seconds in table.items():
        cells = [case]
        for way in ways:
            cells.append(f"{statistics.median(seconds[way]):.3f}")
            if way != base:
                ratio = statistics.median(a / b for a, b in zip(seconds[way], seconds[base], strict=True))
                record(*(f"{case}, {way}", 1 / ratio) if base == "tahoe" else (f"{case}, {way} / {base}", ratio))
                cells.append(f"{ratio:.2f}")
        grid.add_row(*cells)
    Console(width=140).print(grid)
