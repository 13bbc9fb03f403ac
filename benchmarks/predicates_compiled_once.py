"""Skipping over batches of 8,192 files, as in a scan of a checkpoint: the predicate compiled once, against once per batch.

Goal: the time per batch depends on its columns, not on the length of the predicate.

    python benchmarks/predicates_compiled_once.py [--files 500000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import pyarrow as pa
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

from tahoe.expr.row_condition import row_condition
from tahoe.protocol.skipping import FileCondition, keep
from tahoe.schema.types import PrimitiveType, StructField, StructType

BATCH = 8_192
SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("x", PrimitiveType("double"))))
CONDITIONS = {
    "id = 1000": "id = 1000",
    "id > 1000 AND x < 0.5": "id > 1000 AND x < 0.5",
    "id IN (10 values) OR x = 1": f"id IN ({', '.join(map(str, range(10)))}) OR x = 1",
    "id IN (1,000 values)": f"id IN ({', '.join(map(str, range(1000)))})",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    batches = [files(start) for start in range(0, arguments.files, BATCH)]
    grid = Grid(
        title=f"seconds of the processor for {arguments.files:,} files with statistics as structs (medians of {arguments.rounds})"
    )
    for header in ("predicate", "once a batch", "once", "ratio"):
        grid.add_column(header, justify="left" if header == "predicate" else "right")
    for name, text in CONDITIONS.items():
        predicate = row_condition(text, SCHEMA).predicate

        def each(predicate=predicate) -> int:  # type: ignore[no-untyped-def]
            return sum(keep(predicate, batch, SCHEMA, ()).true_count for batch in batches)

        def once(predicate=predicate) -> int:  # type: ignore[no-untyped-def]
            compiled = FileCondition.of(predicate, SCHEMA, ())
            return sum(compiled.keep(batch).true_count for batch in batches)

        assert each() == once()
        before, after = (timed(run, arguments.rounds) for run in (each, once))
        record(name, after / before)
        grid.add_row(name, f"{before:.2f}", f"{after:.2f}", f"{before / after:.1f}")
    Console(width=140).print(grid)


def files(start: int) -> pa.Table:
    numbers = pa.array(range(start, start + BATCH), pa.int64())
    bounds = pa.StructArray.from_arrays([numbers, numbers.cast(pa.float64())], ["id", "x"])
    nulls = pa.StructArray.from_arrays([pa.array([0] * BATCH)] * 2, ["id", "x"])
    parsed = pa.StructArray.from_arrays(
        [pa.array([10] * BATCH), bounds, bounds, nulls], ["numRecords", "minValues", "maxValues", "nullCount"]
    )
    return pa.table({"stats_parsed": parsed})


def timed(run: Callable[[], int], rounds: int) -> float:
    measured = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        measured.append(time.process_time() - begin)
    return statistics.median(measured)


if __name__ == "__main__":
    main()
