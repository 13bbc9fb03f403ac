"""OPTIMIZE by `DeltaTable` and by SQL: delta-spark's names, results and errors; executors give the core's result."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure
from tahoe.ops.layout import optimize as layout
from tahoe.spark.commands import upkeep
from tahoe.spark.commands.upkeep import optimize_table
from tahoe.spark.write import spread
from tahoe.tables import DeltaTable


@pytest.fixture
def table(spark, path) -> tahoe.Table:
    """Ten files in each of two partitions, with row ids, a vector, and a column of texts."""
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    rows = spark.range(0, 200, 1, 5).selectExpr("id", "cast(id % 2 as int) p", "concat('t', id % 10) t", "id / 3 v")
    made = tahoe.Table(path)
    for number in range(2):
        frame = rows.where(f"id % 4 < 2 = ({number} = 0)").write.format("delta").mode("append").partitionBy("p")
        frame.options(**properties).save(path)
    made.delete("id = 7")
    return made


def rows_of(table: tahoe.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(row_ids=True).to_pylist())


def data_files(table: tahoe.Table) -> set[str]:
    return {entry.name for entry in table.store.walk() if entry.name.endswith(".parquet") and "_delta_log" not in entry.name}


def test_compaction_keeps_rows_and_ids_and_answers_with_the_references_metrics(spark, table, path):
    before, files = rows_of(table), table.files().num_rows
    answer = DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert answer.columns == ["path", "metrics"]
    row = answer.first()
    assert row.path == f"file:{path}"
    metrics = row.metrics
    assert (metrics.numFilesAdded, metrics.numFilesRemoved, metrics.partitionsOptimized) == (2, files, 2)
    assert (metrics.numBins, metrics.numBatches, metrics.totalConsideredFiles, metrics.totalFilesSkipped) == (2, 1, files, 0)
    assert metrics.filesAdded.totalSize == sum(table.files()["size"].to_pylist())
    assert metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1
    assert (metrics.zOrderStats, metrics.clusteringStats) == (None, None)
    assert metrics.totalClusterParallelism == 2
    assert 0 < metrics.startTimeMs <= metrics.endTimeMs
    assert rows_of(table) == before
    assert spark.read.format("delta").load(path).count() == 199
    assert table.check(deep=True) == []


def test_the_history_has_the_condition_as_the_reference_prints_it(spark, table, path):
    optimized = DeltaTable.forPath(spark, path).optimize().where("p = 1").executeCompaction().first().metrics
    last = DeltaTable.forPath(spark, path).history(1).first()
    assert last.operation == "OPTIMIZE"
    assert json.loads(last.operationParameters["predicate"]) == ["('p = 1)"]
    assert last.operationParameters["zOrderBy"] == last.operationParameters["clusterBy"] == "[]"
    assert last.operationMetrics["numRemovedFiles"] == str(optimized.numFilesRemoved)
    assert optimized.partitionsOptimized == 1


def test_conditions_add_up(spark, table, path):
    builder = DeltaTable.forPath(spark, path).optimize().where("p >= 0").where("p < 1")
    assert builder.executeCompaction().first().metrics.partitionsOptimized == 1
    predicates = json.loads(DeltaTable.forPath(spark, path).history(1).first().operationParameters["predicate"])
    assert predicates == ["('p >= 0)", "('p < 1)"]


def test_spark_evaluates_the_conditions_that_tahoe_does_not(spark, table, path):
    by_time = "p = 1 AND current_date() >= DATE'2026-01-01' - INTERVAL 1 DAY"
    assert DeltaTable.forPath(spark, path).optimize().where(by_time).executeCompaction().first().metrics.partitionsOptimized == 1
    assert (
        spark.sql(f"OPTIMIZE delta.`{path}` WHERE p = 0 AND current_date() < '2026-01-01'").first().metrics.totalConsideredFiles
        == 0
    )
    with pytest.raises(InvalidRequest, match="names column `id`, which does not partition") as refused:
        spark.sql(f"OPTIMIZE delta.`{path}` WHERE id = 1 AND current_date() > '2026-01-01'")
    assert refused.value.getErrorClass() == "DELTA_NON_PARTITION_COLUMN_REFERENCE"


@pytest.mark.parametrize("columns", [("id", "t"), (["id", "t"],)])
def test_z_order_clusters_and_says_so(spark, table, path, columns):
    before = rows_of(table)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", "1000")
    try:
        metrics = DeltaTable.forPath(spark, path).optimize().executeZOrderBy(*columns).first().metrics
    finally:
        spark.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    assert metrics.zOrderStats.strategyName == "all"
    assert (metrics.zOrderStats.numOutputCubes, metrics.zOrderStats.inputOtherFiles.num) == (2, metrics.numFilesRemoved)
    assert metrics.numFilesAdded > 2
    assert rows_of(table) == before
    assert DeltaTable.forPath(spark, path).history(1).first().operationParameters["zOrderBy"] == '["id","t"]'
    assert table.files("id = 100").num_rows <= table.files().num_rows / 2


def test_sql_by_path_by_name_and_by_a_text(spark, table, path):
    answer = spark.sql(f"OPTIMIZE delta.`{path}` WHERE p = 0")
    assert answer.columns == ["path", "metrics"]
    assert answer.first().metrics.partitionsOptimized == 1
    assert spark.sql(f"optimize '{path}'").first().metrics.numFilesRemoved > 1
    spark.sql(f"CREATE TABLE to_optimize USING delta LOCATION '{path}'")
    try:
        assert spark.sql("OPTIMIZE to_optimize ZORDER BY (id, `t`)").first().metrics.numFilesRemoved == 2
        assert spark.sql("OPTIMIZE to_optimize WHERE p = 1 ZORDER BY id").first().metrics.numFilesRemoved == 1
        assert spark.sql("OPTIMIZE to_optimize").first().metrics.numFilesAdded == 0
    finally:
        spark.sql("DROP TABLE to_optimize")
    assert [row["operation"] for row in table.history(4)] == ["OPTIMIZE"] * 4


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("WHERE id = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("ZORDER BY (p)", "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        ("ZORDER BY (nowhere)", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        ("FULL", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
    ],
)
def test_statements_that_the_reference_refuses_are_refused_with_its_error(spark, table, path, statement, code):
    version = table.version()
    with pytest.raises(InvalidRequest) as refused:
        spark.sql(f"OPTIMIZE delta.`{path}` {statement}").collect()
    assert refused.value.getErrorClass() == code
    assert table.version() == version


def test_columns_without_statistics_are_refused_unless_the_session_says_otherwise(spark, table, path):
    table.set_properties({"delta.dataSkippingStatsColumns": "id"})
    with pytest.raises(InvalidRequest, match=r"Z-Ordering on \[v\] will be ineffective"):
        DeltaTable.forPath(spark, path).optimize().executeZOrderBy("v")
    name = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
    spark.conf.set(name, "false")
    try:
        assert DeltaTable.forPath(spark, path).optimize().executeZOrderBy("v").first().metrics.numFilesAdded == 2
    finally:
        spark.conf.unset(name)


def test_the_sessions_settings_count(spark, table, path):
    settings = {"maxFileSize": "1", "maxDeletedRowsRatio": "0.5", "minFileSize": "1", "batchSize": "1"}
    for name, value in settings.items():
        spark.conf.set(f"spark.databricks.delta.optimize.{name}", value)
    try:
        assert DeltaTable.forPath(spark, path).optimize().executeCompaction().first().metrics.numFilesRemoved == 0
        spark.conf.set("spark.databricks.delta.optimize.maxDeletedRowsRatio", "much")
        with pytest.raises(InvalidRequest, match="maxDeletedRowsRatio = 'much'"):
            DeltaTable.forPath(spark, path).optimize().executeCompaction()
        for name in settings.keys() - {"batchSize"}:
            spark.conf.unset(f"spark.databricks.delta.optimize.{name}")
        assert DeltaTable.forPath(spark, path).optimize().executeCompaction().first().metrics.numBatches == 2
    finally:
        for name in settings:
            spark.conf.unset(f"spark.databricks.delta.optimize.{name}")


def test_explain_shows_the_plan_and_changes_nothing(spark, table, path):
    version, files = table.version(), table.files().num_rows
    explained = DeltaTable.forPath(spark, path).optimize().where("p = 0").explain()
    assert (explained.version, explained.plan.files, len(explained.plan.bins)) == (None, files // 2, 1)
    assert f"would rewrite {files // 2} of" in str(explained)
    assert DeltaTable.forPath(spark, path).optimize().explain("id", "t").plan.clusters
    assert table.version() == version


def test_wrong_arguments_are_type_errors(spark, table, path):
    builder = DeltaTable.forPath(spark, path).optimize()
    with pytest.raises(TypeError, match="Z-order column must be str"):
        builder.executeZOrderBy(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Partition filter needs to be"):
        builder.where(1)  # type: ignore[arg-type]


def test_a_task_that_fails_leaves_the_table_as_it_was_and_no_files(spark, table, path):
    before, files = rows_of(table), data_files(table)
    gone = next(Path(path, name) for name in sorted(files) if name.startswith("p=1"))
    aside = gone.rename(gone.with_suffix(".aside"))
    with pytest.raises(tahoe.NotFound, match="is in the table's log but not in storage"):
        optimize_table(spark, table)
    aside.rename(gone)
    assert data_files(table) == files
    assert rows_of(table) == before


def test_a_change_that_wins_has_its_bin_written_again_by_an_executor(spark, table, path, monkeypatch):
    rounds = []
    staged = layout.stage_replacement

    def meanwhile(*arguments):
        rounds.append(1)
        if len(rounds) == 1:
            tahoe.Table(path).delete("id = 100")
        staged(*arguments)

    monkeypatch.setattr(layout, "stage_replacement", meanwhile)
    done = DeltaTable.forPath(spark, path).optimize().executeCompaction().first().metrics
    assert (len(rounds), done.numFilesAdded) == (2, 2)
    assert len(rows_of(table)) == 198
    assert table.check(deep=True) == []


def test_storage_that_fails_is_reported_as_it_is(spark, path):
    with pytest.raises((StorageFailure, tahoe.NotFound)):
        DeltaTable.forPath(spark, path).optimize()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.damages_tables
def test_a_large_bin_is_clustered_by_many_tasks(spark, path, monkeypatch, fails):
    made = tahoe.Table.create(
        path,
        pa.schema({"id": pa.int64(), "t": pa.string()}),
        cluster_by=["t", "id"],
        properties={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true", "delta.targetFileSize": "3000"},
    )
    for number in range(6):
        ids = range(number * 200, number * 200 + 200)
        made.append(pa.table({"id": pa.array(ids, pa.int64()), "t": [f"t{i * 31 % 97:03}" for i in ids]}))
    made.delete("id % 50 = 3")
    before, files = rows_of(made), data_files(made)
    monkeypatch.setattr(spread, "_LEAST_BYTES", 1)
    spreads = []
    monkeypatch.setattr(upkeep, "clustered_by_tasks", lambda *given: spreads.append(given) or spread.clustered_by_tasks(*given))
    if fails:
        missing = made.files()["path"].to_pylist()[3]
        made.store.delete(missing)
        with pytest.raises(NotFound):
            optimize_table(spark, made)
        assert data_files(made) == files - {missing}
        return
    metrics = optimize_table(spark, made)[0][1]
    assert len(spreads) == 1
    assert metrics["numFilesAdded"] > 3
    assert metrics["clusteringStats"]["numOutputZCubes"] == 1
    assert rows_of(made) == before
    assert len({dict(tags)["ZCUBE_ID"] for tags in made.files()["tags"].to_pylist()}) == 1
    assert made.files("id = 600").num_rows < made.files().num_rows
    assert made.check(deep=True) == []
    assert made.optimize().version is None


@pytest.fixture
def joins(monkeypatch) -> list[tuple[object, ...]]:
    """Bins of few files go to many tasks too; those that did."""
    for name, few in {"_LEAST_FILES": 5, "_LEAST_FILES_OF_A_PART": 3}.items():
        monkeypatch.setattr(spread, name, few)
    seen: list[tuple[object, ...]] = []
    monkeypatch.setattr(upkeep, "joined_by_tasks", lambda *given: seen.append(given) or spread.joined_by_tasks(*given))
    return seen


def test_very_many_tiny_files_are_read_by_many_tasks_and_rows_keep_their_order(spark, table, path, joins):
    before = rows_of(table)
    (first,) = DeltaTable.forPath(spark, path).optimize().where("p = 1").explain().plan.bins
    in_order = [v for add in first.adds for v in pq.ParquetFile(f"{path}/{add.path}").read()["id"].to_pylist() if v != 7]
    assert optimize_table(spark, table, ["p = 1"])[0][1]["numFilesAdded"] == 1
    assert [len(values[-1].adds) for values in joins] == [len(first.adds)]
    assert table.to_arrow("p = 1")["id"].to_pylist() == in_order
    assert rows_of(table) == before
    assert table.check(deep=True) == []


def test_rows_that_die_while_many_tasks_read_are_dead_in_the_new_file(spark, table, path, joins, monkeypatch):
    read = upkeep.joined_by_tasks
    monkeypatch.setattr(
        upkeep, "joined_by_tasks", lambda *given: (read(*given), tahoe.Table(path).delete("id in (3, 11, 151)"))[0]
    )
    before = rows_of(table)
    optimize_table(spark, table, ["p = 1"])
    assert len(joins) == 1, "the bin is not done anew: its rows have known places"
    assert table.files("p = 1").num_rows == 1
    assert rows_of(table) == [row for row in before if row[0] not in (3, 11, 151)]
    assert table.check(deep=True) == []


@pytest.mark.damages_tables
def test_files_of_many_tasks_are_deleted_if_one_task_fails(spark, table, joins):
    files = data_files(table)
    missing = table.files("p = 1")["path"].to_pylist()[3]
    table.store.delete(missing)
    with pytest.raises(NotFound):
        optimize_table(spark, table, ["p = 1"])
    assert len(joins) == 1
    assert data_files(table) == files - {missing}


def test_bins_enough_for_all_cores_go_to_a_task_each(spark, table, joins):
    assert optimize_table(spark, table)[0][1]["numFilesAdded"] == 2
    assert joins == []
