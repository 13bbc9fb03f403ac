"""PyIceberg's append of ten files through `tahoe serve --writable`, compared with PyIceberg's own SQL catalog (SQLite).

Goal: at most 1.5 times as long. Both append the same rows to tables of ten partitions, alternately.

    python benchmarks/iceberg_commits.py [--times 15] [--rows 1000]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from _ratios import record
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

FILES = 10
GOAL = 1.5
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


def main() -> None:
    """Print the median times of both catalogs and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=15, help="appends to each table")
    parser.add_argument("--rows", type=int, default=1000, help="rows of each file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "tahoe") as tahoe:
        (Path(folder) / "sql").mkdir()
        sql = SqlCatalog("sql", uri=f"sqlite:///{folder}/sql.db", warehouse=f"file://{folder}/sql")
        sql.create_namespace("n")
        tables = {"SQL catalog": created(sql), "tahoe serve": created(tahoe)}
        seconds: dict[str, list[float]] = {name: [] for name in tables}
        for number in range(asked.times + 1):
            for name, table in tables.items():
                rows = rows_of(number, asked.rows)
                begin = time.perf_counter()
                table.append(rows)
                if number:  # the first append imports modules
                    seconds[name].append(time.perf_counter() - begin)
        assert all(table.refresh().scan().count() == (asked.times + 1) * asked.rows * FILES for table in tables.values())
    print(f"seconds of an append of {FILES} files of {asked.rows:,} rows, of {asked.times} each")
    for name, each in seconds.items():
        print(f"{name:12} median {statistics.median(each):.4f}   least {min(each):.4f}")
    theirs, ours = seconds.values()
    median, least = statistics.median(ours) / statistics.median(theirs), min(ours) / min(theirs)
    record("append, SQL catalog", median)
    print(f"ratio        median {median:.2f}   least {least:.2f}   goal {GOAL}")


@contextmanager
def served(root: Path) -> Iterator[RestCatalog]:
    """The catalog of a folder with the namespace ``n``, served by a process of its own."""
    (root / "n").mkdir(parents=True)
    command = [sys.executable, "-m", "tahoe", "serve", "--iceberg", str(root), "--port", "0", "--writable"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None, "the server did not start"
            yield RestCatalog("tahoe", uri=address[0])
        finally:
            process.terminate()


def created(catalog: Catalog) -> Table:
    """A new table, partitioned by ``part``."""
    empty = catalog.create_table("n.shape", SCHEMA)
    source = empty.schema().find_field("part").field_id
    return catalog.create_table(
        "n.t", empty.schema(), partition_spec=PartitionSpec(PartitionField(source, 1000, IdentityTransform(), "part"))
    )


def rows_of(number: int, count: int) -> pa.Table:
    """The rows of one append: so many of each partition."""
    ids = range(number * FILES * count, (number + 1) * FILES * count)
    columns = {"id": ids, "part": [i % FILES for i in ids], "name": [f"n{i}" for i in ids], "price": [i / 7 for i in ids]}
    return pa.table(columns, schema=SCHEMA)


if __name__ == "__main__":
    main()
