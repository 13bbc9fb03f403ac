"""Columns that became wider or got other names, by Tahoe and by the JVM's Delta: each reads the other's tables equal, rows and feed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tahoe.schema.arrow import to_arrow_type
from tests.interop.engines import canonical
from tests.renamed_columns import RENAMED, STARTS, renamed_table
from tests.type_pairs import PAIRS

pytestmark = pytest.mark.jvm

SQL = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
PROPERTIES = {
    "delta.enableTypeWidening": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.feature.timestampNtz": "supported",  # which the reference does not add to a table that is there
}


def same(left: pa.Table, right: DataFrame) -> bool:
    return canonical(left) == canonical(right.toArrow())


def sql(kind: object) -> str:
    return SQL.get(str(kind), str(kind))


def line(number: int, value_at: int, type_at: int) -> pa.Table:
    """One row: each pair's value as a column, the first one's in a struct and as a map's value too."""
    kinds = [to_arrow_type(pair[type_at]) for pair in PAIRS]
    columns = {f"c{index}": pa.array([pair[value_at]], kinds[index]) for index, pair in enumerate(PAIRS)}
    value, kind = PAIRS[0][value_at], kinds[0]
    columns["s"] = pa.array([{"x": value}], pa.struct([("x", kind)]))
    columns["m"] = pa.array([[("k", value)]], pa.map_(pa.string(), kind))
    return pa.table({"id": pa.array([number]), **columns})


def same_feed(jvm: SparkSession, table: Table, start: int, end: int) -> bool:
    theirs = (
        jvm.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start).option("endingVersion", end)
    )
    ours = table.changes(start, end).drop(["_commit_timestamp"])
    return ours.num_rows > 0 and same(ours, theirs.load(table.url).drop("_commit_timestamp"))


@pytest.mark.parametrize("by", ["tahoe", "the JVM"])
def test_a_table_widened_by_one_is_read_equal_by_both_with_its_feed(jvm: SparkSession, path: str, by: str) -> None:
    table = Table.create(path, line(1, 2, 0).schema, properties=PROPERTIES)
    table.append(line(1, 2, 0))
    places = {**{f"c{index}": pair[1] for index, pair in enumerate(PAIRS)}, "s.x": PAIRS[0][1], "m.value": PAIRS[0][1]}
    for place, kind in places.items():
        if by == "tahoe":
            table.change_column(place, data_type=kind)
        else:
            jvm.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {place} TYPE {sql(kind)}")
    wide = line(2, 4, 1)
    if by == "tahoe":
        table.append(wide)
    else:
        schema = jvm.read.format("delta").load(path).schema
        jvm.createDataFrame(wide, schema).write.format("delta").mode("append").save(path)
    assert same(table.to_arrow(), jvm.read.format("delta").load(path))
    newest = table.version()
    # delta-spark refuses to show changes from before a type change.
    assert same_feed(jvm, table, newest, newest)
    assert len(table.changes(1)) == 2
    conditions = [f"c{index} = CAST('{pair[4]}' AS {sql(pair[1])})" for index, pair in enumerate(PAIRS)]
    assert jvm.read.format("delta").load(path).where(" AND ".join(conditions)).count() == 1
    jvm.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE id = 1")
    assert sorted(table.to_arrow(columns=["id"]).column("id").to_pylist()) == [2, 11]
    assert same(table.to_arrow(), jvm.read.format("delta").load(path))
    assert table.check(deep=True) == []


@pytest.mark.parametrize("mode", STARTS.values(), ids=STARTS)
def test_columns_renamed_dropped_and_added_again_are_the_same_to_the_jvm(jvm: SparkSession, path: str, mode: str | None) -> None:
    table = renamed_table(path, mode)
    assert same(table.to_arrow(), jvm.read.format("delta").load(path))
    jvm.sql(f"UPDATE delta.`{path}` SET a = 7, `{RENAMED}` = id + 1 WHERE `P art=1` = 'p1'")
    jvm.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN a TO `a a`")
    jvm.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN l")
    jvm.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (l BIGINT, a STRING)")
    jvm.sql(f"INSERT INTO delta.`{path}` (id, `P art=1`, l, a) VALUES (9, 'p1', 5, 'new')")
    assert same(table.to_arrow(), jvm.read.format("delta").load(path))
    assert [row["a a"] for row in table.to_arrow(filter="id = 1").to_pylist()] == [7]
    newest = table.version()
    assert same_feed(jvm, table, newest, newest)
    assert table.check(deep=True) == []


def test_variants_written_by_each_are_read_equal_by_both(jvm: SparkSession, path: str) -> None:
    jvm.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v VARIANT, s STRUCT<w: VARIANT>) USING delta TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    values = """id, IF(id % 3 < 2, parse_json(concat('{"a":', id, '}')), NULL) v, named_struct('w', parse_json('[1]')) s"""
    jvm.sql(f"INSERT INTO delta.`{path}` SELECT {values} FROM range(6)")
    table = Table(path)
    table.append(table.to_arrow(filter="id = 0").set_column(0, "id", pa.array([7])))
    table.append(pa.table({"id": [8]}))
    table.delete("id = 1")
    jvm.sql(f"UPDATE delta.`{path}` SET v = parse_json('true') WHERE id = 3")
    table.optimize()
    theirs = jvm.read.format("delta").load(path).selectExpr("id", "to_json(v) v")
    assert {row.id: row.v for row in theirs.collect()} == {
        0: '{"a":0}',
        2: None,
        3: "true",
        4: '{"a":4}',
        5: None,
        7: '{"a":0}',
        8: None,
    }
    assert sorted(table.to_arrow(columns=["id"], filter="v is null")["id"].to_pylist()) == [2, 5, 8]
    feed = jvm.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert feed.groupBy("_change_type").count().count() == len(set(table.changes(1)["_change_type"].to_pylist()))
    assert feed.count() == len(table.changes(1))
    assert table.check(deep=True) == []
