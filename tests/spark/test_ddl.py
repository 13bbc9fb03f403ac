"""DDL as in delta-spark 4.4.0, statement by statement; each case names delta-spark's behavior."""

from __future__ import annotations

import pytest

from tahoe import Table
from tahoe.base.exceptions import InvariantViolation, TahoeError
from tests.spark.entries import named  # noqa: F401 - a fixture


def properties(spark, name):
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    return {key: value for key, value in rows if not key.startswith(("delta.min", "delta.feature."))}


def code(call, *arguments):
    with pytest.raises(TahoeError) as error:
        call(*arguments)
    return error.value.code


def test_keys_of_users_differ_in_case_and_keys_of_delta_do_not(spark, named):  # noqa: F811
    for name in named("SELECT 1 AS id").names:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('key' = '1', 'KEY' = '2')")
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('kEy' = '3')")
        assert properties(spark, name) == {"key": "1", "KEY": "2", "kEy": "3"}
        spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('Key')")
        spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('KEY')")
        assert properties(spark, name) == {"key": "1", "kEy": "3"}
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('DELTA.appendonly' = 'true')")
        assert properties(spark, name)["delta.appendOnly"] == "true"
        spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.APPENDONLY', 'key', 'kEy')")
        assert properties(spark, name) == {}


def test_a_constraint_keeps_the_case_that_create_table_gave_its_name(spark, tmp_path):
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {name} (id INT) USING delta TBLPROPERTIES ('delta.constraints.MyC' = 'id > 0')")
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT myc CHECK (id > 1)")  # in lower case, which is another one
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT OTHER CHECK (id > 2)")
    actual = {"delta.constraints.MyC": "id > 0", "delta.constraints.myc": "id > 1", "delta.constraints.other": "id > 2"}
    assert properties(spark, name) == actual
    assert code(spark.sql, f"ALTER TABLE {name} ADD CONSTRAINT Other CHECK (id > 3)") == "DELTA_CONSTRAINT_ALREADY_EXISTS"
    with pytest.raises(InvariantViolation, match="MyC"):
        spark.sql(f"INSERT INTO {name} VALUES (-1)")
    spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT MYC")
    assert "delta.constraints.myc" not in properties(spark, name) and "delta.constraints.MyC" in properties(spark, name)
    assert (
        code(spark.sql, f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.constraints.new' = 'id > 5')") == "DELTA_ADD_CONSTRAINTS"
    )
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.constraints.MyC')")
    assert properties(spark, name) == {"delta.constraints.other": "id > 2"}
    reserved = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"
    assert code(spark.sql, f"ALTER TABLE {name} ADD CONSTRAINT {reserved} CHECK (id > 1)") == "DELTA_INVALID_CONSTRAINT_NAME"
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {reserved.lower()} CHECK (id > 1)")


def test_save_as_table_does_not_overwrite_a_table_elsewhere(spark, tmp_path):
    here, there = f"{tmp_path}/here", f"{tmp_path}/there"
    spark.range(3).write.format("delta").option("path", here).saveAsTable("placed")
    try:
        for mode, path, expected in (
            ("overwrite", there, "DELTA_TABLE_LOCATION_MISMATCH"),
            ("overwrite", here, None),
            ("append", here, None),
        ):
            writer = spark.range(3).write.format("delta").mode(mode).option("path", path)
            if expected is None:
                writer.saveAsTable("placed")
            else:
                assert code(writer.saveAsTable, "placed") == expected
        assert spark.table("placed").count() == 6 and not Table(there).exists()
    finally:
        spark.sql("DROP TABLE placed")


def test_a_variant_column_comes_to_an_existing_table(spark, named):  # noqa: F811
    for statement in (
        "ALTER TABLE {t} ADD COLUMN v VARIANT",
        "ALTER TABLE {t} ADD COLUMNS (s STRUCT<a: VARIANT>)",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS id, parse_json('1') AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "CREATE OR REPLACE TABLE {t} (v VARIANT) USING delta",
    ):
        table = named("SELECT 1 AS id")
        spark.sql(statement.format(t=table.names[1]))
        assert "variantType" in table.table.snapshot().config.features, statement
    table = named("SELECT 1 AS id")
    spark.sql("SELECT 2 AS id, parse_json('[1]') AS v").write.format("delta").mode("append").option("mergeSchema", True).save(
        table.path
    )
    assert sorted(map(tuple, spark.sql(f"SELECT id, CAST(v AS STRING) FROM {table.name}").collect())) == [(1, None), (2, "[1]")]


def test_not_null_is_set_after_the_rows_were_validated(spark, named):  # noqa: F811
    table = named("SELECT id, named_struct('a', id) AS s, array(named_struct('x', 1)) AS l FROM VALUES (1), (NULL) AS r(id)")
    for name in table.names:
        for column in ("id", "s.a"):
            assert code(spark.sql, f"ALTER TABLE {name} ALTER COLUMN {column} SET NOT NULL") == "DELTA_NEW_NOT_NULL_VIOLATION"
        assert code(spark.sql, f"ALTER TABLE {name} ALTER COLUMN l.element.x SET NOT NULL") == "DELTA_NESTED_NOT_NULL_CONSTRAINT"
    spark.sql(f"DELETE FROM {table.name} WHERE id IS NULL")
    for name, column in zip(table.names, ("id", "s.a"), strict=True):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} SET NOT NULL")
    for values in ("NULL, named_struct('a', 1), NULL", "1, named_struct('a', NULL), NULL", "1, NULL, NULL"):
        with pytest.raises(Exception, match=r"(?i)not.null"):
            spark.sql(f"INSERT INTO {table.name} SELECT {values}")
    spark.sql(f"INSERT INTO {table.name} SELECT 2, named_struct('a', 1L), NULL")
    assert table.table.check() == []


def test_not_null_inside_arrays_and_maps_is_refused(spark, tmp_path):
    name = f"delta.`{tmp_path / 't'}`"
    for column in (
        "ARRAY<STRUCT<x: INT NOT NULL>>",
        "MAP<STRING, STRUCT<x: INT NOT NULL>>",
        "STRUCT<l: ARRAY<STRUCT<x: INT NOT NULL>>>",
    ):
        assert code(spark.sql, f"CREATE TABLE {name} (a {column}) USING delta") == "DELTA_NESTED_NOT_NULL_CONSTRAINT"
        assert not (tmp_path / "t").exists()
    spark.sql("SELECT array(named_struct('x', 1)) AS a").write.format("delta").save(str(tmp_path / "t"))
    assert Table(tmp_path / "t").schema().field("a").data_type.element_type.field("x").nullable


def test_a_column_is_not_renamed_to_a_name_in_use(spark, named):  # noqa: F811
    for name in named("SELECT 1 AS id, 2 AS b", delta__columnMapping__mode="name").names:
        for new in ("id", "ID", "b"):
            assert code(spark.sql, f"ALTER TABLE {name} RENAME COLUMN id TO {new}") == "FIELD_ALREADY_EXISTS"


VIEWS = [
    "OPTIMIZE {v}",
    "DESCRIBE HISTORY {v}",
    "DESCRIBE DETAIL {v}",
    "VACUUM {v}",
    "GENERATE symlink_format_manifest FOR TABLE {v}",
    "REORG TABLE {v} APPLY (PURGE)",
    "ALTER TABLE {v} DROP FEATURE deletionVectors",
    "ALTER TABLE {v} ADD CONSTRAINT c CHECK (id > 1)",
    "ALTER TABLE {v} DROP CONSTRAINT c",
]


def test_a_view_is_no_table_to_statements_of_delta(spark, named):  # noqa: F811
    table = named("SELECT 1 AS id")
    spark.sql(f"CREATE OR REPLACE VIEW lasting_view AS SELECT * FROM {table.name}")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW passing_view AS SELECT * FROM {table.name}")
    try:
        for view in ("lasting_view", "default.lasting_view", "passing_view"):
            for statement in VIEWS:
                assert code(spark.sql, statement.format(v=view)) == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", statement
            assert code(spark.sql, f"RESTORE {view} TO VERSION AS OF 0") == "DELTA_ONLY_OPERATION"
    finally:
        spark.sql("DROP VIEW lasting_view")


def test_describe_detail_of_a_table_of_another_format_shows_its_entry(spark, tmp_path):
    spark.sql("CREATE TABLE plain_detail (id INT, p INT) USING parquet PARTITIONED BY (p) COMMENT 'c' TBLPROPERTIES ('a' = 'b')")
    try:
        actual = spark.sql("DESCRIBE DETAIL plain_detail").first().asDict()
        known = {key: value for key, value in actual.items() if value is not None and key not in ("createdAt", "location")}
        expected = {
            "format": "parquet",
            "name": "spark_catalog.default.plain_detail",
            "description": "c",
            "partitionColumns": ["p"],
        }
        assert known == {**expected, "properties": {"a": "b"}}
        assert actual["location"].endswith("/plain_detail")
        assert code(spark.sql, "DESCRIBE HISTORY plain_detail") == "DELTA_ONLY_OPERATION"
    finally:
        spark.sql("DROP TABLE plain_detail")


def test_a_check_constraint_that_is_no_expression_is_a_syntax_error(spark, named):  # noqa: F811
    for name in named("SELECT 1 AS id").names:
        for condition in ("id >", "id > 1 +", "(id > 1", "id > 'abc", ""):
            with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
                spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT c CHECK ({condition})")


def test_a_column_is_changed_once_in_a_statement(spark, named):  # noqa: F811
    for name in named("SELECT 1 AS id, named_struct('a', 1) AS s").names:
        for changes, kind in (("id COMMENT 'a', ID COMMENT 'b'", "SAME"), ("s COMMENT 'a', s.a COMMENT 'b'", "PARENT_CHILD")):
            assert code(spark.sql, f"ALTER TABLE {name} ALTER COLUMN {changes}") == f"NOT_SUPPORTED_CHANGE_{kind}_COLUMN"
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN id COMMENT 'a', s.a COMMENT 'b'")


def test_no_clause_of_a_statement_is_ignored(spark, named, tmp_path):  # noqa: F811
    table = named("SELECT 1 AS id, 2 AS p", partition_by=["p"])
    assert code(spark.sql, f"SHOW COLUMNS IN default.{table.name} IN other") == "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE"
    assert spark.sql(f"SHOW COLUMNS IN {table.name} IN default").count() == 2
    assert code(spark.sql, f"SHOW CREATE TABLE {table.name} AS SERDE") == "DELTA_OPERATION_NOT_ALLOWED"
    for layout in ("PARTITIONED BY (id)", "CLUSTER BY (id)"):
        statement = f"CREATE TABLE adopted USING delta {layout} LOCATION '{table.path}'"
        assert code(spark.sql, statement) == "DELTA_SCHEMA_NOT_PROVIDED"
    assert not spark.catalog.tableExists("adopted")
    assert (
        spark.sql(f"DESCRIBE HISTORY {table.name} LIMIT 0").count() == 0
        and spark.sql(f"DESCRIBE HISTORY {table.name} LIMIT 9").count() == 1
    )
    with pytest.raises(TahoeError, match="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"):
        spark.sql(f"ALTER TABLE {table.name} ADD CONSTRAINT c CHECK (id + 1)")
    assert (
        code(spark.sql, "CREATE TABLE collated (s STRING) USING delta DEFAULT COLLATION UTF8_LCASE")
        == "DELTA_UNSUPPORTED_DATA_TYPES"
    )


def test_a_temporary_view_over_a_path_follows_its_table(spark, named):  # noqa: F811
    table = named("SELECT 1 AS id")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW `odd view` USING delta OPTIONS (path '{table.path}')")
    spark.sql(f"CREATE TEMPORARY VIEW older USING delta OPTIONS (path '{table.path}', versionAsOf '0')")
    spark.sql(f"CREATE GLOBAL TEMPORARY VIEW everywhere USING delta OPTIONS (path '{table.path}')")
    try:
        spark.sql(f"INSERT INTO {table.name} VALUES (2)")
        assert [spark.table(view).count() for view in ("`odd view`", "older", "global_temp.everywhere")] == [2, 1, 2]
        with pytest.raises(Exception, match="ALREADY_EXISTS"):
            spark.sql(f"CREATE TEMPORARY VIEW older USING delta OPTIONS (path '{table.path}')")
        columns = f"CREATE TEMPORARY VIEW new_view (id INT) USING delta OPTIONS (path '{table.path}')"
        assert code(spark.sql, columns) == "DELTA_UNSUPPORTED_SCHEMA_DURING_READ"
    finally:
        for view in ("`odd view`", "older", "global_temp.everywhere"):
            spark.sql(f"DROP VIEW {view}")


REJECTED = [
    "CREATE TABLE {t} (id INT, ID INT) USING delta {location}",
    "CREATE TABLE {t} (id INT) USING delta PARTITIONED BY (x) {location}",
    "CREATE TABLE {t} (`a b` INT) USING delta {location}",
    "CREATE TABLE {t} (id INT) USING delta {location} TBLPROPERTIES ('delta.nosuch' = '1')",
    "CREATE TABLE {t} (id INT) USING delta {location} TBLPROPERTIES ('delta.constraints.c' = 'nosuch > 1')",
    "CREATE TABLE {t} (id INT, g INT GENERATED ALWAYS AS (nosuch + 1)) USING delta {location}",
    "CREATE TABLE {t} (id INT DEFAULT 1) USING delta {location}",
    "CREATE TABLE {t} (s STRING COLLATE UTF8_LCASE) USING delta {location}",
    "CREATE TABLE {t} USING delta {location} AS SELECT 1 AS a, 2 AS a",
    "CREATE TABLE {t} USING delta {location} AS SELECT 1 AS `a b`",
    "CREATE TABLE {t} USING delta {location} AS SELECT IF(id < 2, id, CAST(raise_error('boom') AS BIGINT)) AS id FROM range(4)",
    "CREATE OR REPLACE TABLE {t} USING delta {location} AS SELECT IF(id < 2, id, CAST(raise_error('boom') AS BIGINT)) AS id FROM range(4)",
]


def test_a_rejected_create_leaves_no_directory_behind(spark, tmp_path):
    spark.sql(f"CREATE DATABASE rejected LOCATION '{tmp_path}/managed'")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    try:
        for number, statement in enumerate(REJECTED):
            path = f"{tmp_path}/t{number}"
            names = {"rejected.managed": "", "rejected.external": f"LOCATION '{path}'", f"delta.`{path}`": ""}
            for name, location in names.items():
                with pytest.raises(Exception, match=r".+"):
                    spark.sql(statement.format(t=name, location=location))
                assert sorted(path.name for path in tmp_path.rglob("*")) == before, statement
        # The views of other tests are temporary.
        assert spark.sql("SHOW TABLES IN rejected").where("not isTemporary").count() == 0
    finally:
        spark.sql("DROP DATABASE rejected CASCADE")
