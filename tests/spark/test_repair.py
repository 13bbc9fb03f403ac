"""FSCK REPAIR TABLE, ANALYZE TABLE … COMPUTE DELTA STATISTICS and GENERATE by SQL."""

from __future__ import annotations

from pathlib import Path

import tahoe
from tahoe.tables import DeltaTable


def test_fsck(spark, path):
    spark.range(0, 20, 1, 2).write.format("delta").save(path)
    next(Path(path).glob("part-00000-*.parquet")).unlink()
    planned = spark.sql(f"FSCK REPAIR TABLE delta.`{path}` DRY RUN")
    assert planned.columns == ["dataFilePath", "dataFileMissing", "deletionVectorPath", "deletionVectorFileMissing"]
    (row,) = planned.collect()
    assert row.dataFileMissing and row.deletionVectorPath is None and tahoe.Table(path).version() == 0
    assert spark.sql(f"FSCK REPAIR TABLE delta.`{path}`").collect() == [row]
    assert spark.read.format("delta").load(path).count() == 10
    assert spark.sql(f"FSCK REPAIR TABLE '{path}'").collect() == []


def test_statistics(spark, path):
    spark.range(0, 20, 1, 2).write.parquet(path)
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS")
    assert spark.sql(f"ANALYZE TABLE delta.`{path}` COMPUTE DELTA STATISTICS").collect() == []
    table = tahoe.Table(path)
    assert table.files("id >= 10").num_rows == 1 and table.check(deep=True) == []
    assert table.history(1)[0]["operation"] == "COMPUTE STATS"


def test_manifests(spark, path):
    spark.range(0, 20, 1, 2).write.format("delta").save(path)
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    manifest = Path(path) / "_symlink_format_manifest" / "manifest"
    lines = manifest.read_text().splitlines()
    assert len(lines) == 2 and all(line.startswith(f"file:{path}/part-") for line in lines)
    spark.sql(f"DELETE FROM delta.`{path}`")
    assert spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`").collect() == []
    assert manifest.read_text() == ""
