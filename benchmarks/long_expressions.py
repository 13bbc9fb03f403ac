"""Conditions of 1,000, 10,000 and 50,000 terms through a filter, a DELETE and a CHECK on append; deltalake beside them where it does the
same.

Goal: time grows as the condition does. The growth is that of the time for a term, from the shortest condition to the longest: 1.0 is
linear, 50 would be quadratic.

    python benchmarks/long_expressions.py [--terms 1000,10000,50000] [--files 8]
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import tahoe

SECONDS = 120
SHAPES: dict[str, Callable[[int], str]] = {
    "a = 1 OR a = 2 OR …": lambda terms: " OR ".join(f"a = {n}" for n in range(terms)),
    "a IN (1, 2, …)": lambda terms: f"a IN ({', '.join(map(str, range(terms)))})",
    "a != 1 AND a != 2 AND …": lambda terms: " AND ".join(f"a != {1_000_000 + n}" for n in range(terms)),
    "(a = 1 AND b > 1) OR …": lambda terms: " OR ".join(f"(a = {n} AND b >= 0)" for n in range(terms // 2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--terms", default="1000,10000,50000")
    parser.add_argument("--files", type=int, default=8)
    arguments = parser.parse_args()
    terms = [int(one) for one in arguments.terms.split(",")]
    grid = Grid(title=f"seconds by terms, {arguments.files} files of 500 rows")
    for header in ("condition", "through", "by", *(f"{one:,}" for one in terms), "growth of a term"):
        grid.add_column(header, justify="left" if header in ("condition", "through", "by") else "right")
    for shape, made in SHAPES.items():
        for way, run in WAYS.items():
            for name in ("tahoe", "deltalake"):
                times = [_timed(run, name, made(one), arguments.files) for one in terms]
                shown = ["–" if one is None else f"{one:.2f}" for one in times]
                first, last = times[0], times[-1]
                growth = "–" if first is None or last is None else f"{last / terms[-1] / (first / terms[0]):.2f}"
                grid.add_row(shape, way, name, *shown, growth)
    Console(width=140).print(grid)
    Console().print(f"–: refused, or not done within {SECONDS} s.")


def rows(start: int) -> pa.Table:
    return pa.table({"a": pa.array(range(start, start + 500), pa.int64()), "b": pa.array(range(500), pa.int64())})


def filtered(by: str, path: str, condition: str) -> None:
    if by == "tahoe":
        tahoe.Table(path).to_arrow(condition)
    else:
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute(
            f"SELECT * FROM t WHERE {condition}"
        ).read_all()


def deleted(by: str, path: str, condition: str) -> None:
    if by == "tahoe":
        tahoe.Table(path).delete(condition)
    else:
        deltalake.DeltaTable(path).delete(condition)


def checked(by: str, path: str, condition: str) -> None:
    if by == "tahoe":
        tahoe.Table(path).append(rows(0).slice(0, 100))
    else:
        deltalake.write_deltalake(path, rows(0).slice(0, 100), mode="append")


WAYS = {"filter": filtered, "DELETE": deleted, "CHECK on append": checked}


def _timed(run: Callable[[str, str, str], None], by: str, condition: str, files: int) -> float | None:
    """Seconds in a process of its own, for a parser of another library may not stop, or take the process with it."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "t")
        properties = {"delta.constraints.long": condition} if run is checked else {}
        if properties:
            tahoe.Table.create(path, rows(0).schema, properties={"delta.minWriterVersion": "3", **properties})
        for number in range(0 if properties else files):
            tahoe.Table(path).append(rows(number * 500))
        answer = multiprocessing.get_context("spawn").SimpleQueue()
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(answer, run, by, path, condition))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        return None if answer.empty() else answer.get()


def _work(
    answer: multiprocessing.SimpleQueue[float], run: Callable[[str, str, str], None], by: str, path: str, condition: str
) -> None:
    filtered(by, path, "a = 1")  # imports, and what is warm in a process that has worked before
    begin = time.perf_counter()
    run(by, path, condition)
    answer.put(time.perf_counter() - begin)


if __name__ == "__main__":
    main()
