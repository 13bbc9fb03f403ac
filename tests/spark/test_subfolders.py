"""A partition's folder, loaded as a table: `load(".../t/month=3")`."""

from __future__ import annotations

import shutil
import warnings

import pytest

from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeWarning
from tahoe.settings.warn_once import reset_warnings


@pytest.fixture
def path(spark, tmp_path) -> str:
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT id, int(id % 3) AS month, if(id = 5, NULL, concat('a b/', id % 2)) AS place FROM range(12)")
    rows.write.format("delta").partitionBy("month", "place").save(path)
    spark.range(12, 13).selectExpr("id", "3 AS month", "'x' AS place").write.format("delta").mode("append").save(path)
    return path


@pytest.mark.filterwarnings("ignore:A partition of table:tahoe.TahoeWarning")
def test_the_rows_of_the_partition_are_read_with_all_columns_at_any_version(spark, path):
    def ids(folder: str, **options: str) -> list[int]:
        rows = spark.read.format("delta").options(**options).load(f"{path}/{folder}")
        assert rows.columns == ["id", "month", "place"]
        return sorted(row.id for row in rows.collect())

    assert ids("month=1") == [1, 4, 7, 10]
    assert ids("month=1/") == [1, 4, 7, 10]
    assert ids("month=01/place=a b%2F0") == [4, 10]
    assert ids("place=a b%2F0") == [0, 2, 4, 6, 8, 10], "the folders need not be there"
    assert ids("place=__HIVE_DEFAULT_PARTITION__") == [5]
    assert ids("month=3") == [12]
    assert ids("month=3@v1") == [12]
    with pytest.raises(NotFound, match="DELTA_PATH_DOES_NOT_EXIST"):
        ids("month=3", versionAsOf="0")


@pytest.mark.filterwarnings("ignore:A partition of table:tahoe.TahoeWarning")
def test_subfolders_that_are_no_partitions_are_refused_by_name(spark, path):
    for folder, error, code in (
        ("month=9", NotFound, "DELTA_PATH_DOES_NOT_EXIST"),
        ("id=1", InvalidRequest, "DELTA_NON_PARTITION_COLUMN_SPECIFIED"),
        ("month=1/x", InvalidRequest, "DELTA_INVALID_PARTITION_PATH"),
        ("nowhere", NotFound, "PATH_NOT_FOUND"),
    ):
        with pytest.raises(error, match=code):
            spark.read.format("delta").load(f"{path}/{folder}")


def test_that_a_condition_is_better_is_suggested_once(spark, path):
    reset_warnings()
    with pytest.warns(TahoeWarning, match=r"load\(.*\).where"):
        spark.read.format("delta").load(f"{path}/month=1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark.read.format("delta").load(f"{path}/month=1")


def test_a_table_in_such_a_folder_is_that_table(spark, path, tmp_path):
    inner = tmp_path / "t" / "month=7"
    spark.range(2).write.format("delta").save(str(inner))
    assert spark.read.format("delta").load(str(inner)).count() == 2
    shutil.rmtree(inner)
