"""Files whose greatest floats leave NaN out: Spark finds, changes and deletes the rows with NaN."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import tahoe

VALUES = pa.table({"id": [1, 2, 3], "f": [1.0, math.nan, 2.0], "s": [{"f": 1.0}, {"f": math.nan}, {"f": 2.0}]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    write_deltalake(tmp_path / "t", VALUES)
    return str(tmp_path / "t")


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("f > 5", [2]),
        ("f >= 5", [2]),
        ("NOT f <= 5", [2]),
        ("f = double('NaN')", [2]),
        ("f <=> double('NaN')", [2]),
        ("f IN (7, double('NaN'))", [2]),
        ("f <> 1", [2, 3]),
        ("s.f > 5", [2]),
        ("id < 3 AND (f > 5 OR id = 1)", [1, 2]),
        ("id > 2 OR (id < 9 AND f > 5)", [2, 3]),
        ("f < 1.5", [1]),
        ("f = 2", [3]),
        ("f BETWEEN 1.5 AND 3", [3]),
    ],
)
def test_a_filter_finds_rows_with_nan(spark: SparkSession, path: str, condition: str, ids: list[int]) -> None:
    rows = spark.read.format("delta").load(path).where(condition).orderBy("id").collect()
    assert [row.id for row in rows] == ids


def test_row_statements_change_rows_with_nan(spark: SparkSession, path: str) -> None:
    assert spark.sql(f"UPDATE delta.`{path}` SET id = 20 WHERE f > 5").head()[0] == 1
    assert spark.sql(f"DELETE FROM delta.`{path}` WHERE f > 5").head()[0] == 1
    assert sorted(tahoe.Table(path).to_arrow()["id"].to_pylist()) == [1, 3]
