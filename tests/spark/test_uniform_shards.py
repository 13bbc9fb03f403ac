"""Manifests of large tables, encoded by Spark's executors: byte for byte those of one process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.testing.uniform_log import V3, DeltaLog
from tahoe.uniform.convert import manifest_policy, shards
from tests.spark.test_portable import run
from tests.unit.uniform.convert.test_shards import both

UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_policy, "LEAST_ENTRIES", 4)
    monkeypatch.setattr(shards, "FILES_IN_SHARD", 9)


def test_executors_give_the_same_names_and_bytes(spark, caplog):
    log = DeltaLog(configuration=V3)
    log.change([f"{'abc'[i % 3]}{i:03d}" for i in range(27)])
    encoder = SparkShards(spark, least_files=1)
    theirs, ours = both(log, encoder)
    assert theirs == ours
    assert len([name for name in ours if name.startswith("metadata/m")]) == 7
    assert caplog.messages == []


def test_shards_are_sent_few_at_a_time_and_come_back_in_their_order(spark, monkeypatch):
    monkeypatch.setattr(SparkShards, "_shards_at_once", lambda self: 2)
    log = DeltaLog()
    log.change([f"a{i:03d}" for i in range(40)])
    theirs, ours = both(log, SparkShards(spark, least_files=1))
    assert theirs == ours


def test_enable_offers_the_session_to_conversions(spark):
    offered = UNIFORM_RUNTIME.shards
    assert isinstance(offered, SparkShards)
    assert offered.least_files == 100_000


ON_A_CLUSTER = """
import sys
from pyspark.sql import SparkSession
import tahoe
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.api.process import UNIFORM_RUNTIME
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
builder = builder.config("spark.executor.memory", "512m").config("spark.executorEnv.PYTHONPATH", sys.argv[2])
spark = tahoe.enable(builder.getOrCreate())

def importable(batches):
    import pyarrow as pa
    for _ in batches:
        try:
            import tahoe.uniform
        except ImportError as error:
            yield pa.RecordBatch.from_pydict({"found": [str(error)]})
print("= tahoe on executors:", spark.range(1).mapInArrow(importable, "found string").first().found)
class Watched(SparkShards):
    def encode(self, order, parts):
        for found in super().encode(order, parts):
            print("= manifest", found.number)
            yield found
UNIFORM_RUNTIME.shards = Watched(spark, least_files=1)
print("= files", tahoe.Table(sys.argv[1]).uniform.sync(rebuild=True).files_added)
"""


@pytest.mark.soak
def test_executors_of_their_own_need_no_tahoe(tmp_path):
    path, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    table = Table.create(path, pa.schema({"id": pa.int64()}), properties=UNIFORM)
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    table.uniform.sync(rebuild=True)
    ours = {file.name: file.read_bytes() for file in (path / "metadata").iterdir()}
    (elsewhere / "tahoe").mkdir(parents=True)
    (elsewhere / "tahoe/__init__.py").write_text("raise ImportError('not here')")
    reported = run(ON_A_CLUSTER, str(path), str(elsewhere))
    assert reported == ["= tahoe on executors: not here", "= manifest 0", "= files 3"]
    theirs = {file.name: file.read_bytes() for file in (path / "metadata").iterdir()}
    assert ours.keys() <= theirs.keys()
    assert {name: content for name, content in theirs.items() if name.startswith("m")} == {
        name: content for name, content in ours.items() if name.startswith("m")
    }
