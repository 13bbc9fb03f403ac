"""A manifest to be written: its entries, bytes, name and entry in the manifest list. No input or output here, so that other processes can
encode manifests with it too (`tahoe.uniform.convert.shards`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tahoe.base.json_values import JsonMapping
from tahoe.uniform.formats.data_files import combine_summaries, partition_summaries
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


@dataclass(frozen=True, eq=False)
class NewSnapshot:
    """The properties of the new snapshot that its entries and manifests need.

    Args:
        first_row_id: in format version 3, the table's next row id before the snapshot.
    """

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    version: int
    spec: Spec
    schema: JsonMapping
    format_version: int = 2
    first_row_id: int | None = None

    # Encoded once for all manifests of the snapshot. `cached_property` stores its value in the instance, which therefore has no slots.
    @cached_property
    def data_header(self) -> ManifestHeader:
        """The header of manifests of data files."""
        return self._header(DATA)

    @cached_property
    def delete_header(self) -> ManifestHeader:
        """The header of manifests of delete files."""
        return self._header(DELETES)

    def _header(self, content: int) -> ManifestHeader:
        return manifest_header(self.spec, self.schema, format_version=self.format_version, content=content)


class Draft:
    """The content of one manifest: entries carried over from others, in pieces, and single entries.

    `known_paths` are hashes of the carried entries' paths; None if they are unknown for any carried manifest.
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
        """The number of entries."""
        return self._files + len(self.entries)

    def carry(self, manifest: ManifestFile, pieces: Sequence[Piece], gone: Sequence[Entry], paths: frozenset[int] | None) -> None:
        """Carry over all live entries of a manifest except those that are gone.

        Args:
            pieces: the remaining entries, as encoded in the manifest.
            paths: hashes of the paths in the manifest; None if unknown.
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
        """Return the entry of the manifest in a manifest list."""
        files = [self._files, 0, 0]
        rows = [self._rows, 0, 0]
        lowest = min([snapshot.sequence_number, *(manifest.min_sequence_number for manifest in self._carried)])
        for entry in self.entries:
            files[entry.status] += 1
            rows[entry.status] += entry.file.record_count
            if entry.status != DELETED and entry.sequence_number is not None:
                lowest = min(lowest, entry.sequence_number)
        of_partitions = partition_summaries(snapshot.spec, (entry.file.partition for entry in self.entries))
        summaries = [*([of_partitions] if self.entries else []), *(manifest.partitions for manifest in self._carried)]
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
            partitions=combine_summaries(snapshot.spec, summaries),
            content=content,
            first_row_id=snapshot.first_row_id if content == DATA else None,
        )


class Counts:
    """Counts the files, rows and bytes that a snapshot adds and deletes."""

    def __init__(self) -> None:
        self.added = [0, 0, 0]
        self.deleted = [0, 0, 0]

    def gone(self, entry: Entry, snapshot: NewSnapshot) -> Entry:
        """Count a deleted file, and return its entry with status DELETED."""
        self._count(self.deleted, entry.file)
        return entry._replace(status=DELETED, snapshot_id=snapshot.snapshot_id)

    def totals(self) -> Totals:
        """Return the counts, for the snapshot's summary."""
        return Totals(*self.added, *self.deleted)

    def new(self, file: DataFile) -> None:
        """Count an added file."""
        self._count(self.added, file)

    @staticmethod
    def _count(into: list[int], file: DataFile) -> None:
        into[0] += 1
        into[1] += file.record_count
        into[2] += file.size


def manifest_data(draft: Draft, snapshot: NewSnapshot, content: int = DATA) -> bytes:
    """Return a manifest's bytes."""
    header = snapshot.data_header if content == DATA else snapshot.delete_header
    return manifest_bytes(blocks_of([*draft.pieces, *pieces_of(draft.entries)]), header)


def manifest_name(data: bytes, version: int, number: int, content: int = DATA) -> str:
    """Return the store name of a manifest, derived from its content."""
    return f"{FOLDER}/{'m' if content == DATA else 'd'}{version}-{number}-{digest(data)}.avro"


def path_hashes(paths: Iterable[str]) -> frozenset[int]:
    """Hash paths for the index: it only answers whether a manifest *may* contain a path, and integers are small."""
    return frozenset(map(hash, paths))


def digest(data: bytes) -> str:
    """Return the content hash for a file's name."""
    return hashlib.sha256(data).hexdigest()[:16]
