"""Tables that hold hostile texts, before a real Spark: a canary that any of them would set off stays silent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.predicate import quote_identifier
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.constraints import vetted
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.spark.test_reading import write_log
from tests.unit.expr.hostile import CANARY, EXPRESSIONS, IDENTIFIERS

LONG = PrimitiveType("long")


@pytest.fixture(autouse=True)
def canary(spark: SparkSession) -> Iterator[None]:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    system.clearProperty(CANARY)
    yield
    assert system.getProperty(CANARY) is None


def test_the_canary_would_be_heard(spark: SparkSession) -> None:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    spark.range(1).selectExpr(next(iter(EXPRESSIONS))).collect()
    assert system.getProperty(CANARY) == "dead"
    system.clearProperty(CANARY)


def test_no_hostile_text_is_vetted_for_spark() -> None:
    schema = StructType((StructField("id", LONG), StructField("at", PrimitiveType("timestamp")), StructField("s", LONG)))
    for text in EXPRESSIONS:
        with pytest.raises(InvalidRequest):
            vetted(text, schema)


@pytest.mark.parametrize("where", ["constraint", "invariant", "generated", "default"])
def test_a_table_with_hostile_texts_is_read_and_not_written(spark: SparkSession, tmp_path: Path, where: str) -> None:
    for number, text in enumerate(list(EXPRESSIONS)[:2]):
        key = {"invariant": "delta.invariants", "generated": "delta.generationExpression", "default": "CURRENT_DEFAULT"}.get(
            where
        )
        stored = json.dumps({"expression": {"expression": text}}) if where == "invariant" else text
        schema = StructType((StructField("id", LONG, True, {key: stored} if key else {}),))
        configuration = {"delta.constraints.c": text} if where == "constraint" else {}
        path = tmp_path / str(number)
        path.mkdir()
        write_log(path, Protocol(1, 4), Metadata("x", schema.to_json(), (), configuration))
        assert spark.read.format("delta").load(str(path)).count() == 0
        with pytest.raises(Unsupported):
            spark.range(1).write.format("delta").mode("append").save(str(path))


def test_names_go_to_spark_as_names(spark: SparkSession) -> None:
    names = [name for name in IDENTIFIERS if "${" not in name]
    schema = StructType(tuple(StructField(name, LONG) for name in names))
    texts = [vetted(f"{quote_identifier(name)} + 1", schema) for name in names]
    frame = spark.createDataFrame([tuple(range(len(names)))], names)
    [row] = frame.selectExpr(*(f"{text} AS y{number}" for number, text in enumerate(texts))).collect()
    assert list(row) == [number + 1 for number in range(len(names))]


def test_texts_go_to_spark_as_texts(spark: SparkSession) -> None:
    values = [value for value in [*IDENTIFIERS, *EXPRESSIONS] if "${" not in value]
    schema = StructType(tuple(StructField(f"s{number}", PrimitiveType("string")) for number in range(len(values))))
    quoted = [value.replace("\\", "\\\\").replace("'", "\\'") for value in values]
    texts = [vetted(f"s{number} = '{value}'", schema) for number, value in enumerate(quoted)]
    frame = spark.createDataFrame([tuple(values)], schema.names)
    [row] = frame.selectExpr(*(f"{text} AS y{number}" for number, text in enumerate(texts))).collect()
    assert [value for value, same in zip(values, row, strict=True) if not same] == []
