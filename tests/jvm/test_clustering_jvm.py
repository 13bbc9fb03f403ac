"""Clustered tables by turns with the JVM's Delta, and how many files each one's curves skip on the same rows."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe import Table

pytestmark = pytest.mark.jvm

COLUMNS = ("source", "port", "target", "its_port")
ROWS, FILES = 200_000, 60


def tags(table: Table) -> list[dict[str, str]]:
    return [dict(actual or {}) for actual in table.files()["tags"].to_pylist()]


def columns(jvm: SparkSession, path: str) -> list[str]:
    return list(jvm.sql(f"DESCRIBE DETAIL delta.`{path}`").first()["clusteringColumns"])


def test_a_table_that_we_cluster_is_clustered_on_by_the_jvm_and_the_other_way_round(jvm: SparkSession, path: str) -> None:
    schema = pa.schema({"id": pa.int64(), "s": pa.struct({"x": pa.int64()})})
    ours = Table.create(path, schema, cluster_by=["id", "s.x"])
    part = lambda first: pa.table({"id": range(first, first + 100), "s": [{"x": i % 7} for i in range(100)]}, schema)  # noqa: E731
    ours.append(part(0))
    ours.append(part(100))
    assert ours.optimize().metrics["clusteringStats"]["numOutputZCubes"] == 1
    assert columns(jvm, path) == ["id", "s.x"]
    # Files that Tahoe clustered are one cube for delta-spark: nothing to do until new rows are added.
    stats = jvm.sql(f"OPTIMIZE delta.`{path}`").first()["metrics"]["clusteringStats"]
    assert (stats["inputNumZCubes"], stats["inputZCubeFiles"]["numFiles"], stats["mergedFiles"]["numFiles"]) == (1, 1, 0)
    ours.append(part(200))
    stats = jvm.sql(f"OPTIMIZE delta.`{path}`").first()["metrics"]["clusteringStats"]
    assert (stats["inputZCubeFiles"]["numFiles"], stats["inputOtherFiles"]["numFiles"], stats["numOutputZCubes"]) == (1, 1, 1)
    # And delta-spark's cube is one for Tahoe.
    assert set(ours.files()["clusteringProvider"].to_pylist()) == {"liquid"}
    assert json.loads(tags(ours)[0]["ZCUBE_ZORDER_BY"]) == ["id", "s.x"]
    assert ours.optimize().version is None
    jvm.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (id)")
    assert ours.detail()["clusteringColumns"] == ["id"]
    assert ours.optimize().version is None
    assert len(ours.optimize(full=True).removed) == 1
    assert sorted(ours.to_arrow()["id"].to_pylist()) == list(range(300))
    assert jvm.read.format("delta").load(path).count() == 300


def test_our_grid_skips_more_than_the_references_curves_on_the_same_rows(jvm: SparkSession, tmp_path: Path) -> None:
    """The table of benchmarks/clustering.py, smaller. A minute, most of it the JVM's."""
    chance = random.Random(7)
    bits = dict(zip(COLUMNS, (32, 16, 32, 16), strict=True))
    rows = pa.table(
        {name: pa.array([chance.randrange(1 << size) for _ in range(ROWS)], pa.int64()) for name, size in bits.items()}
    )
    places = {name: str(tmp_path / name) for name in ("kd", "hilbert", "z", "delta-spark zorder", "delta-spark hilbert")}
    for name, place in places.items():
        Table.create(place, rows.schema, cluster_by=COLUMNS if name == "delta-spark hilbert" else None).append(rows)
    size = Table(places["kd"]).detail()["sizeInBytes"] // FILES
    for curve in ("kd", "hilbert", "z"):
        Table(places[curve]).optimize(zorder_by=COLUMNS, curve=curve, target_file_size=size)
    jvm.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
    try:
        jvm.sql(f"OPTIMIZE delta.`{places['delta-spark zorder']}` ZORDER BY ({', '.join(COLUMNS)})")
        jvm.sql(f"OPTIMIZE delta.`{places['delta-spark hilbert']}`")
    finally:
        jvm.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    points = rows.take(pa.array(range(0, ROWS, ROWS // 100)))
    skipped = {name: [part_skipped(Table(place), points, column) for column in COLUMNS] for name, place in places.items()}
    for name, parts in skipped.items():
        files = Table(places[name]).snapshot().num_files
        shown = "  ".join(f"{100 * part:5.1f} %" for part in (*parts, sum(parts) / len(parts)))
        sys.stdout.write(f"{name:20} {files:4} files  {shown}, the last the mean\n")
    means = {name: sum(parts) / len(parts) for name, parts in skipped.items()}
    assert means["kd"] == max(means.values())
    assert min(skipped["kd"]) >= 0.5


def part_skipped(table: Table, points: pa.Table, column: str) -> float:
    files = table.snapshot().num_files
    read = sum(table.files(f"{column} = {value}").num_rows for value in points[column].to_pylist())
    return 1 - read / files / points.num_rows
