"""The cost of the first write and the first MERGE of a session compared with later ones, and of a small MERGE compared with a key scan.

Each number of the first table is from a new process. Goals: the first at most twice the later ones plus the time of Spark's own first
write; a MERGE of 100 rows into 4 million, with deletion vectors, at most twice the time of a query that reads the key column. With
``--delta-spark`` only such MERGEs are measured, on tables with vectors and without, compared with delta-spark's in one JVM (goal without:
0.4 of its time); that needs the environment of `make interop`. "Spark's part" is the first time, in a new process, of the queries that
Spark must run for such a MERGE, on Parquet files.

    python benchmarks/spark_first_contact.py [--processes 3] [--rows 4000000] [--rounds 7] [--delta-spark] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

from benchmarks._spark import beside_delta_spark, by_turns, session

MERGE = (
    "MERGE INTO delta.`{path}` t USING (SELECT id * {step} AS id, 0 AS v FROM range(100)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--delta-spark", action="store_true")
    arguments = parser.parse_args()
    if arguments.one or arguments.part:
        print(f"FIGURES {json.dumps(first_and_later(arguments.one) if arguments.one else part_of_spark(arguments.part))}")
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.delta_spark:
            figures = merges_of_both(folder, arguments.rows, arguments.rounds)
        else:
            firsts = [in_new_process("--one") | in_new_process("--part") for _ in range(arguments.processes)]
            figures = {name: statistics.median(item[name] for item in firsts) for name in firsts[0]}
            figures |= small_merge(folder, arguments.rows, arguments.rounds)
    for name, figure in figures.items():
        if name.startswith("ratio"):
            record(
                f"MERGE of 100 rows, {'delta-spark' if arguments.delta_spark else 'scan of the key'}{name.removeprefix('ratio')}",
                figure,
            )
    for name in ("write", "MERGE"):
        if f"{name}, later" in figures:
            record(f"{name}, first / later", figures[f"{name}, first of a session"] / figures[f"{name}, later"])
    if arguments.json:
        print(json.dumps(figures))
        return
    grid = Grid("what", "seconds", title="first contact")
    for name, seconds in figures.items():
        grid.add_row(name, f"{seconds:.2f}")
    Console(width=100).print(grid)


def in_new_process(option: str) -> dict[str, float]:
    """The figures of `first_and_later` or `part_of_spark` in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, option, folder]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(next(line for line in printed.splitlines() if line.startswith("FIGURES ")).removeprefix("FIGURES "))


def part_of_spark(folder: str) -> dict[str, float]:
    """Seconds until a session has run the queries of its first small MERGE on Parquet files, without Delta.

    They keep the source, read its keys, join it with the files and the positions of their rows, keep and read the pairs, and write the new
    rows.
    """
    spark = session()
    spark.range(1).count()
    for number in range(6):
        spark.range(1000).selectExpr("id", "id AS v").write.parquet(f"{folder}/{number}")

    def queries() -> None:
        source = spark.sql("SELECT id, 0 AS v FROM range(100)").localCheckpoint()
        source.select("id").toArrow()
        target = spark.read.parquet(f"{folder}/0").selectExpr("*", "_metadata.file_path AS file", "_metadata.row_index AS row")
        pairs = (
            target.alias("t")
            .join(source.hint("broadcast").alias("s"), "id")
            .selectExpr("id", "s.v", "file", "row")
            .localCheckpoint()
        )
        pairs.select("file", "row").toArrow()
        pairs.select("id", "v").write.parquet(f"{folder}/new")

    taken = seconds(queries)
    spark.stop()
    return {"MERGE, Spark's part, first of a session": taken}


def first_and_later(folder: str) -> dict[str, float]:
    """Seconds of a session's first Parquet write and the next, first Delta write and later ones, first MERGE and later ones."""
    spark = session()
    spark.range(1).count()

    def delta(number: int) -> Callable[[], object]:
        return lambda: spark.range(1000).selectExpr("id", "id AS v").write.format("delta").save(f"{folder}/{number}")

    def merge(number: int) -> Callable[[], object]:
        return lambda: spark.sql(MERGE.format(path=f"{folder}/{number}", step=1))

    figures: dict[str, float] = {}
    runs: Mapping[str, Callable[[int], Callable[[], object]]] = {
        "write of Parquet": lambda number: lambda: spark.range(1000).write.parquet(f"{folder}/parquet{number}"),
        "write": delta,
        "MERGE": merge,
    }
    for name, run in runs.items():
        first, *later = (seconds(run(number)) for number in range(6))
        figures |= {f"{name}, first of a session": first, f"{name}, later": statistics.median(later)}
    spark.stop()
    return figures


def small_merge(folder: str, rows: int, rounds: int) -> dict[str, float]:
    """A MERGE of 100 rows with vectors, and the sum of the key column of the same table, by turns."""
    spark = session()
    path = f"{folder}/large"
    frame = spark.range(0, rows, 1, 8).selectExpr("id", "id % 1000 AS v", "concat('s', id) AS s")
    frame.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    step = rows // 100
    runs = {
        "MERGE of 100 rows": lambda: spark.sql(MERGE.format(path=path, step=step)),
        "scan of the key column": lambda: spark.sql(f"SELECT sum(id) FROM delta.`{path}`").collect(),
    }
    taken = by_turns(runs, rounds)
    spark.stop()
    figures = {f"{name}, {rows} rows": statistics.median(item) for name, item in taken.items()}
    return {**figures, "ratio": statistics.median(a / b for a, b in zip(*taken.values(), strict=True))}


def merges_of_both(folder: str, rows: int, rounds: int) -> dict[str, float]:
    """MERGEs of 100 rows by Tahoe and by delta-spark, each into a table of its own with the same rows, by turns."""
    mine, theirs = beside_delta_spark()
    figures: dict[str, float] = {}
    for kind, vectors in (("vectors", "true"), ("rewriting", "false")):
        runs = {}
        for name, spark in (("Tahoe", mine), ("delta-spark", theirs)):
            path = f"{folder}/{name}-{kind}"
            frame = spark.range(0, rows, 1, 8).selectExpr("id", "id % 1000 AS v", "concat('s', id) AS s")
            frame.write.format("delta").option("delta.enableDeletionVectors", vectors).save(path)
            runs[name] = partial(spark.sql, MERGE.format(path=path, step=rows // 100))
        taken = by_turns(runs, rounds)
        figures |= {f"{name}, {kind}": statistics.median(item) for name, item in taken.items()}
        figures[f"ratio, {kind}"] = statistics.median(a / b for a, b in zip(*taken.values(), strict=True))
    mine.stop()
    return figures


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
