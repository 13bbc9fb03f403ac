"""Iceberg's manifests and manifest lists: encoding and decoding their entries (format/spec.md, "Manifests").

Reads only manifests of Tahoe's own layout. Metadata of another writer stops the conversion (`tahoe.uniform.formats.metadata_files`), and
manifests of another layout are rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from tahoe.base.exceptions import CorruptTable
from tahoe.base.json_values import JsonMapping
from tahoe.uniform.formats.avro import (
    container,
    container_header,
    decode_long,
    decode_value,
    encode_bytes,
    encode_long,
    encode_string,
    packed_blocks,
    read_container,
    write_container,
)
from tahoe.uniform.formats.manifest_schema import DATA, Spec, entry_schema_text, list_schema_text, optional_tail_fields

EXISTING, ADDED, DELETED = 0, 1, 2
FORMAT_FIELD = encode_string("PARQUET")
"""The format field that follows the path in the record of each data file."""

_NONE = b"\0"
_SOME = b"\2"


class DataFile(NamedTuple):
    """One live data file or delete file, with its Iceberg ``data_file`` record already encoded.

    Args:
        url: the file's full path, as readers open it.
        encoded: Avro bytes of the record.
        partition: the partition tuple, in the form `Codec.encode` takes; None for null.
        sequence_number: the data sequence number, if it is not that of the snapshot that adds the file.
        about: for a delete file, the data files whose rows it deletes; None if only its content shows them.
    """

    url: str
    encoded: bytes
    partition: tuple[Any, ...]
    record_count: int
    size: int
    sequence_number: int | None = None
    about: tuple[str, ...] | None = ()


class Entry(NamedTuple):
    """A data file in a manifest, with its snapshot and the sequence numbers at which it was added or deleted."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    file: DataFile


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """The summary of one partition field over a manifest; the bounds are None only if every value is null or NaN."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One manifest, as named by a manifest list.

    Args:
        content: `DATA` or `DELETES`.
        first_row_id: the first row id for files without one; None in version 2, and for delete files.
        record: the encoded entry, in the format version of the table's manifest lists; None if unknown.
    """

    path: str
    length: int
    spec_id: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files: int
    existing_files: int
    deleted_files: int
    added_rows: int
    existing_rows: int
    deleted_rows: int
    partitions: tuple[PartitionSummary, ...]
    content: int = DATA
    first_row_id: int | None = None
    record: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def live_files(self) -> int:
        """The number of entries of files that are not deleted."""
        return self.added_files + self.existing_files


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry of a manifest."""
    return _entry_head(entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) + entry.file.encoded


class ManifestHeader(NamedTuple):
    """The header of the manifests of one snapshot, and the sync marker between their blocks."""

    data: bytes
    sync: bytes


def manifest_header(spec: Spec, schema: JsonMapping, *, format_version: int = 2, content: int = DATA) -> ManifestHeader:
    """Return the header of manifests.

    Args:
        schema: the table's Iceberg schema with its ``schema-id``.
    """
    fields = _json(list(spec.fields))
    metadata = {
        "schema": _json(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": fields,
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
        "content": "data" if content == DATA else "deletes",
    }
    sync = _sync(fields)
    return ManifestHeader(container_header(entry_schema_text(spec, format_version, content), metadata, sync=sync), sync)


def manifest_bytes(blocks: Iterable[tuple[int, bytes]], header: ManifestHeader) -> bytes:
    """Return a manifest; `blocks` are the entries from `tahoe.uniform.formats.manifest_pieces.blocks_of`."""
    return container(header.data, blocks, sync=header.sync)


def read_manifest(data: bytes, manifest: ManifestFile, spec: Spec) -> list[Entry]:
    """Return the entries of a manifest from `manifest_bytes`, with inherited sequence numbers and snapshot id filled in.

    Raises `CorruptTable` if the layout differs.
    """
    blocks, reader = manifest_blocks(data, manifest, spec)
    return [entry for count, block, _ in blocks for entry in reader.entries(block, count)]


def manifest_blocks(data: bytes, manifest: ManifestFile, spec: Spec) -> tuple[list[tuple[int, bytes, bytes]], EntryReader]:
    """Return a manifest's blocks (number of entries, the entries, the same compressed), and the decoder of its entries.

    Raises `CorruptTable` if the layout differs.
    """
    metadata, blocks = packed_blocks(data, manifest.path)
    format_version = _format_version(metadata, manifest.path)
    if metadata.get("avro.schema") != entry_schema_text(spec, format_version, manifest.content):
        raise _other_layout(manifest.path)
    return blocks, EntryReader(manifest, spec, optional_tail_fields(format_version, manifest.content))


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Decodes the entries of one manifest, and fills in values that they inherit from it.

    Args:
        tail: the optional fields at the end of its ``data_file`` records.
    """

    manifest: ManifestFile
    spec: Spec
    tail: tuple[str, ...]

    def entry(self, block: bytes, position: int) -> tuple[Entry, int]:
        """Return the entry at `position`, and the position after it."""
        manifest = self.manifest
        status, position = decode_long(block, position)
        snapshot_id, position = _decode_optional_long(block, position)
        sequence_number, position = _decode_optional_long(block, position)
        file_sequence_number, position = _decode_optional_long(block, position)
        file, position = _decode_file(block, position, self.spec, self.tail)
        entry = Entry(
            status,
            manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
            manifest.sequence_number if sequence_number is None else sequence_number,
            manifest.sequence_number if file_sequence_number is None else file_sequence_number,
            file,
        )
        return entry, position

    def entries(self, block: bytes, count: int) -> Iterator[Entry]:
        """Yield the `count` entries of a block."""
        position = 0
        for _ in range(count):
            entry, position = self.entry(block, position)
            yield entry


def paths_in(data: bytes, name: str, root: bytes) -> Iterator[bytes]:
    """Yield the file paths in a manifest of Tahoe's without decoding its entries: several times as fast as `read_manifest`.

    A path runs from the table's root URL to the file format that follows each path. If text in a bound resembles either, a path may be
    missed or wrong: the caller falls back to `read_manifest` for missing paths.
    """
    _, blocks = read_container(data, name)
    for _, block in blocks:
        for piece in block.split(FORMAT_FIELD)[:-1]:
            start = piece.rfind(root)
            if start >= 0:
                yield piece[start:]


def live_urls(data: bytes, name: str) -> Iterator[str]:
    """Yield the live files of a manifest, read by its own schema: also if its layout or partitioning is outdated."""
    metadata, blocks = read_container(data, name)
    schema = json.loads(metadata["avro.schema"])
    for count, block in blocks:
        position = 0
        for _ in range(count):
            entry, position = decode_value(schema, block, position)
            if entry["status"] != DELETED:
                yield entry["data_file"]["file_path"]


def manifest_list_bytes(
    manifests: Iterable[ManifestFile],
    *,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    format_version: int = 2,
) -> bytes:
    """Return the manifest list of a snapshot, as an Avro file."""
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    entries = (manifest.record or manifest_entry(manifest, format_version) for manifest in manifests)
    return write_container(list_schema_text(format_version), metadata, entries, sync=_sync(str(snapshot_id)))


def recorded(manifest: ManifestFile, format_version: int) -> ManifestFile:
    """Return the manifest with its encoded record, which every later list reuses."""
    return replace(manifest, record=manifest_entry(manifest, format_version))


def read_manifest_list(data: bytes, name: str) -> list[ManifestFile]:
    """Return the manifests of a list from `manifest_list_bytes`. Raises `CorruptTable` if the layout differs."""
    metadata, blocks = read_container(data, name)
    format_version = _format_version(metadata, name)
    if metadata.get("avro.schema") != list_schema_text(format_version):
        raise _other_layout(name)
    manifests: list[ManifestFile] = []
    for count, block in blocks:
        position = 0
        for _ in range(count):
            manifest, position = _decode_manifest(block, position, format_version)
            manifests.append(manifest)
    return manifests


def manifest_entry(manifest: ManifestFile, format_version: int) -> bytes:
    """Encode the manifest's entry in a manifest list."""
    numbers = (getattr(manifest, name) for name in _LIST_NUMBERS)
    parts = [encode_string(manifest.path), *map(encode_long, numbers), _SOME]
    if manifest.partitions:
        parts += [encode_long(len(manifest.partitions)), *map(_encode_summary, manifest.partitions)]
    tail = [_optional_long(manifest.first_row_id)] if format_version >= 3 else []
    return b"".join([*parts, _NONE, _NONE, *tail])  # end of the array, no key metadata


def read_manifest_entry(data: bytes, format_version: int) -> ManifestFile:
    """Decode an entry from `manifest_entry`."""
    return _decode_manifest(data, 0, format_version)[0]


def _format_version(metadata: Mapping[str, str], name: str) -> int:
    text = metadata.get("format-version")
    if text not in ("2", "3"):
        raise _other_layout(name)
    return int(text)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sync(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


def _other_layout(name: str) -> CorruptTable:
    return CorruptTable(
        f"The Iceberg metadata file {name} does not have the layout of this version of Tahoe. Rebuild the Iceberg side.",
        code="TAHOE_CORRUPT_ICEBERG_METADATA",
        file=name,
    )


@lru_cache(maxsize=1000)
def _entry_head(status: int, *numbers: int | None) -> bytes:
    """Encode the head of an entry; most entries of a snapshot have the same."""
    return b"".join((encode_long(status), *map(_optional_long, numbers)))


def _optional_long(number: int | None) -> bytes:
    return _NONE if number is None else _SOME + encode_long(number)


def _decode_optional_long(data: bytes, position: int) -> tuple[int | None, int]:
    if data[position] == 0:
        return None, position + 1
    return decode_long(data, position + 1)


def _decode_file(block: bytes, start: int, spec: Spec, tail: tuple[str, ...]) -> tuple[DataFile, int]:
    content, position = decode_long(block, start)
    length, position = decode_long(block, position)
    url = block[position : position + length].decode()
    length, position = decode_long(block, position + length)  # the file format
    position += length
    partition: list[Any] = []
    for codec in spec.codecs:
        if block[position] == 0:
            partition.append(None)
            position += 1
        else:
            value, position = codec.decode(block, position + 1)
            partition.append(value)
    record_count, position = decode_long(block, position)
    size, position = decode_long(block, position)
    for holds_bytes in _METRIC_MAPS:
        position = _skip_map(block, position, holds_bytes)
    position += _UNUSED_FIELDS
    referenced: str | None = None
    for name in tail:
        member, position = _decode_optional(block, position, holds_text=name == "referenced_data_file")
        referenced = member if isinstance(member, str) else referenced
    about = () if content == 0 else (referenced,) if referenced is not None else None
    return DataFile(url, block[start:position], tuple(partition), record_count, size, None, about), position


def _decode_optional(block: bytes, position: int, *, holds_text: bool) -> tuple[int | str | None, int]:
    if block[position] == 0:
        return None, position + 1
    number, position = decode_long(block, position + 1)
    if not holds_text:
        return number, position
    return block[position : position + number].decode(), position + number


_METRIC_MAPS = (False, False, False, False, True, True)  # column sizes, value, null and NaN counts; lower and upper bounds
_UNUSED_FIELDS = 4  # key metadata, split offsets, equality ids, sort order: always null, one byte each


def _skip_map(block: bytes, position: int, holds_bytes: bool) -> int:
    if block[position] == 0:
        return position + 1
    count, position = decode_long(block, position + 1)
    while count:
        if not holds_bytes:
            position = _varints(2 * count).match(block, position).end()  # type: ignore[union-attr]
        else:
            for _ in range(count):
                while block[position] & 0x80:  # the key
                    position += 1
                length, position = decode_long(block, position + 1)
                position += length
        count, position = decode_long(block, position)
    return position


@lru_cache(maxsize=1000)
def _varints(count: int) -> re.Pattern[bytes]:
    """Match `count` numbers; several times as fast as a loop over them."""
    return re.compile(rb"(?:[\x80-\xff]*[\x00-\x7f]){%d}" % count)


_LIST_NUMBERS = (
    "length",
    "spec_id",
    "content",
    "sequence_number",
    "min_sequence_number",
    "added_snapshot_id",
    "added_files",
    "existing_files",
    "deleted_files",
    "added_rows",
    "existing_rows",
    "deleted_rows",
)


def _encode_summary(summary: PartitionSummary) -> bytes:
    nan = _NONE if summary.contains_nan is None else _SOME + bytes([summary.contains_nan])
    bounds = (_NONE if bound is None else _SOME + encode_bytes(bound) for bound in (summary.lower_bound, summary.upper_bound))
    return b"".join((bytes([summary.contains_null]), nan, *bounds))


def _decode_manifest(block: bytes, position: int, format_version: int) -> tuple[ManifestFile, int]:
    start = position
    length, position = decode_long(block, position)
    path = block[position : position + length].decode()
    position += length
    numbers: dict[str, int] = {}
    for name in _LIST_NUMBERS:
        numbers[name], position = decode_long(block, position)
    summaries: list[PartitionSummary] = []
    position += 1  # the array is present
    count, position = decode_long(block, position)
    while count:
        for _ in range(count):
            summary, position = _decode_summary(block, position)
            summaries.append(summary)
        count, position = decode_long(block, position)
    position += 1  # no key metadata
    first_row_id: int | None = None
    if format_version >= 3:
        first_row_id, position = _decode_optional_long(block, position)
    record = block[start:position]
    return ManifestFile(path=path, partitions=tuple(summaries), first_row_id=first_row_id, record=record, **numbers), position


def _decode_summary(block: bytes, position: int) -> tuple[PartitionSummary, int]:
    contains_null = block[position] == 1
    contains_nan = None if block[position + 1] == 0 else block[position + 2] == 1
    position += 2 if contains_nan is None else 3
    bounds: list[bytes | None] = []
    for _ in range(2):
        if block[position] == 0:
            bounds.append(None)
            position += 1
        else:
            length, position = decode_long(block, position + 1)
            bounds.append(block[position : position + length])
            position += length
    return PartitionSummary(contains_null, contains_nan, bounds[0], bounds[1]), position
