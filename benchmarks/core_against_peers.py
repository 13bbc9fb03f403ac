"""Reads, writes, rewrites, clustering and the first call of a process without Spark: Tahoe against deltalake and DuckDB.

All of them run in this process by turns, on tables with the same files; a first round does not count. Ratios are medians of the ratios of
a round, so that other load on the machine disturbs both sides alike; the processor time of a side disturbs less, and is printed beside it.
deltalake reads with `to_pyarrow_table`; its query engine, which returns views of texts, is a column of its own. DuckDB reads the table's
Parquet files. First calls are processes of their own.

    python benchmarks/core_against_peers.py [--rows 4000000] [--files 8] [--rounds 6] [--only "one row"]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from _processes import in_turn
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe

COPYING = {"delta.enableDeletionVectors": "false"}


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of work.

    Args:
        goals: the greatest ratio of Tahoe's time to a peer's, by peer.
        ways: Tahoe first; each does the work on the table at a path, and returns the number of rows that it read or changed.
        changes: whether the work changes the table, so that each run gets its own copy.
        small_files: whether the table has many small files.
    """

    name: str
    goals: Mapping[str, float]
    ways: Mapping[str, Callable[[str], object]]
    changes: bool = False
    small_files: bool = False


@dataclass(slots=True)
class Taken:
    """The seconds of each round: of a clock and of the processors."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def main() -> None:
    """Measure all cases, and print one line for each peer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", default="", help="a part of the names of the cases to run")
    arguments = parser.parse_args()
    data = rows(arguments.rows)
    grid = Grid(
        title=f"{data.num_rows:,} rows in {arguments.files} files, medians of {arguments.rounds}; load {os.getloadavg()[0]:.1f}"
    )
    for header in ("work", "peer", "Tahoe, s", "peer, s", "Tahoe / peer", "goal", "by processor"):
        grid.add_column(header, justify="left" if header in ("work", "peer") else "right")
    with tempfile.TemporaryDirectory() as folder:
        origins = [Path(folder, name) for name in ("origin", "small-files")]
        for origin, files in zip(origins, (arguments.files, 64), strict=True):
            made = tahoe.Table.create(origin, data.schema, properties=COPYING)
            made.append(data, max_rows_per_file=-(-data.num_rows // files))
        cases = [*reads(data), *writes(data), first_call(Path(folder))]
        for case in cases:
            if arguments.only in case.name:
                show(grid, case, measured(case, origins[case.small_files], arguments.rounds))
    Console(width=130).print(grid)
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


def rows(count: int) -> pa.Table:
    """Five columns: ascending and shuffled numbers, a float, a text of few values and one of many."""
    ids = pa.array(range(count), pa.int64())
    # A multiplication by a prime shuffles the numbers below it.
    shuffled = pc.subtract(pc.multiply(ids, 7919), pc.multiply(pc.divide(pc.multiply(ids, 7919), count), count))
    return pa.table(
        {
            "id": ids,
            "key": shuffled,
            "value": pc.divide(shuffled.cast(pa.float64()), count),
            "category": pc.binary_join_element_wise("group", pc.bit_wise_and(shuffled, 127).cast(pa.string()), "-"),
            "text": pc.binary_join_element_wise("a text about number", shuffled.cast(pa.string()), " "),
        }
    )


# -- cases -----------------------------------------------------------------------------------------------------------------------


def reads(data: pa.Table) -> list[Case]:
    """Return the reads of all rows, of a thousandth, and of one row."""
    first = data.num_rows // 3
    cases = []
    for name, sql, condition, goals in (
        ("read all rows", "true", None, {"deltalake": 1.0}),
        ("filter that keeps 0.1 %", "value < 0.001", ds.field("value") < 0.001, {"deltalake": 1.0, "DuckDB": 1.0}),
        ("one row by id", f"id = {first}", ds.field("id") == first, {"deltalake": 1.0, "DuckDB": 1.0}),
    ):
        cases.append(
            Case(
                name,
                goals,
                {
                    "Tahoe": lambda path, sql=sql: tahoe.Table(path).to_arrow(None if sql == "true" else sql).num_rows,
                    "deltalake": lambda path, condition=condition: (
                        deltalake.DeltaTable(path).to_pyarrow_table(filters=condition).num_rows
                    ),
                    "DuckDB": lambda path, sql=sql: (
                        duckdb.sql(f"SELECT * FROM read_parquet('{path}/*.parquet') WHERE {sql}").arrow().read_all().num_rows
                    ),
                    "deltalake's query engine": lambda path, sql=sql: queried(path, sql),
                },
            )
        )
    return cases


def queried(path: str, sql: str) -> int:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return pa.table(builder.execute(f"SELECT * FROM t WHERE {sql}").read_all()).num_rows


def writes(data: pa.Table) -> list[Case]:
    """Return the append of all rows, the row changes that rewrite files, and clustering."""
    thousandth = data.take(pa.array(range(7, data.num_rows, 1000), pa.int64()))

    def merged(path: str) -> object:
        builder = tahoe.Table(path).merge(thousandth, "target.id = source.id")
        return builder.when_matched_update_all().when_not_matched_insert_all().execute().num_updated_rows

    def merged_by_deltalake(path: str) -> object:
        builder = deltalake.DeltaTable(path).merge(
            thousandth, "target.id = source.id", source_alias="source", target_alias="target"
        )
        return builder.when_matched_update_all().when_not_matched_insert_all().execute()["num_target_rows_updated"]

    where = "key % 100 = 7"
    return [
        Case(
            "append all rows",
            {"deltalake": 0.7},
            {
                "Tahoe": lambda path: tahoe.Table(path).append(data),
                "deltalake": lambda path: deltalake.write_deltalake(path, data, mode="append"),
            },
            changes=True,
        ),
        Case(
            "UPDATE 1 %, rewriting",
            {"deltalake": 0.8},
            {
                "Tahoe": lambda path: tahoe.Table(path).update({"value": "value * 2"}, where).num_updated_rows,
                "deltalake": lambda path: deltalake.DeltaTable(path).update(updates={"value": "value * 2"}, predicate=where)[
                    "num_updated_rows"
                ],
            },
            changes=True,
        ),
        Case(
            "DELETE 1 %, rewriting",
            {"deltalake": 0.8},
            {
                "Tahoe": lambda path: tahoe.Table(path).delete(where).num_deleted_rows,
                "deltalake": lambda path: deltalake.DeltaTable(path).delete(where)["num_deleted_rows"],
            },
            changes=True,
        ),
        Case("MERGE 0.1 %, rewriting", {"deltalake": 0.8}, {"Tahoe": merged, "deltalake": merged_by_deltalake}, changes=True),
        clustering(data),
    ]


def clustering(data: pa.Table) -> Case:
    """Return OPTIMIZE into about 16 files, clustered by two columns, against OPTIMIZE that only moves rows in their order."""
    size = data.nbytes // 48

    def optimized(path: str, columns: tuple[str, ...]) -> object:
        return len(tahoe.Table(path).optimize(zorder_by=columns, target_file_size=size).removed) > 0

    return Case(
        "clustering by 2 columns",
        {"plain rewrite": 1.5},
        {"Tahoe": lambda path: optimized(path, ("key", "value")), "plain rewrite": lambda path: optimized(path, ())},
        changes=True,
        small_files=True,
    )


def first_call(folder: Path) -> Case:
    """Return the first read of a process, with imports, of a table of ten rows."""
    small = folder / "small"
    tahoe.Table.create(small, {"id": "long"}).append(pa.table({"id": range(10)}))
    ours = f"import tahoe; print(tahoe.Table({str(small)!r}).to_arrow().num_rows)"
    theirs = f"import deltalake; print(deltalake.DeltaTable({str(small)!r}).to_pyarrow_table().num_rows)"
    command = f"import sys; sys.argv = ['tahoe', 'detail', {str(small)!r}, '--json']; from tahoe.cli.main import main; main()"
    return Case(
        "first call of a process",
        {},
        {
            "Tahoe": lambda path: process(ours),
            "deltalake": lambda path: process(theirs),
            "tahoe detail": lambda path: process(command),
        },
    )


def process(program: str) -> object:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # deltalake sometimes aborts at the end of its process.
    program += "; import os, sys; sys.stdout.flush(); os._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
    return None


# -- measurement -----------------------------------------------------------------------------------------------------------------


def measured(case: Case, origin: Path, rounds: int) -> dict[str, Taken]:
    """Run all ways by turns, each on the same files, and check that they have the same result."""
    taken = {name: Taken() for name in case.ways}
    for number in range(rounds + 1):
        results = set()
        for name, work in in_turn(case.ways, number):
            path = copied(origin) if case.changes else origin
            clock, processor = time.perf_counter(), processor_seconds()
            results.add(work(str(path)))
            if number:
                taken[name].seconds.append(time.perf_counter() - clock)
                taken[name].processor.append(processor_seconds() - processor)
        assert len(results) == 1 or case.name == "append all rows", f"{case.name}: different results {results}"
    return taken


def copied(origin: Path) -> Path:
    """Return a copy of the table, whose files are never changed in place."""
    place = origin.with_name("copy")
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(origin, place, copy_function=os.link))


def processor_seconds() -> float:
    """The processor time of this process and of those that it has started and awaited."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def show(grid: Grid, case: Case, taken: Mapping[str, Taken]) -> None:
    """Add one line for each peer."""
    ours, *_ = taken.values()
    peers = {peer: theirs for peer, theirs in taken.items() if peer != "Tahoe"}
    for number, (peer, theirs) in enumerate(peers.items()):
        ratio = statistics.median(a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True))
        by_processor = statistics.median(a / b for a, b in zip(ours.processor, theirs.processor, strict=True))
        goal = case.goals.get(peer)
        record(f"{case.name}, {peer}", ratio)
        grid.add_row(
            case.name if number == 0 else "",
            peer,
            f"{statistics.median(ours.seconds):.3f}",
            f"{statistics.median(theirs.seconds):.3f}",
            f"{ratio:.2f}",
            "" if goal is None else f"≤ {goal}",
            f"{by_processor:.2f}",
        )


if __name__ == "__main__":
    main()
