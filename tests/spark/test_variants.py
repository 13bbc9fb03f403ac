"""Variants on Spark: written unshredded unless the table says otherwise, changed, and read back by Spark and by Arrow."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from pyspark.sql.variant_utils import VariantUtils

from tahoe import Table
from tahoe.log.replay import add_files
from tahoe.tables import DeltaTable

ROWS = """SELECT id, IF(id % 3 < 2, parse_json(concat('{"a":', id, '}')), NULL) v, named_struct('w', parse_json('[1]')) s FROM range(6)"""


def made(spark, path: str, properties: str) -> Table:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v VARIANT, s STRUCT<w: VARIANT>) USING delta TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO delta.`{path}` {ROWS}")
    return Table(path)


def shown(spark, path: str) -> dict[int, str | None]:
    return {row.id: row.v for row in spark.read.format("delta").load(path).selectExpr("id", "to_json(v) v").collect()}


def kinds(table: Table) -> set[str]:
    return {
        str(pq.read_schema(table.url.removeprefix("file://") + "/" + add.path).field(1).type)
        for add in add_files(table.snapshot().files())
    }


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_they_are_written_and_changed_by_both(spark, plain, tmp_path, vectors):
    properties = f"'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = '{vectors}'"
    path = str(tmp_path / "t")
    table = made(spark, path, properties)
    assert kinds(table) == {"struct<value: binary not null, metadata: binary not null>"}
    rows = spark.read.format("delta").load(path)
    assert [row.id for row in rows.where("variant_get(v, '$.a', 'int') = 3").collect()] == [3]
    assert sorted(row.id for row in rows.where("v IS NULL").select("id").collect()) == [2, 5]
    assert sorted(table.to_arrow(columns=["id"], filter="v IS NULL")["id"].to_pylist()) == [2, 5]
    table.append(table.to_arrow(filter="id = 0").set_column(0, "id", [[7]]))
    # As a session of Spark Connect writes it.
    alone = plain.sql("SELECT 8L id, parse_json('[8]') v, named_struct('w', parse_json('8')) s")
    alone.write.format("delta").mode("append").save(path)
    changed = DeltaTable.forPath(spark, path)
    changed.delete("id = 4")
    changed.update("id = 1", {"v": "parse_json('\"u\"')"})
    source = spark.sql("SELECT 3L id, parse_json('true') v UNION ALL SELECT 9L, parse_json('null')")
    merge = changed.alias("t").merge(source.alias("s"), "s.id = t.id")
    merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()
    changed.optimize().executeCompaction()
    expected = {0: '{"a":0}', 1: '"u"', 2: None, 3: "true", 5: None, 7: '{"a":0}', 8: "[8]", 9: "null"}
    assert shown(spark, path) == shown(plain, path) == expected
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    deleted = feed.where("_change_type = 'delete'").selectExpr("to_json(v) v")
    assert [row.v for row in deleted.collect()] == ['{"a":4}']
    assert not table.check(deep=True)


def test_only_a_table_that_says_so_gets_them_taken_apart(spark, tmp_path):
    if spark.version < "4.1":
        pytest.skip("PySpark 4.0 writes no shredded variants")
    path = str(tmp_path / "t")
    table = made(spark, path, "'delta.enableVariantShredding' = 'true'")
    assert {"variantType", "variantShredding"} <= table.snapshot().config.protocol.reader_features
    assert all("typed_value" in kind for kind in kinds(table))
    assert shown(spark, path) == {0: '{"a":0}', 1: '{"a":1}', 2: None, 3: '{"a":3}', 4: '{"a":4}', 5: None}
    rows = spark.read.format("delta").load(path)
    assert rows.where("v IS NOT NULL AND variant_get(v, '$.a', 'int') > 2").count() == 2
    assert not table.check(deep=True)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableVariantShredding' = 'false')")
    spark.sql(f"UPDATE delta.`{path}` SET id = id")
    assert not any("typed_value" in kind for kind in kinds(table))
    assert table.to_arrow().num_rows == 6


SHAPE = "a INT, l ARRAY<STRING>, o STRUCT<n: DECIMAL(9, 2), t: TIMESTAMP, m: STRING>"
NESTED = """SELECT id, IF(id = 4, NULL, to_variant_object(named_struct('a', IF(id = 1, NULL, id), 'l', array('x', NULL),
    'o', named_struct('n', CAST(id AS DECIMAL(9, 2)) / 2, 't', timestamp_micros(id), 'm', true), 'rest', id * 0.5D))) v FROM range(5)
    UNION ALL SELECT 5, parse_json('[1, {"a": 2}]') UNION ALL SELECT 6, parse_json('{"l": [{"a": "é"}], "o": {}}')"""


def reported(table: Table) -> dict[int, object]:
    """The table's rows without Spark, decoded by PySpark's variant reader."""
    rows = table.to_arrow(columns=["id", "v"]).to_pylist()
    return {
        row["id"]: row["v"] and json.loads(VariantUtils.to_json(row["v"]["value"], row["v"]["metadata"], "UTC")) for row in rows
    }


def make_shredded(spark, path: str, *queries: str) -> None:
    """A table whose files have shredded variants, one file per query."""
    if spark.version < "4.1":
        pytest.skip("PySpark 4.0 writes no shredded variants")
    columns = "(id BIGINT, v VARIANT) USING delta TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    spark.sql(f"CREATE TABLE delta.`{path}` {columns}")
    spark.conf.set("spark.sql.variant.forceShreddingSchemaForTest", SHAPE)
    try:
        for query in queries:
            spark.sql(f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ * FROM ({query})")
    finally:
        spark.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")


def test_variants_shredded_by_spark_are_read_equal_without_it(spark, tmp_path):
    path = str(tmp_path / "t")
    make_shredded(spark, path, NESTED)
    table = Table(path)
    assert all("typed_value: timestamp" in kind for kind in kinds(table))
    expected = {row: None if text is None else json.loads(text) for row, text in shown(spark, path).items()}
    assert reported(table) == expected
    assert expected[2]["o"]["n"] == 1
    table.delete("id = 0")
    table.update({"id": "60"}, "id = 6")
    table.optimize()
    expected = {row if row != 6 else 60: value for row, value in expected.items() if row != 0}
    assert reported(table) == expected
    assert {row: None if text is None else json.loads(text) for row, text in shown(spark, path).items()} == expected
    ages = spark.sql(f"SELECT id FROM delta.`{path}` WHERE v:a::INT = 2 OR variant_get(v, '$[1].a', 'int') = 2 ORDER BY id")
    assert [row.id for row in ages.collect()] == [2, 5]


def test_optimize_without_spark_leaves_them_taken_apart(spark, tmp_path):
    path = str(tmp_path / "t")
    make_shredded(spark, path, *(f"SELECT id + {start} id, v FROM ({NESTED})" for start in (0, 10)))
    table = Table(path)
    before, expected = kinds(table), shown(spark, path)
    table.optimize()
    assert table.files().num_rows == 1
    assert kinds(table) == before
    assert all("typed_value: timestamp" in kind for kind in before)
    assert shown(spark, path) == expected
    assert reported(table) == {row: None if text is None else json.loads(text) for row, text in expected.items()}
    paths = spark.sql(
        f"SELECT id FROM delta.`{path}` WHERE variant_get(v, '$.a', 'int') = 2 OR v:l[0].a::STRING = 'é' ORDER BY id"
    )
    assert [row.id for row in paths.collect()] == [2, 6, 12, 16]
    assert not table.check(deep=True)
