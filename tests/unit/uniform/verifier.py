"""Reads what UniForm wrote with fastavro and the specification in hand, and holds it against the Delta log.

Nothing of `tahoe.uniform` is used, so a mistake of its encoder is not made twice.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any

import fastavro

from tahoe.exceptions import NotFound
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

__all__ = ["live_entries", "newest_document", "verify"]


def newest_document(store: LogStore) -> dict[str, Any] | None:
    """The metadata that a reader by path opens."""
    try:
        hint = int(store.get("metadata/version-hint.text"))
    except NotFound:
        return None
    return json.loads(store.get(f"metadata/v{hint}.metadata.json"))


def verify(store: LogStore) -> int:
    """Check the newest metadata and every snapshot in it; the Delta version that it shows."""
    document = newest_document(store)
    assert document is not None
    version = int(document["properties"]["delta-version"])
    assert document["format-version"] == 2
    assert document["location"] == store.url
    parent = None
    for snapshot in document["snapshots"]:
        at = Snapshot.at(store, int(snapshot["summary"]["delta-version"]))
        _verify_snapshot(store, document, snapshot, at)
        assert parent is None or snapshot["parent-snapshot-id"] == parent["snapshot-id"]
        assert parent is None or snapshot["sequence-number"] > parent["sequence-number"]
        parent = snapshot
    ids = [snapshot["snapshot-id"] for snapshot in document["snapshots"]]
    assert len(set(ids)) == len(ids)
    assert [entry["snapshot-id"] for entry in document["snapshot-log"]] == ids
    if parent is not None:
        assert document["current-snapshot-id"] == document["refs"]["main"]["snapshot-id"] == parent["snapshot-id"]
        assert document["last-sequence-number"] == parent["sequence-number"]
        now = {path: entry["data_file"] for path, entry in live_entries(store, parent).items()}
        assert set(now) == _live(store, Snapshot.at(store, version)), "the current snapshot is the version the properties name"
    for entry in document["metadata-log"]:
        assert store.head(_name(store, entry["metadata-file"])), "the metadata log names files that are there"
    return version


def live_entries(store: LogStore, snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The live entries of a snapshot by path, with inherited sequence numbers; checks what the manifest list says of them."""
    found: dict[str, dict[str, Any]] = {}
    for manifest in _records(store.get(_name(store, snapshot["manifest-list"]))):
        data = store.get(_name(store, manifest["manifest_path"]))
        assert manifest["manifest_length"] == len(data)
        entries = _records(data)
        for status, counted in ((0, "existing"), (1, "added"), (2, "deleted")):
            of_status = [entry for entry in entries if entry["status"] == status]
            assert manifest[f"{counted}_files_count"] == len(of_status)
            assert manifest[f"{counted}_rows_count"] == sum(entry["data_file"]["record_count"] for entry in of_status)
        for entry in entries:
            if entry["status"] == 1:
                assert entry["snapshot_id"] == manifest["added_snapshot_id"]
                assert entry["sequence_number"] is None
                entry["sequence_number"] = manifest["sequence_number"]
            assert entry["sequence_number"] is not None, "existing and deleted entries name their sequence numbers"
            if entry["status"] != 2:
                assert entry["sequence_number"] >= manifest["min_sequence_number"]
                path = entry["data_file"]["file_path"]
                assert path not in found, f"{path} is live twice"
                found[path] = entry
    return found


def _verify_snapshot(store: LogStore, document: dict[str, Any], snapshot: dict[str, Any], at: Snapshot) -> None:
    entries = live_entries(store, snapshot)
    assert set(entries) == _live(store, at), f"version {at.version}"
    summary = snapshot["summary"]
    assert summary["total-data-files"] == str(len(entries))
    assert summary["total-records"] == str(sum(entry["data_file"]["record_count"] for entry in entries.values()))
    assert summary["total-files-size"] == str(sum(entry["data_file"]["file_size_in_bytes"] for entry in entries.values()))
    assert summary["operation"] in ("append", "overwrite", "delete", "replace")
    assert snapshot["schema-id"] in {schema["schema-id"] for schema in document["schemas"]}
    assert re.fullmatch(r".*/metadata/snap-\d+-[0-9a-f]+\.avro", snapshot["manifest-list"])
    rows = {row["path"]: row for row in at.files().to_pylist()}
    for path, row in rows.items():
        file = entries[_url(store, path)]["data_file"]
        stats = json.loads(row["stats"])
        assert file["record_count"] == stats["numRecords"]
        assert file["file_size_in_bytes"] == row["size"]


def _live(store: LogStore, at: Snapshot) -> set[str]:
    return {_url(store, path) for path in at.files()["path"].to_pylist()}


def _url(store: LogStore, path: str) -> str:
    return f"{store.url}/{decode_path(path, store.url)}"


def _name(store: LogStore, url: str) -> str:
    assert url.startswith(f"{store.url}/"), url
    return url.removeprefix(f"{store.url}/")


def _records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))
