"""The effects of `tahoe.enable`, and the things it leaves unchanged."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession, functions
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import tahoe
from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.spark.session import is_enabled
from tahoe.tables import DeltaTable
from tests.spark.own_spark import run


def test_enable_gives_the_same_session_back_and_doing_it_again_changes_nothing(spark):
    load, save = DataFrameReader.load, DataFrameWriter.save
    assert tahoe.enable(spark) is spark
    assert (DataFrameReader.load, DataFrameWriter.save) == (load, save)
    assert is_enabled(spark)


def test_other_formats_are_untouched(spark, tmp_path):
    for format in ("parquet", "json", "csv", "orc"):
        spark.range(3).write.format(format).mode("overwrite").save(str(tmp_path / format))
        assert spark.read.format(format).schema("id long").load(str(tmp_path / format)).count() == 3
    spark.range(3).write.parquet(str(tmp_path / "more"))
    assert spark.read.load([str(tmp_path / "parquet"), str(tmp_path / "more")]).count() == 6
    assert spark.read.load(path=str(tmp_path / "json"), format="json", schema="id long").count() == 3


def test_a_session_in_which_it_was_not_called_has_the_portable_source(plain, spark, path):
    assert not is_enabled(plain)
    spark.range(3).write.format("delta").save(path)
    plan = plain.read.format("delta").load(path)._jdf.queryExecution().executedPlan().toString()
    assert "FileScan" not in plan
    plan = spark.read.format("delta").load(path)._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan


def test_a_copy_of_the_session_has_it_too(spark, path):
    copy = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    copy.range(2).write.format("delta").save(path)
    assert copy.read.format("delta").load(path).count() == 2


def test_the_default_format_of_a_session_may_be_delta(spark, path):
    session = tahoe.enable(spark.newSession())
    session.conf.set("spark.sql.sources.default", "delta")
    session.range(2).write.save(path)
    assert session.read.load(path).count() == 2
    assert (session.read.load(path)._jdf.queryExecution().executedPlan().toString()).count("FileScan parquet") == 1


def test_every_way_to_spell_a_read(spark, path):
    spark.range(2).write.format("delta").save(path)
    spark.range(1).write.format("delta").mode("append").save(path)
    read = spark.read
    assert read.load(path, format="delta").count() == 3
    assert spark.read.load(path=path, format="Delta", versionAsOf=0).count() == 2
    assert spark.read.options(versionAsOf=0, path=path).format("delta").load().count() == 2
    assert spark.read.format("delta").load([path]).count() == 3
    assert spark.read.format("delta").load(f"file:{path}").count() == 3
    spark.read.format("delta").load(path).createOrReplaceTempView("three")
    assert spark.sql("select count(*) from three").first()[0] == 3


@pytest.mark.parametrize("paths", [None, ["a", "b"], []], ids=str)
def test_a_read_without_one_path_is_refused(spark, paths):
    with pytest.raises(InvalidRequest):
        spark.read.format("delta").load(paths)


def test_a_path_that_is_given_twice_is_refused(spark, path):
    with pytest.raises(InvalidRequest, match="twice"):
        spark.read.format("delta").option("path", "/elsewhere").load(path)


def test_a_table_that_is_not_there_is_named_without_java_in_the_message(spark, path):
    with pytest.raises(NotFound) as raised:
        spark.read.format("delta").load(path)
    assert path in str(raised.value)
    assert "java" not in str(raised.value)


def test_a_frame_and_a_view_of_it_show_the_newest_version_whenever_they_run(spark, path):
    spark.range(2).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    first = spark.read.format("delta").option("versionAsOf", 0).load(path)
    frame.createOrReplaceTempView("shown")
    spark.range(5).write.format("delta").mode("overwrite").save(path)
    assert frame.count() == spark.table("shown").count() == spark.sql("SELECT * FROM shown").count() == 5
    assert first.count() == 2


def test_a_frame_made_before_the_first_deletion_vector_does_not_show_deleted_rows(spark, path):
    spark.range(10).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    frame = spark.read.format("delta").load(path)
    names = frame.select("id", "_metadata.file_name")
    Table(path).delete("id = 3")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert frame.where("id > 2 AND id < 5").count() == 1
    assert names.count() == 9
    assert frame.join(frame.select("id"), "id").count() == 9


def test_a_frame_whose_column_is_gone_says_so_and_one_that_got_more_columns_continues(spark, path):
    spark.range(3).selectExpr("id", "id AS other").write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    spark.range(2).selectExpr("id", "id AS other", "id AS more").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    assert frame.columns == ["id", "other"] and frame.count() == 5
    spark.range(2).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(InvalidRequest, match="'other' is no longer there") as raised:
        frame.count()
    assert raised.value.code == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


def test_lines_of_the_users_program_are_recorded_and_none_of_tahoe(spark, path, monkeypatch):
    recorded = []
    monkeypatch.setattr("pyspark.errors.utils._capture_call_site", lambda depth: recorded.append(depth) or "a line")
    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", True)
    spark.range(3).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"id": "id + 10"})
    merge = table.alias("t").merge(spark.range(2).alias("s"), "t.id = s.id")
    merge.whenMatchedDelete(condition="s.id < 5").whenNotMatchedInsertAll().execute()
    assert recorded == []
    assert (functions.col("id") + 1) is not None
    assert recorded


def test_many_threads_read_and_plan_side_by_side(spark, path):
    spark.range(1000).selectExpr("id", "id % 10 p").write.format("delta").partitionBy("p").save(path)

    def count(p: int) -> int:
        frame = spark.read.format("delta").load(path)
        return frame.where(f"p = {p}").join(frame.where(f"p = {p}"), "id").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(10))) == [100] * 10


def test_subqueries_and_broadcast_joins_plan_on_threads_of_the_jvm(spark, path):
    spark.range(100).selectExpr("id", "id % 10 p").write.format("delta").partitionBy("p").save(path)
    spark.read.format("delta").load(path).createOrReplaceTempView("t")
    actual = spark.sql(
        "select count(*) from t where id > (select avg(id) from t where p = 3) and p in (select p from t where id = 55)"
    )
    assert actual.first()[0] == 5


def test_configure_spark_with_delta_pip_has_delta_sparks_signature(spark):
    builder = SparkSession.builder
    assert tahoe.configure_spark_with_delta_pip(builder) is builder
    assert is_enabled(builder.getOrCreate())
    with pytest.raises(TypeError, match=r"SparkSession\.Builder"):
        tahoe.configure_spark_with_delta_pip("builder")  # type: ignore[arg-type]


def test_importing_the_package_does_not_import_spark():
    program = "import sys, tahoe, tahoe.api.table; print('pyspark' in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "False"


_AS_FOR_DELTA_SPARK = """
import sys
from pyspark.sql import SparkSession, functions
import tahoe
for way in ("builder", "enable"):
    folder = f"{sys.argv[1]}/{way}"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", folder)
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    if way == "builder":
        spark = tahoe.configure_spark_with_delta_pip(builder).getOrCreate()
    else:
        spark = tahoe.enable(builder.getOrCreate())
    spark.sql("CREATE TABLE t USING delta AS SELECT 1 a")
    print("=", way, spark.table("t").first().a, spark.newSession().table("t").count(), tahoe.Table(folder + "/t").version())
    spark.stop()
"""


@pytest.mark.own_jvm
@pytest.mark.long
def test_settings_that_switch_delta_spark_on_may_stay(tmp_path):
    assert run(_AS_FOR_DELTA_SPARK, str(tmp_path)) == ["= builder 1 1 0", "= enable 1 1 0"]
