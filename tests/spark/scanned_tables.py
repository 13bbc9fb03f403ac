"""Tables that are written file by file for tests of the native scan."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tahoe.protocol.actions import AddFile, to_json_line

__all__ = ["add", "load", "write_log"]


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)


def write_log(folder: Path, *actions: object, version: int = 0) -> None:
    (folder / "_delta_log").mkdir(exist_ok=True, parents=True)
    lines = [to_json_line(action) for action in actions]  # type: ignore[arg-type]
    (folder / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines))


def add(folder: Path, name: str, table: pa.Table, **more: object) -> AddFile:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    size = os.path.getsize(folder / name)
    return AddFile(name, more.pop("partition_values", {}), size, 1, True, **more)  # type: ignore[arg-type]
