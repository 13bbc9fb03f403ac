"""Iceberg's manifests and manifest lists: their Avro schemas, and their entries to bytes and back (format/spec.md, "Manifests").

Only manifests of our own layout are read back: a table whose metadata another writer has touched is not converted on top of
(`tahoe.uniform.formats.metadata_files`), and one of another layout is rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from tahoe.exceptions import CorruptTable
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
from tahoe.uniform.formats.manifest_schema import DATA, Spec, entry_schema_text, list_schema_text, tail_of

__all__ = [
    "ADDED",
    "DELETED",
    "EXISTING",
    "FORMAT_FIELD",
    "DataFile",
    "Entry",
    "EntryReader",
    "ManifestFile",
    "ManifestHeader",
    "PartitionSummary",
    "encode_entry",
    "live_urls",
    "manifest_blocks",
    "manifest_bytes",
    "manifest_entry",
    "manifest_header",
    "manifest_list_bytes",
    "paths_in",
    "read_manifest",
    "read_manifest_entry",
    "read_manifest_list",
    "recorded",
]

EXISTING, ADDED, DELETED = 0, 1, 2
FORMAT_FIELD = encode_string("PARQUET")
"""What follows the path in the record of each data file: its format."""

_NONE = b"\0"
_SOME = b"\2"


class DataFile(NamedTuple):
    """One live data file or delete file, its Iceberg ``data_file`` record already encoded.

    Args:
        url: the file's full path, as readers open it.
        encoded: Avro bytes of the record.
        partition: the partition tuple, in the form `Codec.encode` takes; None for null.
        sequence_number: the data sequence number to be given, where it is not that of the snapshot that adds the file.
        about: of a delete file, the data files that rows are deleted from; None where only the file itself tells.
    """

    url: str
    encoded: bytes
    partition: tuple[Any, ...]
    record_count: int
    size: int
    sequence_number: int | None = None
    about: tuple[str, ...] | None = ()


class Entry(NamedTuple):
    """A data file in a manifest, with the snapshot and the sequence numbers under which it came or went."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    file: DataFile


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """What one partition field holds over a whole manifest; the bounds are None only where every value is null or NaN."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One manifest, as a manifest list names it.

    Args:
        content: `DATA` or `DELETES`.
        first_row_id: where rows of files without a first row id are counted from; None in version 2, and for delete files.
        record: the same in Avro, as lists of the table's format version hold it; None where it is not known.
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
        """How many entries are not of deleted files."""
        return self.added_files + self.existing_files


def encode_entry(entry: Entry) -> bytes:
    """An entry as it stands in a block of a manifest."""
    return _entry_head(entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) + entry.file.encoded


class ManifestHeader(NamedTuple):
    """How the manifests of one snapshot begin, and what stands between their blocks."""

    data: bytes
    sync: bytes


def manifest_header(spec: Spec, schema: Mapping[str, Any], *, format_version: int = 2, content: int = DATA) -> ManifestHeader:
    """The header of manifests.

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
    """A manifest; `blocks` are the entries, as `tahoe.uniform.formats.manifest_pieces.blocks_of` gives them."""
    return container(header.data, blocks, sync=header.sync)


def read_manifest(data: bytes, manifest: ManifestFile, spec: Spec) -> list[Entry]:
    """The entries of a manifest that `manifest_bytes` wrote, with inherited sequence numbers and snapshot id filled in.

    Raises `CorruptTable` where the layout is another one.
    """
    blocks, reader = manifest_blocks(data, manifest, spec)
    return [entry for count, block, _ in blocks for entry in reader.entries(block, count)]


def manifest_blocks(data: bytes, manifest: ManifestFile, spec: Spec) -> tuple[list[tuple[int, bytes, bytes]], EntryReader]:
    """A manifest's blocks (number of entries, the entries, the same compressed), and what decodes the entries.

    Raises `CorruptTable` where the layout is another one.
    """
    metadata, blocks = packed_blocks(data, manifest.path)
    format_version = _format_version(metadata, manifest.path)
    if metadata.get("avro.schema") != entry_schema_text(spec, format_version, manifest.content):
        raise _other_layout(manifest.path)
    return blocks, EntryReader(manifest, spec, tail_of(format_version, manifest.content))


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Decodes the entries of one manifest, with what they inherit from it filled in.

    Args:
        tail: the optional fields at the end of its ``data_file`` records.
    """

    manifest: ManifestFile
    spec: Spec
    tail: tuple[str, ...]

    def entry(self, block: bytes, position: int) -> tuple[Entry, int]:
        """The entry that begins at `position`, and the position after it."""
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
        """All entries of a block, of which there are `count`."""
        position = 0
        for _ in range(count):
            entry, position = self.entry(block, position)
            yield entry


def paths_in(data: bytes, name: str, root: bytes) -> Iterator[bytes]:
    """The file paths in a manifest of ours, found without decoding its entries: several times as fast as `read_manifest`.

    A path is what lies between the table's root URL and the file format that follows each path. Should text in a bound look
    like either, a path may be missed or a wrong one given: the caller falls back on `read_manifest` for what it does not find.
    """
    _, blocks = read_container(data, name)
    for _, block in blocks:
        for piece in block.split(FORMAT_FIELD)[:-1]:
            start = piece.rfind(root)
            if start >= 0:
                yield piece[start:]


def live_urls(data: bytes, name: str) -> Iterator[str]:
    """The files that are live in a manifest, read by its own schema: also where layout or partitioning are not those of today."""
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
    """The manifest list of a snapshot, as an Avro file."""
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    entries = (manifest.record or manifest_entry(manifest, format_version) for manifest in manifests)
    return write_container(list_schema_text(format_version), metadata, entries, sync=_sync(str(snapshot_id)))


def recorded(manifest: ManifestFile, format_version: int) -> ManifestFile:
    """The manifest with its record: every later list names it too, and need not encode it again."""
    return replace(manifest, record=manifest_entry(manifest, format_version))


def read_manifest_list(data: bytes, name: str) -> list[ManifestFile]:
    """The manifests of a list that `manifest_list_bytes` wrote. Raises `CorruptTable` where the layout is another one."""
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
    """The manifest's entry in a manifest list."""
    numbers = (getattr(manifest, name) for name in _LIST_NUMBERS)
    parts = [encode_string(manifest.path), *map(encode_long, numbers), _SOME]
    if manifest.partitions:
        parts += [encode_long(len(manifest.partitions)), *map(_encode_summary, manifest.partitions)]
    tail = [_optional_long(manifest.first_row_id)] if format_version >= 3 else []
    return b"".join([*parts, _NONE, _NONE, *tail])  # the end of the array, no key metadata


def read_manifest_entry(data: bytes, format_version: int) -> ManifestFile:
    """What `manifest_entry` was given."""
    return _decode_manifest(data, 0, format_version)[0]


def _format_version(metadata: Mapping[str, str], name: str) -> int:
    text = metadata.get("format-version")
    if text not in ("2", "3"):
        raise _other_layout(name)
    return int(text)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sync(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


def _other_layout(name: str) -> CorruptTable:
    return CorruptTable(
        f"The Iceberg metadata file {name} is not of the layout that this version of Tahoe writes. Rebuild the Iceberg side.",
        code="TAHOE_CORRUPT_ICEBERG_METADATA",
        file=name,
    )


@lru_cache(maxsize=1000)
def _entry_head(status: int, *numbers: int | None) -> bytes:
    """Most entries of a snapshot begin alike."""
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
        found, position = _decode_optional(block, position, holds_text=name == "referenced_data_file")
        referenced = found if isinstance(found, str) else referenced
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
    """So many numbers; several times as fast as to step over each."""
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
    position += 1  # the array is there
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
