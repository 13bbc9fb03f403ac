"""UPDATE, DELETE and MERGE as delta-spark decides them, in SQL and by `DeltaTable`."""

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from tahoe.base.exceptions import TahoeError
from tahoe.tables import DeltaTable
from tests.spark.entries import named  # noqa: F401 - a fixture

ROW = "SELECT 1 AS a, 'x' AS b, named_struct('x', 1, 'y', 2) AS s"
SOURCE = "(SELECT * FROM VALUES (1, 10, 7), (2, 20, 8) AS u(a, n, c)) u ON {t}.a = u.a"
CONFLICT, DUPLICATE = "DELTA_CONFLICT_SET_COLUMN", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"
ASSIGNED_TWICE = {
    "UPDATE {t} SET a = 5, a = 6": CONFLICT,
    "UPDATE {t} SET a = 5, A = 6": CONFLICT,
    "UPDATE {t} SET a = 5, {t}.a = 6 WHERE false": CONFLICT,
    "UPDATE {t} AS k SET a = 5, k.a = 6": CONFLICT,
    "UPDATE {t} SET a = DEFAULT, a = 6": CONFLICT,
    "UPDATE {t} SET s.x = 5, s.x = 6": CONFLICT,
    "UPDATE {t} SET s.x = 5, {t}.s.X = 6": CONFLICT,
    "UPDATE {t} SET s.x = 5, s = {t}.s": CONFLICT,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN MATCHED THEN UPDATE SET a = 5, a = 6": CONFLICT,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN MATCHED THEN UPDATE SET a = 5, {{t}}.A = 6": CONFLICT,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN MATCHED THEN UPDATE SET s.x = 5, s.x = 6": CONFLICT,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = 5, a = 6": CONFLICT,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN NOT MATCHED THEN INSERT (a, a) VALUES (3, 4)": DUPLICATE,
    # delta-spark takes the first of these two values and drops the other one.
    f"MERGE INTO {{t}} USING {SOURCE} WHEN NOT MATCHED THEN INSERT (a, A) VALUES (3, 4)": DUPLICATE,
    f"MERGE INTO {{t}} USING {SOURCE} WHEN NOT MATCHED THEN INSERT (a, {{t}}.a) VALUES (3, 4)": DUPLICATE,
    f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} USING {SOURCE} WHEN MATCHED THEN UPDATE SET c = 5, c = 6": CONFLICT,
    f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} USING {SOURCE} WHEN NOT MATCHED THEN INSERT (c, c) VALUES (5, 6)": DUPLICATE,
    "INSERT INTO {t} (a, a) VALUES (3, 4)": "COLUMN_ALREADY_EXISTS",
    "INSERT OVERWRITE {t} (a, A) VALUES (3, 4)": "COLUMN_ALREADY_EXISTS",
}


def code_of(error: Exception) -> str:
    return error.code if isinstance(error, TahoeError) else str(error.getCondition())  # type: ignore[attr-defined]


def test_a_column_or_field_that_is_assigned_twice_is_an_error(spark, named):  # noqa: F811
    target = named(ROW)
    for statement, code in ASSIGNED_TWICE.items():
        with pytest.raises((TahoeError, AnalysisException)) as caught:
            spark.sql(statement.format(t=target.name))
        assert code_of(caught.value) == code, statement
    assert target.table.version() == 0


def test_a_column_or_field_that_a_program_assigns_twice_is_an_error(spark, named):  # noqa: F811
    target = named(ROW)
    table = DeltaTable.forPath(spark, target.path).alias("t")
    merge = table.merge(spark.range(3).toDF("id").alias("u"), "t.a = u.id")
    calls = [
        (lambda: table.update(set={"a": "5", "A": "6"}), CONFLICT),
        (lambda: table.update(set={"a": "5", "t.a": "6"}), CONFLICT),
        (lambda: table.update(set={"s": "s", "s.x": "6"}), CONFLICT),
        (merge.whenMatchedUpdate(set={"a": "5", "t.a": "6"}).execute, CONFLICT),
        (merge.whenNotMatchedInsert(values={"a": "5", "t.a": "6"}).execute, DUPLICATE),
        (lambda: target.table.update({"a": "5", "`a`": "6"}), CONFLICT),
        (
            target.table.merge(pa.table({"id": [1]}), "target.a = source.id")
            .when_not_matched_insert({"a": "5", "A": "6"})
            .execute,
            DUPLICATE,
        ),
    ]
    for number, (call, code) in enumerate(calls):
        with pytest.raises(TahoeError) as caught:
            call()
        assert caught.value.code == code, number
    assert target.table.version() == 0


AMBIGUOUS = [
    "WHEN MATCHED AND n = 10 THEN UPDATE SET v = n",
    "WHEN MATCHED AND n = 99 THEN DELETE",
    "WHEN MATCHED AND true THEN DELETE",
    "WHEN MATCHED AND n = 10 THEN DELETE WHEN MATCHED THEN DELETE",
    "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (id, n) WHEN NOT MATCHED BY SOURCE AND v = 99 THEN UPDATE SET v = 0",
    "WHEN MATCHED AND n = 10 THEN UPDATE SET v = n WHEN NOT MATCHED BY SOURCE THEN DELETE",
]
UNAMBIGUOUS = {
    "AND n = 10 WHEN MATCHED THEN UPDATE SET v = n": [(1, 10), (2, 2)],
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0": [(2, 0)],
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (id, n)": [(1, 1), (2, 2), (9, 90)],
}
# No file can have a row that a clause takes, so that none is read.
UNREAD = [
    "WHEN MATCHED AND v > 5 AND n = 10 THEN DELETE WHEN MATCHED AND v < 0 THEN UPDATE SET v = n",
    "WHEN MATCHED AND false THEN DELETE",
]


@pytest.mark.parametrize("at_most_here", [2**20, 0], ids=["few pairs", "many pairs"])
def test_two_matches_of_one_row_are_an_error_whatever_the_conditions_of_the_clauses(spark, named, monkeypatch, at_most_here):  # noqa: F811
    monkeypatch.setattr("tahoe.spark.commands.merge.pairs._MOST_PAIRS_HERE", at_most_here)
    target = named("SELECT * FROM VALUES (1, 1), (2, 2) AS t(id, v)")
    merge = f"MERGE INTO {target.name} t USING (SELECT * FROM VALUES (1, 10), (1, 20), (9, 90) AS u(id, n)) u ON t.id = u.id "
    for clauses in AMBIGUOUS:
        with pytest.raises(TahoeError) as caught:
            spark.sql(merge + clauses)
        assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", clauses
    assert target.table.version() == 0
    for clauses, rows in UNAMBIGUOUS.items():
        spark.sql(merge + clauses)
        assert target.rows() == rows, clauses
        target.table.restore(0)
    version = target.table.version()
    for clauses in UNREAD:
        spark.sql(merge + clauses)
        assert target.table.version() == version, clauses


ROWS = "SELECT * FROM VALUES (0, 3), (1, 2), (1, 7), (2, 1) AS t(key, value)"
VIEWS = {
    "all columns": "SELECT * FROM {t}",
    "another alias": "SELECT * FROM (SELECT * FROM {t} AS t1) AS t2",
    "columns by name": "SELECT key, value FROM {t}",
    "another order and case": "SELECT VALUE, Key FROM {t}",
}
THROUGH_VIEW = [
    ("DELETE FROM v WHERE key >= 1 AND v.value < 2", [(0, 3), (1, 2), (1, 7)]),
    ("UPDATE v SET value = key + value, v.key = key + 10 WHERE key >= 1 AND value < 3", [(0, 3), (1, 7), (11, 3)]),
    ("UPDATE v AS x SET x.value = 100 WHERE x.key = 0", [(0, 100), (1, 7), (11, 3)]),
    (
        "MERGE INTO v USING (SELECT * FROM VALUES (1, 50), (9, 90) AS s(key, value)) s ON v.key = s.key "
        "WHEN MATCHED THEN UPDATE SET v.value = s.value + v.value WHEN NOT MATCHED THEN INSERT *",
        [(0, 100), (1, 57), (11, 3), (9, 90)],
    ),
    (
        "MERGE WITH SCHEMA EVOLUTION INTO v x USING (SELECT 9 AS key, 91 AS value, 5 AS more) s ON x.key = s.key "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE AND x.key < 9 THEN DELETE",
        [(11, 3), (9, 91)],
    ),
    ("DELETE FROM v", []),
]


@pytest.mark.parametrize("view", VIEWS)
def test_rows_are_changed_through_temporary_views_of_all_columns(spark, named, view):  # noqa: F811
    target = named(ROWS, delta__enableDeletionVectors="true")
    query = VIEWS[view].format(t=target.name)
    in_sql = view != "another alias"
    if in_sql:
        spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS {query}")
    else:
        spark.sql(query).createOrReplaceTempView("v")
    for statement, rows in THROUGH_VIEW:
        spark.sql(statement)
        assert target.rows() == rows, statement


REFUSED_VIEWS = {
    "SELECT key, value, 1 FROM {t}": "DELTA_CANNOT_RESOLVE_COLUMN",
    "SELECT key AS k, value FROM {t}": "DELTA_CANNOT_RESOLVE_COLUMN",
    # delta-spark stores the expressions of these views in the table.
    "SELECT value AS key, key AS value FROM {t}": "DELTA_CANNOT_RESOLVE_COLUMN",
    "SELECT key, value + 1 AS value FROM {t}": "DELTA_CANNOT_RESOLVE_COLUMN",
    "SELECT key, CAST(value AS BIGINT) AS value FROM {t}": "DELTA_CANNOT_RESOLVE_COLUMN",
    "SELECT * FROM {t} WHERE key > 0": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT * FROM {t} LIMIT 2": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT DISTINCT * FROM {t}": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT a.* FROM {t} a JOIN {t} b ON a.key = b.key": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT * FROM {t} UNION ALL SELECT * FROM {t}": "DELTA_UNEXPECTED_PARTIAL_SCAN",
    "SELECT value FROM {t}": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
}


def test_other_temporary_views_do_not_stand_for_a_table(spark, named):  # noqa: F811
    target = named(ROWS)
    merge = "MERGE INTO v USING (SELECT 1 AS a) s ON s.a = 1 WHEN MATCHED THEN DELETE"
    for number, (query, code) in enumerate(REFUSED_VIEWS.items()):
        if number % 2:
            spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS {query.format(t=target.name)}")
        else:
            spark.sql(query.format(t=target.name)).createOrReplaceTempView("v")
        for statement in ("DELETE FROM v WHERE key = 1", "UPDATE v SET value = 1 WHERE key = 1", merge):
            with pytest.raises((TahoeError, AnalysisException)) as caught:
                spark.sql(statement)
            if statement != merge:
                assert code_of(caught.value) == code, (query, statement)
            elif not code.endswith("PARTIAL_SCAN"):
                assert code_of(caught.value) in (code, "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"), query
    assert target.table.version() == 0


def test_a_view_of_some_columns_leaves_the_others_alone(spark, named):  # noqa: F811
    target = named(ROWS)
    spark.sql(f"CREATE OR REPLACE GLOBAL TEMP VIEW some_columns AS SELECT key FROM {target.name}")
    spark.sql("UPDATE global_temp.some_columns SET key = 7 WHERE key = 0")
    spark.sql("DELETE FROM global_temp.some_columns WHERE some_columns.key = 1")
    assert target.rows() == [(2, 1), (7, 3)]
    spark.sql("DROP VIEW global_temp.some_columns")
    # A view that was made before a column was added shows the columns of before.
    spark.table(target.name).createOrReplaceTempView("v")
    spark.sql(f"ALTER TABLE {target.name} ADD COLUMN more INT")
    spark.sql("UPDATE v SET value = 5 WHERE key = 7")
    assert target.rows() == [(2, 1, None), (7, 5, None)]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql("UPDATE v SET more = 5")
    with pytest.raises(TahoeError, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
        spark.sql("MERGE INTO v USING (SELECT 1 AS a) s ON s.a = v.key WHEN MATCHED THEN DELETE")


def test_views_keep_their_columns_and_views_of_the_catalog_stay_as_they_are(spark, named):  # noqa: F811
    target = named(ROWS)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM {target.name}")
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        for statement in ("MERGE INTO v", "MERGE WITH SCHEMA EVOLUTION INTO v"):
            spark.sql(
                f"{statement} USING (SELECT 0 AS key, 4 AS value, 5 AS more) s ON v.key = s.key WHEN MATCHED THEN UPDATE SET *"
            )
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert target.rows() == [(0, 4), (1, 2), (1, 7), (2, 1)]
    spark.sql(f"CREATE VIEW stored_view AS SELECT * FROM {target.name}")
    try:
        for statement in (
            "DELETE FROM stored_view",
            "UPDATE stored_view SET value = 1",
            "MERGE INTO stored_view USING (SELECT 1 AS a) s ON s.a = key WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(TahoeError, match="DELTA_UNSUPPORTED_SOURCE"):
                spark.sql(statement)
    finally:
        spark.sql("DROP VIEW stored_view")


EXISTING = [
    ("EXISTS (SELECT 1 FROM u WHERE key = a)", [(0, 3), (2, 1)]),
    ("NOT EXISTS (SELECT 1 FROM u WHERE key = a)", [(1, 2), (1, 7)]),
    ("EXISTS (SELECT 1 FROM {t} o WHERE o.key = {t}.key AND o.value > {t}.value) AND value < 5", [(0, 3), (1, 7), (2, 1)]),
    ("NOT (EXISTS (SELECT max(a) FROM u WHERE key > a) OR value = 7)", [(0, 3), (1, 2), (1, 7), (2, 1)]),
    ("EXISTS (SELECT 1 FROM u WHERE a = 9)", []),
    ("NOT EXISTS (SELECT 1 FROM u)", [(0, 3), (1, 2), (1, 7), (2, 1)]),
    ("EXISTS (SELECT 1 FROM u WHERE key = a) AND key IN (SELECT a FROM u)", None),
    ("key = (SELECT max(a) FROM u)", None),
]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_delete_takes_exists_and_no_other_subqueries_where_the_session_allows_it(spark, named, vectors):  # noqa: F811
    target = named(ROWS, delta__enableDeletionVectors=vectors)
    spark.sql("SELECT * FROM VALUES (1), (9) AS u(a)").createOrReplaceTempView("u")
    setting = "spark.databricks.delta.delete.allowExistsSubquery"
    with pytest.raises(TahoeError, match="DELTA_UNSUPPORTED_SUBQUERY"):
        spark.sql(f"DELETE FROM {target.name} WHERE {EXISTING[0][0]}")
    spark.conf.set(setting, "true")
    try:
        for condition, rows in EXISTING:
            before = target.table.version()
            statement = f"DELETE FROM {target.name} WHERE {condition.format(t=target.name)}"
            if rows is None:
                with pytest.raises(TahoeError, match="DELTA_UNSUPPORTED_SUBQUERY"):
                    spark.sql(statement)
                continue
            spark.sql(statement)
            assert target.rows() == rows, condition
            if target.table.version() > before:
                target.table.restore(before)
    finally:
        spark.conf.unset(setting)


def test_a_value_may_be_that_of_a_subquery(spark, named):  # noqa: F811
    target = named(ROWS)
    spark.sql("SELECT * FROM VALUES (1, 10), (9, 90) AS u(a, b)").createOrReplaceTempView("u")
    spark.sql(f"UPDATE {target.name} SET value = (SELECT max(a) FROM u) WHERE key = 0")
    spark.sql(f"UPDATE {target.name} SET value = (SELECT max(b) FROM u WHERE a = key) WHERE key = 1")
    assert target.rows() == [(0, 9), (1, 10), (1, 10), (2, 1)]
    with pytest.raises(TahoeError, match="DELTA_UNSUPPORTED_SUBQUERY"):
        spark.sql(f"UPDATE {target.name} SET value = CASE WHEN key IN (SELECT a FROM u) THEN 1 ELSE 0 END")


KINDS = "SELECT 1 AS k, 1 AS v, 'x' AS t, named_struct('a', 1, 'b', 2) AS s, array(named_struct('x', 1)) AS l, map('a', 1) AS m"
MATCHED = "MERGE INTO {t} USING (SELECT 1 AS k, 5L AS v, 7 AS w) q ON {t}.k = q.k WHEN MATCHED THEN UPDATE SET "
EVOLVING = MATCHED.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION", 1)
REFUSED = {
    "UPDATE {t} SET z = 1": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "UPDATE {t} SET s.z = 1": "FIELD_NOT_FOUND",
    "UPDATE {t} SET l.x = 1": "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
    "UPDATE {t} SET m.a = 1": "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
    "UPDATE {t} SET s = named_struct('a', 1)": "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    "UPDATE {t} SET v = max(v)": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "DELETE FROM {t} WHERE explode(array(true))": "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
    "DELETE FROM delta.`/no/such/table` WHERE k = 1": "PATH_NOT_FOUND",
    MATCHED + "q.v = q.v": "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    MATCHED + "w = q.w": "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    MATCHED + "v = k": "AMBIGUOUS_REFERENCE",
    MATCHED + "v = max(q.v)": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    MATCHED + "v = row_number() OVER (ORDER BY q.v)": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    MATCHED + "s = named_struct('a', 1, 'b', 2, 'c', 3)": "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    EVOLVING + "{t}.w = q.w": "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    EVOLVING + "w = q.w WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = 1": "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    "DELETE FROM older WHERE k = 1": "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
}


def test_places_and_values_that_cannot_be_assigned_are_errors_of_delta_sparks_classes(spark, named):  # noqa: F811
    target = named(KINDS)
    spark.sql(f"SELECT * FROM delta.`{target.path}@v0`").createOrReplaceTempView("older")
    for statement, code in REFUSED.items():
        with pytest.raises((TahoeError, AnalysisException)) as caught:
            spark.sql(statement.format(t=target.name))
        assert code_of(caught.value) == code, statement
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            spark.sql(f"UPDATE {target.name} SET V = 1")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
        spark.catalog.dropTempView("older")
    assert target.table.version() == 0
    spark.sql(EVOLVING.format(t=target.name) + "q.v = q.v + 1, q.w = q.w")
    assert spark.table(target.name).select("v", "w").collect() == [(6, 7)]


POLICIES = {
    "STRICT": [("v = 3L", "CANNOT_UP_CAST_DATATYPE"), ("t = 5", "5"), ("v = NULL", None)],
    "ANSI": [("v = 3L", 3), ("v = 3000000000L", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"), ("v = 'x'", "CAST_INVALID_INPUT")],
    "LEGACY": [("v = 3L", 3), ("v = 3000000000L", -1294967296), ("v = 'x'", None)],
}


@pytest.mark.parametrize("policy", POLICIES)
def test_values_are_cast_by_the_sessions_policy_of_store_assignment(spark, named, policy):  # noqa: F811
    target = named(KINDS)
    spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
    try:
        for assignment, expected in POLICIES[policy]:
            column, _, value = assignment.partition(" = ")
            merge = f"MERGE INTO {target.name} USING (SELECT 1 AS k, {value} AS z) q ON {target.name}.k = q.k WHEN MATCHED THEN UPDATE SET "
            for statement in (f"UPDATE {target.name} SET {assignment}", f"{merge}{column} = q.z"):
                if isinstance(expected, str) and expected.isupper():
                    with pytest.raises((TahoeError, AnalysisException)) as caught:
                        spark.sql(statement)
                    assert code_of(caught.value) == expected, statement
                else:
                    spark.sql(statement)
                    assert spark.table(target.name).select(column).collect() == [(expected,)], statement
    finally:
        spark.conf.unset("spark.sql.storeAssignmentPolicy")


def test_structs_go_by_their_order_where_the_session_asks_for_it(spark, named):  # noqa: F811
    target = named(KINDS)
    setting = "spark.databricks.delta.resolveMergeUpdateStructsByName.enabled"
    swapped = "named_struct('b', 20, 'a', 10)"
    star = f"MERGE INTO {target.name} USING (SELECT k, v, t, {swapped} AS s, l, m FROM {target.name}) q ON {target.name}.k = q.k "
    for by_name, outcome in [("true", (10, 20)), ("false", (20, 10))]:
        spark.conf.set(setting, by_name)
        try:
            for statement in (f"UPDATE {target.name} SET s = {swapped}", star + "WHEN MATCHED THEN UPDATE SET *"):
                spark.sql(f"UPDATE {target.name} SET s = NULL")
                spark.sql(statement)
                assert [tuple(row.s) for row in spark.table(target.name).collect()] == [outcome], statement
            with pytest.raises(TahoeError, match="DELTA_UPDATE_SCHEMA_MISMATCH" if by_name == "true" else "DATATYPE_MISMATCH"):
                spark.sql(f"UPDATE {target.name} SET s = named_struct('a', 1)")
        finally:
            spark.conf.unset(setting)


def test_an_update_of_everything_keeps_fields_and_null_structs(spark, named):  # noqa: F811
    inner = "named_struct('a', 1, 'n', named_struct('x', 1, 'y', 2))"
    nothing = "named_struct('a', 1, 'n', CAST(NULL AS STRUCT<x: INT, y: INT>))"
    target = named(f"SELECT 1 AS k, {inner} AS s UNION ALL SELECT 2, {nothing} UNION ALL SELECT 3, NULL")
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {target.name} t USING "
        "(SELECT k, CAST(NULL AS STRUCT<n: STRUCT<x: INT>>) AS s FROM VALUES (1), (2), (3) AS v(k)) q "
        "ON t.k = q.k WHEN MATCHED THEN UPDATE SET *"
    )
    shown = [(row.k, row.s and row.s.asDict(recursive=True)) for row in spark.table(target.name).orderBy("k").collect()]
    assert shown == [(1, {"a": 1, "n": {"x": None, "y": 2}}), (2, {"a": 1, "n": None}), (3, None)]
