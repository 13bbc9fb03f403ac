"""Unreferenced files are deleted, and nothing else."""

from __future__ import annotations

from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.convert.manifest_folder import ManifestFolder


def test_old_snapshots_expire_and_take_their_files_with_them():
    log = DeltaLog(configuration={"delta.deletedFileRetentionDuration": "interval 10000 seconds"})
    times = iter(range(1_700_000_000_000, 1_800_000_000_000, 4_000_000))

    def convert() -> None:
        target = log.snapshot()
        target.__dict__["timestamp_ms"] = next(times)
        Converter(log.delta(), log.caches).convert(target)

    convert()
    for number in range(12):
        log.change([f"a{number}"], [f"a{number - 3}"] if number > 2 else [])
        convert()
        verify(log.store)
    document = newest_document(log.store)
    assert 2 <= len(document["snapshots"]) <= 5
    named = {snapshot["manifest-list"] for snapshot in document["snapshots"]}
    folder = ManifestFolder(log.store)
    for url in tuple(named):
        named |= {manifest.path for manifest in folder.read_list(url)}
    there = {f"{log.store.url}/{entry.name}" for entry in log.store.walk("metadata") if entry.name.endswith(".avro")}
    assert there == named
