"""Columns whose types became wider, on Spark: SQL's ALTER COLUMN TYPE, evolution of writes and MERGE, and files of both widths read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType
from tahoe.tables import DeltaTable
from tests.type_pairs import PAIRS

WIDENS = {
    "delta.enableTypeWidening": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.feature.timestampNtz": "supported",
}
MODE = "spark.databricks.delta.typeWidening.allowAutomaticWidening"
SQL = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


def sql(kind) -> str:
    return SQL.get(str(kind), str(kind))


def line(number: int, value_of, type_of) -> pa.Table:
    """One row: each pair's value as a column, in a struct, in an array, as a map's value, and as a partition value's copy."""
    arrays, names = [pa.array([number])], ["id"]
    for index, pair in enumerate(PAIRS):
        kind, value = to_arrow_type(type_of(pair)), value_of(pair)
        arrays += [
            pa.array([value], kind),
            pa.array([{"x": value}], pa.struct([("x", kind)])),
            pa.array([[value]], pa.list_(kind)),
            pa.array([[(value, value)]], pa.map_(kind, kind)),
        ]
        names += [f"c{index}", f"s{index}", f"l{index}", f"m{index}"]
    return pa.table(arrays, names)


@pytest.fixture(scope="module")
def widened(spark, tmp_path_factory) -> str:
    """A table with a file of the old types and one of the new, widened by SQL."""
    path = str(tmp_path_factory.mktemp("widened") / "t")
    old, new = line(1, lambda p: p[2], lambda p: p[0]), line(2, lambda p: p[4], lambda p: p[1])
    table = Table.create(path, old.schema, properties=WIDENS)
    table.append(old)
    for index, pair in enumerate(PAIRS):
        for place in ("c", "s.x", "l.element", "m.key", "m.value"):
            named = f"{place[0]}{index}{place[1:]}"
            if place == "c" or not index:
                spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {named} TYPE {sql(pair[1])}")
            else:
                table.change_column(named, data_type=pair[1])
    spark.createDataFrame(new, spark.read.format("delta").load(path).schema).write.format("delta").mode("append").save(path)
    return path


def by_spark(frame) -> list[dict]:
    return frame.orderBy("id").toArrow().to_pylist()


@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_spark_reads_files_of_both_widths_as_arrow_does(spark, plain, widened, vectorised):
    expected = Table(widened).to_arrow().sort_by("id").to_pylist()
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
    try:
        assert by_spark(spark.read.format("delta").load(widened)) == expected
        rows = spark.read.format("delta").load(widened)
        for number, at in ((1, 3), (2, 4)):
            conditions = [
                f"{place} <=> CAST('{pair[at]}' AS {sql(pair[1])})"
                for index, pair in enumerate(PAIRS)
                for place in (f"c{index}", f"s{index}.x")
            ]
            assert [row.id for row in rows.where(" AND ".join(conditions)).collect()] == [number]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert by_spark(plain.read.format("delta").load(widened)) == expected


def test_the_feed_and_older_versions_are_read_across_the_change(spark, widened):
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(widened)
    columns = [f"c{index}" for index in range(len(PAIRS))]
    actual = {row["id"]: [row[name] for name in columns] for row in feed.select("id", *columns).collect()}
    assert actual == {1: [pair[3] for pair in PAIRS], 2: [pair[4] for pair in PAIRS]}
    old = spark.read.format("delta").option("versionAsOf", 1).load(widened)
    assert old.schema["c2"].dataType.simpleString() == "int"
    assert old.count() == 1


def small(path: str, **more: str) -> Table:
    table = Table.create(path, pa.schema([("k", pa.int32()), ("v", pa.int16())]), properties={**WIDENS, **more})
    table.append(pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([1, 2], pa.int16())}))
    return table


def types(table: Table) -> list[str]:
    return [str(column.data_type) for column in table.schema()]


def test_a_write_that_merges_schemas_widens_as_the_session_says(spark, tmp_path):
    table = small(str(tmp_path / "t"))
    wide = spark.createDataFrame([(3, 2**40)], "k int, v bigint").write.format("delta").mode("append")
    with pytest.raises(SchemaMismatch):
        wide.save(table.url)
    spark.conf.set(MODE, "never")
    try:
        with pytest.raises(SchemaMismatch):
            wide.option("mergeSchema", "true").save(table.url)
        spark.conf.set(MODE, "same_family_type")
        with pytest.raises(SchemaMismatch):
            spark.sql("SELECT 1D AS v").write.format("delta").mode("append").option("mergeSchema", "true").save(table.url)
        wide.option("mergeSchema", "true").save(table.url)
        spark.conf.set(MODE, "sometimes")
        with pytest.raises(InvalidRequest, match="SAME_FAMILY_TYPE"):
            wide.save(table.url)
    finally:
        spark.conf.unset(MODE)
    assert types(table) == ["integer", "long"]
    assert table.schema().field("v").metadata == {"delta.typeChanges": [{"fromType": "short", "toType": "long"}]}
    assert sorted(row.v for row in spark.read.format("delta").load(table.url).collect()) == [1, 2, 2**40]
    with pytest.raises(SchemaMismatch, match="decimal"):
        spark.sql("SELECT 1.5BD AS v").write.format("delta").mode("append").option("mergeSchema", "true").save(table.url)
    assert types(table) == ["integer", "long"], "a decimal that cannot hold the column's values is no wider type"


def test_a_merge_widens_assigned_columns(spark, tmp_path):
    table = small(str(tmp_path / "t"), **{"delta.enableDeletionVectors": "true"})
    source = spark.createDataFrame([(2, 2**40), (2**33, 5)], "k bigint, v bigint")
    merge = DeltaTable.forPath(spark, table.url).alias("t").merge(source.alias("s"), "s.k = t.k").withSchemaEvolution()
    merge.whenMatchedUpdate(set={"v": "s.v"}).execute()
    assert types(table) == ["integer", "long"]
    source.createOrReplaceTempView("wide_source")
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{table.url}` t USING wide_source s ON s.k = t.k WHEN NOT MATCHED THEN INSERT *"
    )
    assert types(table) == ["long", "long"]
    assert sorted(tuple(row) for row in spark.read.format("delta").load(table.url).collect()) == [(1, 1), (2, 2**40), (2**33, 5)]
    rows = DeltaTable.forPath(spark, table.url)
    rows.delete("v = 1")
    rows.update("k = 2", {"v": "v + 1"})
    rows.optimize().executeCompaction()
    assert table.to_arrow().sort_by("k").to_pylist() == [{"k": 2, "v": 2**40 + 1}, {"k": 2**33, "v": 5}]
    assert not table.check(deep=True)


def test_a_frame_that_was_made_before_its_column_became_wider_is_refused_not_read_wrongly(spark, tmp_path):
    table = small(str(tmp_path / "t"))
    frame = spark.read.format("delta").load(table.url)
    table.change_column("v", data_type=PrimitiveType("long"))
    with pytest.raises(InvalidRequest, match="'v' is another one now"):
        frame.collect()


def test_sql_names_the_types_that_are_not_wider(spark, tmp_path):
    table = small(str(tmp_path / "t"))
    # Spark itself refuses all types to which it does not cast every value; Delta refuses the others that are no type widening.
    codes = dict.fromkeys(("STRING", "DECIMAL(5, 0)", "FLOAT"), "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP")
    for kind, code in {**codes, **dict.fromkeys(("TINYINT", "TIMESTAMP"), "NOT_SUPPORTED_CHANGE_COLUMN")}.items():
        with pytest.raises(InvalidRequest) as error:
            spark.sql(f"ALTER TABLE delta.`{table.url}` ALTER COLUMN v TYPE {kind}")
        assert error.value.code == code, kind
    assert types(table) == ["integer", "short"]
