"""Tables with hostile texts, before a real Spark: a canary that any of them would set off stays silent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest, InvariantViolation, Unsupported
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import spark_text
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.write.enforce import enforced
from tests.sampling import SAMPLE_OR_ALL
from tests.spark.test_reading import write_log
from tests.unit.expr.hostile import CANARY, EXPRESSIONS, HARMLESS_ON_SPARK, IDENTIFIERS, OF_THE_MOMENT

LONG = PrimitiveType("long")


def spark_schema(names: list[str]) -> SparkStruct:
    return SparkStruct([SparkField(name, LongType()) for name in names])


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


def test_no_hostile_text_is_generated_for_spark() -> None:
    schema = StructType((StructField("id", LONG), StructField("at", PrimitiveType("timestamp")), StructField("s", LONG)))
    for text in EXPRESSIONS:
        with pytest.raises(InvalidRequest):
            spark_text(parse_expression(text, schema))


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


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"])
def test_every_hostile_text_stops_a_write_before_anything_is_run(spark: SparkSession, step: int) -> None:
    rows = spark.createDataFrame([(1, 2)], "id long, g long")
    for text in list(EXPRESSIONS)[::step]:
        demands: tuple[tuple[dict[str, str], dict[str, str]], ...] = (
            ({}, {"delta.constraints.c": text}),
            ({"delta.invariants": json.dumps({"expression": {"expression": text}})}, {}),
            ({"delta.generationExpression": text}, {}),
        )
        for metadata, properties in demands:
            schema = StructType((StructField("id", LONG), StructField("g", LONG, True, metadata)))
            config = TableConfig(Protocol(1, 4), Metadata("x", schema.to_json(), (), properties), "memory:x")
            if text in HARMLESS_ON_SPARK or (text in OF_THE_MOMENT and "delta.generationExpression" not in metadata):
                enforced(rows, config)
                continue
            for values in (rows, rows.drop("g")):
                with pytest.raises((InvalidRequest, Unsupported)) as raised:
                    enforced(values, config)
                assert EXPRESSIONS[text].lower() in str(raised.value).lower()


@pytest.mark.parametrize("step", SAMPLE_OR_ALL)
def test_hostile_names_of_columns_partitions_and_constraints_are_names_to_a_write(
    spark: SparkSession, path: str, step: int
) -> None:
    names = [name for name in IDENTIFIERS if "${" not in name][::step]
    generated = tuple(
        StructField(f"{name}+", LONG, True, {"delta.generationExpression": f"{quote_identifier(name)} + 1L"}) for name in names
    )
    schema = StructType((*(StructField(name, LONG) for name in names), *generated))
    checks = {f"delta.constraints.{name}": f"{quote_identifier(name)} > 0" for name in names}
    table = Table.create(path, schema, partition_by=names[3:9], properties={"delta.columnMapping.mode": "name", **checks})
    good = spark.createDataFrame([tuple(range(1, len(names) + 1))], spark_schema(names))
    good.write.format("delta").mode("append").save(path)
    [row] = table.to_arrow().to_pylist()
    assert [row[name] for name in names] == list(range(1, len(names) + 1))
    assert [row[f"{name}+"] for name in names] == list(range(2, len(names) + 2))
    values = [0 if number == len(names) // 2 else 1 for number in range(len(names))]
    with pytest.raises(InvariantViolation) as raised:
        spark.createDataFrame([tuple(values)], spark_schema(names)).write.format("delta").mode("append").save(path)
    assert raised.value.facts["constraint"].lower() == names[len(names) // 2].lower()
    assert table.version() == 1
    assert table.check() == []


def test_a_name_that_spark_would_replace_is_refused(spark: SparkSession) -> None:
    schema = StructType((StructField("${env:HOME}", LONG),))
    config = TableConfig(
        Protocol(1, 4), Metadata("x", schema.to_json(), (), {"delta.constraints.c": "`${env:HOME}` > 0"}), "memory:x"
    )
    with pytest.raises(InvalidRequest, match="variable"):
        enforced(spark.range(1).toDF("${env:HOME}"), config)


def test_names_go_to_spark_as_names(spark: SparkSession) -> None:
    names = [name for name in IDENTIFIERS if "${" not in name]
    schema = StructType(tuple(StructField(name, LONG) for name in names))
    texts = [spark_text(parse_expression(f"{quote_identifier(name)} + 1", schema)) for name in names]
    frame = spark.createDataFrame([tuple(range(len(names)))], names)
    [row] = frame.selectExpr(*(f"{text} AS y{number}" for number, text in enumerate(texts))).collect()
    assert list(row) == [number + 1 for number in range(len(names))]


def test_texts_go_to_spark_as_texts(spark: SparkSession) -> None:
    values = [value for value in [*IDENTIFIERS, *EXPRESSIONS] if "${" not in value]
    schema = StructType(tuple(StructField(f"s{number}", PrimitiveType("string")) for number in range(len(values))))
    quoted = [value.replace("\\", "\\\\").replace("'", "\\'") for value in values]
    texts = [spark_text(parse_expression(f"s{number} = '{value}'", schema)) for number, value in enumerate(quoted)]
    frame = spark.createDataFrame([tuple(values)], schema.names)
    [row] = frame.selectExpr(*(f"{text} AS y{number}" for number, text in enumerate(texts))).collect()
    assert [value for value, same in zip(values, row, strict=True) if not same] == []


@pytest.mark.parametrize("files", [1, 120])
@pytest.mark.damages_tables
def test_another_file_in_the_place_of_one_is_reported_where_spark_would_read_a_part_of_it(
    spark: SparkSession, tmp_path: Path, files: int
) -> None:
    """A valid file that is longer: Spark leaves out the row groups beyond the length that the log says, without a word."""
    path = str(tmp_path / "table")
    Table(path).append(pa.table({"id": range(1_200)}), max_rows_per_file=1_200 // files)
    file = next(Path(path).glob("*.parquet"))
    pq.write_table(pa.table({"id": range(50_000)}), file, row_group_size=5_000)
    with pytest.raises(CorruptTable, match="bytes, but the table's log says") as caught:
        # (`count()` alone would be answered from the log.)
        spark.read.format("delta").load(path).agg({"id": "sum"}).collect()
    assert caught.value.code == "TAHOE_DATA_FILE_SIZE"


@pytest.fixture
def as_in_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """There nobody asks for the sizes of the files that Spark is given: each would be a request."""
    monkeypatch.setattr("tahoe.spark.scan.listed_files.refuse_links_out", lambda *_: None)


def one_file(path: Path, rows: int) -> Path:
    Table(path).append(pa.table({"id": range(rows)}))
    (file,) = path.glob("*.parquet")
    return file


@pytest.mark.usefixtures("as_in_an_object_store")
@pytest.mark.parametrize("damage", ["cut", "longer"])
@pytest.mark.damages_tables
def test_in_an_object_store_a_file_that_was_cut_or_went_on_is_sparks_own_error_that_names_it(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    """Spark looks for the footer at the file's real end, which has none: docs/design/014-corruption.md describes it."""
    file = one_file(tmp_path / "table", 1_000)
    content = file.read_bytes()
    file.write_bytes(content[:-100] if damage == "cut" else content + b"x" * 100)
    with pytest.raises(Exception, match=re.escape(file.name)):
        spark.read.format("delta").load(str(tmp_path / "table")).collect()


@pytest.mark.usefixtures("as_in_an_object_store")
@pytest.mark.damages_tables
def test_in_an_object_store_spark_reads_a_longer_replaced_file_up_to_its_logged_length(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Corruption that Spark cannot detect there, and that Arrow and `check()` report: docs/design/014-corruption.md."""
    file = one_file(tmp_path / "shorter", 1_000)
    pq.write_table(pa.table({"id": range(7)}), file)
    assert spark.read.format("delta").load(str(tmp_path / "shorter")).select("id").collect() == [(n,) for n in range(7)]

    file = one_file(tmp_path / "longer", 1_000)
    pq.write_table(pa.table({"id": range(50_000)}), file, row_group_size=5_000)
    read = spark.read.format("delta").load(str(tmp_path / "longer")).select("id").collect()
    assert len(read) < 50_000
    for name in ("shorter", "longer"):
        with pytest.raises(CorruptTable, match="bytes, but the table's log says"):
            Table(tmp_path / name).to_arrow()
        assert any("bytes" in str(item) and "the log says" in str(item) for item in Table(tmp_path / name).check())
