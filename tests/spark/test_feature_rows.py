"""The table of docs/features.md with Spark: what it says of Spark, of the portable data source and of Spark Connect, row by row."""

from __future__ import annotations

import pytest

from tahoe.api.table import Table
from tahoe.protocol.features import COORDINATED, FEATURES, Use
from tests.spark.feature_tables import FEATURES_ON_CONNECT, features_on_connect, table_with, tables_with
from tests.spark.own_spark import CONNECTED, run


@pytest.mark.parametrize("door", ["spark", "plain"])
def test_each_feature_is_read_and_written_or_refused(request, tmp_path, door):
    session = request.getfixturevalue(door)
    for number, (feature, row) in enumerate(FEATURES.items()):
        path = tmp_path / str(number)
        table_with(path, feature)
        if feature in COORDINATED:  # and none is named; tests/spark/test_coordinator.py names one
            with pytest.raises(Exception, match=f"(?s)PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED.*{feature}"):
                session.read.format("delta").load(str(path)).collect()
            continue
        if not row.supports(Use.READ):
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_READ.*{feature}"):
                session.read.format("delta").load(str(path)).collect()
            continue
        assert session.read.format("delta").load(str(path)).collect()[0].id == 1, feature
        write = session.range(5, 6).write.format("delta").mode("append")
        if row.supports(Use.WRITE):
            write.save(str(path))
            assert sorted(Table(path).to_arrow()["id"].to_pylist()) == [1, 5], feature
        else:
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*{feature}"):
                write.save(str(path))


# A server of Spark Connect of its own, and three Python processes for each feature; a sample of them is in `test_portable.py`.
@pytest.mark.soak
def test_each_feature_is_read_and_appended_to_on_spark_connect_or_refused(tmp_path, java_options):
    folder = tables_with(tmp_path, FEATURES)
    assert run(CONNECTED + FEATURES_ON_CONNECT, "", java_options, folder) == features_on_connect(tmp_path, FEATURES)
