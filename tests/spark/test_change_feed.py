"""`readChangeFeed` on Spark: the same rows as the core's feed, planned in two scans, and the reference's errors."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError, TahoeWarning, Unsupported
from tahoe.ops.rows.insert import WriteOptions
from tahoe.settings.warn_once import reset_warnings
from tests.sampling import SAMPLE_OR_ALL
from tests.spark.test_reading import files_read
from tests.tables.golden import ABSENT, ROOT

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
BY_NAME, BY_ID = ({"delta.columnMapping.mode": mode} for mode in ("name", "id"))


def load(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("delta").options(readChangeFeed="true", **options).load(path)


def rows(*ids: int, value: str = "new") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [str(i % 2) for i in ids], "value": [value] * len(ids)})


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def changed_at_random(path: str, properties: dict[str, str], partitioned: bool, seed: int, commits: int = 7) -> Table:
    """A table of which each commit changes rows in some way; the newest version is `commits`."""
    generator, table = random.Random(seed), Table(path)
    table.write(rows(*range(20)), WriteOptions(partition_by=("part",) if partitioned else (), properties={**FEED, **properties}))
    while table.version() < commits:
        low, step = generator.randrange(20), table.version()
        match generator.choice(["append", "update", "delete", "merge", "replace", "partition"]):
            case "append":
                table.append(rows(*range(20 + step * 5, 25 + step * 5)))
            case "update":
                table.update({"value": f"'{step}'"}, f"id between {low} and {low + 4}")
            case "delete":
                table.delete(f"id in ({low}, {low + 3}, {low + 7})")
            case "merge":
                source = rows(low, low + 100 + step, value=f"merged {step}")
                merge = table.merge(source, "target.id = source.id")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            case "replace":
                table.write(rows(low, low), WriteOptions("overwrite", replace_where=f"id = {low}"))
            case "partition":
                table.write(rows(low, 50 + low), WriteOptions("overwrite", replace_where=f"part = '{low % 2}'"))
    return table


@pytest.mark.parametrize(
    ("properties", "partitioned"),
    [({}, False), (VECTORS, True), ({**VECTORS, **BY_NAME}, False), ({**BY_ID, "delta.enableRowTracking": "true"}, True)],
    ids=["rewriting", "vectors, partitioned", "vectors, mapped", "mapped by id, partitioned, row ids"],
)
def test_random_histories_are_read_as_by_the_core(spark, path, properties, partitioned):
    table = changed_at_random(path, properties, partitioned, seed=len(properties) + partitioned)
    whole = load(spark, path, startingVersion=0).toArrow()
    assert whole.schema.names == ["id", "part", "value", "_change_type", "_commit_version", "_commit_timestamp"]
    assert counted(whole) == counted(table.changes(0))
    assert counted(load(spark, path, startingVersion=2, endingVersion=5).toArrow()) == counted(table.changes(2, 5))
    # The law of the feed: the old rows, and inserted ones, without deleted ones, are the new rows.
    came, went = (
        counted(whole.filter(pa.compute.is_in(whole["_change_type"], pa.array(kinds))).select(["id", "part", "value"]))
        for kinds in (["insert", "update_postimage"], ["delete", "update_preimage"])
    )
    came.subtract(went)
    assert +came == counted(table.to_arrow(columns=["id", "part", "value"])) and not -came


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Ten appends, one file each, then a delete by a vector (10) and an update with change data (11)."""
    table = Table(str(tmp_path_factory.mktemp("history") / "table"))
    table.write(rows(*range(10)), WriteOptions(properties={**FEED, **VECTORS}))
    for step in range(1, 10):
        table.append(rows(*range(step * 10, step * 10 + 10)))
    table.delete("id in (15, 33)")
    table.update({"value": "'updated'"}, "id in (16, 17)")
    return table


class TestScan:
    @pytest.mark.parametrize(
        ("condition", "files", "changes"),
        [
            ("_commit_version = 3", 1, 10),
            ("_commit_version between 3 and 5 and _change_type = 'insert'", 3, 30),
            ("_commit_version = 11 and _change_type = 'update_postimage'", 1, 2),
            ("id = 42", 2, 1),
            ("id in (15, 16)", 3, 5),
            ("_change_type = 'delete' and _commit_version < 10", 0, 0),
            ("_commit_timestamp > timestamp'2199-01-01'", 0, 0),
        ],
    )
    def test_filters_leave_files_out(self, spark, history, condition, files, changes):
        frame = load(spark, history.url, startingVersion=0).where(condition)
        assert len(frame.collect()) == changes
        assert files_read(load(spark, history.url, startingVersion=0).where(condition)) == files

    def test_many_commits_make_two_scans(self, spark, history):
        plan = load(spark, history.url, startingVersion=0)._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan") == 2
        pruned = load(spark, history.url, startingVersion=0).select("id", "_commit_version")
        assert "value" not in pruned._jdf.queryExecution().executedPlan().toString()

    def test_timestamps_include_both_ends(self, spark, history):
        times = {commit["version"]: commit["timestamp"] for commit in history.history()}
        begin, end = (datetime.fromtimestamp(times[v].timestamp(), UTC).strftime("%Y-%m-%d %H:%M:%S.%f") for v in (4, 10))
        actual = load(spark, history.url, startingTimestamp=begin, endingTimestamp=end)
        assert {row[0] for row in actual.select("_commit_version").distinct().collect()} == set(range(4, 11))

    # Spark starts a Python process for each step; tests/spark/test_portable.py asks the same of the source in one process.
    @pytest.mark.long
    def test_the_portable_source_shows_the_same(self, plain, history):
        actual = (
            plain.read.format("delta").options(READCHANGEDATA="true", startingversion="9", EndingVersion="11").load(history.url)
        )
        assert counted(actual.toArrow()) == counted(history.changes(9, 11))

    def test_a_range_without_changes_has_no_rows(self, spark, path):
        Table.create(path, rows().schema, properties=FEED)
        actual = load(spark, path, startingVersion=0)
        assert actual.collect() == [] and actual.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
        assert actual.schema["_commit_timestamp"].dataType.typeName() == "timestamp"


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({}, "DELTA_NO_START_FOR_CDC_READ"),
            ({"endingVersion": 1}, "DELTA_NO_START_FOR_CDC_READ"),
            ({"startingVersion": 12}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
            ({"startingVersion": 5, "endingVersion": 4}, "DELTA_INVALID_CDC_RANGE"),
            ({"startingTimestamp": "2200-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
            ({"startingTimestamp": "someday"}, "DELTA_TIMESTAMP_INVALID"),
            ({"startingVersion": "first"}, "DELTA_VERSION_INVALID"),
            ({"startingVersion": "-1"}, "DELTA_VERSION_INVALID"),
            ({"startingVersion": 1, "versionAsOf": 3}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ],
        ids=str,
    )
    def test_bounds_that_make_no_range_are_named(self, spark, history, options, code):
        with pytest.raises(TahoeError) as caught:
            load(spark, history.url, **options)
        assert caught.value.code == code

    def test_a_version_and_a_timestamp_of_one_end_are_refused_by_name_and_the_version_counts_by_path(self, spark, history):
        both = [
            {"startingVersion": 1, "startingTimestamp": "2026-01-01"},
            {"startingVersion": 1, "endingVersion": 2, "endingTimestamp": "2026-01-01"},
        ]
        for options in both:
            with pytest.raises(TahoeError) as caught:
                spark.read.options(readChangeFeed="true", **options).table(f"delta.`{history.url}`")
            assert caught.value.code == "DELTA_MULTIPLE_CDC_BOUNDARY"
            reset_warnings()
            with pytest.warns(TahoeWarning, match="the version counts"):
                actual = load(spark, history.url, **options)
            assert counted(actual.toArrow()) == counted(history.changes(1, options.get("endingVersion")))

    def test_a_range_after_the_newest_commit_may_be_empty_by_a_setting(self, spark, history):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
        for late in ({"startingVersion": 12}, {"startingTimestamp": "2200-01-01"}):
            assert load(session, history.url, **late).collect() == []
        all_changes = counted(history.changes(1))
        assert counted(load(session, history.url, startingVersion=1, endingTimestamp="2200-01-01").toArrow()) == all_changes

    def test_versions_without_the_feed_are_refused(self, spark, path):
        Table(path).write(rows(1), WriteOptions())
        with pytest.raises(TahoeError) as caught:
            load(spark, path, startingVersion=0)
        assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"

    def test_schemas_that_do_not_go_together_are_refused(self, spark, path):
        table = Table(path)
        table.write(rows(1), WriteOptions(properties=FEED))
        table.overwrite(pa.table({"other": ["x"]}), overwrite_schema=True)
        with pytest.raises(Unsupported) as caught:
            load(spark, path, startingVersion=0)
        assert caught.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
        assert load(spark, path, startingVersion=0, endingVersion=0).count() == 1

    def test_columns_of_the_feed_are_not_written_where_it_is_on(self, spark, path):
        Table(path).write(rows(1), WriteOptions(properties=FEED))
        data = spark.createDataFrame([(1, "insert")], "id long, _change_type string")
        with pytest.raises(TahoeError, match="_change_type") as caught:
            data.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
        assert caught.value.code == "RESERVED_CDC_COLUMNS_ON_WRITE"


@pytest.mark.skipif(not ROOT.exists(), reason=ABSENT)
def test_a_golden_table_with_change_data_is_read_as_by_the_core(spark: SparkSession):
    (path,) = ROOT.glob("**/reader_tests/generated/cdf/delta")
    assert counted(load(spark, str(path), startingVersion=0).toArrow()) == counted(Table(str(path)).changes(0))


@pytest.mark.parametrize("step", SAMPLE_OR_ALL)
def test_a_range_without_an_end_ends_with_the_newest_version_at_each_query(spark, path, step):
    properties = "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n INT) USING delta TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 1), (2, 2), (3, 3), (4, 4)")

    def changes(**options):
        return spark.read.format("delta").options(readChangeFeed=True, startingVersion=0, **options).load(path)

    def rows(frame):
        return sorted(map(tuple, frame.select("id", "n", "_change_type", "_commit_version").collect()), key=str)

    open_end, ended = changes(), changes(endingVersion=1)
    joined = open_end.join(changes(), "id").select("id")
    open_end.createOrReplaceTempView("changes_without_an_end")
    first = rows(ended)
    statements = [
        "INSERT INTO {t} VALUES (5, 5)",
        "DELETE FROM {t} WHERE id = 1",  # vectors alone
        "UPDATE {t} SET n = 0 WHERE id = 2",  # change data files
        "DELETE FROM {t} WHERE id = 3",
        "INSERT INTO {t} SELECT id + 10, n FROM {t}",
        "OPTIMIZE {t}",
        "ALTER TABLE {t} ADD COLUMN extra STRING",
        "MERGE INTO {t} USING (SELECT 5 AS k) s ON id = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 7",
    ]
    for statement in statements[step // 4 :: step]:
        spark.sql(statement.format(t=f"delta.`{path}`"))
        fresh = changes()
        assert rows(open_end) == rows(fresh), statement
    assert open_end.count() == changes().count()
    late = "_commit_version > 2 AND id > 1"
    assert rows(open_end.where(late)) == rows(changes().where(late))
    assert rows(ended) == first
    assert rows(spark.table("changes_without_an_end")) == rows(changes())
    assert joined.count() == changes().join(changes(), "id").count()
    assert open_end.columns == ["id", "n", "_change_type", "_commit_version", "_commit_timestamp"]


def test_a_range_without_an_end_follows_a_partitioned_table_with_mapped_columns(spark, path):
    properties = "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name'"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, `p q` STRING) USING delta PARTITIONED BY (`p q`) TBLPROPERTIES ({properties})"
    )
    frame = spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 0)").where("`p q` = 'a'")
    assert frame.count() == 0
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a'), (2, 'b')")
    assert [tuple(row)[:3] for row in frame.collect()] == [(1, "a", "insert")]
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN id TO key")
    with pytest.raises(InvalidRequest, match="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"):
        frame.select("*").collect()
