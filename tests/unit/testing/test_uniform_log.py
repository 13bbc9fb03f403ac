"""The log for conversions is readable and convertible, although it has no data files."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from tahoe.log.replay import add_files
from tahoe.store.object_store import open_store
from tahoe.testing.iceberg_verifier import verify
from tahoe.testing.uniform_log import V2_DELETES, V3, DeltaLog, column


@pytest.mark.parametrize(("configuration", "compat"), [({}, 2), (V2_DELETES, 2), (V3, 3)])
def test_snapshots_and_conversions_show_the_changed_and_marked_files(configuration: dict[str, str], compat: int) -> None:
    log = DeltaLog(configuration=configuration)
    log.change(adds=["a/1", "a/2", "b/1"])
    log.change(adds=["c/1"], removes=["b/1"])
    version = log.mark({"a/1": (None, BitMap64([3]))}) if configuration else log.version
    snapshot = log.snapshot()
    assert snapshot.version == log.version == version and snapshot.config.iceberg_compat_version == compat
    assert sorted(file.path for file in add_files(snapshot.files())) == ["a/1", "a/2", "c/1"]
    assert log.snapshot(1).version == 1
    log.convert()
    assert verify(log.store) == version


def test_the_caller_may_pass_the_store_and_the_time() -> None:
    store = open_store("memory://uniform-log/t")
    log = DeltaLog(store)
    log.commit(timestamp=5)
    assert log.store is store and b'"timestamp":5' in store.get("_delta_log/00000000000000000001.json")


def test_a_file_derives_from_its_path() -> None:
    assert DeltaLog.add("b/1") == DeltaLog.add("b/1") != DeltaLog.add("b/2")
    assert DeltaLog.add("b/1").partition_values == {"col-2": "b"}
    assert DeltaLog.remove("b/1").key == DeltaLog.add("b/1").key
    assert column("id", "long", 1).metadata["delta.columnMapping.physicalName"] == "col-1"
