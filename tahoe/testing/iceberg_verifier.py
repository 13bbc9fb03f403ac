"""Reads UniForm's output with fastavro by the specification, and compares it with the Delta log.

    table.append(rows)
    table.uniform.sync()
    assert verify(table.store) == table.version()

It uses nothing of `tahoe.uniform`, so it does not repeat a mistake of its encoder. Needs the extras ``testing`` and ``iceberg``.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from itertools import pairwise
from typing import Any

from tahoe.base.exceptions import NotFound
from tahoe.base.lazy import pq
from tahoe.log.replay import add_files
from tahoe.protocol.dv import bitmap_from_bytes, decode
from tahoe.protocol.features import Feature
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path, named_url
from tahoe.store.log_store import LogStore
from tahoe.testing.extras import extra_missing

try:
    import fastavro
    from pyiceberg.table.puffin import PuffinFile
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["dead_positions", "live_entries", "named_files", "newest_document", "verify"]


def newest_document(store: LogStore) -> dict[str, Any] | None:
    """Return the metadata that a reader by path opens."""
    try:
        hint = int(store.get("metadata/version-hint.text"))
    except NotFound:
        return None
    document: dict[str, Any] = json.loads(store.get(f"metadata/v{hint}.metadata.json"))
    return document


def verify(store: LogStore, *, is_linear: bool = True) -> int:
    """Check the newest metadata and every snapshot in it, files, deletes, statistics and row ids, against the Delta log.

    Args:
        store: the table's root.
        is_linear: whether every snapshot followed the one before it, that is, no Iceberg client made an earlier one current.

    Returns:
        The Delta version that the newest metadata shows.
    """
    document = newest_document(store)
    assert document is not None
    version = int(document["properties"]["delta-version"])
    assert document["format-version"] == (3 if Feature.ICEBERG_COMPAT_V3 in Snapshot.at(store, version).config.features else 2)
    assert document["location"] == store.url
    for snapshot in document["snapshots"]:
        at = Snapshot.at(store, int(snapshot["summary"]["delta-version"]))
        _verify_snapshot(store, document, snapshot, at)
    current = _verify_history(document, is_linear)
    if current is not None:
        now = Snapshot.at(store, version)
        assert set(live_entries(store, current)) == _live(store, now), "the current snapshot is the version the properties name"
        assert dead_positions(store, current) == _vectors(store, now), "and so are its deleted rows"
    if document["format-version"] >= 3:
        _verify_row_ids(store, document, is_linear)
    for entry in document["metadata-log"]:
        assert store.head(_name(store, entry["metadata-file"])), "the metadata log names existing files"
    return version


def _verify_history(document: dict[str, Any], is_linear: bool) -> dict[str, Any] | None:
    """Check the order of the snapshots, their log and the branch main; return the current snapshot, None for a table without."""
    snapshots: dict[int, dict[str, Any]] = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}
    assert len(snapshots) == len(document["snapshots"])
    if not snapshots:
        assert not document["snapshot-log"]
        return None
    numbers = [snapshot["sequence-number"] for snapshot in snapshots.values()]
    assert numbers == sorted(set(numbers))
    assert document["last-sequence-number"] == numbers[-1] or (not is_linear and document["last-sequence-number"] > numbers[-1])
    log = [entry["snapshot-id"] for entry in document["snapshot-log"]]
    times = [entry["timestamp-ms"] for entry in document["snapshot-log"]]
    assert set(log) == set(snapshots) and times == sorted(times)
    assert not is_linear or log == list(snapshots)
    for position, (before, after) in enumerate(pairwise(log), start=1):
        is_new = after not in log[:position] and times[position] == snapshots[after]["timestamp-ms"]
        assert not is_new or snapshots[after]["parent-snapshot-id"] == before, "a snapshot follows the one that was current"
    assert document["current-snapshot-id"] == document["refs"]["main"]["snapshot-id"] == log[-1]
    return snapshots[log[-1]]


def _verify_row_ids(store: LogStore, document: dict[str, Any], is_linear: bool) -> None:
    """Check that the row ids of each snapshot follow those of the previous one, and that the table's next row id is unused."""
    following = None
    for snapshot in document["snapshots"]:
        if "first-row-id" in snapshot:  # format 2 has none
            assert (
                following is None
                or snapshot["first-row-id"] == following
                or (not is_linear and snapshot["first-row-id"] > following)
            )
            following = snapshot["first-row-id"] + snapshot["added-rows"]
            for manifest in _records(store.get(_name(store, snapshot["manifest-list"]))):
                assert (manifest["first_row_id"] is None) == (manifest["content"] == 1)
            for entry in live_entries(store, snapshot).values():
                assert entry["data_file"]["first_row_id"] + entry["data_file"]["record_count"] <= document["next-row-id"]
    assert following is None or following == document["next-row-id"] or (not is_linear and following < document["next-row-id"])


def live_entries(store: LogStore, snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the live data files of a snapshot by path, with inherited sequence numbers; checks the manifest list's counts."""
    return _entries(store, snapshot, 0)


def dead_positions(store: LogStore, snapshot: dict[str, Any]) -> dict[str, set[int]]:
    """Return the deleted positions of a snapshot by data file; checks that every delete file applies and matches its entry."""
    data_files = live_entries(store, snapshot)
    deleted: dict[str, set[int]] = {}
    for path, entry in _entries(store, snapshot, 1).items():
        file = entry["data_file"]
        data = store.get(_name(store, path))
        assert file["content"] == 1
        assert file["file_size_in_bytes"] == len(data)
        said = _puffin(data, file) if file["file_format"] == "PUFFIN" else _positions(data, file)
        assert file["record_count"] == sum(map(len, said.values()))
        for url, positions in said.items():
            target = data_files[url]
            assert target["data_file"]["partition"] == file["partition"]
            assert target["sequence_number"] <= entry["sequence_number"], "the delete applies to the file"
            assert not deleted.get(url, set()) & positions, "no row is deleted twice"
            deleted.setdefault(url, set()).update(positions)
    return deleted


def named_files(store: LogStore) -> set[str]:
    """Return the names in ``metadata`` of all files that any snapshot references."""
    document = newest_document(store)
    assert document is not None
    names = set()
    for snapshot in document["snapshots"]:
        names |= {snapshot["manifest-list"], *_entries(store, snapshot, 1)}
        names |= {manifest["manifest_path"] for manifest in _records(store.get(_name(store, snapshot["manifest-list"])))}
    return {url.rpartition("/")[2] for url in names}


def _positions(data: bytes, file: dict[str, Any]) -> dict[str, set[int]]:
    """Return the content of a position delete file, after comparing it with its entry."""
    rows = pq.read_table(io.BytesIO(data))
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in rows.schema}
    assert ids == {"file_path": b"2147483546", "pos": b"2147483545"}
    pairs = list(zip(*(rows.column(name).to_pylist() for name in ("file_path", "pos")), strict=True))
    assert pairs == sorted(set(pairs)), "sorted, and none twice"
    paths = [path for path, _ in pairs]
    (lower,), (upper,) = ([b["value"] for b in file[key] if b["key"] == 2147483546] for key in ("lower_bounds", "upper_bounds"))
    assert (lower.decode(), upper.decode()) == (min(paths), max(paths))
    assert file["referenced_data_file"] == (paths[0] if len(set(paths)) == 1 else None)
    return {path: {position for file_path, position in pairs if file_path == path} for path in set(paths)}


def _puffin(data: bytes, file: dict[str, Any]) -> dict[str, set[int]]:
    """Return the vector of a Puffin file, read at the offset in its entry."""
    (blob,) = PuffinFile(data).footer.blobs
    assert (blob.offset, blob.length) == (file["content_offset"], file["content_size_in_bytes"])
    assert blob.type == "deletion-vector-v1" and blob.fields == [2147483645] and blob.compression_codec is None
    assert blob.properties == {"referenced-data-file": file["referenced_data_file"], "cardinality": str(file["record_count"])}
    blob_data = data[blob.offset : blob.offset + blob.length]
    assert int.from_bytes(blob_data[:4], "big") == blob.length - 8
    assert zlib.crc32(blob_data[4:-4]) == int.from_bytes(blob_data[-4:], "big")
    return {file["referenced_data_file"]: set(bitmap_from_bytes(blob_data[4:-4]))}


def _vectors(store: LogStore, at: Snapshot) -> dict[str, set[int]]:
    """Return the deleted positions according to the log."""
    adds = add_files(at.files())
    return {_url(store, add.path): set(decode(add.deletion_vector, store.get, store.url)) for add in adds if add.deletion_vector}


def _entries(store: LogStore, snapshot: dict[str, Any], content: int) -> dict[str, dict[str, Any]]:
    live: dict[str, dict[str, Any]] = {}
    for manifest in _records(store.get(_name(store, snapshot["manifest-list"]))):
        if manifest["content"] != content:
            continue
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
                assert entry["file_sequence_number"] is None
                if entry["sequence_number"] is None:
                    entry["sequence_number"] = manifest["sequence_number"]
                else:
                    assert entry["data_file"]["first_row_id"] is not None, (
                        "only format 3 has explicit sequence numbers in added entries"
                    )
            assert entry["sequence_number"] is not None, "existing and deleted entries have explicit sequence numbers"
            if entry["status"] != 2:
                assert entry["sequence_number"] >= manifest["min_sequence_number"]
                path = entry["data_file"]["file_path"]
                assert path not in live, f"{path} is live twice"
                live[path] = entry
    return live


def _verify_snapshot(store: LogStore, document: dict[str, Any], snapshot: dict[str, Any], at: Snapshot) -> None:
    entries = live_entries(store, snapshot)
    assert set(entries) == _live(store, at), f"version {at.version}"
    deleted = dead_positions(store, snapshot)
    assert deleted == _vectors(store, at), f"version {at.version}"
    deletes = _entries(store, snapshot, 1)
    files = [entry["data_file"] for entry in (*entries.values(), *deletes.values())]
    summary = snapshot["summary"]
    assert summary["total-data-files"] == str(len(entries))
    assert summary["total-delete-files"] == str(len(deletes))
    assert summary["total-position-deletes"] == str(sum(map(len, deleted.values())))
    assert summary["total-records"] == str(sum(entry["data_file"]["record_count"] for entry in entries.values()))
    assert summary["total-files-size"] == str(sum(file["file_size_in_bytes"] for file in files))
    assert summary["operation"] in ("append", "overwrite", "delete", "replace")
    assert snapshot["schema-id"] in {schema["schema-id"] for schema in document["schemas"]}
    assert re.fullmatch(r".*/metadata/snap-\d+-[0-9a-f]+\.avro", snapshot["manifest-list"])
    rows = {row["path"]: row for row in at.files().to_pylist()}
    for path, row in rows.items():
        file = entries[_url(store, path)]["data_file"]
        stats = json.loads(row["stats"])
        assert file["record_count"] == stats["numRecords"]
        assert file["file_size_in_bytes"] == row["size"]
        if "first_row_id" in file:
            assert file["first_row_id"] == row["baseRowId"]
            assert entries[_url(store, path)]["sequence_number"] == row["defaultRowCommitVersion"]


def _live(store: LogStore, at: Snapshot) -> set[str]:
    return {_url(store, path) for path in at.files()["path"].to_pylist()}


def _url(store: LogStore, path: str) -> str:
    return named_url(store.url, decode_path(path, store.url, outside=True))


def _name(store: LogStore, url: str) -> str:
    assert url.startswith(f"{store.url}/"), url
    return url.removeprefix(f"{store.url}/")


def _records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))
