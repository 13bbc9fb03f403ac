"""Manifests of a full conversion encoded in shards by other processes: byte for byte those of one process."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.uniform_log import V2_DELETES, V3, DeltaLog
from tahoe.uniform.convert import manifest_policy, shards
from tahoe.uniform.convert.shards import EncodedManifest, Shard, encode_shard
from tahoe.uniform.handle import UniformHandle
from tahoe.uniform.runtime import UniformRuntime


class Elsewhere:
    """Encodes like another process, from the serialized input alone."""

    def __init__(self, least_files: int = 1) -> None:
        self.least_files = least_files
        self.shards = 0

    def encode(self, order: str, parts: Iterable[Shard]) -> Iterator[EncodedManifest]:
        assert isinstance(order, str)
        for part in parts:
            self.shards += 1
            yield from encode_shard(order, part)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_policy, "LEAST_ENTRIES", 4)
    monkeypatch.setattr(shards, "FILES_IN_SHARD", 9)


def content(log: DeltaLog) -> dict[str, bytes]:
    return {entry.name: log.store.get(entry.name) for entry in log.store.walk("metadata")}


def both(log: DeltaLog, encoder: Elsewhere) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the folder's content after a conversion with the encoder, and after one without."""
    contents = []
    for chosen in (encoder, None):
        for name in content(log):
            log.store.delete(name)
        log.store.delete("_delta_log/_uniform/state.json")
        log.convert(shards=chosen)
        verify(log.store)
        contents.append(content(log))
    return contents[0], contents[1]


@pytest.mark.parametrize("files", [1, 8, 21])
@pytest.mark.parametrize("properties", [{}, V2_DELETES, V3], ids=["plain", "position deletes", "version 3"])
def test_sharded_manifests_have_the_same_names_and_bytes(files, properties):
    log = DeltaLog(configuration=properties)
    log.change([f"{'abc'[i % 3]}{i:03d}" for i in range(files)])
    if properties:
        log.mark({f"{'abc'[i % 3]}{i:03d}": (None, BitMap64([i % 5, 7])) for i in range(0, files, 2)})
    encoder = Elsewhere()
    theirs, ours = both(log, encoder)
    assert theirs == ours
    assert encoder.shards == -(-files // 8)
    manifests = [name for name in ours if name.startswith("metadata/m")]
    assert len(manifests) == -(-files // 4)


def test_odd_paths_and_values_too():
    log = DeltaLog()
    log.change(["a%20b%2520c/f.parquet", f"{log.store.url.replace(' ', '%20')}/abs.parquet", "ü/%C3%BC.parquet"])
    log.commit(replace(log.add("n1"), partition_values={"col-2": None}, stats='{"numRecords": 3}'))
    theirs, ours = both(log, Elsewhere())
    assert theirs == ours


def test_small_tables_are_encoded_in_this_process():
    log = DeltaLog()
    log.change(["a1", "a2"])
    encoder = Elsewhere(least_files=3)
    log.convert(shards=encoder)
    assert encoder.shards == 0


class Failing(Elsewhere):
    def encode(self, order: str, parts: Iterable[Shard]) -> Iterator[EncodedManifest]:
        yield next(super().encode(order, parts))
        raise RuntimeError("the session was stopped")


class Short(Elsewhere):
    def encode(self, order: str, parts: Iterable[Shard]) -> Iterator[EncodedManifest]:
        yield next(super().encode(order, parts))


@pytest.mark.parametrize(("encoder", "reason"), [(Failing(), "the session was stopped"), (Short(), "9 files .* but 4 were")])
def test_a_failing_encoder_is_replaced_by_this_process(encoder, reason, caplog):
    log = DeltaLog(configuration=V3)
    log.change([f"a{i}" for i in range(8)])
    log.commit(log.add("b1", vector=BitMap64([1])))
    with caplog.at_level(logging.WARNING):
        theirs, ours = both(log, encoder)
    assert theirs == ours
    assert [
        record.message
        for record in caplog.records
        if record.levelno == logging.WARNING and "in this process alone" in record.message
    ]
    document = newest_document(log.store)
    assert document["snapshots"][-1]["summary"]["total-delete-files"] == "1", "a vector is shown once"


def test_an_invalid_file_raises_the_same_error():
    log = DeltaLog()
    log.commit(replace(log.add("b1"), stats='{"minValues":{}}'))
    with pytest.raises(CorruptTable, match="b1 has no number of records"):
        log.convert(shards=Elsewhere())
    log = DeltaLog()
    log.commit(log.add("b1", vector=BitMap64([1])))
    with pytest.raises(Unsupported, match="b1 has a deletion vector"):
        log.convert(shards=Elsewhere())


def test_a_registered_encoder_is_used():
    log = DeltaLog()
    log.change(["a1"])
    encoder = Elsewhere()
    runtime = UniformRuntime()
    runtime.shards = encoder
    UniformHandle(log.delta(), runtime).sync()
    assert encoder.shards == 1
    assert verify(log.store) == 1


def test_an_order_survives_json():
    log = DeltaLog()
    log.change(["a1"])
    seen = []

    class Watching(Elsewhere):
        def encode(self, order: str, parts: Iterable[Shard]) -> Iterator[EncodedManifest]:
            seen.append(json.loads(order))
            yield from super().encode(order, parts)

    log.convert(shards=Watching())
    assert seen[0]["root_url"] == log.store.url
    assert seen[0]["partition_columns"] == ["part"]
