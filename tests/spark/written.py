"""Writes a table with Spark, and examines the result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import CommitInfo


def write(frame: DataFrame, path: str, mode: str = "append", partition_by: str | None = None, **options: Any) -> None:
    frame.write.save(path, format="delta", mode=mode, partitionBy=partition_by, **options)


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in load(spark, path).select("id").collect())


def actions(path: str, version: int, kind: type) -> list[Any]:
    return [action for action in read_commit(Table(path).store, version) if isinstance(action, kind)]


def info(path: str, version: int) -> dict[str, Any]:
    return dict(actions(path, version, CommitInfo)[0].values)


def data_files(path: str) -> Iterator[Path]:
    return (file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts)


def codec_of(file: Path) -> str:
    return str(pq.read_metadata(file).row_group(0).column(0).compression)
