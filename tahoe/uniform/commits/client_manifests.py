"""Manifest lists and manifests that clients wrote, as values (format/spec.md, "Manifests"). Pure: takes bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.commits.client_avro import Record, records

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
_DELETED = 2
_CONTENTS = (DATA, POSITION_DELETES, EQUALITY_DELETES)
_STATUSES = (0, 1, _DELETED)


@dataclass(frozen=True, slots=True)
class ClientManifest:
    """An entry of a manifest list.

    Args:
        size: the file's length in bytes, as the list states it.
        deletes: whether it lists delete files.
        sequence_number: that of the snapshot that added it; None for the new snapshot's.
    """

    path: str
    size: int
    deletes: bool = False
    sequence_number: int | None = None


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


def manifests_in(data: bytes, name: str) -> list[ClientManifest]:
    """Return the manifests in a manifest list. Raises `InvalidRequest` naming the file."""
    return [_manifest(each, name) for each in records(data, name)]


def live_files_in(data: bytes, name: str) -> Iterator[ClientFile]:
    """Yield the files of a manifest that are not deleted in it. Raises `InvalidRequest` naming the file."""
    for entry in records(data, name):
        if _number(entry, 0, name, _STATUSES) != _DELETED:
            yield _file(entry, name)


def _manifest(entry: Record, name: str) -> ClientManifest:
    if entry.get(519) is not None:
        raise _encrypted(name)
    return ClientManifest(
        _text(entry, 500, name),
        _number(entry, 501, name),
        bool(entry.get(517)),
        entry.get(515) or None,
    )


def _file(entry: Record, name: str) -> ClientFile:
    value = entry.get(2)
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
        entry.get(3),
        value.get(143),
        value.get(144),
        value.get(145),
        tuple(value.get(135) or ()),
    )


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


def _missing(number: int, name: str) -> InvalidRequest:
    return InvalidRequest(
        f"The manifest {name} has an entry without a valid field {number}. Write it again.",
        code="TAHOE_ICEBERG_MANIFEST",
        file=name,
    )


def _encrypted(name: str) -> Unsupported:
    return Unsupported(f"{name} is encrypted, and Delta tables are not encrypted.", code="TAHOE_ICEBERG_FILE", file=name)
