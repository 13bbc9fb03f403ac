"""Filters that skip files give the rows of filters on values: a table with each row in a file of its own, and Spark's answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.expr.tree.predicate import Column
from tahoe.schema.arrow import to_arrow_schema
from tests.spark.test_filters_answer_as_spark import KINDS, MIXED, answers_of_spark, rows, schema
from tests.unit.expr import sql_model

EXACT = [
    *(f"c_float {op} {value}" for op in ("=", ">=", "<", "<=>", "<>") for value in ("1.1F", "CAST(0.1 AS FLOAT)", "-0.3F")),
    "c_float IN (1.1F, 0.1F, 7F)",
    "c_float IN (1.1F, 2.2F, 3F, 4F, 5F, 6F, 7F, 8F, 9F, 10F, 11F, 12F)",
    "c_double IN (0.1D, 1.1D)",
    "NOT c_float IN (1.1F, 0.1F)",
]
FLOATS = (1.1, 0.1, -0.3)
"""Numbers whose nearest float has another text as a double."""


def generated() -> list[str]:
    chance = random.Random(3)
    columns = [(Column((f"c_{kind}",)), kind) for kind in KINDS] + [(Column(("s", "inner")), "integer")]
    return [str(sql_model.random_predicate(chance, columns)) for _ in range(120)]


@pytest.fixture(scope="module")
def table_and_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """A table with one row in each file, and its rows with their numbers."""
    path = tmp_path_factory.mktemp("filters") / "t"
    values: list[dict[str, Any]] = [*rows(), *({**dict.fromkeys(schema().names), "c_float": number} for number in FLOATS)]
    columns = pa.schema([("row", pa.int32()), *to_arrow_schema(schema())])
    numbered = pa.Table.from_pylist([{"row": number, **row} for number, row in enumerate(values)], columns)
    table = Table(str(path))
    for number in range(len(numbered)):
        table.append(numbered.slice(number, 1))
    return path, numbered


@pytest.mark.parametrize("texts", [EXACT, MIXED, generated()], ids=["floats", "literals", "generated"])
def test_no_file_with_a_matching_row_is_skipped(spark: Any, table_and_rows: tuple[Path, pa.Table], texts: list[str]) -> None:
    path, numbered = table_and_rows
    # Spark's reader of Parquet skips row groups with -0.0 for 0.0, in tables of every format.
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.parquet.filterPushdown": "false"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        differing = []
        frame = spark.read.format("delta").load(str(path))
        for text, answers in zip(texts, answers_of_spark(spark, numbered, texts), strict=True):
            expected = [number for number, answer in enumerate(answers) if answer]
            actual = sorted(row.row for row in frame.where(text).select("row").collect())
            differing += [] if actual == expected else [(text, actual, expected)]
        assert not differing
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_negative_zeros_are_found_as_in_parquet(spark: Any, tmp_path: Path) -> None:
    """Spark's reader of Parquet skips a row group with -0.0 and without 0.0, see docs/limitations.md."""
    zeros = spark.range(100_000).selectExpr("id", "-0.0D AS zero").coalesce(1)
    for file_format in ("delta", "parquet"):
        zeros.write.format(file_format).save(f"{tmp_path}/{file_format}")
    counts = [spark.read.format(name).load(f"{tmp_path}/{name}").where("zero = 0").count() for name in ("delta", "parquet")]
    assert counts[0] == counts[1]
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        assert spark.read.format("delta").load(f"{tmp_path}/delta").where("zero = 0").count() == 100_000
    finally:
        spark.conf.unset("spark.sql.parquet.filterPushdown")
