"""SET TBLPROPERTIES that require changes of files first, and the error of the session."""

from __future__ import annotations

import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest

ALLOWS, AT_ONCE = "columnMapping.allowRemoval", "rowTracking.backfill.maxNumFiles"
PREFIX = "spark.databricks.delta."


def test_a_session_may_keep_column_mapping_and_says_how_many_files_get_row_ids_at_once(spark, tmp_path):
    path = str(tmp_path / "t")
    frame = spark.range(3, numPartitions=3)
    frame.write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    spark.conf.set(PREFIX + ALLOWS, "false")
    spark.conf.set(PREFIX + AT_ONCE, "2")
    try:
        for change in (
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
            "UNSET TBLPROPERTIES ('delta.columnMapping.mode')",
        ):
            with pytest.raises(InvalidRequest, match="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
                spark.sql(f"ALTER TABLE delta.`{path}` {change}")
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    finally:
        spark.conf.unset(PREFIX + ALLOWS)
        spark.conf.unset(PREFIX + AT_ONCE)
    assert [row["operation"] for row in Table(path).history()].count("ROW TRACKING BACKFILL") == 1
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")
    rows = spark.read.format("delta").load(path).selectExpr("id", "_metadata.row_id").collect()
    assert sorted(row.id for row in rows) == [0, 1, 2] == sorted(row.row_id for row in rows)
    assert Table(path).snapshot().config.column_mapping_mode == "none"
