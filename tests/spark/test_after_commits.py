"""A failure after a commit fails no statement: every command, with storage, Python workers, hooks and the result broken from then on."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType as SparkStruct

import tahoe
from tahoe.api.table import Table
from tahoe.base.exceptions import StorageFailure
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.jvm import local_rows
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import Created
from tahoe.tables import DeltaTable
from tests.sampling import sampled

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string(), "x": pa.int32()})
PROPERTIES = {"delta.checkpointInterval": "1", "delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
OPERATIONS = ("list_from", "names_from", "walk", "get", "head", "open_input", "put", "open_output", "put_if_absent", "delete")


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + 3), "p": ["a", "a", "b"], "x": pa.array([0, 1, 2], pa.int32())}, SCHEMA)


def base(path: str) -> None:
    table = Table.create(path, SCHEMA, partition_by=["p"], properties=PROPERTIES)
    table.append(rows(0))
    table.append(rows(10))
    table.delete("id = 10")
    table.add_constraint("small", "x < 1000")


def plain(path: str) -> None:
    table = Table.create(path, SCHEMA)
    table.append(rows(0))
    table.append(rows(10))


def without_a_file(path: str) -> None:
    plain(path)
    next(Path(path).glob("*.parquet")).unlink()


def without_statistics(path: str) -> None:
    table = Table.create(path, SCHEMA, properties={"delta.dataSkippingNumIndexedCols": "0"})
    table.append(rows(0))
    table.set_properties({"delta.dataSkippingNumIndexedCols": "32"})


def with_numbers(path: str) -> None:
    column = StructField("id", PrimitiveType("long"), metadata=identity_metadata(1, 1, allow_explicit=True))
    table = Table.create(path, StructType((column, StructField("x", PrimitiveType("integer")))))
    table.append(pa.table({"id": [7], "x": pa.array([1], pa.int32())}))


def folder(path: str) -> None:
    Path(path).mkdir()
    pq.write_table(rows(0), f"{path}/some.parquet")


def nothing(path: str) -> None:
    """There is no table yet."""


class After:
    """Breaks the storage of the table ``t`` in a folder, and Python workers, once a statement has made so many commits to it.

    Attributes:
        commits: made so far.
        jobs: that Spark started after the last of them.
    """

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spark, self.url, self.commits, self.jobs = spark, (folder / "t").as_uri(), 0, 0
        self._most: int | None = None
        self._scheduler = spark.sparkContext._jsc.sc().dagScheduler()
        self._patches = monkeypatch
        for operation in OPERATIONS:
            self._patch(operation)

    def _patch(self, operation: str) -> None:
        original = getattr(LocalLogStore, operation)

        def call(store: LocalLogStore, name: str = "", *rest: Any) -> Any:
            if self._is_over() and store.url == self.url:
                raise StorageFailure(f"the disk is gone ({operation} {name})")
            answer = original(store, name, *rest)
            if isinstance(answer, Created) and store.url == self.url and re.fullmatch(r"_delta_log/\d+\.json", name):
                self.commits += 1
                if self._is_over():
                    self._break()
            return answer

        self._patches.setattr(LocalLogStore, operation, call)

    def _is_over(self) -> bool:
        return self._most is not None and self.commits >= self._most

    def _break(self) -> None:
        self._started = int(self._scheduler.numTotalJobs())
        self._python, self.spark.sparkContext.pythonExec = self.spark.sparkContext.pythonExec, "/nowhere/python3"

    @contextmanager
    def breaking(self, commits: int | None = None) -> Iterator[None]:
        self.commits, self._most = 0, commits
        try:
            yield
            if self._is_over():
                self.jobs = int(self._scheduler.numTotalJobs()) - self._started
        finally:
            if self._is_over():
                self.spark.sparkContext.pythonExec = self._python
            self._most = None


@pytest.fixture
def after(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> After:
    return After(spark, tmp_path, monkeypatch)


Case = tuple[str, Callable[[str], None], str | Callable[[SparkSession, str], Any]]
MERGE = "MERGE INTO {t} t USING new s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
CASES: list[Case] = [
    ("INSERT", base, "INSERT INTO {t} SELECT * FROM new"),
    ("INSERT of some columns", base, "INSERT INTO {t} (id, x) SELECT id, x FROM new"),
    ("INSERT BY NAME", base, "INSERT INTO {t} BY NAME SELECT p, id, x FROM new"),
    ("INSERT OVERWRITE", base, "INSERT OVERWRITE {t} SELECT * FROM new"),
    ("INSERT REPLACE WHERE", base, "INSERT INTO {t} REPLACE WHERE p = 'a' SELECT 1L, 'a', 1"),
    ("DELETE", base, "DELETE FROM {t} WHERE id = 1"),
    ("DELETE of a file", base, "DELETE FROM {t} WHERE p = 'a'"),
    ("DELETE of all", base, "DELETE FROM {t}"),
    ("DELETE with a parameter", base, lambda spark, t: spark.sql(f"DELETE FROM {t} WHERE id = :id", {"id": 1})),
    ("UPDATE", base, "UPDATE {t} SET x = x + 1 WHERE id < 3"),
    ("MERGE", base, MERGE),
    (
        "MERGE WITH SCHEMA EVOLUTION",
        base,
        MERGE.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO").replace("new s", "wide s"),
    ),
    ("TRUNCATE", base, "TRUNCATE TABLE {t}"),
    ("OPTIMIZE", base, "OPTIMIZE {t}"),
    ("OPTIMIZE ZORDER", base, "OPTIMIZE {t} ZORDER BY (id)"),
    ("REORG PURGE", base, "REORG TABLE {t} APPLY (PURGE)"),
    ("REORG UPGRADE UNIFORM", plain, "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"),
    ("RESTORE", base, "RESTORE TABLE {t} TO VERSION AS OF 1"),
    ("FSCK", without_a_file, "FSCK REPAIR TABLE {t}"),
    ("ANALYZE", without_statistics, "ANALYZE TABLE {t} COMPUTE DELTA STATISTICS"),
    ("VACUUM", base, "VACUUM {t}"),
    ("ADD COLUMN", base, "ALTER TABLE {t} ADD COLUMN c INT"),
    ("ALTER COLUMN", base, "ALTER TABLE {t} ALTER COLUMN x COMMENT 'new'"),
    ("RENAME COLUMN", base, "ALTER TABLE {t} RENAME COLUMN id TO number"),
    ("DROP COLUMN", base, "ALTER TABLE {t} DROP COLUMN id"),
    ("REPLACE COLUMNS", base, "ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, p STRING, x INT, c INT)"),
    ("ADD CONSTRAINT", base, "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)"),
    ("DROP CONSTRAINT", base, "ALTER TABLE {t} DROP CONSTRAINT small"),
    ("SET TBLPROPERTIES", base, "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"),
    ("SET TBLPROPERTIES rows ids", base, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"),
    ("UNSET TBLPROPERTIES", base, "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.checkpointInterval')"),
    ("CLUSTER BY", plain, "ALTER TABLE {t} CLUSTER BY (id)"),
    ("COMMENT ON", base, "COMMENT ON TABLE {t} IS 'told'"),
    ("SYNC IDENTITY", with_numbers, "ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY"),
    ("DROP FEATURE", base, "ALTER TABLE {t} DROP FEATURE deletionVectors"),
    ("CONVERT", folder, "CONVERT TO DELTA parquet.`{path}`"),
    ("CREATE", nothing, "CREATE TABLE {t} (id INT) USING delta"),
    ("CREATE AS SELECT", nothing, "CREATE TABLE {t} USING delta AS SELECT * FROM new"),
    ("CREATE of a name", nothing, "CREATE TABLE a_new_name USING delta LOCATION '{path}' AS SELECT * FROM new"),
    ("CREATE LIKE", nothing, "CREATE TABLE {t} LIKE {other} USING delta"),
    ("REPLACE", base, "REPLACE TABLE {t} (id INT) USING delta"),
    ("CREATE OR REPLACE AS SELECT", base, "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM new"),
    ("SHALLOW CLONE", nothing, "CREATE TABLE {t} SHALLOW CLONE {other}"),
    ("DEEP CLONE", nothing, "CREATE TABLE {t} DEEP CLONE {other}"),
    ("save", base, lambda spark, t: new(spark).write.format("delta").mode("append").save(t[7:-1])),
    ("save over", base, lambda spark, t: new(spark).write.format("delta").mode("overwrite").save(t[7:-1])),
    ("save a table", nothing, lambda spark, t: new(spark).write.format("delta").saveAsTable(t)),
    ("saveAsTable", base, lambda spark, t: new(spark).write.format("delta").mode("append").saveAsTable(t)),
    ("insertInto", base, lambda spark, t: new(spark).write.insertInto(t)),
    ("writeTo append", base, lambda spark, t: new(spark).writeTo(t).append()),
    ("writeTo createOrReplace", base, lambda spark, t: new(spark).writeTo(t).using("delta").createOrReplace()),
    ("delete", base, lambda spark, t: table_of(spark, t).delete("id = 1")),
    ("update", base, lambda spark, t: table_of(spark, t).update("id = 1", {"x": "5"})),
    ("merge", base, lambda spark, t: merge(spark, t)),
    ("executeCompaction", base, lambda spark, t: table_of(spark, t).optimize().executeCompaction()),
    ("executeZOrderBy", base, lambda spark, t: table_of(spark, t).optimize().executeZOrderBy("id")),
    ("vacuum", base, lambda spark, t: table_of(spark, t).vacuum()),
    ("restoreToVersion", base, lambda spark, t: table_of(spark, t).restoreToVersion(1)),
    ("restoreToTimestamp", base, lambda spark, t: table_of(spark, t).restoreToTimestamp(first_moment(t))),
    ("upgradeTableProtocol", plain, lambda spark, t: table_of(spark, t).upgradeTableProtocol(1, 4)),
    ("addFeatureSupport", plain, lambda spark, t: table_of(spark, t).addFeatureSupport("deletionVectors")),
    ("dropFeatureSupport", base, lambda spark, t: table_of(spark, t).dropFeatureSupport("deletionVectors")),
    ("clone", nothing, lambda spark, t: other(spark, t).clone(t[7:-1])),
    ("convertToDelta", folder, lambda spark, t: DeltaTable.convertToDelta(spark, f"parquet.`{t[7:-1]}`")),
    ("create", nothing, lambda spark, t: DeltaTable.create(spark).location(t[7:-1]).addColumn("id", "INT").execute()),
    ("replace", base, lambda spark, t: DeltaTable.replace(spark).location(t[7:-1]).addColumn("id", "INT").execute()),
    ("a stream", base, lambda spark, t: streamed(spark, t)),
    ("an idempotent write", base, lambda spark, t: numbered(spark, t)),
]


def new(spark: SparkSession) -> DataFrame:
    return spark.table("new")


def table_of(spark: SparkSession, t: str) -> DeltaTable:
    return DeltaTable.forPath(spark, t[7:-1])


def other(spark: SparkSession, t: str) -> DeltaTable:
    return DeltaTable.forPath(spark, f"{t[7:-2]}other")


def first_moment(t: str) -> str:
    return Table(t[7:-1]).history()[-1]["timestamp"].strftime("%Y-%m-%d %H:%M:%S.%f")


def merge(spark: SparkSession, t: str) -> DataFrame:
    matching = table_of(spark, t).alias("t").merge(new(spark).alias("s"), "t.id = s.id")
    return matching.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def numbered(spark: SparkSession, t: str) -> None:
    settings = {"write.txnAppId": "a", "write.txnVersion": "1", "write.txnVersion.autoReset.enabled": "true"}
    for key, value in settings.items():
        spark.conf.set(f"spark.databricks.delta.{key}", value)
    try:
        spark.sql(f"DELETE FROM {t} WHERE id = 1")
    finally:
        for key in settings:
            spark.conf.unset(f"spark.databricks.delta.{key}")


def streamed(spark: SparkSession, t: str) -> None:
    rows_of_other = spark.readStream.format("delta").load(f"{t[7:-2]}other")
    writer = rows_of_other.writeStream.format("delta").option("checkpointLocation", f"{t[7:-1]}-checkpoint")
    query = writer.trigger(availableNow=True).start(t[7:-1])
    query.awaitTermination()


def attempted(spark: SparkSession, after: After, case: Case, path: Path, commits: int | None = None) -> list[Any]:
    """Run a case in a new table; its result."""
    _, prepare, act = case
    for left in (path, path.with_name("t-checkpoint"), path.with_name("other")):
        shutil.rmtree(left, ignore_errors=True)
    tahoe.cache.clear()
    prepare(str(path))
    plain(str(path.with_name("other")))
    t, place = f"delta.`{path}`", {"t": f"delta.`{path}`", "path": path, "other": f"delta.`{path.with_name('other')}`"}
    try:
        with after.breaking(commits):
            answer = spark.sql(act.format(**place)) if isinstance(act, str) else act(spark, t)
            return answer.collect() if isinstance(answer, DataFrame) else []
    finally:
        spark.sql("DROP TABLE IF EXISTS a_new_name")


@pytest.fixture
def sources(spark: SparkSession) -> Iterator[None]:
    spark.sql("SELECT id, 'b' AS p, CAST(id AS INT) AS x FROM range(1, 4)").createOrReplaceTempView("new")
    spark.sql("SELECT *, 'w' AS w FROM new").createOrReplaceTempView("wide")
    yield
    for name in ("new", "wide"):
        spark.catalog.dropTempView(name)


@pytest.mark.damages_tables
@pytest.mark.parametrize("case", sampled(CASES, 6), ids=[name for name, _, _ in CASES])
def test_nothing_that_breaks_after_the_last_commit_fails_a_statement(
    spark: SparkSession, sources: None, after: After, tmp_path: Path, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    path = tmp_path / "t"
    expected = attempted(spark, after, case, path)
    commits, version = after.commits, Table(path).version()
    assert commits
    count = Table(path).to_arrow().num_rows if case[1] is not without_a_file else 0
    with caplog.at_level(logging.CRITICAL):
        answer = attempted(spark, after, case, path, commits)
    assert (after.commits, Table(path).version(), after.jobs) == (commits, version, 0)
    if case[1] is not without_a_file:
        assert Table(path).to_arrow().num_rows == count
    assert without_times(answer) == without_times(expected)


RESULTS: list[Case] = [
    case for case in CASES if case[0] in ("MERGE", "OPTIMIZE", "DELETE", "merge", "executeCompaction", "restoreToVersion")
]


@pytest.mark.parametrize("case", RESULTS, ids=[name for name, _, _ in RESULTS])
def test_a_result_that_cannot_be_made_is_empty_and_logged(
    spark: SparkSession,
    sources: None,
    after: After,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("the JVM is gone")

    monkeypatch.setattr(local_rows, "_catalyst_rows", fails)
    assert attempted(spark, after, case, tmp_path / "t") == []
    assert after.commits == 1
    assert "is committed, but its result could not be made" in caplog.text and "the JVM is gone" in caplog.text


def test_a_query_whose_result_cannot_be_made_fails(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("the JVM is gone")

    base(str(tmp_path / "t"))
    monkeypatch.setattr(local_rows, "_catalyst_rows", fails)
    for query in ("DESCRIBE HISTORY {t}", "DESCRIBE DETAIL {t}", "SHOW COLUMNS IN {t}", "DESCRIBE {t}"):
        with pytest.raises(RuntimeError, match="the JVM is gone"):
            spark.sql(query.format(t=f"delta.`{tmp_path / 't'}`"))
    table = DeltaTable.forPath(spark, str(tmp_path / "t"))
    for read in (table.history, table.detail):
        with pytest.raises(RuntimeError, match="the JVM is gone"):
            read()


def test_hooks_and_caches_that_fail_fail_no_statement(
    spark: SparkSession, sources: None, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    base(str(path))
    frame = spark.read.format("delta").load(str(path)).cache()
    assert frame.count() == 5

    def fails(*_: Any) -> None:
        raise RuntimeError("the hook is broken")

    monkeypatch.setattr("tahoe.spark.scan.user_cache._followed_url", fails)
    monkeypatch.setattr("tahoe.txn.hooks.write_checksum_after", fails)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM new")
    assert caplog.text.count("the hook is broken") >= 2 and Table(path).to_arrow().num_rows == 8
    frame.unpersist()


def test_rows_of_every_type_become_a_local_relation(spark: SparkSession) -> None:
    columns = SparkStruct.fromDDL(
        "l bigint, i int, d double, b boolean, t string, m map<string, string>, s struct<x: double, y: array<string>>, "
        "at timestamp, day date, number decimal(10, 2), content binary"
    )
    day, at = date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 456789)
    full = (
        2**40,
        -1,
        0.5,
        True,
        "ü'\"\\",
        {"b": "1", "a": None},
        (1.0, ["q", None]),
        at,
        day,
        Decimal("1.20"),
        bytearray(b"\0\xff"),
    )
    before = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    frame = local_rows.local_frame(spark, [full, (None,) * 11, (*full[:6], {"x": 2, "y": []}, *full[7:])], columns)
    assert frame.schema == columns
    first, empty, third = frame.collect()
    assert tuple(first) == (*full[:6], Row(x=1.0, y=["q", None]), *full[7:]) and set(empty) == {None}
    assert third.s == Row(x=2.0, y=[])
    assert list(local_rows.local_frame(spark, [], columns).collect()) == []
    assert spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs() == before
    for policy in ("LEGACY", "EXCEPTION"):
        spark.conf.set("spark.sql.legacy.timeParserPolicy", policy)
        try:
            assert local_rows.local_frame(spark, [full], columns).first().at == at
        finally:
            spark.conf.unset("spark.sql.legacy.timeParserPolicy")


def without_times(answer: list[Any]) -> str:
    return re.sub(r"(startTimeMs|endTimeMs|[sS]ize|min|max|avg|dataFilePath)='?[^ ,)]+", "", str(answer))
