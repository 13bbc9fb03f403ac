"""Columns of every name on Spark, through all that happens to a table; and types that Delta has none for, refused by name."""

from __future__ import annotations

import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import SchemaMismatch, Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.tables import DeltaTable

NAMES = ("a.b", "a,b", "a b", "a`\"'b", "ä€😀", "a;{c}(d)=\t/*c*/ --", " lead", "_metadata")
PARTS = NAMES[:2]
QUOTED = {name: quote_identifier(name) for name in NAMES}


def made(spark, path: str) -> str:
    columns = ", ".join(f"{name} STRING" for name in QUOTED.values())
    nested = ", ".join(f"{name}: BIGINT" for name in QUOTED.values())
    properties = (
        "'delta.columnMapping.mode' = 'id', 'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    )
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, s STRUCT<{nested}>, {columns}) USING delta "
        f"PARTITIONED BY ({', '.join(QUOTED[name] for name in PARTS)}) TBLPROPERTIES ({properties})"
    )
    return f"delta.`{path}`"


def rows(spark, last: int):
    frame = spark.range(last)
    nested = ", ".join(f"id AS {name}" for name in QUOTED.values())
    return frame.selectExpr("id", f"struct({nested}) AS s", *(f"concat('v', id % 3) AS {name}" for name in QUOTED.values()))


# tests/spark/test_names_under_stress.py has more names in most of these statements.
@pytest.mark.long
def test_a_column_may_have_any_name(spark, path, tmp_path):
    table = made(spark, path)
    rows(spark, 4).createOrReplaceTempView("named_rows")
    spark.sql(f"INSERT INTO {table} SELECT * FROM named_rows")
    rows(spark, 6).where("id > 3").write.format("delta").mode("append").save(path)
    every = " AND ".join(f"{name} = 'v1' AND s.{name} = 4" for name in QUOTED.values())
    assert [row.id for row in spark.sql(f"SELECT id FROM {table} WHERE {every}").collect()] == [4]
    assert spark.table(table).select(*QUOTED.values()).columns == list(NAMES)
    arguments = ", ".join(f"{name} = 'u', s.{name} = 70" for name in QUOTED.values())
    spark.sql(f"UPDATE {table} SET {arguments} WHERE {QUOTED[PARTS[1]]} = 'v1' AND id = 1")
    source = spark.sql("SELECT 2L AS id, 'v2' AS `a.b`, 'm' AS ` lead` UNION ALL SELECT 90L, 'v90', 'm'")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "s.id = t.id AND s.`a.b` = t.`a.b`")
    merge = merge.whenMatchedUpdate(set=dict.fromkeys(QUOTED.values(), "s.` lead`"))
    merge.whenNotMatchedInsert(values={"id": "s.id", "`a.b`": "s.`a.b`"}).execute()
    DeltaTable.forPath(spark, path).delete(f"{QUOTED[NAMES[-1]]} = 'v0' AND id = 0")
    spark.sql(f"OPTIMIZE {table} ZORDER BY ({', '.join(QUOTED[name] for name in NAMES[2:6])})")
    expected = {1: "u", 2: "m", 3: "v0", 4: "v1", 5: "v2"}
    shown = {row.id: row[2:] for row in spark.table(table).collect()}
    assert {row: set(values) for row, values in shown.items() if row != 90} == {row: {text} for row, text in expected.items()}
    core = Table(path).to_arrow().to_pylist()
    assert {row["id"]: tuple(row[name] for name in NAMES) for row in core} == shown
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert [row[0] for row in feed.where("_change_type = 'delete'").select(*QUOTED.values()).collect()] == ["v0"]
    out = str(tmp_path / "out")
    made(spark, out)
    stream = spark.readStream.format("delta").option("ignoreChanges", "true").load(path).writeStream.format("delta")
    stream = stream.option("checkpointLocation", str(tmp_path / "progress")).partitionBy(*PARTS).trigger(availableNow=True)
    stream.start(out).awaitTermination()
    assert {row.id: row[2:] for row in spark.read.format("delta").load(out).collect()} == shown
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN s.{QUOTED['a,b']} TO `b,a`")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (s.`x.y` INT AFTER {QUOTED['a b']}, `x.y` INT)")
    for each in (path, out):
        assert Table(each).check(deep=True, strict=True) == []


@pytest.mark.parametrize("kind", ["INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH"])
def test_a_type_that_tahoe_does_not_write_is_refused_by_name(spark, path, kind):
    with pytest.raises(Unsupported, match=f"'x' has the type {kind.split('(')[0].lower()}") as error:
        spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, x {kind}) USING delta")
    assert error.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta")
    with pytest.raises(Unsupported, match="of column 'x' is not supported"):
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN x {kind}")
    assert Table(path).version() == 0


@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_names_differ_in_more_than_their_case(spark, path, sensitive):
    spark.conf.set("spark.sql.caseSensitive", sensitive)
    try:
        for columns in ("a INT, A INT", "s STRUCT<a: INT, A: INT>"):
            with pytest.raises(SchemaMismatch, match="COLUMN_ALREADY_EXISTS"):
                spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
        spark.sql(f"CREATE TABLE delta.`{path}` (a INT) USING delta")
        with pytest.raises(SchemaMismatch, match="FIELD_ALREADY_EXISTS"):
            spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN A INT")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
