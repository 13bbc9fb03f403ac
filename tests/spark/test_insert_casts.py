"""Values of other types than the target columns: the casts of each entry point, and its refusals."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as sf

from tahoe.base.exceptions import SchemaMismatch
from tests.session_settings import with_settings

COLUMNS = {
    "b": ("BYTE", "'1'", 1),
    "i": ("INT", "'3'", 3),
    "d": ("DOUBLE", "'2.5'", 2.5),
    "n": ("DECIMAL(6,2)", "'12.345'", Decimal("12.35")),
    "bo": ("BOOLEAN", "'true'", True),
    "dt": ("DATE", "'2026-01-01'", datetime.date(2026, 1, 1)),
    "ts": ("TIMESTAMP_NTZ", "'2026-01-01 01:02:03'", datetime.datetime(2026, 1, 1, 1, 2, 3)),
    "a": ("ARRAY<INT>", "array('1')", [1]),
    "m": ("MAP<INT, DATE>", "map('1', '2026-01-01')", {1: datetime.date(2026, 1, 1)}),
    "s": ("STRUCT<x: INT, y: STRING>", "named_struct('x', '7', 'y', 8)", (7, "8")),
    "l": ("ARRAY<STRUCT<x: INT>>", "array(named_struct('x', '9'))", [(9,)]),
    "st": ("STRING", "array(1)", "[1]"),
}
DDL = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
VALUES = ", ".join(value for _, value, _ in COLUMNS.values())
QUERY = "SELECT " + ", ".join(f"{value} AS {name}" for name, (_, value, _) in COLUMNS.items())
ROW = tuple(value for _, _, value in COLUMNS.values())
SMALL = "id INT, s STRUCT<x: INT, y: STRING>, l LONG"


@pytest.fixture
def table(spark):
    def make(columns: str = SMALL, more: str = "") -> str:
        spark.sql("DROP TABLE IF EXISTS insert_casts")
        spark.sql(f"CREATE TABLE insert_casts ({columns}) USING delta {more}")
        return "insert_casts"

    yield make
    spark.sql("DROP TABLE IF EXISTS insert_casts")


def plain(value):
    """Rows as tuples at any depth."""
    if isinstance(value, list | tuple):
        parts = [plain(part) for part in value]
        return parts if type(value) is list else tuple(parts)
    return value


def rows(spark, name):
    return sorted((plain(row) for row in spark.table(name).collect()), key=str)


def test_every_entry_point_by_name_of_the_table_casts_values(spark, table):
    name = table(DDL)
    frame = spark.sql(QUERY)
    for write in (
        lambda: spark.sql(f"INSERT INTO {name} VALUES ({VALUES})"),
        lambda: spark.sql(f"INSERT OVERWRITE {name} {QUERY}"),
        lambda: spark.sql(f"INSERT OVERWRITE {name} ({', '.join(COLUMNS)}) {QUERY}"),
        lambda: spark.sql(f"INSERT OVERWRITE {name} BY NAME {QUERY}"),
        lambda: spark.sql(f"INSERT INTO {name} REPLACE WHERE true {QUERY}"),
        lambda: frame.write.mode("overwrite").insertInto(name),
        lambda: frame.write.format("delta").mode("overwrite").insertInto(name),
        lambda: frame.writeTo(name).overwrite(sf.lit(True)),
        lambda: frame.writeTo(name).overwritePartitions(),
        lambda: (spark.sql(f"TRUNCATE TABLE {name}"), frame.writeTo(name).append()),
        lambda: (spark.sql(f"TRUNCATE TABLE {name}"), frame.write.format("delta").mode("append").saveAsTable(name)),
    ):
        write()
        assert rows(spark, name) == [ROW]


@pytest.mark.every_case
def test_no_cast_drops_a_nested_field_that_the_table_lacks(either_session):
    spark, value = either_session, "named_struct('a', 1, 'b', 'lost')"
    for kind, more in (
        ("STRUCT<a: INT>", value),
        ("ARRAY<STRUCT<a: INT>>", f"array({value})"),
        ("MAP<STRING, STRUCT<a: INT>>", f"map('k', {value})"),
    ):
        spark.sql("DROP TABLE IF EXISTS nested_fields")
        spark.sql(f"CREATE TABLE nested_fields (n {kind}) USING delta")
        query = f"SELECT {more} AS n"
        for write in (
            lambda query=query: spark.sql(f"INSERT INTO nested_fields {query}"),
            lambda query=query: spark.sql(f"INSERT INTO nested_fields BY NAME {query}"),
            lambda query=query: spark.sql(query).write.format("delta").mode("append").saveAsTable("nested_fields"),
            lambda query=query: spark.sql(query).write.insertInto("nested_fields"),
            lambda query=query: spark.sql(query).writeTo("nested_fields").append(),
        ):
            with pytest.raises(SchemaMismatch, match=r"(?s)DELTA_METADATA_MISMATCH.*'n.*b' \(string\)"):
                write()
        assert spark.table("nested_fields").collect() == []
    spark.sql("DROP TABLE nested_fields")


def test_writes_by_path_and_replacements_cast_nothing(spark, table, tmp_path):
    name, path = table("id INT"), str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT) USING delta")
    frame = spark.sql("SELECT '1' AS id")
    for mode in ("append", "overwrite"):
        with pytest.raises(SchemaMismatch, match=r"(?s)DELTA_FAILED_TO_MERGE_FIELDS.*Table ID: .*'id'"):
            frame.write.format("delta").mode(mode).save(path)
    with pytest.raises(SchemaMismatch, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        frame.write.format("delta").mode("overwrite").saveAsTable(name)
    with with_settings(spark, {"spark.databricks.delta.dml.insert.dfByName.allowImplicitCasts": "false"}):
        for write in (frame.writeTo(name).append, lambda: frame.write.format("delta").mode("append").saveAsTable(name)):
            with pytest.raises(SchemaMismatch, match="DELTA_FAILED_TO_MERGE_FIELDS"):
                write()


def test_a_value_that_does_not_fit_is_an_error_that_names_the_column(spark, table):
    name = table("i INT, b BYTE, n DECIMAL(4,2), dt DATE, s STRUCT<x: INT>, a ARRAY<INT>, v VARCHAR(3)")
    for column, value, code in (
        ("i", "'x'", "CAST_INVALID_INPUT"),
        ("i", "'1.5'", "CAST_INVALID_INPUT"),
        ("i", "3000000000L", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("b", "300", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("n", "'123.45'", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ("n", "'many'", "CAST_INVALID_INPUT"),
        ("dt", "'nope'", "CAST_INVALID_INPUT"),
        ("s.x", "named_struct('x', 'y')", "CAST_INVALID_INPUT"),
        ("a.element", "array('y')", "CAST_INVALID_INPUT"),
        ("dt", "1", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"),
        ("i", "array(1)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        ("s", "5", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    ):
        with pytest.raises(SchemaMismatch) as raised:
            spark.sql(f"INSERT INTO {name} ({column.split('.')[0]}) SELECT {value}")
        assert raised.value.getCondition() == code and f"column '{column}'" in str(raised.value).replace("Column", "column")
    with pytest.raises(PySparkException, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        spark.sql(f"INSERT INTO {name} (v) SELECT 12345")
    assert rows(spark, name) == []


def test_the_policy_of_store_assignment_is_the_sessions(spark, table):
    name = table("i INT, l LONG, st STRING")
    with with_settings(spark, {"spark.sql.storeAssignmentPolicy": "STRICT"}):
        spark.sql(f"INSERT INTO {name} VALUES (1, 1, 5)")
        spark.sql("SELECT 2 AS l").writeTo(name).append()
        for write in (
            lambda: spark.sql(f"INSERT INTO {name} VALUES (1L, 1, 'x')"),
            lambda: spark.sql(f"INSERT INTO {name} (i) VALUES ('1')"),
            lambda: spark.sql(f"INSERT OVERWRITE {name} VALUES (1L, 1, 'x')"),
            lambda: spark.sql("SELECT 1L AS i").writeTo(name).append(),
        ):
            with pytest.raises(AnalysisException, match=r"(?s)CANNOT_UP_CAST_DATATYPE.*'i'.*STRICT"):
                write()
    with with_settings(spark, {"spark.sql.storeAssignmentPolicy": "LEGACY"}):
        spark.sql(f"INSERT INTO {name} VALUES ('x', 1, 5), ('7', 4294967297L, 6)")
    assert rows(spark, name) == [(1, 1, "5"), (7, 4294967297, "6"), (None, 1, "5"), (None, 2, None)]


def test_fields_of_structs_go_by_place_where_the_query_is_adjusted_else_by_name(spark, table):
    name = table()
    for statement in (
        f"INSERT INTO {name} SELECT 1 AS id, named_struct('y', 'n', 'x', 10) AS s, 1L AS l",  # names and types are the table's
        f"INSERT INTO {name} SELECT 2 AS other, named_struct('y', '20', 'x', 'p') AS s, 1L AS l",
        f"INSERT INTO {name} BY NAME SELECT 3 AS id, named_struct('y', 'n', 'x', 30) AS s",
        f"INSERT INTO {name} BY NAME SELECT '4' AS id, named_struct('y', '40', 'x', 'p') AS s",
        f"INSERT INTO {name} (s, id) SELECT named_struct('y', '50', 'x', 'p'), 5",
    ):
        spark.sql(statement)
    spark.sql("SELECT '6' AS ID, named_struct('y', 1, 'X', '60') AS s").writeTo(name).append()
    spark.sql("SELECT '7' AS id, named_struct('y', 2) AS s").writeTo(name).overwrite(sf.expr("id = 7"))
    assert [row[:2] for row in rows(spark, name)] == [
        *((1, (10, "n")), (2, (20, "p")), (3, (30, "n")), (4, (40, "p")), (5, (50, "p")), (6, (60, "1")), (7, (None, "2"))),
    ]


def test_columns_that_do_not_meet_those_of_the_table_are_errors_by_class(spark, table):
    name = table(f"{SMALL}, c INT NOT NULL DEFAULT 4", "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    struct = "named_struct('x', 1, 'y', 'q')"
    for statement, code in (
        ("VALUES (1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (f"SELECT 1, {struct}", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("SELECT 1, named_struct('x', 1), 1, 1", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (f"SELECT 1, {struct}, 1, 1, 1", "DELTA_METADATA_MISMATCH"),
        ("SELECT 1, named_struct('x', 1, 'y', 'q', 'z', 1), 1, 1", "DELTA_METADATA_MISMATCH"),
        ("SELECT 1, named_struct('x', named_struct('q', 1), 'y', 'q'), 1, 1", "DELTA_COLUMN_STRUCT_TYPE_MISMATCH"),
        ("BY NAME SELECT 1 AS nope", "DELTA_METADATA_MISMATCH"),
        ("BY NAME SELECT '1' AS id, 2 AS nope", "DELTA_MISSING_COLUMN"),
        (
            f"BY NAME SELECT '1' AS id, {struct} AS s, 1 AS l, 1 AS c, 4 AS z",
            "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        ),
        ("BY NAME SELECT 1 AS id, 1 AS ID", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("(id, l) VALUES (1)", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"),
        ("(id, nope) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("(id, id) VALUES (1, 2)", "COLUMN_ALREADY_EXISTS"),
    ):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(f"INSERT INTO {name} {statement}")
        assert raised.value.getCondition() == code, statement
    with pytest.raises(PySparkException, match=r"(?s)DELTA_NOT_NULL_CONSTRAINT_VIOLATED.*insert_casts.*'c'|'c'.*insert_casts"):
        spark.sql(f"INSERT INTO {name} VALUES (1, NULL, 1, NULL)")
    with pytest.raises(SchemaMismatch, match="Table ID: "):
        spark.sql("SELECT 1 AS id, 2 AS nope").writeTo(name).append()
    spark.sql(f"INSERT INTO {name} VALUES (1, NULL, DEFAULT, DEFAULT)")
    spark.sql(f"INSERT INTO {name} (id) VALUES ('2')")
    assert rows(spark, name) == [(1, None, None, 4), (2, None, None, 4)]


def test_columns_that_are_left_out_without_a_value_are_an_error_by_name(spark, table):
    name = table("a INT NOT NULL, b INT, g INT GENERATED ALWAYS AS (a + 1)")
    for statement in ("(b) VALUES (1)", "BY NAME SELECT 1 AS b"):
        with pytest.raises(SchemaMismatch, match=r"DELTA_INSERT_COLUMN_MISMATCH.*'a'.*must not be null"):
            spark.sql(f"INSERT INTO {name} {statement}")
    with with_settings(spark, {"spark.sql.defaultColumn.useNullsForMissingDefaultValues": "false"}):
        with pytest.raises(SchemaMismatch, match=r"DELTA_INSERT_COLUMN_MISMATCH.*'b'"):
            spark.sql(f"INSERT INTO {name} (a) VALUES (1)")
        spark.sql("SELECT 1 AS a").writeTo(name).append()
    assert rows(spark, name) == [(1, None, 2)]


def test_a_statement_by_name_adds_columns_where_the_session_lets_it(spark, table):
    name = table("id INT")
    with with_settings(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
        statement = f"INSERT INTO {name} BY NAME SELECT '1' AS id, 2 AS more"
        with (
            with_settings(spark, {"spark.databricks.delta.insert.byName.schemaEvolution.enabled": "false"}),
            pytest.raises(SchemaMismatch, match=r"TOO_MANY_DATA_COLUMNS.*insert_casts"),
        ):
            spark.sql(statement)
        spark.sql(statement)
    assert rows(spark, name) == [(1, 2)]


def test_a_schema_evolves_by_place_and_by_name_with_defaults_and_casts(spark, table):
    name = table("id INT, d INT DEFAULT 4", "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    with with_settings(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
        spark.sql(f"INSERT INTO {name} SELECT '1', 2, array(named_struct('x', 1)) AS l")
        spark.sql(f"INSERT INTO {name} BY NAME SELECT 'q' AS z, '2' AS id")
        spark.sql(f"INSERT INTO {name} VALUES (3, DEFAULT, NULL, NULL)")
        spark.sql(f"INSERT INTO {name} SELECT '4', 2, array(named_struct('y', '6', 'z', 7)), 'x'")
    assert rows(spark, name) == [
        (1, 2, [(1, None)], None),
        (2, 4, None, "q"),
        (3, 4, None, None),
        (4, 2, [(6, 7)], "x"),
    ]


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="INSERT WITH SCHEMA EVOLUTION comes with Spark 4.2")
def test_schema_evolution_goes_with_every_clause_of_insert(spark, table):
    name = table("id INT, p INT", "PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    for statement in (
        f"INTO {name} REPLACE WHERE id = 1 SELECT '1', 1, 'a' AS a",
        f"OVERWRITE {name} PARTITION (p = 2) SELECT '20', 'b' AS a",
        f"INTO {name} (id, p) VALUES (3, '3')",
        f"INTO {name} BY NAME SELECT '4' AS id, 'd' AS a, named_struct('x', 4) AS s",
        f"INTO {name} BY NAME SELECT 5 AS id, named_struct('x', 5, 'y', 6) AS s",
    ):
        spark.sql(f"INSERT WITH SCHEMA EVOLUTION {statement}")
    assert rows(spark, name) == [
        (1, 1, "a", None),
        (20, 2, "b", None),
        (3, 3, None, None),
        (4, None, "d", (4, None)),
        (5, None, None, (5, 6)),
    ]


def test_merge_casts_inserted_and_updated_values(spark, table):
    name = table(DDL)
    spark.sql(f"MERGE INTO {name} USING ({QUERY}) q ON false WHEN NOT MATCHED THEN INSERT *")
    assert rows(spark, name) == [ROW]
    changed = QUERY.replace("'3' AS i", "'4' AS i")
    spark.sql(f"MERGE INTO {name} USING ({changed}) q ON true WHEN MATCHED THEN UPDATE SET *")
    spark.sql(f"MERGE INTO {name} USING (SELECT '5' AS x) q ON false WHEN NOT MATCHED THEN INSERT (i) VALUES (q.x)")
    assert sorted(row[1] for row in rows(spark, name)) == [4, 5]
    for value, code in (("'z'", "CAST_INVALID_INPUT"), ("3000000000L", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE")):
        with pytest.raises(SchemaMismatch, match=rf"{code}.*column 'i'"):
            spark.sql(f"MERGE INTO {name} USING (SELECT {value} AS i) q ON false WHEN NOT MATCHED THEN INSERT (i) VALUES (q.i)")
    with pytest.raises(SchemaMismatch, match=r"DATATYPE_MISMATCH.*'i'"):
        spark.sql(f"MERGE INTO {name} USING (SELECT array(1) AS i) q ON false WHEN NOT MATCHED THEN INSERT (i) VALUES (q.i)")
    with with_settings(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
        spark.sql(f"MERGE INTO {name} USING (SELECT '6' AS i, 'n' AS z) q ON false WHEN NOT MATCHED THEN INSERT *")
        with pytest.raises(SchemaMismatch, match="DELTA_FAILED_TO_MERGE_FIELDS"):
            spark.sql(f"MERGE INTO {name} USING (SELECT true AS i) q ON false WHEN NOT MATCHED THEN INSERT *")
    assert sorted(row[1] for row in rows(spark, name)) == [4, 5, 6]
