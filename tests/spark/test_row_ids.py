"""`_metadata.row_id` and `_metadata.row_commit_version` on Spark: equal to the core's, and free for queries without them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.ops.rows.insert import WriteOptions
from tahoe.protocol.row_tracking import high_water_mark
from tahoe.spark.scan.row_id_columns import with_row_ids

TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
WITH_IDS = ["id", "part", "value", "_metadata.row_id", "_metadata.row_commit_version"]


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)


def rows(*ids: int, value: str = "new") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [str(i % 2) for i in ids], "value": [value] * len(ids)})


def changed_at_random(path: str, properties: dict[str, str], partitioned: bool, seed: int) -> Table:
    """A table of a few commits of all kinds that change rows."""
    generator, table = random.Random(seed), Table(path)
    options = WriteOptions(partition_by=("part",) if partitioned else (), properties={**TRACKED, **properties})
    table.write(rows(*range(20)), options)
    for step in range(6):
        low = generator.randrange(20)
        match generator.choice(["append", "update", "delete", "merge"]):
            case "append":
                table.append(rows(*range(20 + step * 5, 25 + step * 5)))
            case "update":
                table.update({"value": f"'{step}'"}, f"id between {low} and {low + 4}")
            case "delete":
                table.delete(f"id in ({low}, {low + 3})")
            case "merge":
                source = rows(low, low + 100 + step, value=f"merged {step}")
                merge = table.merge(source, "target.id = source.id", source_alias="source", target_alias="target")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
    return table


def ids(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize(
    ("properties", "partitioned"),
    [({}, False), (VECTORS, False), ({**VECTORS, **MAPPED}, True), ({"delta.columnMapping.mode": "id"}, False)],
    ids=["rewriting", "vectors", "mapped, partitioned, vectors", "mapped by id"],
)
def test_ids_and_versions_are_those_that_the_core_reads(spark, path, properties, partitioned):
    table = changed_at_random(path, properties, partitioned, seed=len(properties))
    assert ids(load(spark, path).select(*WITH_IDS).toArrow()) == ids(table.to_arrow(row_ids=True))
    assert ids(load(spark, path, versionAsOf="3").select(*WITH_IDS).toArrow()) == ids(
        Table(path).to_arrow(version=3, row_ids=True)
    )


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("tracked") / "table")
    table = Table(path)
    table.write(rows(*range(10)), WriteOptions(properties={**TRACKED, **VECTORS}))
    table.append(rows(*range(10, 20)))
    return path


class TestMetadata:
    def test_a_plain_scan_reads_nothing_for_it(self, spark, tracked):
        plan = load(spark, tracked).select("id")._jdf.queryExecution().executedPlan().toString()
        assert "ReadSchema: struct<id:bigint>" in plan
        assert "row_index" not in plan

    def test_it_stands_beside_sparks_own_fields(self, spark, tracked):
        frame = load(spark, tracked)
        actual = (
            frame.where("_metadata.row_id = 13")
            .select("id", "_metadata.row_index", "_metadata.file_path", "_metadata.row_id")
            .collect()
        )
        assert [(row.id, row.row_index, row.row_id) for row in actual] == [(13, 3, 13)]
        assert actual[0].file_path.startswith("file:") and actual[0].file_path.endswith(".parquet")
        assert frame.columns == ["id", "part", "value"]
        struct = frame.select("_metadata").schema["_metadata"].dataType.fieldNames()
        ours = ["row_index", "row_id", "base_row_id", "default_row_commit_version", "row_commit_version"]
        assert struct[:3] == ["file_path", "file_name", "file_size"] and struct[-5:] == ours

    def test_row_ids_are_known_above_filters_and_added_columns(self, spark, tracked):
        frame = load(spark, tracked).where("id > 15").withColumn("twice", sf.col("id") * 2)
        assert sorted(row.row_id for row in frame.select("_metadata.row_id").collect()) == [16, 17, 18, 19]
        joined = load(spark, tracked).select("id", "_metadata.row_id").join(load(spark, tracked), "id")
        assert joined.where("id <> row_id").count() == 0

    def test_a_column_of_that_name_leaves_it_to_metadata_column(self, spark, path):
        data = pa.table({"id": pa.array([5, 6], pa.int64()), "_metadata": ["mine", "mine"]})
        Table(path).write(data, WriteOptions(properties=TRACKED))
        frame = load(spark, path)
        actual = frame.select("_metadata", frame.metadataColumn("_metadata")["row_id"].alias("row_id")).collect()
        assert sorted(tuple(row) for row in actual) == [("mine", 0), ("mine", 1)]

    @pytest.mark.parametrize("properties", [{}, {"delta.feature.rowTracking": "supported"}, VECTORS], ids=str)
    def test_a_table_that_does_not_track_rows_has_no_such_field(self, spark, path, properties):
        Table(path).write(rows(1, 2), WriteOptions(properties=properties))
        with pytest.raises(AnalysisException, match="row_id"):
            load(spark, path).select("_metadata.row_id")
        assert load(spark, path).select("_metadata.row_index").count() == 2


class TestWriting:
    def test_appends_and_overwrites_give_fresh_ids(self, spark, path):
        frame = spark.range(0, 10, 1, 2).selectExpr("id", "'a' as part", "'x' as value")
        frame.write.format("delta").option("delta.enableRowTracking", "true").save(path)
        frame.write.format("delta").mode("append").save(path)
        table = Table(path)
        assert sorted(table.to_arrow(row_ids=True)["_row_id"].to_pylist()) == list(range(20))
        assert high_water_mark(table.snapshot().state.domains) == 19
        frame.write.format("delta").mode("overwrite").save(path)
        actual = load(spark, path).select("_metadata.row_id", "_metadata.row_commit_version").collect()
        assert sorted(tuple(row) for row in actual) == [(row_id, 2) for row_id in range(20, 30)]
        assert high_water_mark(Table(path).snapshot().state.domains) == 29

    @pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewriting", "vectors"])
    def test_replace_where_keeps_the_ids_of_rows_that_stay(self, spark, path, properties):
        Table(path).write(rows(*range(10)), WriteOptions(properties={**TRACKED, **properties}))
        new = spark.createDataFrame(rows(3, 4, value="replaced"))
        new.write.format("delta").mode("overwrite").option("replaceWhere", "id in (3, 4, 5)").save(path)
        actual = {row[0]: tuple(row)[3:] for row in load(spark, path).select(*WITH_IDS).collect()}
        assert {key: actual[key] for key in actual if key not in (3, 4)} == {i: (i, 0) for i in range(10) if i not in (3, 4, 5)}
        assert {version for key, (_, version) in actual.items() if key in (3, 4)} == {1}
        assert min(row_id for key, (row_id, _) in actual.items() if key in (3, 4)) >= 10

    def test_rows_that_will_be_rewritten_carry_their_ids(self, spark, path):
        Table(path).write(rows(*range(4)), WriteOptions(properties=TRACKED))
        config = Table(path).snapshot().config
        actual = with_row_ids(load(spark, path).where("id > 0"), config, sf.col("id") == 2)
        names = [
            config.metadata.configuration[f"delta.rowTracking.materializedRow{name}ColumnName"]
            for name in ("Id", "CommitVersion")
        ]
        assert actual.columns == ["id", "part", "value", *names]
        assert sorted((row[0], row[3], row[4]) for row in actual.collect()) == [(1, 1, 0), (2, 2, None), (3, 3, 0)]
        Table(path + "2").write(rows(1), WriteOptions())
        assert with_row_ids(actual, Table(path + "2").snapshot().config) is actual


def test_a_query_after_others_has_its_metadata(spark, path):
    """The second query of a version gets its plan otherwise than the first."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id FROM range(0, 10, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    for _ in range(3):
        assert spark.sql(f"SELECT count(*) FROM delta.`{path}` WHERE id > 5").first()[0] == 4
        rows = spark.sql(
            f"SELECT id, _metadata.row_id AS row, _metadata.file_size > 0 AS size FROM delta.`{path}` WHERE id > 7"
        ).collect()
        assert sorted(rows) == [(8, 8, True), (9, 9, True)]


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_two_frames_of_a_table_with_vectors_stay_two(spark, path, mapping):
    """Both get copies of one plan, and each its own columns, as `_metadata` too."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, s STRUCT<v: BIGINT>) USING delta TBLPROPERTIES "
        f"('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = '{mapping}')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, named_struct('v', id * 10) FROM range(0, 6, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    first, other = (spark.table(f"delta.`{path}`") for _ in range(2))
    pairs = first.join(other, first["id"] + 1 == other["id"]).select(first["id"], other["s.v"])
    assert sorted(pairs.collect()) == [(0, 10), (1, 20), (4, 50)]
    query = (
        f"SELECT a.id, b._metadata.file_size > 0 FROM delta.`{path}` a JOIN delta.`{path}` b ON a.id = b.s.v / 10 WHERE a.id > 1"
    )
    assert sorted(spark.sql(query).collect()) == [(2, True), (4, True), (5, True)]
