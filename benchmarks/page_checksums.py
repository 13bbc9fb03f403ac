"""The cost of page checksums: Parquet pages written with a CRC-32, and verified on read. Below 2 % they are worthwhile.

Seconds of the process's own CPU time on one thread, alternating, so that other load affects all variants equally; the median
of the ratios of one round.

    python benchmarks/page_checksums.py [--rows 1000000] [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    grid = Grid(
        title=f"Page checksums, {arguments.rows:,} rows, median ratio of {arguments.rounds} rounds to the same without; goal 1.02"
    )
    for header in ("rows", "codec", "MB", "write, s", "writing them", "read, s", "verifying them"):
        grid.add_column(header, justify="left" if header in ("rows", "codec") else "right")
    with tempfile.TemporaryDirectory() as folder:
        for label, rows in (("mixed", mixed(arguments.rows)), ("random numbers", random_numbers(arguments.rows))):
            for codec in ("snappy", "zstd"):
                plain, summed = Path(folder) / "plain.parquet", Path(folder) / "summed.parquet"
                writes = by_turns(
                    arguments.rounds, partial(write, rows, plain, codec, False), partial(write, rows, summed, codec, True)
                )
                reads = by_turns(arguments.rounds, partial(read, summed, False), partial(read, summed, True))
                cells = [label, codec, f"{summed.stat().st_size / 1e6:.1f}"]
                for work, (without, with_them) in {"write": writes, "read": reads}.items():
                    ratio = statistics.median(b / a for a, b in zip(without, with_them, strict=True))
                    record(f"{work}, {label}, {codec}", ratio)
                    cells += [f"{statistics.median(without):.3f}", f"{ratio:.3f}"]
                grid.add_row(*cells)
    Console(width=140).print(grid)


def mixed(count: int) -> pa.Table:
    """Columns of the kinds that tables have; about 20 bytes a row in Parquet."""
    chance = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(count),
            "kind": chance.integers(0, 1000, count).astype("int32"),
            "value": chance.random(count),
            "name": pa.array([f"name {number % 100_000}" for number in range(count)]),
            "moment": pa.array(np.arange(count) * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )


def random_numbers(count: int) -> pa.Table:
    """The worst case: nothing to encode and nothing to compress, so that the bytes are all the work."""
    chance = np.random.default_rng(2)
    return pa.table({name: chance.random(count) for name in "abcd"})


def write(rows: pa.Table, path: Path, codec: str, checksums: bool) -> None:
    pq.write_table(rows, path, compression=codec, store_schema=False, write_page_checksum=checksums)


def read(path: Path, verified: bool) -> None:
    with pa.memory_map(str(path)) as source:
        file = pq.ParquetFile(source, page_checksum_verification=verified)
        for _ in file.iter_batches(131_072, use_threads=False):
            pass


def by_turns(rounds: int, *ways: Callable[[], None]) -> tuple[list[float], ...]:
    measured: tuple[list[float], ...] = tuple([] for _ in ways)
    for turn in range(rounds + 1):
        for seconds, way in zip(measured, ways, strict=True):
            started = time.process_time()
            way()
            if turn:
                seconds.append(time.process_time() - started)
    return measured


if __name__ == "__main__":
    main()
