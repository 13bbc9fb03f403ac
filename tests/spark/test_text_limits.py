"""char(n) and varchar(n): every entry point of Spark cuts off and pads blanks alike, and refuses longer texts."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, CharType, MapType, StringType, StructField, StructType, VarcharType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvariantViolation, TahoeError
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.tables import DeltaTable

COLUMNS = "k INT, c CHAR(3), v VARCHAR(3), s STRUCT<`a b`: VARCHAR(3), n: INT>, l ARRAY<CHAR(2)>, m MAP<VARCHAR(2), VARCHAR(3)>"
GOOD = "1 k, 'a' c, 'abc  ' v, named_struct('a b', 'abc ', 'n', 1) s, array('x', null, 'yy  ') l, map('k ', 'abc   ') m"
STORED = {"c": "a  ", "v": "abc", "s": {"a b": "abc", "n": 1}, "l": ["x ", None, "yy"], "m": [("k ", "abc")]}
TOO_LONG = {
    "c": ("'abcd'", "c"),
    "v": ("'abcd'", "v"),
    "s": ("named_struct('a b', 'abcd', 'n', 1)", "s.a b"),
    "l": ("array('x', 'xyz')", "l.element"),
    "m": ("map('k', 'abcd')", "m.value"),
}


def stored(path: str) -> list[dict[str, object]]:
    return [{name: row[name] for name in STORED} for row in Table(path).to_arrow().to_pylist()]


@pytest.fixture
def path(spark, tmp_path):
    actual = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{actual}` ({COLUMNS}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    return actual


def test_the_schema_is_as_spark_and_the_reference_keep_it(spark, path):
    fields = {item["name"]: item for item in json.loads(Table(path).snapshot().metadata.schema_string)["fields"]}
    assert {name: item["metadata"].get(DECLARED_TYPE) for name, item in fields.items()} == {
        "k": None,
        "c": "char(3)",
        "v": "varchar(3)",
        "s": "struct<`a b`:varchar(3),n:int>",
        "l": "array<char(2)>",
        "m": "map<varchar(2),varchar(3)>",
    }
    assert fields["c"]["type"] == "string"
    assert fields["l"]["type"]["elementType"] == "string"
    shown = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE delta.`{path}`").collect()}
    assert (shown["c"], shown["v"], shown["l"]) == ("char(3)", "varchar(3)", "array<char(2)>")
    made = DeltaTable.create(spark).location(f"{path}-built").addColumn("c", "char(3)").addColumn("v", VarcharType(3))
    made = made.addColumns(StructType([StructField("l", ArrayType(MapType(StringType(), CharType(2))))])).execute()
    assert [item.metadata.get(DECLARED_TYPE) for item in Table(f"{path}-built").schema()] == [
        "char(3)",
        "varchar(3)",
        "array<map<string,char(2)>>",
    ]


def test_each_way_of_writing_cuts_off_and_fills_up(spark, path):
    rows = spark.sql(f"SELECT {GOOD}")
    rows.createOrReplaceTempView("limited_rows")
    rows.write.format("delta").mode("append").save(path)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM limited_rows")
    Table(path).append(rows.selectExpr("k", "c", "v", "s", "l", "m").toArrow())
    spark.sql(f"MERGE INTO delta.`{path}` t USING (SELECT * FROM limited_rows) s ON t.k = s.k + 1 WHEN NOT MATCHED THEN INSERT *")
    DeltaTable.forPath(spark, path).update("k = 1", {"c": "'a  '", "v": "'abc    '"})
    assert stored(path) == [STORED] * 4
    assert spark.read.format("delta").load(path).where("c = 'a' AND l[0] = 'x '").count() == 4
    Table(path).update({"v": "'abc '"})
    assert stored(path) == [STORED] * 4


def test_the_change_feed_shows_the_rows_as_the_table_has_them(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (k INT, c CHAR(3), v VARCHAR(3)) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    try:
        spark.sql("SELECT 1 k, 'a' c, 'too long' v").write.format("delta").mode("append").save(path)
    finally:
        spark.conf.unset("spark.sql.legacy.charVarcharAsString")
    source = "SELECT 1 k, 'm' c, 'w     ' v UNION ALL SELECT 5, 'n', 'u     '"
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING ({source}) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    rows = pa.table({"k": [5, 6], "c": ["x", "y"], "v": ["p    ", "q    "]})
    Table(path).merge(rows, "target.k = source.k").when_matched_update_all().when_not_matched_insert_all().execute()
    feed = Table(path).changes(2).select(["_change_type", "k", "c", "v"]).to_pylist()
    assert {tuple(row.values()) for row in feed} == {
        ("update_preimage", 1, "a  ", "too long"),
        ("update_postimage", 1, "m  ", "w  "),
        ("insert", 5, "n  ", "u  "),
        ("update_preimage", 5, "n  ", "u  "),
        ("update_postimage", 5, "x  ", "p  "),
        ("insert", 6, "y  ", "q  "),
    }


@pytest.mark.parametrize("column", list(TOO_LONG))
def test_each_writer_refuses_texts_that_are_too_long(spark, path, column):
    value, place = TOO_LONG[column]
    bad = spark.sql(f"SELECT {GOOD}").drop(column).selectExpr("*", f"{value} {column}")
    ways = [
        lambda: bad.write.format("delta").mode("append").save(path),
        lambda: Table(path).append(bad.toArrow()),
    ]
    if column == "v":
        spark.sql(f"INSERT INTO delta.`{path}` SELECT {GOOD}")
        bad.createOrReplaceTempView("too_long")
        ways += [
            lambda: spark.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT * FROM too_long"),
            lambda: spark.sql(f"UPDATE delta.`{path}` SET v = 'abcd'"),
            lambda: DeltaTable.forPath(spark, path).update(None, {"v": "'abcd'"}),
            lambda: Table(path).update({"v": "'abcd'"}),
            lambda: spark.sql(f"MERGE INTO delta.`{path}` t USING too_long s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v"),
        ]
    before = Table(path).version()
    for number, way in enumerate(ways):
        with pytest.raises(Exception, match=r"EXCEED_CHAR_VARCHAR_LIMIT|EXCEED_LIMIT_LENGTH") as caught:
            way()
        if isinstance(caught.value, InvariantViolation):
            assert caught.value.facts["column"].endswith(place), number
    assert Table(path).version() == before


def test_as_strings_nothing_is_compared_with_them(spark, path):
    spark.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    try:
        spark.sql(f"SELECT {GOOD}").drop("v").selectExpr("*", "'abcd' v").write.format("delta").mode("append").save(path)
    finally:
        spark.conf.unset("spark.sql.legacy.charVarcharAsString")
    assert stored(path)[0]["v"] == "abcd"


ALTERED = [
    ("v", "VARCHAR(5)", "varchar(5)"),
    ("v", "STRING", None),
    ("c", "STRING", None),
    ("c", "VARCHAR(3)", "varchar(3)"),
    ("v", "VARCHAR(2)", "NOT_SUPPORTED_CHANGE_COLUMN"),
    ("c", "CHAR(4)", "NOT_SUPPORTED_CHANGE_COLUMN"),
    ("plain", "VARCHAR(100)", "NOT_SUPPORTED_CHANGE_COLUMN"),
    ("plain", "STRING COLLATE UTF8_LCASE", "DELTA_UNSUPPORTED_DATA_TYPES"),
]


def test_alter_column_widens_and_no_more(spark, tmp_path):
    for number, (column, expected_rows, expected) in enumerate(ALTERED):
        path = str(tmp_path / str(number))
        spark.sql(f"CREATE TABLE delta.`{path}` (c CHAR(3), v VARCHAR(3), plain STRING) USING delta")
        statement = f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} TYPE {expected_rows}"
        if expected is not None and expected.isupper():
            with pytest.raises(TahoeError, match=expected):
                spark.sql(statement)
            continue
        spark.sql(statement)
        assert Table(path).schema().field(column).metadata.get(DECLARED_TYPE) == expected, statement
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN w VARCHAR(2)")
    with pytest.raises(InvariantViolation, match="varchar"):
        Table(path).append(pa.table({"w": ["abc"]}))


def test_a_copy_by_a_data_frame_has_the_declared_types(spark, path, tmp_path):
    spark.sql(f"INSERT INTO delta.`{path}` SELECT {GOOD}")
    spark.read.format("delta").load(path).select("c", "l").write.format("delta").save(str(tmp_path / "copy"))
    assert [item.metadata.get(DECLARED_TYPE) for item in Table(str(tmp_path / "copy")).schema()] == [
        "char(3)",
        "array<char(2)>",
    ]


def test_a_filter_without_spark_on_char_is_refused_for_it_compares_as_if_filled_up(spark, path):
    with pytest.raises(TahoeError, match="TAHOE_COLLATED_COLUMN"):
        Table(path).to_arrow(filter="c = 'a'")
    assert Table(path).to_arrow(filter="v = 'a'").num_rows == 0
