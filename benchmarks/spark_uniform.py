"""A full conversion of a large table to Iceberg: one process against Spark's executors, which encode the manifests.

    python benchmarks/spark_uniform.py [--files 400000] [--cores 2] [--rounds 3]

The table is a log without data files, as a conversion opens none: six columns with statistics and one partition column. Goal on 2 cores: 0.7
of the time. Both variants write the same files, name for name.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from _spark import by_turns, session, show
from iceberg_manifests import SCHEMA, UNIFORM, add, commit

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.uniform.convert.shards import ShardEncoder

GOALS = {"executors": "0.7"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=400_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = session(arguments.cores)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t"
        table = Table.create(path, SCHEMA, partition_by=["part"], properties={"delta.enableIcebergCompatV2": "true"})
        names = {column.name: column.physical_name for column in table.schema()}
        commit(table, (add(names, number) for number in range(arguments.files)))
        UNIFORM_RUNTIME.shards = None
        table.set_properties(UNIFORM)
        table.uniform.wait(timeout=600)
        processor: dict[str, list[float]] = {"one process": [], "executors": []}
        written: dict[str, set[str]] = {}

        def converted(way: str, encoder: ShardEncoder | None) -> None:
            UNIFORM_RUNTIME.shards = encoder
            for file in (path / "metadata").glob("m*.avro"):
                file.unlink()
            before = time.process_time()
            assert table.uniform.sync(rebuild=True).files_added == arguments.files
            processor[way].append(time.process_time() - before)
            written[way] = {file.name for file in (path / "metadata").glob("m*.avro")}

        executors = SparkShards(spark, least_files=1)
        times = by_turns(
            {"one process": lambda: converted("one process", None), "executors": lambda: converted("executors", executors)},
            arguments.rounds,
        )
        assert written["one process"] == written["executors"]
    title = f"full conversion, {arguments.files:,} files, {arguments.cores} cores"
    show(title, "files", {f"{arguments.files:,}": times}, "one process", GOALS)
    print(f"processor seconds of the driver's Python: {min(processor['one process']):.1f} and {min(processor['executors']):.1f}")
    spark.stop()


if __name__ == "__main__":
    main()
