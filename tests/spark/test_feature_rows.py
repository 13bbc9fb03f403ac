"""The table of docs/features.md with Spark: its cells for Spark, the portable data source and Spark Connect, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tahoe.protocol.features import COORDINATED, FEATURES, Use
from tests.sampling import sampled
from tests.spark.feature_tables import FEATURES_ON_CONNECT, SAMPLE, features_on_connect, table_with, tables_with
from tests.spark.own_spark import CONNECTED, run


def read_and_append(session, path, feature):
    row, table = FEATURES[feature], table_with(Path(path), feature)
    if feature in COORDINATED:  # and none is named; tests/spark/test_coordinator.py names one
        with pytest.raises(Exception, match=f"(?s)PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED.*{feature}"):
            session.read.format("delta").load(path).collect()
        return
    if not row.supports(Use.READ):
        with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_READ.*{feature}"):
            session.read.format("delta").load(path).collect()
        return
    assert session.read.format("delta").load(path).collect()[0].id == 1
    write = session.range(5, 6).write.format("delta").mode("append")
    if row.supports(Use.WRITE):
        write.save(path)
        assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 5]
    else:
        with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*{feature}"):
            write.save(path)


@pytest.mark.parametrize("feature", sampled(FEATURES, 3, always=SAMPLE))
def test_each_feature_is_read_and_appended_to_or_refused(spark, path, feature):
    read_and_append(spark, path, feature)


# Spark starts Python processes for each step: seconds for each feature.
@pytest.mark.parametrize("feature", sampled(FEATURES, len(FEATURES), always=SAMPLE))
def test_each_feature_is_read_and_appended_to_or_refused_by_the_portable_data_source(plain, path, feature):
    read_and_append(plain, path, feature)


# A server of Spark Connect of its own, and three Python processes for each feature; a sample of them is in `test_portable.py`.
@pytest.mark.soak
def test_each_feature_is_read_and_appended_to_on_spark_connect_or_refused(tmp_path, java_options):
    folder = tables_with(tmp_path, FEATURES)
    assert run(CONNECTED + FEATURES_ON_CONNECT, "", java_options, folder) == features_on_connect(tmp_path, FEATURES)
