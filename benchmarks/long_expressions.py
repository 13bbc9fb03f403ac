"""Conditions of 1,000, 10,000 and 50,000 terms in a filter, a DELETE and a CHECK on append; compared with deltalake for the same
operations.

Goal: time linear in the length of the condition. The growth is that of the time per term, from the shortest condition to the longest: 1.0 is
linear, 50 would be quadratic. A filter of 50,000 terms on a small table takes at most 5 s.

    python benchmarks/long_expressions.py [--terms 1000,10000,50000] [--files 2]
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import deltalake
import pyarrow as pa
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe

SECONDS = {"tahoe": 20, "deltalake": 4}
"""That one condition may take: a parser of another library may not stop, or take its process with it."""
SHAPES: dict[str, Callable[[int], str]] = {
    "a = 1 OR a = 2 OR …": lambda terms: " OR ".join(f"a = {n}" for n in range(terms)),
    "a IN (1, 2, …)": lambda terms: f"a IN ({', '.join(map(str, range(terms)))})",
    "(a = 1 AND b > 1) OR …": lambda terms: " OR ".join(f"(a = {n} AND b >= 0)" for n in range(terms // 2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--terms", default="1000,10000,50000")
    parser.add_argument("--files", type=int, default=2)
    arguments = parser.parse_args()
    terms = [int(item) for item in arguments.terms.split(",")]
    grid = Grid(title=f"processor seconds by terms, {arguments.files} files of 500 rows")
    for header in ("condition", "through", "by", *(f"{item:,}" for item in terms), "growth of a term"):
        grid.add_column(header, justify="left" if header in ("condition", "through", "by") else "right")
    for shape, made in SHAPES.items():
        for way in WAYS:
            for name in ("tahoe", "deltalake"):
                times = _timed(way, name, [made(item) for item in terms], arguments.files)
                shown = [f"{item:.2f}" for item in times] + ["–"] * (len(terms) - len(times))
                if name == "tahoe" and len(times) == len(terms):
                    record(f"{shape} in {way}, growth of a term", times[-1] / terms[-1] / (times[0] / terms[0]))
                growth = f"{times[-1] / terms[-1] / (times[0] / terms[0]):.2f}" if len(times) == len(terms) else "–"
                grid.add_row(shape, way, name, *shown, growth)
    Console(width=140).print(grid)
    Console().print(f"–: refused, or not done within {SECONDS} s.", highlight=False)


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


_CHECK = "CHECK on append"
WAYS: dict[str, Callable[[str, str, str], None]] = {"filter": filtered, "DELETE": deleted, _CHECK: checked}


def _timed(way: str, by: str, conditions: list[str], files: int) -> list[float]:
    """Seconds for each condition, up to the first that is refused or takes too long; all in a process of their own."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(its, way, by, conditions, files))
    process.start()
    its.close()
    measured: list[float] = []
    try:
        if mine.poll(60) and mine.recv() == _READY:
            while len(measured) < len(conditions) and mine.poll(SECONDS[by] + _SECONDS_TO_MAKE_A_TABLE):
                measured.append(mine.recv())
    except EOFError:
        pass  # it was refused, or the process is gone
    process.kill()
    process.join()
    return [item for item in measured if item <= SECONDS[by]]


_READY = -1.0
_SECONDS_TO_MAKE_A_TABLE = 2


def _work(answers: Connection, way: str, by: str, conditions: list[str], files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, condition in enumerate(["a >= 0", *conditions]):  # the first one warms caches
            path = str(Path(folder) / str(number))
            _make_table(path, condition if way == _CHECK else None, files)
            begin = time.process_time()  # a busy machine disturbs it less
            try:
                WAYS[way](by, path, condition)
            except deltalake.exceptions.DeltaError:
                return  # reported as an unanswered condition
            answers.send(time.process_time() - begin if number else _READY)


def _make_table(path: str, check: str | None, files: int) -> None:
    if check is not None:
        tahoe.Table.create(path, rows(0).schema, properties={"delta.minWriterVersion": "3", "delta.constraints.long": check})
        return
    for number in range(files):
        tahoe.Table(path).append(rows(number * 500))


if __name__ == "__main__":
    main()
