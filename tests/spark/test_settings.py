"""Settings of delta-spark in a session of Spark: warnings and errors when they are set."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeWarning
from tahoe.settings.session_settings import PREFIX
from tahoe.settings.warn_once import reset_warnings
from tahoe.spark.commands.upkeep import _request
from tests.session_settings import with_settings


@pytest.fixture(autouse=True)
def nothing_reported() -> Iterator[None]:
    reset_warnings()
    yield
    reset_warnings()


def test_settings_options_and_properties_are_reported_once_where_they_are_given(spark, path):
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
    session.conf.set("spark.databricks.delta.replaceWhere.dataColumnsWithCDF.enabled", "false")
    with pytest.raises(PySparkException, match="dataColumnsWithCDF"):
        session.range(1).write.format("delta").mode("append").save(path)
    assert Table(path).version() == 3


def test_a_session_that_only_reads_is_warned_at_its_first_read(spark, path):
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


def setting(spark, values):
    return with_settings(spark, {PREFIX + name: value for name, value in values.items()})


def test_supported_settings_have_the_effect_of_the_reference(spark, path):
    with setting(spark, {"properties.defaults.minReaderVersion": "2", "properties.defaults.minWriterVersion": "5"}):
        spark.range(3).coalesce(1).write.format("delta").save(path)
    table = Table(path)
    assert table.snapshot().protocol.min_reader_version == 2 and table.snapshot().protocol.min_writer_version == 5
    drop = f"ALTER TABLE delta.`{path}` DROP CONSTRAINT none"
    with pytest.raises(InvalidRequest, match="DELTA_CONSTRAINT_DOES_NOT_EXIST"):
        spark.sql(drop)
    with setting(spark, {"constraints.assumesDropIfExists.enabled": "true"}):
        spark.sql(drop)
    assert table.version() == 0
    with setting(spark, {"write.txnAppId": "mine", "write.txnVersion": "1", "write.txnVersion.autoReset.enabled": "true"}):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
        assert spark.conf.get(PREFIX + "write.txnVersion", None) is None
    cubes = "optimize.clustering.mergeStrategy.minCubeSize."
    with setting(spark, {cubes + "threshold": "11", cubes + "targetCubeSize": "12"}):
        asked = _request(spark, table, [], [])
    assert (asked.min_cube_size, asked.target_cube_size) == (11, 12)
