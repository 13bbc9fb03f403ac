"""DELETE on Spark of 1 % of the rows, scattered over all files: deletion vectors against copy-on-write.

Goals: with vectors 10 times fewer bytes are written, in a third of the time. Each round deletes different rows of copies of the same tables.

    python benchmarks/spark_delete.py [--rows 5000000] [--files 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from _spark import by_turns, rows, session, show

from tahoe.api.table import Table
from tahoe.tables import DeltaTable

GOALS = {"vectors": "0.33"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origin = folder / "origin"
        rows(spark, arguments.rows, arguments.files).write.format("delta").save(str(origin))
        written: dict[str, list[int]] = {}

        def deleting(way: str, vectors: bool) -> Callable[[], object]:
            path = folder / way
            shutil.copytree(origin, path)
            if vectors:
                Table(str(path)).set_properties({"delta.enableDeletionVectors": "true"})
            before = bytes_of(path)
            turns = iter(range(1000))

            def run() -> None:
                nonlocal before
                # Another hundredth of the remaining rows each time.
                DeltaTable.forPath(spark, str(path)).delete(f"pmod(hash(id), 100) = {next(turns)}")
                after = bytes_of(path)
                written.setdefault(way, []).append(after - before)
                before = after

            return run

        seconds = by_turns(
            {"copy-on-write": deleting("copy-on-write", False), "vectors": deleting("vectors", True)}, arguments.rounds
        )
        show("DELETE of 1 %", "rows", {f"{arguments.rows:,}": seconds}, "copy-on-write", GOALS)
        copied, marked = (statistics.median(written[way][1:]) for way in ("copy-on-write", "vectors"))
        print(f"bytes written: {copied:,.0f} copied, {marked:,.0f} with vectors: {copied / marked:.0f} times fewer (goal: 10)")
        left = {way: Table(str(folder / way)).to_arrow(columns=["id"])["id"] for way in written}
        assert sorted(left["vectors"].to_pylist()) == sorted(left["copy-on-write"].to_pylist()), "the two ways left other rows"
    spark.stop()


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
