"""DROP FEATURE by Tahoe and delta-spark in turn: each reads and writes the other's result, and continues where the other stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import Protocol

ROWS = pa.table({"id": list(range(12)), "name": [f"n{i}" for i in range(12)], "part": ["a", "b"] * 6})
pytestmark = pytest.mark.jvm

FEATURES: Mapping[str, Mapping[str, str]] = {
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
}


def made(path: Path, feature: str) -> Table:
    table = Table.create(path, ROWS.schema, partition_by=["part"], properties=FEATURES[feature])
    table.append(ROWS)
    table.delete("id = 3")
    if feature == "columnMapping":
        table.rename_column("name", "label")
    return table


def ids_of(jvm: SparkSession, path: Path, version: int | None = None) -> list[int]:
    reader = jvm.read.format("delta")
    actual = reader.load(str(path)) if version is None else reader.option("versionAsOf", version).load(str(path))
    return sorted(row.id for row in actual.select("id").collect())


def age(path: Path, hours: int) -> None:
    """The log, as if it were so much older."""
    then = time.time() - hours * 3600
    for file in (path / "_delta_log").glob("[0-9]*"):
        at = then + int(file.name.partition(".")[0])  # a second from one version to the next
        os.utime(file, (at, at))


@pytest.mark.parametrize("feature", FEATURES)
def test_the_jvm_reads_and_writes_a_table_after_our_drop(jvm: SparkSession, tmp_path: Path, feature: str) -> None:
    table = made(tmp_path / "t", feature)
    expected = sorted(table.to_arrow()["id"].to_pylist())
    table.drop_feature(feature)
    assert ids_of(jvm, tmp_path / "t") == expected and ids_of(jvm, tmp_path / "t", 1) == list(range(12))
    columns = table.to_arrow().schema.names
    jvm.sql(f"INSERT INTO delta.`{tmp_path / 't'}` ({', '.join(columns)}) VALUES (100, 'x', 'c')")
    jvm.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE id = 5")
    actual = Table(tmp_path / "t")
    assert sorted(actual.to_arrow()["id"].to_pylist()) == sorted({*expected, 100} - {5}) and actual.check(deep=True) == []
    assert feature not in actual.snapshot().config.features


@pytest.mark.parametrize("feature", [name for name in FEATURES if name != "rowTracking"])  # which delta-spark 4.0 does not drop
def test_we_read_and_write_a_table_after_the_jvm_drops(jvm: SparkSession, tmp_path: Path, feature: str) -> None:
    table = made(tmp_path / "t", feature)
    expected = sorted(table.to_arrow()["id"].to_pylist())
    protocol = table.drop_feature(feature, dry_run=True).protocol
    jvm.sql(f"ALTER TABLE delta.`{tmp_path / 't'}` DROP FEATURE {feature}")
    actual = Table(tmp_path / "t")
    assert sorted(actual.to_arrow()["id"].to_pylist()) == expected and actual.check(deep=True) == []
    assert actual.snapshot().protocol == protocol  # as our dry run predicted
    actual.append(actual.to_arrow().slice(0, 1))
    assert len(ids_of(jvm, tmp_path / "t")) == len(expected) + 1


def test_the_jvm_finds_history_truncated_where_we_say_so_and_not_before(jvm: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", "deletionVectors")
    with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"):
        table.drop_feature("deletionVectors", truncate_history=True)
    drop = f"ALTER TABLE delta.`{tmp_path / 't'}` DROP FEATURE deletionVectors TRUNCATE HISTORY"
    with pytest.raises(Exception, match="DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"):
        jvm.sql(drop)
    age(tmp_path / "t", 26)
    jvm.sql(drop)
    assert Table(tmp_path / "t").snapshot().protocol == Protocol(1, 2)


def test_we_find_history_truncated_where_the_jvm_says_so_and_not_before(jvm: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", "deletionVectors")
    with pytest.raises(Exception, match="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"):
        jvm.sql(f"ALTER TABLE delta.`{tmp_path / 't'}` DROP FEATURE deletionVectors TRUNCATE HISTORY")
    with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"):
        table.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path / "t", 26)
    assert table.drop_feature("deletionVectors", truncate_history=True).protocol == Protocol(1, 2)
    assert len(ids_of(jvm, tmp_path / "t")) == 11


def test_each_engine_drops_the_protection_of_the_other(jvm: SparkSession, tmp_path: Path) -> None:
    theirs, ours = made(tmp_path / "theirs", "deletionVectors"), made(tmp_path / "ours", "deletionVectors")
    jvm.sql(f"ALTER TABLE delta.`{tmp_path / 'theirs'}` DROP FEATURE deletionVectors")
    ours.drop_feature("deletionVectors")
    drop = f"ALTER TABLE delta.`{tmp_path / 'ours'}` DROP FEATURE checkpointProtection TRUNCATE HISTORY"
    with pytest.raises(Exception, match="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"):
        jvm.sql(drop)
    with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"):
        theirs.drop_feature("checkpointProtection", truncate_history=True)
    for path in ("theirs", "ours"):
        age(tmp_path / path, 26)
    jvm.sql(drop)
    assert theirs.drop_feature("checkpointProtection", truncate_history=True).protocol == Protocol(1, 2)
    assert Table(tmp_path / "ours").snapshot().protocol == Protocol(1, 2)
    assert len(ids_of(jvm, tmp_path / "theirs")) == len(ids_of(jvm, tmp_path / "ours")) == 11
