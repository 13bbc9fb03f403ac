"""One manifest on its way: what is to be in it, and what its bytes, its name and its entry in the manifest list are. Nothing is read or
written here, so other processes make manifests with it too (`tahoe.uniform.convert.slices`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tahoe.uniform.formats.data_files import joined_summaries, partition_summaries
from tahoe.uniform.formats.manifest_pieces import Piece, blocks_of, pieces_of
from tahoe.uniform.formats.manifest_schema import DATA, DELETES, Spec
from tahoe.uniform.formats.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    DataFile,
    Entry,
    ManifestFile,
    ManifestHeader,
    manifest_bytes,
    manifest_header,
)
from tahoe.uniform.formats.metadata import Totals
from tahoe.uniform.formats.metadata_files import FOLDER

__all__ = ["Counts", "Draft", "NewSnapshot", "digest", "manifest_data", "manifest_name", "path_hashes"]


@dataclass(frozen=True, eq=False)
class NewSnapshot:
    """What the entries and manifests of the snapshot under way need to know of it.

    Args:
        first_row_id: in format version 3, the table's next row id before it.
    """

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    version: int
    spec: Spec
    schema: Mapping[str, Any]
    format_version: int = 2
    first_row_id: int | None = None

    # Encoded once for all manifests of the snapshot. The properties keep their values in the instance, which therefore has no slots.
    @cached_property
    def data_header(self) -> ManifestHeader:
        """What every manifest of data files begins with."""
        return self._header(DATA)

    @cached_property
    def delete_header(self) -> ManifestHeader:
        """What every manifest of delete files begins with."""
        return self._header(DELETES)

    def _header(self, content: int) -> ManifestHeader:
        return manifest_header(self.spec, self.schema, format_version=self.format_version, content=content)


class Draft:
    """What is to be in one manifest: entries that are carried over from others, in pieces, and single ones.

    Its `known_paths` are hashes of the carried entries' paths; None where they are not known of every manifest that was carried.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.pieces: list[Piece] = []
        self.entries = list(entries)
        self.known_paths: frozenset[int] | None = frozenset()
        self._carried: list[ManifestFile] = []
        self._files = 0
        self._rows = 0

    @property
    def files(self) -> int:
        """How many entries it has."""
        return self._files + len(self.entries)

    def carry(self, manifest: ManifestFile, pieces: Sequence[Piece], gone: Sequence[Entry], paths: frozenset[int] | None) -> None:
        """Take over all live entries of a manifest, but those that are gone.

        Args:
            pieces: the entries that stay, as they stand in the manifest.
            paths: hashes of the paths in the manifest; None where they are not known.
        """
        self.pieces += pieces
        self._carried.append(manifest)
        self._files += manifest.live_files - len(gone)
        self._rows += manifest.added_rows + manifest.existing_rows - sum(entry.file.record_count for entry in gone)
        if paths is None or self.known_paths is None:
            self.known_paths = None
        else:
            self.known_paths |= paths - path_hashes(entry.file.url for entry in gone)

    def manifest_file(self, path: str, length: int, snapshot: NewSnapshot, content: int = DATA) -> ManifestFile:
        """How a manifest list names it."""
        files = [self._files, 0, 0]
        rows = [self._rows, 0, 0]
        lowest = min([snapshot.sequence_number, *(manifest.min_sequence_number for manifest in self._carried)])
        for entry in self.entries:
            files[entry.status] += 1
            rows[entry.status] += entry.file.record_count
            if entry.status != DELETED and entry.sequence_number is not None:
                lowest = min(lowest, entry.sequence_number)
        own = partition_summaries(snapshot.spec, (entry.file.partition for entry in self.entries))
        summaries = [*([own] if self.entries else []), *(manifest.partitions for manifest in self._carried)]
        return ManifestFile(
            path=path,
            length=length,
            spec_id=snapshot.spec.spec_id,
            sequence_number=snapshot.sequence_number,
            min_sequence_number=lowest,
            added_snapshot_id=snapshot.snapshot_id,
            added_files=files[ADDED],
            existing_files=files[EXISTING],
            deleted_files=files[DELETED],
            added_rows=rows[ADDED],
            existing_rows=rows[EXISTING],
            deleted_rows=rows[DELETED],
            partitions=joined_summaries(snapshot.spec, summaries),
            content=content,
            first_row_id=snapshot.first_row_id if content == DATA else None,
        )


class Counts:
    """Counts up what a snapshot changes."""

    def __init__(self) -> None:
        self.added = [0, 0, 0]
        self.deleted = [0, 0, 0]

    def gone(self, entry: Entry, snapshot: NewSnapshot) -> Entry:
        """The entry of a file that leaves, as it is written; the file is counted."""
        self._count(self.deleted, entry.file)
        return entry._replace(status=DELETED, snapshot_id=snapshot.snapshot_id)

    def totals(self) -> Totals:
        """What was counted, for the snapshot's summary."""
        return Totals(*self.added, *self.deleted)

    def new(self, file: DataFile) -> None:
        """Count a file that comes."""
        self._count(self.added, file)

    @staticmethod
    def _count(into: list[int], file: DataFile) -> None:
        into[0] += 1
        into[1] += file.record_count
        into[2] += file.size


def manifest_data(draft: Draft, snapshot: NewSnapshot, content: int = DATA) -> bytes:
    """A manifest's bytes."""
    header = snapshot.data_header if content == DATA else snapshot.delete_header
    return manifest_bytes(blocks_of([*draft.pieces, *pieces_of(draft.entries)]), header)


def manifest_name(data: bytes, version: int, number: int, content: int = DATA) -> str:
    """The store name of a manifest; it tells the content."""
    return f"{FOLDER}/{'m' if content == DATA else 'd'}{version}-{number}-{digest(data)}.avro"


def path_hashes(paths: Iterable[str]) -> frozenset[int]:
    """What the index of paths keeps of each: whether a manifest *may* hold a path is enough to know, and a number is small."""
    return frozenset(map(hash, paths))


def digest(data: bytes) -> str:
    """What a file's name tells of its content."""
    return hashlib.sha256(data).hexdigest()[:16]
