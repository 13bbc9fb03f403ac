"""MERGE on Spark, rule by rule."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe import Table
from tahoe.base.exceptions import (
    DeltaConcurrentModificationException,
    InvalidRequest,
    InvariantViolation,
    SchemaMismatch,
    TahoeError,
)
from tahoe.protocol.actions import AddCDCFile, RemoveFile
from tahoe.spark.commands.merge import merge as merging
from tahoe.spark.commands.merge.match import pairs_of
from tahoe.spark.commands.merge.merge import stage_merge
from tahoe.tables import DeltaTable
from tests.spark.merges import (
    BEFORE,
    FEED,
    NEWS,
    ON,
    SCHEMA,
    VECTORS,
    amounts,
    amounts_before,
    as_deltalake_reads,
    held_blocks,
    last,
    reported,
    row,
    target,
    two_files,
)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Table]:
    return partial(two_files, tmp_path / "table")


@pytest.fixture
def news(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(NEWS).alias("s")


def test_a_merge_shows_its_plan_and_then_runs(make: Callable[..., Table], news: DataFrame, spark: SparkSession) -> None:
    table, blocks_before = make(VECTORS), held_blocks(spark)
    builder = (
        target(spark, table)
        .merge(news, sf.col("t.id") == news["id"])
        .whenMatchedDelete(news["id"] == 2)
        .whenMatchedUpdate(set={"amount": sf.col("s.amount") + 1, "place.city": sf.lit("x")})
        .whenNotMatchedInsertAll()
    )
    files = sorted(Path(table.url.removeprefix("file://")).rglob("*"))
    explained = builder.explain()
    assert sorted(Path(table.url.removeprefix("file://")).rglob("*")) == files
    assert (explained.rows_deleted, explained.rows_updated, explained.rows_inserted) == (1, 2, 3)
    assert (explained.files, explained.files_scanned, explained.files_touched, explained.source_rows) == (2, 2, 2, 6)
    assert explained.uses_deletion_vectors
    result = builder.execute()
    assert result.columns == ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
    assert tuple(result.first() or ()) == (6, 2, 1, 3)
    rows = as_deltalake_reads(table)
    assert reported(rows) == reported(table.to_arrow())
    assert {item["id"]: item["place"]["city"] for item in rows.to_pylist() if item["id"] in (3, 4, 5, 7)} == {
        3: "b",
        4: "x",
        5: "x",
        7: None,
    }
    assert held_blocks(spark) == blocks_before


def test_both_explain_a_merge_alike(make: Callable[..., Table], news: DataFrame, spark: SparkSession) -> None:
    table = make()
    core = (
        table.merge(NEWS, ON, source_alias="s", target_alias="t")
        .when_matched_update_all("s.id > 2")
        .when_not_matched_insert_all()
    )
    explained = target(spark, table).merge(news, ON).whenMatchedUpdateAll("s.id > 2").whenNotMatchedInsertAll().explain()
    assert explained == core.explain()
    assert explained.to_dict()["rows_updated"] == 2
    assert "WHEN MATCHED AND s.id > 2 THEN UPDATE: 2 rows" in str(explained)
    assert table.version() == 2


def test_a_row_that_two_rows_of_the_source_would_change_is_refused_before_anything_is_written(
    make: Callable[..., Table], spark: SparkSession
) -> None:
    table, blocks_before = make({**VECTORS, **FEED}), held_blocks(spark)
    twice = spark.createDataFrame([(2, 1.0), (2, 2.0), (9, 9.0)], "id long, amount double").alias("s")
    files = sorted(Path(table.url.removeprefix("file://")).rglob("*"))
    with pytest.raises(InvalidRequest, match="more than one row of the source") as caught:
        target(spark, table).merge(twice, ON).whenMatchedUpdate(set={"amount": "s.amount"}).execute()
    assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert sorted(Path(table.url.removeprefix("file://")).rglob("*")) == files
    assert held_blocks(spark) == blocks_before
    # Where every match deletes, their number does not matter; the feed has the row once.
    counts = target(spark, table).merge(twice, ON).whenMatchedDelete().execute().first()
    assert counts is not None and tuple(counts) == (1, 0, 1, 0)
    assert [item["_change_type"] for item in table.changes(table.version()).to_pylist()] == ["delete"]


def test_a_source_is_read_once_whatever_it_answers_when_asked_again(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make({**VECTORS, **FEED})
    reads = spark.sparkContext.accumulator(0)

    def counted(number: int) -> tuple[int, str]:
        reads.add(1)
        return number, "a"

    source = spark.sparkContext.parallelize([2, 4, 7, 8], 2).map(counted).toDF("id long, part string")
    source = source.withColumn("amount", sf.rand() + 10).withColumn("part", sf.expr("uuid()")).alias("s")
    reads.value = 0
    values = {"id": "s.id", "amount": "s.amount", "part": "s.part", "tags": "array(uuid())"}
    counts = (
        target(spark, table).merge(source, ON).whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute().first()
    )
    assert counts is not None and tuple(counts) == (4, 2, 0, 2)
    assert reads.value == 4
    written = {
        item["id"]: (item["amount"], item["part"], item["tags"])
        for item in table.to_arrow().to_pylist()
        if item["id"] in (2, 4, 7, 8)
    }
    changes = table.changes(table.version()).to_pylist()
    fed = {
        item["id"]: (item["amount"], item["part"], item["tags"]) for item in changes if item["_change_type"] != "update_preimage"
    }
    assert fed == written


def test_now_is_one_moment_for_all_clauses(make: Callable[..., Table], news: DataFrame, spark: SparkSession) -> None:
    table = make()
    now = {"id": "s.id", "part": "cast(current_timestamp() as string)"}
    target(spark, table).merge(news, ON).whenMatchedUpdate(set=now).whenNotMatchedInsert(values=now).execute()
    written = {item["id"]: item["part"] for item in table.to_arrow().to_pylist()}
    assert len({written[number] for number in (2, 4, 5, 6, 7)}) == 1


def test_now_is_one_moment_for_the_source_and_the_clauses(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make()
    days = "current_date() = (select current_date()) and localtimestamp() = (select localtimestamp())"
    source = spark.createDataFrame(NEWS).withColumn("at", sf.current_timestamp()).withColumn("later", sf.expr("(select now())"))
    source = source.withColumn("days", sf.expr(days)).alias("s")
    now = {"id": "s.id", "part": "case when s.at = now() and s.later = s.at and s.days then 'one' else 'several' end"}
    merge = target(spark, table).merge(source, (sf.col("t.id") == source["id"]) & (source["at"] == sf.current_timestamp()))
    merge.whenMatchedUpdate("s.at >= now()", set=now).whenNotMatchedInsert(source["at"] == sf.now(), values=now).execute()
    written = {item["id"]: item["part"] for item in table.to_arrow().to_pylist() if item["id"] in (2, 4, 5, 6, 7)}
    assert written == dict.fromkeys((2, 4, 5, 6, 7), "one")


def test_only_files_that_may_hold_the_sources_keys_are_read(tmp_path: Path, spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    table = Table.create(tmp_path / "t", schema, partition_by=["day"])
    days = [date(2026, 1, day) for day in range(1, 11)]
    ids = [number for day in range(10) for number in (day * 10, day * 10 + 5)]
    moments = [datetime(2026, 1, 1 + number // 10, 12, tzinfo=UTC) for number in ids]
    table.append(pa.table({"id": ids, "day": [day for day in days for _ in range(2)], "at": moments}, schema=schema))
    assert len(table.files()) == 10

    def scanned(source: DataFrame, on: str) -> int:
        return target(spark, table).merge(source.alias("s"), on).whenMatchedDelete().explain().files_scanned

    source = spark.sql(
        "select * from values (12L, date'2026-01-02', timestamp'2026-01-02 12:00:00'), "
        "(70L, date'2026-01-08', timestamp'2026-01-08 12:00:00') as s(id, day, at)"
    )
    # A range, and values by name where a range would not spare many files.
    assert scanned(source, "t.id = s.id") == 7
    assert scanned(source.union(source.selectExpr("95", "day", "at")), "t.id = s.id") == 3
    assert scanned(source, "t.at = s.at and t.id > 30") == 5
    assert scanned(source, "t.id = s.id and t.day < '2026-01-03'") == 1
    assert scanned(source.where("id is null"), "t.id = s.id") == 0
    assert scanned(source.selectExpr("id + 5000000000 as id"), "t.id = s.id") == 0
    assert scanned(source, "t.id < s.id") == 10


def test_a_merge_that_only_inserts_is_an_append(make: Callable[..., Table], news: DataFrame, spark: SparkSession) -> None:
    table = make({**FEED, "delta.appendOnly": "true"})
    merge = target(spark, table).merge(news, ON)
    counts = (
        merge.whenNotMatchedInsert("s.id = 6", {"id": "id", "amount": "amount"})
        .whenNotMatchedInsertAll("id = 7")
        .execute()
        .first()
    )
    assert counts is not None and tuple(counts) == (2, 0, 0, 2)
    assert (last(table, RemoveFile), last(table, AddCDCFile)) == ([], [])
    assert amounts(table) == {**amounts_before(), 6: 60.0, 7: 70.0}
    with pytest.raises(InvalidRequest, match="append-only"):
        merge.whenMatchedDelete().execute()


def test_nothing_to_do_commits_nothing(make: Callable[..., Table], news: DataFrame, spark: SparkSession) -> None:
    table = make(VECTORS)
    counts = (
        target(spark, table).merge(news.where("id > 100"), ON).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()
    )
    assert counts is not None and tuple(counts) == (0, 0, 0, 0)
    assert table.version() == 2


def test_a_table_is_merged_into_itself(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make(VECTORS)
    itself = target(spark, table)
    source = itself.toDF().where("amount > 3").alias("s")
    itself.merge(source, ON).whenMatchedUpdate(set={"amount": "t.amount + s.amount"}).whenNotMatchedInsertAll().execute()
    assert sorted(str(item["amount"]) for item in table.to_arrow().to_pylist()) == [
        "1.0",
        "10.0",
        "2.0",
        "6.0",
        "6.0",
        "8.0",
        "None",
    ]


def test_without_an_alias_the_target_is_named_by_its_columns(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make()
    news = spark.createDataFrame([(2, 5.0)], "key long, more double")
    merge = DeltaTable.forPath(spark, table.url).merge(news, "id = key")
    merge.whenMatchedUpdate(set={"amount": "amount + more"}).whenNotMatchedInsert(values={"id": "key"}).execute()
    assert amounts(table) == {**amounts_before(), 2: 7.0}


@pytest.mark.parametrize("by_setting", [False, True], ids=["asked", "setting"])
def test_schema_evolution_adds_columns_of_the_source_and_keeps_the_others(
    by_setting: bool, make: Callable[..., Table], spark: SparkSession
) -> None:
    table = make({**VECTORS, **FEED})
    source = spark.sql("select 2L id, 20.0 amount, named_struct('city', 'x', 'land', 'y') place, 1 as new union all "
                       "select 9L, 90.0, named_struct('city', 'z', 'land', 'w'), 2").alias("s")  # fmt: skip
    merge = target(spark, table).merge(source, ON).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert caught.value.code == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    copy = Path(table.url.removeprefix("file://")).parent / "copy"
    shutil.copytree(table.url.removeprefix("file://"), copy)
    if by_setting:
        spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        assert (merge if by_setting else merge.withSchemaEvolution()).explain().new_columns == ("new",)
        (merge if by_setting else merge.withSchemaEvolution()).execute()
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    actual = {item["id"]: item for item in table.to_arrow().to_pylist()}
    assert actual[2] == {**row(2, "a", 20.0), "place": {"city": "x", "zip": 2, "land": "y"}, "new": 1}
    assert (actual[9]["place"], actual[9]["part"], actual[9]["new"]) == ({"city": "z", "zip": None, "land": "w"}, None, 2)
    assert (actual[1]["place"], actual[1]["new"]) == ({"city": "a", "zip": 1, "land": None}, None)
    core = Table(copy).merge(source.toArrow(), "target.id = source.id").with_schema_evolution()
    core.when_matched_update_all().when_not_matched_insert_all().execute()
    assert reported(Table(copy).to_arrow()) == reported(table.to_arrow())
    assert reported(Table(copy).changes(3).drop_columns(["_commit_timestamp"])) == reported(
        table.changes(3).drop_columns(["_commit_timestamp"])
    )


def test_assignments_to_new_columns_add_those_alone(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make()
    source = spark.sql("select 2L id, 'n' as new, 1 as other").alias("s")
    merge = target(spark, table).merge(source, ON).whenMatchedUpdate(set={"new": "s.new", "amount": "7"})
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert caught.value.code == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    merge.withSchemaEvolution().execute()
    assert table.schema().names == [*SCHEMA.names, "new"]
    assert {item["id"]: (item["new"], item["amount"]) for item in table.to_arrow().to_pylist()}[2] == ("n", 7.0)


REFUSED = {
    "no clause": (lambda merge: merge, "DELTA_MERGE_MISSING_WHEN"),
    "two without conditions": (
        lambda merge: merge.whenMatchedDelete().whenMatchedUpdateAll(),
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "two inserts without conditions": (
        lambda merge: merge.whenNotMatchedInsertAll().whenNotMatchedInsertAll(),
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "two by source without conditions": (
        lambda merge: merge.whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete(),
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    ),
    "unknown column": (lambda merge: merge.whenMatchedDelete("t.nothing = 1"), "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    "unknown column to set": (
        lambda merge: merge.whenMatchedUpdate(set={"nothing": "1"}),
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    "the target in an insert": (
        lambda merge: merge.whenNotMatchedInsert(values={"id": "t.id"}),
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    "the source in a clause without it": (
        lambda merge: merge.whenNotMatchedBySourceDelete("s.id = 1"),
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    "an aggregate": (lambda merge: merge.whenMatchedDelete("sum(t.id) > 1"), "DELTA_AGGREGATION_NOT_SUPPORTED"),
    "an aggregate as a value": (
        lambda merge: merge.whenMatchedUpdate(set={"amount": "max(s.id)"}),
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
    ),
    "a window": (
        lambda merge: merge.whenNotMatchedInsertAll("row_number() over (order by id) = 1"),
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
    ),
    "chance": (lambda merge: merge.whenMatchedDelete("rand() > 0.5"), "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
    "a subquery": (lambda merge: merge.whenMatchedDelete("t.id in (select 1)"), "DELTA_UNSUPPORTED_SUBQUERY"),
    "no condition at all": (lambda merge: merge.whenMatchedDelete("t.id"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    "one place twice": (
        lambda merge: merge.whenMatchedUpdate(set={"place": "s.place", "t.place.zip": "1"}),
        "DELTA_CONFLICT_SET_COLUMN",
    ),
    "a nested field inserted": (
        lambda merge: merge.whenNotMatchedInsert(values={"place.zip": "1"}),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
    "another type": (lambda merge: merge.whenMatchedUpdate(set={"tags": "s.id"}), "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    "another field": (
        lambda merge: merge.whenMatchedUpdate(set={"place": "named_struct('town', 'x')"}),
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    ),
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = Table.create(tmp_path_factory.mktemp("merge") / "t", SCHEMA)
    table.append(BEFORE)
    return table


@pytest.mark.parametrize("name", REFUSED)
def test_clauses_that_break_a_rule_are_refused_by_name(name: str, unchanged: Table, news: DataFrame, spark: SparkSession) -> None:
    build, code = REFUSED[name]
    with pytest.raises(TahoeError) as caught:
        build(target(spark, unchanged).merge(news, ON)).execute()
    assert caught.value.code == code
    assert unchanged.version() == 1


def test_arguments_are_checked_in_delta_sparks_words(unchanged: Table, news: DataFrame, spark: SparkSession) -> None:
    table = DeltaTable.forPath(spark, unchanged.url)
    untyped: Any = table
    merge: Any = table.alias("t").merge(news, ON)
    for call, kind, words in [
        (lambda: untyped.merge(None, "id = 1"), ValueError, "'source' in merge cannot be None"),
        (lambda: untyped.merge(1, "id = 1"), TypeError, "must be DataFrame"),
        (lambda: untyped.merge(news, None), ValueError, "'condition' in merge cannot be None"),
        (lambda: untyped.merge(news, 1), TypeError, "must be a Spark SQL Column or a string"),
        (lambda: merge.whenMatchedUpdate("id = 1"), ValueError, "cannot be None"),
        (lambda: merge.whenMatchedUpdate(1, {"id": "1"}), TypeError, "must be a Spark SQL Column or a string"),
        (lambda: merge.whenMatchedUpdate(set=["id"]), TypeError, "must be a dict"),
        (lambda: merge.whenMatchedUpdate(set={"id": 1}), TypeError, "Values of dict in .* must contain only"),
        (lambda: merge.whenNotMatchedInsert(values={1: "id"}), TypeError, "Keys of dict in .* must contain only"),
        (lambda: merge.whenNotMatchedInsert(), ValueError, "cannot be None"),
        (lambda: merge.whenMatchedDelete("id =").execute(), ParseException, "PARSE_SYNTAX_ERROR"),
    ]:
        with pytest.raises(kind, match=words):
            call()


def test_names_that_a_merge_needs_are_refused(unchanged: Table, news: DataFrame, spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest, match="Rename the column"):
        target(spark, unchanged).merge(news.withColumn("__tahoe_clause", sf.lit(1)).alias("s"), ON).whenMatchedDelete().execute()


def test_values_are_stored_as_a_write_stores_them(make: Callable[..., Table], spark: SparkSession) -> None:
    table = make()
    source = spark.sql("select 2 id, 7L zip, decimal(1.5) amount, array(1, 2) tags, map('k', 3) notes").alias("s")
    values = {
        "place.zip": "s.zip",
        "amount": "s.amount",
        "tags": "transform(s.tags, x -> x + 1)",
        "notes": "s.notes",
        "part": "date'2026-01-01'",
    }
    target(spark, table).merge(source, ON).whenMatchedUpdate(set=values).execute()
    changed = next(item for item in table.to_arrow().to_pylist() if item["id"] == 2)
    assert changed == {
        **row(2, "2026-01-01", 2.0), "tags": ["2", "3"], "place": {"city": "a", "zip": 7}, "notes": [("k", 3)]
    }  # fmt: skip
    with pytest.raises(SchemaMismatch, match=r"'5000000007' \(long\) does not fit column 'place\.zip'.*integer") as caught:
        target(spark, table).merge(source, ON).whenMatchedUpdate(set={"place.zip": "s.zip + 5000000000"}).execute()
    assert caught.value.code == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    assert table.version() == 3


def test_constraints_hold_and_generated_columns_follow(tmp_path: Path, spark: SparkSession) -> None:
    builder = DeltaTable.create(spark).location(str(tmp_path / "t")).addColumn("id", "long").addColumn("amount", "double")
    builder = builder.addColumn("whole", "long", generatedAlwaysAs="cast(amount as bigint)").property(
        "delta.enableDeletionVectors", "true"
    )
    builder.execute()
    table = Table(tmp_path / "t")
    table.append(pa.table({"id": [1, 2], "amount": [1.5, 2.5]}))
    table.add_constraint("positive", "amount > 0")
    source = spark.createDataFrame([(1, 10.5, 10), (2, 20.5, 20), (3, 30.5, 30)], "id long, amount double, whole long").alias("s")
    merge = target(spark, DeltaTable.forPath(spark, table.url)._table).merge(source, ON)
    merge.whenMatchedUpdate("s.id = 1", {"amount": "s.amount"}).whenMatchedUpdateAll().whenNotMatchedInsert(
        values={"id": "id", "amount": "amount"}
    ).execute()
    assert table.to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3], "amount": [10.5, 20.5, 30.5], "whole": [10, 20, 30]}
    version = table.version()
    for bad in (merge.whenMatchedUpdate(set={"whole": "1"}), merge.whenMatchedUpdate(set={"amount": "-1"})):
        with pytest.raises(InvariantViolation):
            bad.execute()
    assert table.version() == version


def test_merges_of_different_rows_of_one_file_both_succeed(
    make: Callable[..., Table], news: DataFrame, spark: SparkSession
) -> None:
    table = make(VECTORS)
    stale = [(table.begin(), number) for number in (4, 5, 4)]
    staged = []
    for transaction, number in stale:
        merge = target(spark, table).merge(news.where(f"id = {number}"), ON).whenMatchedUpdate(set={"amount": "s.id * 11"})
        staged.append((transaction, stage_merge(transaction, merge._target, merge._request)))
    for transaction, done in staged[:2]:
        assert done.operation is not None
        table.commit(transaction, done.operation)
    transaction, done = staged[2]
    assert done.operation is not None
    with pytest.raises(DeltaConcurrentModificationException):
        table.commit(transaction, done.operation)
    assert amounts(table) == {**amounts_before(), 4: 44.0, 5: 55.0}
    assert table.check() == []


@pytest.mark.parametrize("times", [1, 4])
def test_a_merge_that_loses_its_rows_starts_again(
    make: Callable[..., Table], news: DataFrame, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The blocks of its source are gone, as those of a dead executor."""
    table, context = make(VECTORS), spark.sparkContext._jsc
    before, runs = set(context.getPersistentRDDs()), []

    def losing(*arguments: Any) -> DataFrame:
        runs.append(arguments)
        if len(runs) <= times:
            for number in set(context.getPersistentRDDs()) - before:
                context.sc().unpersistRDD(number, True)
        return pairs_of(*arguments)

    monkeypatch.setattr(merging, "pairs_of", losing)
    merge = target(spark, table).merge(news, ON).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    version = table.version()
    if times == 4:
        with pytest.raises(Exception, match="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"):
            merge.execute()
        assert (len(runs), table.version()) == (4, version)
    else:
        merge.execute()
        assert (len(runs), table.version()) == (2, version + 1)
        assert table.check() == []
