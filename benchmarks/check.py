"""The time of `check()`: many commits, many files, large deletion vectors, and every row with ``deep=True``.

Goal: seconds each. Before, 5,000 commits with a checkpoint every ten took over 500 s: each checksum summed all live files, and each
checkpoint was compared path by path.

    python benchmarks/check.py [--commits 5000] [--files 300000] [--megabytes 50] [--rows 5000000]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from array import array
from collections import Counter
from dataclasses import replace
from pathlib import Path

import _log_tables
import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from rich.console import Console
from rich.table import Table as Grid

import tahoe
from tahoe.log.checksum import encode_checksum, read_checksum
from tahoe.log.files.paths import checksum_name, commit_name
from tahoe.ops.check.table_check import check_table
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import descriptor_in_file, inline_descriptor, new_file_name, pack
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.local_store import LocalLogStore
from tahoe.txn.hooks import checkpoint_snapshot

UUID = "8f8f9f9d-3c3e-4b52-9d3c-0d0e58ac1a5e"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=5_000)
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--megabytes", type=int, default=50, help="of one deletion vector")
    parser.add_argument("--rows", type=int, default=5_000_000)
    arguments = parser.parse_args()
    grid = Grid(title="check()")
    for header in ("table", "seconds", "CPU seconds", "findings"):
        grid.add_column(header, justify="left" if header == "table" else "right")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        cases = {
            f"{arguments.commits:,} commits, checkpoints every 10, checksums": (
                many_commits(root / "commits", arguments.commits),
                False,
            ),
            f"{arguments.files:,} files": (many_files(root / "files", arguments.files), False),
            f"a vector of {arguments.megabytes} MB in a file": (
                vector(root / "vector", arguments.megabytes, inline=False),
                False,
            ),
            f"a vector of {arguments.megabytes} MB inline": (vector(root / "inline", arguments.megabytes, inline=True), False),
            f"{arguments.rows:,} rows, deep": (rows(root / "rows", arguments.rows), True),
        }
        for label, (place, deep) in cases.items():
            started, cpu = time.perf_counter(), time.process_time()
            findings = check_table(LocalLogStore(place), deep=deep)
            seconds = f"{time.perf_counter() - started:.1f}"
            counts = Counter(each.code for each in findings)
            findings = ", ".join(f"{count:,} of {code}" for code, count in counts.items())
            grid.add_row(label, seconds, f"{time.process_time() - cpu:.1f}", findings or "none")
    Console(width=140).print(grid)


def many_commits(root: Path, commits: int) -> Path:
    """As appends of one row each leave it: a commit, a checksum, and every ten commits a checkpoint."""
    table = tahoe.Table.create(root, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.append(pa.table({"id": [0], "name": ["n"]}))
    (add,) = (line["add"] for line in lines(root, 1) if "add" in line)
    store = LocalLogStore(root)
    size = add["size"]
    checksum = read_checksum(store, 1)
    content = (root / add["path"]).read_bytes()
    for version in range(2, commits):
        path = f"part-{version:05d}.parquet"
        (root / path).write_bytes(content)
        write(root, version, [{"commitInfo": {"timestamp": version, "txnId": f"t{version}"}}, {"add": add | {"path": path}}])
        counted = replace(
            checksum, transaction_id=f"t{version}", num_files=version, table_size_bytes=version * size, file_sizes=None
        )
        (root / checksum_name(version)).write_bytes(encode_checksum(version, counted))
        if version % 10 == 0:
            checkpoint_snapshot(Snapshot.at(store, version), tahoe.base.clock.SYSTEM_CLOCK)
    return root


def many_files(root: Path, files: int) -> Path:
    """The synthetic log of `_log_tables` with a checkpoint, and its data files, sparse: without footers, which is a finding."""
    place = _log_tables.make_table(root, files)[0]
    for add in tahoe.Table(place).files().select(["path", "size"]).to_pylist():
        name = place / add["path"]
        name.parent.mkdir(exist_ok=True)
        with open(name, "wb") as file:
            os.truncate(file.fileno(), add["size"])
    return place


def vector(root: Path, megabytes: int, *, inline: bool) -> Path:
    """One file, of whose rows every third is dead; its footer knows of one row alone, which is a finding."""
    table = tahoe.Table.create(root, pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": [0]}))
    (add,) = (line["add"] for line in lines(root, 1) if "add" in line)
    containers = megabytes * 122  # of 65,536 positions each, 8 kB a container
    dead = BitMap64()
    for start in range(0, containers, 64):
        positions = np.arange(start << 16, min(start + 64, containers) << 16, 3, dtype=np.uint64)
        dead |= BitMap64(array("Q", positions.tobytes()))
    descriptor = inline_descriptor(dead)
    if not inline:
        content, (place,) = pack([dead])
        (root / new_file_name(UUID)).write_bytes(content)
        descriptor = descriptor_in_file(UUID, place)
    statistics = replace(FileStatistics.from_json(add["stats"]), num_records=containers << 16, tight_bounds=False)
    add |= {"deletionVector": descriptor.to_json_value(), "stats": statistics.to_json()}
    gone = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "size": add["size"]}
    write(root, 2, [{"commitInfo": {"timestamp": 2}}, {"remove": gone}, {"add": add}])
    return root


def rows(root: Path, count: int) -> Path:
    numbers = pa.arange(0, count)
    data = pa.table({"id": numbers, "half": numbers.cast(pa.float64()), "name": numbers.cast(pa.string())})
    tahoe.Table(root).append(data, max_rows_per_file=count // 10)
    return root


def lines(root: Path, version: int) -> list[dict[str, AddFile]]:
    return [json.loads(line) for line in (root / commit_name(version)).read_text().splitlines()]


def write(root: Path, version: int, actions: list[dict[str, object]]) -> None:
    (root / commit_name(version)).write_text("".join(json.dumps(action) + "\n" for action in actions))


if __name__ == "__main__":
    main()
