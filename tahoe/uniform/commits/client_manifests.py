"""Manifest lists and manifests that clients wrote, as values (format/spec.md, "Manifests"). Pure: takes bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.commits.client_avro import Budget, Record, records

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
_DELETED = 2
_CONTENTS = (DATA, POSITION_DELETES, EQUALITY_DELETES)
_STATUSES = (0, 1, _DELETED)
_NAMES = {
    0: "status",
    2: "data_file",
    3: "sequence_number",
    4: "file_sequence_number",
    100: "file_path",
    101: "file_format",
    103: "record_count",
    104: "file_size_in_bytes",
    134: "content",
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    515: "sequence_number",
    516: "min_sequence_number",
    517: "content",
}
_COUNTS = ((1, 504, 512), (0, 505, 513), (_DELETED, 506, 514))
"""By status: the fields of a manifest list that count the entries of a manifest, and their rows."""


@dataclass(frozen=True, slots=True)
class ClientManifest:
    """An entry of a manifest list.

    Args:
        size: the file's length in bytes, as the list states it.
        deletes: whether it lists delete files.
        sequence_number: that of the snapshot that added it; None for the new snapshot's.
        counts: the stated numbers of entries and of their rows by status, 0 to 2; those that the list does not state are missing.
        spec_id: the partition spec of its files; None if the list does not state it.
    """

    path: str
    size: int
    deletes: bool = False
    sequence_number: int | None = None
    counts: Mapping[int, tuple[int | None, int | None]] = field(default_factory=dict)
    spec_id: int | None = None


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A live data file or delete file of a manifest.

    Args:
        content: `DATA`, `POSITION_DELETES` or `EQUALITY_DELETES`.
        size: in bytes.
        partition: the values of the partition fields by their ids, as Avro has them.
        sequence_number: the data sequence number; None for a file that the new snapshot adds.
        referenced_file: the only data file to which the deletes apply, if known.
        offset, length: the position of a deletion vector in a Puffin file.
        equality_ids: the columns that equality deletes compare.
        spec_id: the partition spec of its manifest, if the manifest list states it.
        value_counts, null_counts, lower_bounds, upper_bounds: metrics by column id, as far as the manifest has them.
    """

    path: str
    content: int
    file_format: str
    rows: int
    size: int
    partition: Mapping[int, Any] = field(default_factory=dict)
    sequence_number: int | None = None
    referenced_file: str | None = None
    offset: int | None = None
    length: int | None = None
    equality_ids: tuple[int, ...] = ()
    spec_id: int | None = None
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


def manifests_in(data: bytes, name: str) -> dict[str, ClientManifest]:
    """Return the manifests in a manifest list by their locations. Raises `InvalidRequest` naming the file."""
    manifests: dict[str, ClientManifest] = {}
    for manifest in (_manifest(each, name) for each in records(data, name)):
        if manifest.path in manifests:
            raise _wrong(name, f"names the manifest {manifest.path} twice")
        manifests[manifest.path] = manifest
    return manifests


def live_files_in(data: bytes, manifest: ClientManifest, budget: Budget) -> Iterator[ClientFile]:
    """Yield the files of a manifest that are not deleted in it.

    Raises `InvalidRequest` naming the manifest: it cannot be read, or differs from the manifest list, perhaps after its last file.
    """
    name, counted = manifest.path, dict.fromkeys(_STATUSES, (0, 0))
    if len(data) != manifest.size:
        raise _wrong(name, f"has {len(data)} bytes, and {manifest.size} by the manifest list: it is no whole Avro file")
    for entry in records(data, name, budget):
        status, file = _number(entry, 0, name, _STATUSES), _file(entry, manifest)
        if (file.content != DATA) != manifest.deletes:
            raise _wrong(
                name, f"has the file {file.path} of the content {file.content}, which the manifest list does not announce"
            )
        files, rows = counted[status]
        counted[status] = files + 1, rows + file.rows
        if status != _DELETED:
            yield file
    for status, stated in manifest.counts.items():
        if any(count not in (None, counted_files) for count, counted_files in zip(stated, counted[status], strict=True)):
            raise _wrong(name, f"has {counted[status]} files and rows of the status {status}, and {stated} by the manifest list")


def _manifest(entry: Record, name: str) -> ClientManifest:
    if entry.get(519) is not None:
        raise _encrypted(name)
    _optional(entry, 516, name)
    return ClientManifest(
        _text(entry, 500, name),
        _number(entry, 501, name),
        _optional(entry, 517, name, (0, 1)) == 1,
        _optional(entry, 515, name) or None,
        {status: (_optional(entry, files, name), _optional(entry, rows, name)) for status, files, rows in _COUNTS},
        _optional(entry, 502, name),
    )


def _file(entry: Record, manifest: ClientManifest) -> ClientFile:
    name, value = manifest.path, entry.get(2)
    if not isinstance(value, Mapping):
        raise _missing(2, name)
    if value.get(131) is not None:
        raise _encrypted(_text(value, 100, name))
    content = value.get(134)
    return ClientFile(
        _text(value, 100, name),
        _number(value, 134, name, _CONTENTS) if content is not None else DATA,
        _text(value, 101, name).upper(),
        _number(value, 103, name),
        _number(value, 104, name),
        value.get(102) or {},
        _sequence_number(entry, name),
        value.get(143),
        value.get(144),
        value.get(145),
        tuple(value.get(135) or ()),
        manifest.spec_id,
        _by_column(value.get(109), 119, 120),
        _by_column(value.get(110), 121, 122),
        _by_column(value.get(125), 126, 127),
        _by_column(value.get(128), 129, 130),
    )


def _by_column(pairs: object, key: int, value: int) -> Mapping[int, Any]:
    """Return a map with whole numbers as keys, which Avro stores as an array of pairs."""
    pairs = pairs if isinstance(pairs, list) else ()
    return {pair[key]: pair[value] for pair in pairs if isinstance(pair, Mapping) and key in pair and value in pair}


def _sequence_number(entry: Record, name: str) -> int | None:
    """Return the data sequence number of an entry; both numbers are checked."""
    _optional(entry, 4, name)
    return _optional(entry, 3, name)


def _text(record: Record, number: int, name: str) -> str:
    value = record.get(number)
    if not isinstance(value, str):
        raise _missing(number, name)
    return value


def _number(record: Record, number: int, name: str, allowed: tuple[int, ...] | None = None) -> int:
    value = record.get(number)
    if not isinstance(value, int) or value < 0 or (allowed is not None and value not in allowed):
        raise _missing(number, name)
    return value


def _optional(record: Record, number: int, name: str, allowed: tuple[int, ...] | None = None) -> int | None:
    return None if record.get(number) is None else _number(record, number, name, allowed)


def _missing(number: int, name: str) -> InvalidRequest:
    return _wrong(name, f"has an entry without a valid field {number} ({_NAMES.get(number, 'a count')})")


def _wrong(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The manifest {name} {problem}. Write it again.", code="TAHOE_ICEBERG_MANIFEST", file=name)


def _encrypted(name: str) -> Unsupported:
    return Unsupported(f"{name} is encrypted, and Delta tables are not encrypted.", code="TAHOE_ICEBERG_FILE", file=name)
