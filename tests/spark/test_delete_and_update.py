"""DELETE and UPDATE through Spark give the result of `tahoe.Table` on a copy of the table: rows, metrics, change data, row ids."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import (
    DeltaConcurrentModificationException,
    InvalidRequest,
    InvariantViolation,
    SchemaMismatch,
    Unsupported,
)
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.spark.commands.delete import stage_delete
from tahoe.spark.commands.row_changes import FILE, ROW, TableVersion, changes_of
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.tables import DeltaTable
from tests.interop.engines import canonical, read_deltalake, read_duckdb
from tests.sampling import sampled

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
INNER = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("name", pa.string()), ("a", INNER)])


def rows(first: int, last: int, p: int | None) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "id": numbers,
            "p": [p] * len(numbers),
            "name": [None if i % 7 == 0 else f"n{i}" for i in numbers],
            "a": [None if i % 5 == 0 else {"x": i, "y": {"z": f"z{i}"}} for i in numbers],
        },
        schema=SCHEMA,
    )


def make(path: str, properties: dict[str, str]) -> Table:
    """Four files in three partitions, one of which has lost a row before."""
    table = Table.create(path, SCHEMA, partition_by=["p"], properties=properties)
    for first, last, p in ((0, 40, 1), (40, 80, 1), (80, 120, 2), (120, 140, None)):
        table.append(rows(first, last, p))
    table.delete("id = 3")
    return table


def last(table: Table, kind: type) -> list[Any]:
    return [action for action in read_commit(table.store, table.version()) if isinstance(action, kind)]


def metrics(table: Table, *, of_files: bool) -> dict[str, str]:
    """Those of the newest commit that depend neither on how many files the rows go to, nor on the time.

    Args:
        of_files: those that depend on which files there were, too.
    """
    actual = table.history(1)[0]["operationMetrics"]
    left_out = ("numAdded",) if of_files else ("numAdded", "numRemoved", "numDeletionVectors", "numCopied")
    return {
        key: value for key, value in actual.items() if not key.startswith(left_out) and not key.endswith(("TimeMs", "AddedBytes"))
    }


def changes(table: Table) -> list[Any]:
    actual = table.changes(table.version(), table.version())
    return canonical(actual.drop_columns(["_commit_timestamp"]))


def assert_same(ours: Table, core: Table, *, first: bool = False) -> None:
    """The tables are equal, and so are their newest commits.

    Args:
        first: up to now the tables had the same files.
    """
    tracks = ours.snapshot().metadata.configuration.get("delta.enableRowTracking") == "true"
    assert canonical(ours.to_arrow(row_ids=tracks)) == canonical(core.to_arrow(row_ids=tracks))
    assert ours.version() == core.version()
    assert metrics(ours, of_files=first) == metrics(core, of_files=first)
    assert ours.history(1)[0]["operation"] == core.history(1)[0]["operation"]
    if ours.snapshot().config.properties.enable_change_data_feed:
        assert changes(ours) == changes(core)
    assert ours.check() == []


STEPS: list[tuple[str, dict[str, str] | None]] = [
    ("id % 10 = 3 or name = 'n85'", None),
    ("t.id between 20 and 60 or (p is null and id > 130)", {"a.y.z": "concat('u', id)", "name": "'u'"}),
    ("id < 50 and p = 1", None),
    ("p = 2", {"id": "id + 1000", "t.p": "'3'"}),
    ("p = 1", None),
]


@pytest.mark.parametrize(
    "properties",
    sampled([VECTORS | MAPPED, {}, FEED | TRACKED, VECTORS | FEED | TRACKED], 2),
    ids=["vectors-mapped", "rewrite", "rewrite-feed-tracked", "vectors-feed-tracked"],
)
def test_every_step_leaves_the_table_of_the_core(spark, tmp_path, properties, monkeypatch):
    monkeypatch.setattr("tahoe.spark.commands.row_changes._ROWS_ON_DRIVER", 100)  # the table has 140 rows at first, fewer later
    core = make(str(tmp_path / "core"), properties)
    shutil.copytree(tmp_path / "core", tmp_path / "ours")
    ours = Table(str(tmp_path / "ours"))
    table = DeltaTable.forPath(spark, str(tmp_path / "ours")).alias("t")
    for number, (condition, values) in enumerate(STEPS):
        in_core = condition.replace("t.", "")
        if values is None:
            assert table.delete(condition) is None
            core.delete(in_core)
        else:
            assert table.update(condition, values) is None
            core.update({key.removeprefix("t."): value for key, value in values.items()}, in_core)
        assert_same(ours, core, first=number == 0)
    assert {tuple(row) for row in table.toDF().select("id", "p").collect()} == {
        (row["id"], row["p"]) for row in core.to_arrow().to_pylist()
    }
    before = ours.to_arrow()
    table.delete("id = -1")
    table.update("id = -1", {"id": "1"})
    assert ours.version() == core.version(), "no row was meant, so nothing was committed"
    assert ours.to_arrow().equals(before)


@pytest.mark.parametrize("properties", [FEED, VECTORS | FEED], ids=["rewrite", "vectors"])
def test_without_a_condition_every_row_is_meant(spark, tmp_path, properties):
    core = make(str(tmp_path / "core"), properties)
    shutil.copytree(tmp_path / "core", tmp_path / "ours")
    ours, table = Table(str(tmp_path / "ours")), DeltaTable.forPath(spark, str(tmp_path / "ours"))
    table.update(set={"a": sf.col("a"), "id": sf.col("id") * 2})
    core.update({"a": "a", "id": "id * 2"})
    assert_same(ours, core, first=True)
    table.delete()
    core.delete()
    assert_same(ours, core)
    assert last(ours, AddFile) == []


class TestConditions:
    def test_column_expressions_and_functions_of_spark_alone_are_conditions(self, spark, path):
        make(path, VECTORS)
        table = DeltaTable.forPath(spark, path).alias("t")
        odd = sf.udf(lambda number: number % 2 == 1, "boolean")
        table.delete(odd(sf.col("t.id")) & (sf.col("a.x") > 100))
        assert set(range(100)) - {3} <= set(Table(path).to_arrow()["id"].to_pylist())
        table.delete("soundex(name) = soundex('n5') and id % 2 = 0 and p + 1 = 3")
        left = Table(path).to_arrow()["id"].to_pylist()
        assert not {i for i in left if 80 <= i < 120 and i % 2 == 0 and i % 7}
        parameters = Table(path).history(2)
        # As the reference shows them: Catalyst's text, each attribute with its number, constants computed.
        shown = [re.sub(r"#\d+", "#1", json.loads(item["operationParameters"]["predicate"])[0]) for item in parameters]
        assert shown[0] == "(((soundex(name#1) = N000) AND ((id#1L % 2) = 0)) AND ((p#1 + 1) = 3))"
        assert shown[1] == "(<lambda>(id#1L)#1 AND (a#1.x > 100))"

    @pytest.mark.parametrize(
        ("condition", "error", "code"),
        [
            ("id in (select 1)", Unsupported, "DELTA_UNSUPPORTED_SUBQUERY"),
            ("exists (select 1)", Unsupported, "DELTA_UNSUPPORTED_SUBQUERY"),
            ("max(id) > 1", InvalidRequest, "UNSUPPORTED_EXPR_FOR_OPERATOR"),
            ("row_number() over (order by id) = 1", InvalidRequest, "UNSUPPORTED_EXPR_FOR_OPERATOR"),
            ("rand() < 0.5", InvalidRequest, "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
            ("nothing = 1", AnalysisException, None),
            ("id + 1", AnalysisException, None),
        ],
    )
    def test_forbidden_conditions_are_refused_before_anything_is_written(self, spark, untouched, condition, error, code):
        table = DeltaTable.forPath(spark, untouched)
        for call in (lambda: table.delete(condition), lambda: table.update(condition, {"id": "1"})):
            with pytest.raises(error) as raised:
                call()
            assert code is None or raised.value.code == code

    def test_a_table_with_a_name_that_is_needed_is_refused(self, spark, path):
        spark.range(3).withColumnRenamed("id", FILE).write.format("delta").save(path)
        with pytest.raises(InvalidRequest, match=FILE):
            DeltaTable.forPath(spark, path).delete(f"{FILE} = 1")

    def test_partitions_that_only_catalyst_understands_are_deleted(self, spark, path):
        make(path, {})
        DeltaTable.forPath(spark, path).delete("coalesce(p, 7) % 6 = 1")
        assert {*Table(path).to_arrow()["p"].to_pylist()} == {2}
        assert last(Table(path), AddFile) == []


class TestArguments:
    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda t: t.delete(1), TypeError, "must be a Spark SQL Column or a string"),
            (lambda t: t.update("id = 1"), ValueError, "cannot be None"),
            (lambda t: t.update(set=None), ValueError, "cannot be None"),
            (lambda t: t.update(set=1), TypeError, "must be a dict"),
            (lambda t: t.update(1, {}), TypeError, "must be a Spark SQL Column or a string"),
            (lambda t: t.update(set={1: "1"}), TypeError, "Keys of dict in .* must contain only"),
            (lambda t: t.update(set={"id": 1}), TypeError, "Values of dict in .* must contain only"),
            (lambda t: t.update(set={}), InvalidRequest, "at least one assignment"),
            (lambda t: t.update(set={"no": "1"}), InvalidRequest, "no"),
            (lambda t: t.update(set={"a.x": "1", "a": "null"}), InvalidRequest, "conflict"),
            (lambda t: t.update(set={"id": "id IN (select 1)"}), Unsupported, "Subqueries"),
            (lambda t: t.update(set={"id": "sum(id)"}), InvalidRequest, "Aggregate"),
            (lambda t: t.update(set={"a": "named_struct('x', 1)"}), SchemaMismatch, "fields"),
        ],
    )
    def test_wrong_arguments_are_reported_as_by_delta_spark(self, spark, untouched, call, error, message):
        with pytest.raises(error, match=message):
            call(DeltaTable.forPath(spark, untouched))


class TestValues:
    def test_values_are_stored_by_name_and_type_or_not_at_all(self, spark, path):
        table, store = DeltaTable.forPath(spark, make(path, VECTORS).url), Table(path)
        swapped = "named_struct('y', named_struct('z', 7), 'x', '12')"
        table.update("id = 1", {"a": swapped, "p": sf.lit(2).cast("long"), "name": "current_date()"})
        actual = store.to_arrow("id = 1").to_pylist()[0]
        assert (actual["a"], actual["p"]) == ({"x": 12, "y": {"z": "7"}}, 2)
        for value in ("3000000000L", "'abc'"):
            with pytest.raises(Exception, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT"):
                table.update("id = 2", {"p": value})
        table.update("id = 4", {"a": "null", "p": "null"})
        assert store.to_arrow("id = 4").to_pylist()[0]["a"] is None
        assert (store.version(), store.check()) == (7, [])

    @pytest.mark.parametrize("properties", [FEED, VECTORS | FEED], ids=["rewrite", "vectors"])
    def test_the_feed_shows_the_written_values_of_random_expressions(self, spark, path, properties):
        make(path, properties)
        DeltaTable.forPath(spark, path).update("id >= 100", {"name": "uuid()"})
        store = Table(path)
        feed = store.changes(store.version())
        after = feed.filter(pa.compute.equal(feed["_change_type"], "update_postimage"))
        assert sorted(after["name"].to_pylist()) == sorted(store.to_arrow("id >= 100")["name"].to_pylist())
        assert len(set(after["name"].to_pylist())) == 40

    def test_generated_columns_follow_and_constraints_hold(self, spark, path):
        builder = DeltaTable.create(spark).location(path).addColumn("id", "long", nullable=False)
        table = builder.addColumn("twice", "long", generatedAlwaysAs="id * 2").execute()
        spark.range(6).write.format("delta").mode("append").save(path)
        store = Table(path)
        store.add_constraint("small", "id < 100")
        table.update("id > 3", {"id": "id + 10"})
        assert sorted(row["twice"] - 2 * row["id"] for row in store.to_arrow().to_pylist()) == [0] * 6
        version = store.version()
        for values, code in (
            ({"id": "100"}, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
            ({"twice": "1"}, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
            ({"id": "null"}, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ):
            with pytest.raises(InvariantViolation) as raised:
                table.update("id = 3", values)
            assert raised.value.code == code
        table.delete("id = 3")
        assert (store.version(), store.to_arrow().num_rows, store.check()) == (version + 1, 5, [])


class TestFiles:
    def test_files_without_statistics_are_counted_by_their_footers(self, spark, path):
        table = make(path, VECTORS)
        for name in sorted(Path(path, "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in name.read_text().splitlines()]
            for action in actions:
                if "add" in action and "deletionVector" not in action["add"]:
                    del action["add"]["stats"]
            name.write_text("".join(json.dumps(action) + "\n" for action in actions))
        for name in Path(path, "_delta_log").glob("*.crc"):
            name.unlink()
        table = Table(path)
        DeltaTable(spark, table).delete("id >= 70 and id < 120")
        assert sorted(table.to_arrow()["id"].to_pylist()) == [i for i in range(140) if i != 3 and not 70 <= i < 120]
        assert (len(last(table, RemoveFile)), len(last(table, AddFile)), table.check()) == (2, 1, [])

    @pytest.mark.parametrize("most", [None, 139])
    def test_rows_found_twice_are_reported(self, spark, path, monkeypatch, most):
        if most is not None:  # the files have 140 rows
            monkeypatch.setattr("tahoe.spark.commands.row_changes._ROWS_ON_DRIVER", most)
        snapshot = make(path, VECTORS).snapshot()
        actual = TableVersion(spark, snapshot).with_positions(snapshot.files()).where("id in (1, 50, 51)").select(FILE, ROW)
        once = changes_of(snapshot, snapshot.files(), actual)
        assert sorted(sorted(change.dead) for change in once.changes) == [[1], [10, 11]]
        assert not once.ambiguous
        assert changes_of(snapshot, snapshot.files(), actual.union(actual.limit(1))).ambiguous

    @pytest.mark.parametrize("most", [150_000, 149_999])
    def test_large_files_are_marked_where_the_rows_are(self, spark, path, monkeypatch, most):
        monkeypatch.setattr("tahoe.spark.commands.row_changes._ROWS_ON_DRIVER", most)
        spark.range(0, 150_000, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
        DeltaTable.forPath(spark, path).delete("id % 32768 in (0, 32767)")
        left = Table(path).to_arrow()["id"]
        assert len(left) == 150_000 - 9
        assert not {0, 32767, 32768, 131_072, 131_071} & set(left.to_pylist())

    @pytest.mark.parametrize(("rows", "files", "fits"), [(100, 2, True), (99, 2, False), (100, 1, False)])
    def test_rows_are_found_in_one_stage_if_their_positions_fit_the_driver(self, spark, path, monkeypatch, rows, files, fits):
        monkeypatch.setattr("tahoe.spark.commands.row_changes._ROWS_ON_DRIVER", rows)
        monkeypatch.setattr("tahoe.spark.commands.row_changes._FILES_COUNTED", files)
        spark.range(0, 110, 1, 2).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
        Table(path).delete("id % 55 < 5")  # only live rows have positions
        table, tracker = DeltaTable.forPath(spark, path), spark.sparkContext.statusTracker()
        spark.sparkContext.setJobGroup(path, "DELETE")
        try:
            table.delete("id % 10 = 1")
        finally:
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(path)]
        stages = sum(len(list(job.stageIds)) for job in jobs)
        assert stages == 1 if fits else stages > 1
        assert Table(path).to_arrow().num_rows == 90

    @pytest.mark.parametrize("read", [read_deltalake, read_duckdb], ids=["deltalake", "duckdb"])
    def test_other_readers_read_the_same(self, spark, tmp_path, read):
        path = str(tmp_path / "t")
        make(path, VECTORS)
        table = DeltaTable.forPath(spark, path)
        table.delete("id % 9 = 1")
        table.update("id % 9 = 2", {"p": "9"})
        assert canonical(read(path)) == canonical(Table(path).to_arrow())

    def test_replace_where_keeps_ids_and_writes_the_feed(self, spark, tmp_path):
        core = make(str(tmp_path / "core"), FEED | TRACKED)
        shutil.copytree(tmp_path / "core", tmp_path / "ours")
        new = rows(45, 55, 1)
        frame = spark.createDataFrame(new)
        frame.write.format("delta").mode("overwrite").option("replaceWhere", "id between 45 and 60").save(str(tmp_path / "ours"))
        core.overwrite(new, replace_where="id between 45 and 60")
        ours = Table(str(tmp_path / "ours"))
        remaining = "id < 45 or id > 60"
        assert canonical(ours.to_arrow(remaining, row_ids=True)) == canonical(core.to_arrow(remaining, row_ids=True))
        assert canonical(ours.to_arrow()) == canonical(core.to_arrow())
        assert (changes(ours), ours.check()) == (changes(core), [])


class TestWriters:
    def test_two_writers_of_other_rows_of_one_file_both_win_and_of_the_same_row_one(self, spark, path):
        table = make(path, VECTORS)
        other = Table(path)
        transaction = table.begin()
        staged = stage_delete(transaction, CommandTarget(spark, table), "id in (5, 6)")
        other.delete("id = 7")
        assert table.commit_rows(transaction, staged).num_deleted_rows == 2
        assert not {5, 6, 7} & set(Table(path).to_arrow()["id"].to_pylist())
        transaction = table.begin()
        staged = stage_delete(transaction, CommandTarget(spark, table), "id in (8, 9)")
        other.update({"p": "5"}, "id = 9")
        with pytest.raises(DeltaConcurrentModificationException):
            table.commit_rows(transaction, staged)
        assert Table(path).check() == []

    def test_an_append_only_table_is_refused(self, spark, path):
        Table.create(path, SCHEMA, properties={"delta.appendOnly": "true"}).append(rows(0, 3, 1))
        for call in (DeltaTable.forPath(spark, path).delete, lambda: DeltaTable.forPath(spark, path).update(set={"id": "1"})):
            with pytest.raises(InvalidRequest) as raised:
                call()
            assert raised.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


@pytest.mark.soak
def test_workers_in_jvms_of_their_own_find_the_same_rows(tmp_path):
    """Bits of vectors, positions and bitmaps cross from one JVM to another."""
    path = str(tmp_path / "t")
    program = f"""
import tahoe
from pyspark.sql import SparkSession
from tahoe.tables import DeltaTable
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
spark = tahoe.enable(builder.config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.range(0, 200000, 1, 4).write.format("delta").option("delta.enableDeletionVectors", "true").save({path!r})
table = DeltaTable.forPath(spark, {path!r})
table.delete("id % 1000 = 1")
table.delete("id % 1000 = 2")
table.update("id % 1000 = 3", {{"id": "-id"}})
assert table.toDF().count() == 199600
spark.stop()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=900)
    table = Table(path)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(
        -i if i % 1000 == 3 else i for i in range(200_000) if i % 1000 not in (1, 2)
    )
    assert table.check() == []


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A table that must be after the tests of this module as it was before."""
    path = str(tmp_path_factory.mktemp("untouched") / "t")
    table = make(path, VECTORS)
    files = sorted(Path(path).rglob("*"))
    yield path
    assert table.version() == Table(path).version() and sorted(Path(path).rglob("*")) == files


def test_a_value_that_its_column_cannot_hold_is_reported_and_nothing_is_committed(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(path, {})
    version = table.version()
    attempts = {
        "'3000000001' (long) does not fit column 'p'": lambda: DeltaTable.forPath(spark, path).update(
            "id = 1", {"p": "id + 3000000000"}
        ),
    }
    for words, attempt in attempts.items():
        with pytest.raises(SchemaMismatch) as caught:
            attempt()
        assert words in caught.value.message and table.url in caught.value.message and "integer" in caught.value.message
        assert (caught.value.code, caught.value.facts["column"]) == ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "p")
    assert table.version() == version


APP = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"


@pytest.fixture
def settings(spark):
    """Sets the session's settings, and forgets them afterwards."""
    yield spark.conf.set
    for key in (APP, VERSION, f"{VERSION}.autoReset.enabled"):
        spark.conf.unset(key)


def test_numbers_of_the_session_are_evaluated_once(spark, tmp_path, settings):
    path = str(tmp_path / "t")
    table = make(path, {})
    target = DeltaTable.forPath(spark, path)
    source = spark.createDataFrame(rows(200, 203, 1)).alias("s")
    operations = [
        lambda: target.update("id = 5", {"p": "p + 1"}),
        lambda: target.delete("id = 6"),
        lambda: target.alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute(),
        lambda: source.write.format("delta").mode("append").save(path),
    ]
    settings(APP, "nightly")
    for number, operation in enumerate(operations):
        settings(VERSION, str(number))
        operation()
        version = table.version()
        operation()
        assert table.version() == version
    assert table.snapshot().state.transactions["nightly"].version == 3
    actual = table.to_arrow().to_pylist()
    assert (len(actual), [row["p"] for row in actual if row["id"] == 5]) == (140 - 2 + 6, [2])

    settings(f"{VERSION}.autoReset.enabled", "true")
    settings(VERSION, "4")
    target.delete("id = 7")
    assert spark.conf.get(VERSION, None) is None
    with pytest.raises(InvalidRequest, match="both txnAppId and txnVersion"):
        target.delete("id = 8")
