"""Settings of delta-spark's in a session of Spark: what is told where they are given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tahoe.exceptions import TahoeWarning
from tahoe.knobs.told import forget_what_was_told
from tahoe.table import Table


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    forget_what_was_told()
    yield
    forget_what_was_told()


def test_settings_options_and_properties_are_told_of_once_where_they_are_given(spark, path):
    session = spark.newSession()
    session.conf.set("spark.tahoe.enabled", "true")
    session.range(1).write.format("delta").save(path)
    session.conf.set("spark.databricks.delta.catalog.enableServerSidePlanning", "true")
    with pytest.warns(TahoeWarning, match="enableServerSidePlanning' = 'true' is not followed: The table feature"):
        session.range(1).write.format("delta").mode("append").save(path)
    with pytest.warns(TahoeWarning, match="'writePartitionColumns' = 'true' is not followed"):
        session.range(1).write.format("delta").mode("append").option("writePartitionColumns", "true").save(path)
    with pytest.warns(TahoeWarning, match="'ignoreDeletes' = 'true' is not followed"):
        session.read.format("delta").option("ignoreDeletes", "true").load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.range(1).write.format("delta").mode("append").option("writePartitionColumns", "true").save(path)
    session.conf.set("spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
    with pytest.raises(PySparkException, match="constraintCheck"):
        session.range(1).write.format("delta").mode("append").save(path)
    assert Table(path).version() == 3


def test_a_session_that_only_reads_is_told_at_its_first_read(spark, path):
    spark.range(1).write.format("delta").save(path)
    session = spark.newSession()
    session.conf.set("spark.tahoe.enabled", "true")
    session.conf.set("spark.databricks.delta.stats.skipping", "false")
    with pytest.warns(TahoeWarning, match="stats.skipping"):
        session.read.format("delta").load(path)


def test_a_writer_upgrades_the_protocol_and_columns_of_statistics_are_checked(spark, path):
    spark.range(1).write.format("delta").option("delta.minWriterVersion", "4").save(path)
    spark.range(1).write.format("delta").mode("append").save(path)
    assert Table(path).snapshot().protocol.min_writer_version == 4
    with pytest.raises(AnalysisException, match="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"):
        spark.range(1).write.format("delta").option("delta.dataSkippingStatsColumns", "nope").save(path + "2")
