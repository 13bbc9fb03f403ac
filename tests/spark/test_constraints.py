"""Constraints of a table in writes of Spark: the same rows are accepted and refused as without Spark."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, TahoeError, Unsupported
from tahoe.ops.tables.create import create_operation, new_metadata
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of, generated_values
from tahoe.protocol.features import ENFORCED
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.spark.write.enforce import enforced, recomputed
from tahoe.tables import DeltaTable
from tests.sampling import SAMPLE_OR_ALL
from tests.spark import test_expressions_answer_as_spark as texts
from tests.spark.written import data_files, load, write

P = PrimitiveType


def field(name: str, data_type: Any, *, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, data_type, nullable, {key.replace("__", "."): value for key, value in metadata.items()})


def invariant(text: str) -> str:
    return json.dumps({"expression": {"expression": text}})


def refused(path: str, frame: DataFrame, mode: str = "append", **options: Any) -> Any:
    """The error of a write that leaves neither a version nor a file behind."""
    table = Table(path)
    before = table.version(), sorted(data_files(path))
    with pytest.raises(TahoeError) as raised:
        write(frame, path, mode, **options)
    assert (table.version(), sorted(data_files(path))) == before
    return raised.value


class TestChecks:
    @pytest.fixture
    def table(self, path) -> str:
        inner = StructType((field("x", P("long")),))
        schema = StructType((field("id", P("long")), field("price", P("double")), field("s", inner), field("p", P("string"))))
        properties = {"delta.constraints.fair": "price > 0 AND (s.x IS NULL OR s.x < id)", "delta.constraints.where": "p <> 'x'"}
        Table.create(path, schema, partition_by=["p"], properties=properties)
        return path

    def frame(self, spark: SparkSession, *rows: str) -> DataFrame:
        return spark.sql(f"select * from values {', '.join(f'({row})' for row in rows)} t(id, price, s, p)")

    def test_rows_that_fulfil_it_go_in_by_every_mode(self, spark, table):
        write(self.frame(spark, "1L, 1.5D, named_struct('x', 0L), 'a'", "2L, 2D, null, 'b'"), table)
        write(spark.sql("select 'a' P, 3L ID, 1D price"), table, "overwrite", partitionOverwriteMode="dynamic")
        write(self.frame(spark, "4L, 1D, null, 'b'"), table, "overwrite", replaceWhere="id in (2, 4)")
        assert sorted(row.id for row in load(spark, table).collect()) == [3, 4]
        assert Table(table).check() == []

    @pytest.mark.parametrize("bad", ["2L, -1D, null", "2L, null, null", "2L, 1D, named_struct('x', 9L)"])
    def test_a_row_for_which_it_is_false_or_null_is_refused_with_its_values(self, spark, table, bad):
        error = refused(table, self.frame(spark, "1L, 1.5D, null, 'a'", f"{bad}, 'a'"))
        assert isinstance(error, InvariantViolation)
        assert (error.code, error.facts["constraint"]) == ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "fair")
        assert error.facts["values"]["id"] == "2"
        for part in (table, "fair", "price > 0 AND", " - id : 2", " - s.x : "):
            assert part in str(error)

    def test_every_way_to_overwrite_obeys_it(self, spark, table):
        write(self.frame(spark, "1L, 1D, null, 'a'", "2L, 2D, null, 'b'"), table)
        bad = self.frame(spark, "3L, 0D, null, 'a'")
        refused(table, bad, "overwrite")
        refused(table, bad, "overwrite", partitionOverwriteMode="dynamic")
        refused(table, bad, "overwrite", replaceWhere="id = 1 or id = 3")

    def test_an_empty_text_of_a_partition_column_is_null_to_it(self, spark, table):
        error = refused(table, self.frame(spark, "1L, 1D, null, ''"))
        assert error.facts["constraint"] == "where" and error.facts["values"] == {"p": None}
        with pytest.raises(InvariantViolation):
            Table(table).append(pa.table({"id": [1], "price": [1.0], "p": [""]}))

    def test_rows_cut_off_by_a_limit_are_not_looked_at(self, spark, table):
        frame = spark.range(10).selectExpr("id", "if(id < 2, 1D, -1D) price", "'a' p")
        write(frame.limit(2), table)
        assert load(spark, table).count() == 2

    def test_the_sessions_settings_and_an_alias_of_the_data_do_not_change_its_meaning(self, spark, path):
        schema = StructType((field("x", P("long")), field("s", StructType((field("x", P("long")),))), field("t", P("string"))))
        Table.create(path, schema, properties={"delta.constraints.c": r"S.X < x AND t != 'a\\b' AND x + 1 > 0"})
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        for key in ("spark.sql.caseSensitive", "spark.sql.parser.escapedStringLiterals"):
            session.conf.set(key, "true")
        session.conf.set("spark.sql.ansi.enabled", "false")
        fields = "x long, s struct<x: long>, t string"
        write(session.createDataFrame([(5, (1,), "q")], fields).alias("s"), path)
        refused(path, session.createDataFrame([(5, (1,), "a\\b")], fields))
        refused(path, session.createDataFrame([(5, (7,), "q")], fields).alias("s"))
        with pytest.raises(Exception, match="OVERFLOW"):
            write(session.createDataFrame([(2**63 - 1, (1,), "q")], fields), path)
        assert Table(path).version() == 1

    def test_a_schema_that_takes_its_columns_away_or_changes_them_is_refused(self, spark, table):
        error = refused(table, spark.range(1), "overwrite", overwriteSchema="true")
        assert error.code == "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"
        schema = StructType((field("id", P("long")), field("v", P("void"))))
        other = f"{table}-void"
        Table.create(other, schema, properties={"delta.constraints.c": "v IS NULL"})
        write(spark.range(1), other)
        error = refused(other, spark.sql("select 1L id, 2 v"), mergeSchema="true")
        assert error.code == "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"
        with pytest.raises(InvalidRequest, match="would change its type"):
            Table(other).append(pa.table({"id": [1], "v": [2]}), merge_schema=True)

    def test_invariants_of_columns_and_of_fields_are_checked(self, spark, path):
        inner = StructType((field("x", P("long"), delta__invariants=invariant("s.x > 3")),))
        Table.create(path, StructType((field("v", P("long"), delta__invariants=invariant("v < 10")), field("s", inner))))
        write(spark.sql("select 1L v, named_struct('x', 4L) s"), path)
        assert "EXPRESSION(s.x > 3)" in str(refused(path, spark.sql("select 1L v, named_struct('x', 3L) s")))
        assert "EXPRESSION(v < 10)" in str(refused(path, spark.sql("select 10L v, named_struct('x', 4L) s")))


def table_of_another_writer(path: Path, schema: StructType) -> Table:
    """A new table with NOT NULL inside arrays and maps, which Tahoe creates no more than delta-spark."""
    table = Table(path)
    transaction = table.begin()
    transaction.enforces = ENFORCED
    metadata = new_metadata(schema, SYSTEM_CLOCK)
    transaction.set_metadata(metadata)
    table.commit(transaction, create_operation(metadata))
    return table


def test_required_columns_are_the_same_with_and_without_spark(spark, tmp_path):
    needed = StructType((field("q", P("long"), nullable=False), field("r", P("long"))))
    deep = StructType((field("in", needed), field("z", P("long"))))
    schema = StructType(
        (
            field("id", P("long")),
            field("s", deep),
            field("a", ArrayType(needed, False)),
            field("m", MapType(P("string"), needed, True)),
        )
    )
    good = {"s": {"in": {"q": 1, "r": None}, "z": None}, "a": [{"q": 1, "r": None}], "m": {"k": {"q": 1, "r": None}, "n": None}}
    fine: list[dict[str, Any]] = [{}, {"a": None, "m": None}, {"a": [], "m": {}}]
    changes: list[dict[str, Any]] = [
        {"s": None},
        {"s": {"in": None, "z": 1}},
        {"s": {"in": {"q": None, "r": 1}, "z": 1}},
        {"a": [{"q": 1, "r": 1}, None]},
        {"a": [{"q": None, "r": 1}]},
        {"m": {"k": {"q": None, "r": 1}}},
    ]
    arrow = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("s", pa.struct({"in": pa.struct({"q": pa.int64(), "r": pa.int64()}), "z": pa.int64()})),
            pa.field("a", pa.list_(pa.struct({"q": pa.int64(), "r": pa.int64()}))),
            pa.field("m", pa.map_(pa.string(), pa.struct({"q": pa.int64(), "r": pa.int64()}))),
        ]
    )
    fields = (
        "id long, s struct<in: struct<q: long, r: long>, z: long>, a array<struct<q: long, r: long>>, "
        "m map<string, struct<q: long, r: long>>"
    )
    table = table_of_another_writer(tmp_path / "t", schema)
    config, refusals = table.snapshot().config, []

    def arrow_rows(*rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist([{**row, "m": row["m"] and list(row["m"].items())} for row in rows], arrow)

    complete = [{"id": 1, **good, **change} for change in fine]
    assert table.append(arrow_rows(*complete)) == 1
    assert len(enforced(spark.createDataFrame(complete, fields), config).collect()) == 3
    for change in changes:
        row = {"id": 1, **good, **change}
        actual = []
        for act in (
            lambda row=row: table.append(arrow_rows(row)),
            lambda row=row: enforced(spark.createDataFrame([row], fields), config).collect(),
        ):
            with pytest.raises(InvariantViolation) as raised:
                act()
            actual.append((raised.value.code, raised.value.facts["column"]))
        assert actual[0] == actual[1], change
        refusals.append(actual[0][1])
    assert refusals == ["s.in.q", "s.in.q", "s.in.q", "a.element", "a.element.q", "m.value.q"]


class TestGeneratedColumns:
    @pytest.fixture
    def table(self, spark, path) -> str:
        builder = DeltaTable.create(spark).location(path).addColumn("at", "timestamp_ntz").addColumn("n", "int")
        builder = builder.addColumn("day", "date", nullable=False, generatedAlwaysAs="CAST(at AS DATE)", comment="of at")
        builder.addColumn("twice", "int", generatedAlwaysAs="n * 2").partitionedBy("day").execute()
        return path

    NOON = "select timestamp_ntz'2024-05-06 12:00:00' at, 1 n"

    def test_they_are_computed_when_absent_and_may_partition_the_table(self, spark, table):
        assert "generatedColumns" in Table(table).snapshot().config.features
        assert Table(table).schema().field("day").metadata["comment"] == "of at"
        write(spark.sql(f"{self.NOON} union all select timestamp_ntz'2024-05-07 12:00:00', null"), table)
        actual = sorted((row.day, row.n, row.twice) for row in load(spark, table).collect())
        assert actual == [(date(2024, 5, 6), 1, 2), (date(2024, 5, 7), None, None)]
        assert sorted(file.parent.name for file in data_files(table)) == ["day=2024-05-06", "day=2024-05-07"]
        write(spark.sql(self.NOON), table, "overwrite", partitionOverwriteMode="dynamic")
        assert load(spark, table).count() == 2
        assert Table(table).check() == []

    def test_they_are_checked_null_safely_when_given(self, spark, table):
        write(spark.sql(f"{self.NOON}, 2 TWICE, date'2024-05-06' Day"), table)
        write(spark.sql("select timestamp_ntz'2024-05-06 12:00:00' at, cast(null as int) n, null twice"), table)
        error = refused(table, spark.sql(f"{self.NOON}, 3 twice"))
        assert error.facts["values"] == {"twice": "3", "n": "1"}
        assert "Generated Column (`twice` <=> n * 2)" in str(error)
        refused(table, spark.sql(f"{self.NOON}, cast(null as int) twice"))
        assert "'day'" in str(refused(table, spark.sql("select cast(null as timestamp_ntz) at, 1 n")))

    def test_they_can_be_computed_again_for_some_rows(self, spark, table):
        config = Table(table).snapshot().config
        rows = spark.sql("select timestamp_ntz'2024-05-06 12:00:00' at, id n, null day, 0 twice from values 1, 2 t(id)")
        actual = recomputed(rows, config, {"twice": rows.n == 2}).collect()
        assert sorted((row.n, row.day, row.twice) for row in actual) == [(1, None, 0), (2, None, 4)]

    def test_overwriting_the_schema_ends_them(self, spark, table):
        write(spark.sql(self.NOON), table, "overwrite", overwriteSchema="true", partition_by=[])
        assert Table(table).schema().names == ["at", "n"]

    @pytest.mark.parametrize(
        ("text", "data_type", "code"),
        [
            ("id * 2", "int", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
            ("other + 1", "bigint", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
            ("g + 1", "bigint", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
            ("rand()", "double", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
            ("my_udf(id)", "bigint", "UNRESOLVED_ROUTINE"),
            ("max(id)", "bigint", "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
            ("id +", "bigint", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_the_builder_refuses_columns_that_cannot_be_generated(self, spark, path, text, data_type, code):
        builder = DeltaTable.create(spark).location(path).addColumn("id", "bigint")
        builder = builder.addColumn("other", "bigint", generatedAlwaysAs="id").addColumn("g", data_type, generatedAlwaysAs=text)
        with pytest.raises((InvalidRequest, Unsupported), match=r"(the generated )?column 'g'") as raised:
            builder.execute()
        assert raised.value.code == code
        assert not Table(path).exists()


@pytest.mark.parametrize("step", SAMPLE_OR_ALL)
def test_generated_columns_have_the_values_that_they_have_without_spark(spark, step):
    """At most a third of the expressions that are compared with Spark elsewhere, each as a generated column of one table."""
    data, base = texts.table(), texts.schema()
    differs = texts.IN_OLDER_SPARK.get(texts.pyspark.__version__[:3], {})
    expected: list[tuple[str, Any]] = []
    for text in [*texts.ARITHMETIC, *texts.CASTS, *texts.LOGIC, *texts.TEXTS, *texts.TIMES, *texts.NESTED][:: 3 * step]:
        kind, values = texts.of_tahoe(text, data)
        if kind not in ("error", "void") and text not in differs:
            expected.append((text, values))
    columns = tuple(
        field(f"g{number}", texts.parse_expression(text, base).data_type, delta__generationExpression=text)
        for number, (text, _) in enumerate(expected)
    )
    assert len(columns) > 100 // step
    schema = StructType((*base, *columns))
    config = TableConfig(Protocol(1, 4), Metadata("x", schema.to_json()), "memory:x")
    actual = enforced(spark.createDataFrame(data), config).toArrow()
    ours = generated_values(constraints_of(config), data, [column.name for column in columns])
    for number, (text, values) in enumerate(expected):
        assert texts.listed(ours[f"g{number}"]) == values, text
        assert all(map(texts.near, texts.listed(actual[f"g{number}"]), values)), text


def test_a_moment_is_looked_at_in_the_sessions_time_zone(spark, path):
    schema = StructType((field("at", P("timestamp")), field("day", P("date"), delta__generationExpression="CAST(at AS DATE)")))
    Table.create(path, schema)
    session = spark.newSession()
    session.conf.set("spark.tahoe.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = session.sql("select timestamp'2024-05-06 20:00:00Z' at")
    write(frame, path)
    assert [row["day"] for row in Table(path).to_arrow().to_pylist()] == [date(2024, 5, 7)]
    assert datetime(2024, 5, 6, 20) == Table(path).to_arrow()["at"][0].as_py().replace(tzinfo=None)


def test_the_portable_data_source_enforces_the_same(plain, path):
    schema = StructType((field("id", P("long")), field("g", P("long"), delta__generationExpression="id * 2L")))
    table = Table.create(path, schema, properties={"delta.constraints.positive": "id > 0"})
    plain.range(1, 3).write.format("delta").mode("append").save(path)
    assert sorted(row["g"] for row in table.to_arrow().to_pylist()) == [2, 4]
    before = sorted(data_files(path))
    with pytest.raises(Exception, match=r"CHECK constraint positive \(id > 0\) of table .* is violated"):
        plain.range(0, 3, 1, 1).write.format("delta").mode("append").save(path)  # one task: no other tasks clean up
    assert (table.version(), sorted(data_files(path))) == (1, before)
