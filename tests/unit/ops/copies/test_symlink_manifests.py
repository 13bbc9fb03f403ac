"""GENERATE symlink_format_manifest: lists of files for readers that know no log."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string(), "t": pa.timestamp("us", "UTC")})
MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"


def rows(*partitions: str | None) -> pa.Table:
    count = len(partitions)
    return pa.table({"id": range(count), "p": list(partitions), "t": [1_000_000] * count}, SCHEMA)


def listed(path: Path) -> dict[str, list[int]]:
    """The ids of the files of each manifest, by its folder, read as a reader of manifests reads them."""
    root, actual = path / "_symlink_format_manifest", {}
    for manifest in root.rglob("manifest"):
        files = [line.removeprefix("file:") for line in manifest.read_text().splitlines()]
        assert all(os.path.isabs(file) for file in files)
        ids = [item for file in files for item in pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()]
        actual[str(manifest.parent.relative_to(root))] = sorted(ids)
    return actual


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a table"


def test_a_table_without_partitions_has_one_manifest(path: Path):
    table = Table.create(path, SCHEMA)
    done = table.generate()
    assert done.files == 0 and listed(path) == {".": []}
    table.append(rows("a", "b"))
    assert "would list 1 files of version 1" in str(table.generate(dry_run=True)) and listed(path) == {".": []}
    table.generate()
    assert listed(path) == {".": [0, 1]}


def test_each_partition_has_a_manifest_and_removed_ones_disappear(path: Path):
    table = Table.create(path, SCHEMA, partition_by=["p", "t"])
    table.append(rows("a/b", "c", None))
    table.generate()
    at = "t=1970-01-01 00%3A00%3A01"
    assert listed(path) == {f"p=a%2Fb/{at}": [0], f"p=c/{at}": [1], f"p=__HIVE_DEFAULT_PARTITION__/{at}": [2]}
    table.delete("p = 'c'")
    done = table.generate()
    assert done.deleted == (f"_symlink_format_manifest/p=c/{at}/manifest",)
    assert set(listed(path)) == {f"p=a%2Fb/{at}", f"p=__HIVE_DEFAULT_PARTITION__/{at}"}
    table.vacuum(0, retention_check=False)
    assert len(listed(path)) == 2


def test_each_commit_rewrites_the_manifests_of_changed_partitions(path: Path):
    table = Table.create(path, SCHEMA.remove(2), partition_by=["p"], properties={MANIFESTS: "true"})
    table.append(rows("a", "b").drop(["t"]))
    assert listed(path) == {"p=a": [0], "p=b": [1]}
    old = (path / "_symlink_format_manifest/p=b/manifest").stat().st_mtime_ns
    table.append(rows("a").drop(["t"]))
    table.delete("p = 'x'")
    assert listed(path) == {"p=a": [0, 0], "p=b": [1]}
    assert (path / "_symlink_format_manifest/p=b/manifest").stat().st_mtime_ns == old
    table.optimize()
    assert listed(path) == {"p=a": [0, 0], "p=b": [1]}
    table.delete("p = 'b'")
    assert listed(path) == {"p=a": [0, 0]}
    table.restore(1)
    assert listed(path) == {"p=a": [0], "p=b": [1]}
    table.set_properties({MANIFESTS: "false"})
    table.append(rows("c").drop(["t"]))
    assert set(listed(path)) == {"p=a", "p=b"}


def test_tables_that_manifest_readers_would_misread_are_refused(path: Path, tmp_path: Path):
    table = Table.create(path, SCHEMA, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows("a", "b"))
    table.generate()
    table.delete("id = 0")
    with pytest.raises(Unsupported) as caught:
        table.generate()
    assert caught.value.code == "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
    with pytest.raises(InvalidRequest) as refused:
        table.set_properties({MANIFESTS: "true"})
    assert refused.value.code.startswith("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT")
    with pytest.raises(InvalidRequest) as refused:
        table.set_properties({MANIFESTS: "true", "delta.enableDeletionVectors": "false"})
    assert refused.value.code.startswith("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.EXISTING")
    table.purge()
    table.set_properties({MANIFESTS: "true", "delta.enableDeletionVectors": "false"})
    assert listed(path) == {".": [1]}
    mapped = Table.create(tmp_path / "mapped", SCHEMA, properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(Unsupported) as caught:
        mapped.generate()
    assert caught.value.code == "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"
    with pytest.raises(InvalidRequest) as refused:
        mapped.generate("other")
    assert refused.value.code == "DELTA_MODE_NOT_SUPPORTED"


def test_who_dies_leaves_whole_manifests_and_the_next_makes_all(path: Path):
    table = Table.create(path, SCHEMA, partition_by=["p"])
    table.append(rows("a", "b", "c"))
    trace = TracingStore(open_store(path))
    Table(path, store=trace).generate(dry_run=True)
    for at in range(len(trace.calls), len(trace.calls) + 3):
        with pytest.raises(SimulatedCrash):
            Table(path, store=CrashingStore(open_store(path), at, after=True)).generate()
        assert all(ids in ([0], [1], [2]) for ids in listed(path).values())
    table.generate()
    assert listed(path) == {"p=a": [0], "p=b": [1], "p=c": [2]}
