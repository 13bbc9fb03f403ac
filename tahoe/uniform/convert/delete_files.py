"""The delete side of a snapshot: deletion vectors of the log → delete files, and the delete manifests that name them.

files added with a vector ───────────────────────► the whole vector
files that stay, whose vector grew ──────────────► position: the new positions alone;  vector: the new one for the old one
files that stay, whose vector shrank (RESTORE) ──► as if the file were removed and added
files that leave with a vector ──────────────────► their deletes are removed too; a delete file's other entries are rewritten
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.protocol.dv import vector_data
from tahoe.snapshot.data_reader import VectorReader
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.manifest_draft import Counts, Draft, NewSnapshot
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.manifest_policy import chunks, many_small, most_entries
from tahoe.uniform.convert.plan import Change
from tahoe.uniform.formats.data_files import Target, refuse_vector
from tahoe.uniform.formats.manifest_schema import DELETES
from tahoe.uniform.formats.manifests import ADDED, DELETED, EXISTING, DataFile, Entry, ManifestFile
from tahoe.uniform.formats.metadata import Totals
from tahoe.uniform.formats.metadata_files import FOLDER
from tahoe.uniform.formats.position_deletes import MOST_ROWS, groups, position_delete_bytes, position_delete_entry
from tahoe.uniform.formats.puffin import puffin_bytes, puffin_entry

if TYPE_CHECKING:
    from pyroaring import BitMap64


_MOST_WAITING_ROWS = 4 * MOST_ROWS


class Vectors:
    """The table's deletion vectors, as positions or as stored bytes."""

    def __init__(self, store: LogStore) -> None:
        self._reader = VectorReader(store)

    def bitmap(self, descriptor: DeletionVectorDescriptor) -> BitMap64:
        """Return the positions of a vector."""
        return self._reader.bitmap(descriptor)

    def data(self, descriptor: DeletionVectorDescriptor) -> bytes:
        """Return the vector's stored bytes, after verifying them against the descriptor."""
        self.bitmap(descriptor)
        return vector_data(descriptor, self._reader.fetch, self._reader.store.url)


@dataclass(frozen=True, slots=True)
class MoreDeletes:
    """A file that stays and loses more rows than before.

    Args:
        more: the positions that the Iceberg side does not have yet.
        was_marked: whether the Iceberg side already has deletes for the file.
    """

    url: str
    add: AddFile
    vector: DeletionVectorDescriptor
    more: BitMap64
    was_marked: bool


def split_marked(change: Change, vectors: Vectors) -> tuple[Change, tuple[MoreDeletes, ...]]:
    """Split the files that stay with another vector: files that regain rows are replaced in the change; the others only lose rows.

    The bounds of a file that regains rows may cover only the rows it had, so its entry is rewritten too.
    """
    from pyroaring import BitMap64

    more_deletes: list[MoreDeletes] = []
    adds: list[AddFile] = []
    removed: dict[str, bool] = {}
    for marked in change.marked:
        vector = marked.add.deletion_vector
        assert vector is not None
        before = BitMap64() if marked.before is None else vectors.bitmap(marked.before)
        after = vectors.bitmap(vector)
        if not before <= after:
            adds.append(marked.add)
            removed[marked.url] = marked.before is not None
        elif len(before) < len(after):
            more_deletes.append(MoreDeletes(marked.url, marked.add, vector, after - before, marked.before is not None))
    exchanged = replace(
        change,
        adds=(*change.adds, *adds),
        removed=change.removed | removed.keys(),
        with_vectors=change.with_vectors | {url for url, had_vector in removed.items() if had_vector},
        marked=tuple(marked for marked in change.marked if marked.url in {more.url for more in more_deletes}),
    )
    return exchanged, tuple(more_deletes)


class DeleteFiles(Protocol):
    """The delete files that one snapshot writes."""

    def whole(self, target: Target, vector: DeletionVectorDescriptor) -> None:
        """Record that a data file is added with this vector."""

    def add_more(self, target: Target, more: MoreDeletes) -> bool:
        """Record that a data file loses more rows; return whether its previous deletes must be removed."""

    def keep(self, file: DataFile, leaving: frozenset[str]) -> None:
        """Record that a delete file is removed, and keep its deletes for data files that are not `leaving`."""

    def is_joined(self, entries: Sequence[Entry]) -> bool:
        """Whether these live entries of one partition should be merged into one."""

    def finish(self) -> list[DataFile]:
        """Write the remaining files; return all delete files of the snapshot."""


def delete_files(form: str, folder: ManifestFolder, snapshot: NewSnapshot, vectors: Vectors) -> DeleteFiles:
    """Return the `DeleteFiles` for a snapshot, in the form of `tahoe.protocol.iceberg_compat.deletes_form`."""
    if form == "vector":
        return _PuffinFiles(folder, snapshot, vectors)
    return _PositionDeletes(folder, snapshot, vectors, is_allowed=form == "position")


def next_delete_manifests(
    current: Sequence[ManifestFile],
    leaving: frozenset[str],
    new: DeleteFiles,
    snapshot: NewSnapshot,
    folder: ManifestFolder,
) -> tuple[list[ManifestFile], Totals]:
    """Write the delete manifests of the next snapshot; return them with the snapshot's totals.

    Args:
        current: the delete manifests of the previous snapshot.
        leaving: full paths of data files whose deletes must be removed.
        new: the delete files to write; finished here.
    """
    live = [manifest for manifest in current if manifest.live_files]
    touched = folder.delete_manifests_for(leaving, live, snapshot.spec) if leaving else frozenset()
    most = most_entries(sum(manifest.live_files for manifest in live))
    small = many_small([manifest for manifest in live if manifest.path not in touched], most)
    carried: list[ManifestFile] = []
    written: list[ManifestFile] = []
    merged: list[Entry] = []
    counts = Counts()
    for manifest in live:
        if manifest.path in touched:
            draft = Draft()
            for entry in _live_entries(folder, manifest, snapshot):
                if leaving.isdisjoint(folder.about(entry.file)):
                    draft.entries.append(entry._replace(status=EXISTING))
                else:
                    new.keep(entry.file, leaving)
                    draft.entries.append(counts.gone(entry, snapshot))
            written.append(folder.write(draft, snapshot, len(written), DELETES))
        elif manifest in small:
            merged += _live_entries(folder, manifest, snapshot)
        else:
            carried.append(manifest)
    joined = _joined(merged, new, snapshot, counts)
    for chunk in chunks(_entries(joined, new.finish(), snapshot, counts), most):
        written.append(folder.write(Draft(chunk), snapshot, len(written), DELETES))
    return [*written, *carried], counts.totals()


def _live_entries(folder: ManifestFolder, manifest: ManifestFile, snapshot: NewSnapshot) -> list[Entry]:
    return [entry for entry in folder.read(manifest, snapshot.spec) if entry.status != DELETED]


def _joined(entries: Sequence[Entry], new: DeleteFiles, snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    """Merge the delete files of one partition where `is_joined` says so."""
    by_partition: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        by_partition.setdefault(tuple(map(repr, entry.file.partition)), []).append(entry)
    merged: list[Entry] = []
    for of_partition in by_partition.values():
        join = new.is_joined(of_partition)
        for entry in of_partition:
            if join:
                new.keep(entry.file, frozenset())
                merged.append(counts.gone(entry, snapshot))
            else:
                merged.append(entry._replace(status=EXISTING))
    return iter(merged)


def _entries(merged: Iterator[Entry], added: Iterable[DataFile], snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    yield from merged
    for file in added:
        counts.new(file)
        yield Entry(ADDED, snapshot.snapshot_id, None, None, file)


def _name(kind: str, ending: str, snapshot: NewSnapshot, *content: bytes) -> str:
    """Return a store name unique to the snapshot, so that a delete file that a snapshot drops never reappears under its name."""
    digest = hashlib.sha256(b"".join((str(snapshot.snapshot_id).encode(), b"/", *content))).hexdigest()
    return f"{FOLDER}/{kind}{snapshot.version}-{digest[:20]}.{ending}"


class _PositionDeletes:
    def __init__(self, folder: ManifestFolder, snapshot: NewSnapshot, vectors: Vectors, *, is_allowed: bool) -> None:
        self._folder = folder
        self._snapshot = snapshot
        self._vectors = vectors
        self._is_allowed = is_allowed
        self._waiting: dict[bytes, tuple[Target, dict[str, BitMap64]]] = {}
        self._rows = 0
        self._files: list[DataFile] = []

    def whole(self, target: Target, vector: DeletionVectorDescriptor) -> None:
        self._check(target, vector)
        self._add(target, self._vectors.bitmap(vector))

    def add_more(self, target: Target, more: MoreDeletes) -> bool:
        self._check(target, more.vector)
        self._add(target, more.more)
        return False

    def keep(self, file: DataFile, leaving: frozenset[str]) -> None:
        encoded = b"".join(
            b"\0" if value is None else b"\2" + codec.encode(value)
            for codec, value in zip(self._snapshot.spec.codecs, file.partition, strict=True)
        )
        for url, positions in self._folder.positions_in(file).items():
            if url not in leaving:
                self._add(Target(url, file.partition, encoded), positions)

    def is_joined(self, entries: Sequence[Entry]) -> bool:
        return len(entries) > 1 and sum(entry.file.record_count for entry in entries) <= MOST_ROWS

    def finish(self) -> list[DataFile]:
        for target, positions in self._waiting.values():
            for group in groups(positions):
                data = position_delete_bytes(group)
                url = self._folder.put(_name("deletes", "parquet", self._snapshot, data), data)
                self._files.append(position_delete_entry(url, len(data), target, group))
        self._waiting.clear()
        self._rows = 0
        return self._files

    def _check(self, target: Target, vector: DeletionVectorDescriptor) -> None:
        if not self._is_allowed:
            refuse_vector(target, vector)

    def _add(self, target: Target, positions: BitMap64) -> None:
        if not len(positions):
            return
        _, group = self._waiting.setdefault(target.encoded_partition, (target, {}))
        group[target.url] = group[target.url] | positions if target.url in group else positions
        self._rows += len(positions)
        if self._rows > _MOST_WAITING_ROWS:
            self.finish()


class _PuffinFiles:
    def __init__(self, folder: ManifestFolder, snapshot: NewSnapshot, vectors: Vectors) -> None:
        self._folder = folder
        self._snapshot = snapshot
        self._vectors = vectors
        self._files: list[DataFile] = []

    def whole(self, target: Target, vector: DeletionVectorDescriptor) -> None:
        data = self._vectors.data(vector)
        puffin = puffin_bytes(data, target.url, vector.cardinality)
        url = self._folder.put(_name("dv", "puffin", self._snapshot, target.url.encode(), data), puffin.data)
        self._files.append(puffin_entry(url, puffin, target, vector.cardinality))

    def add_more(self, target: Target, more: MoreDeletes) -> bool:
        self.whole(target, more.vector)
        return more.was_marked

    def keep(self, file: DataFile, leaving: frozenset[str]) -> None:
        """Nothing to keep: a file has one vector, and it is removed."""

    def is_joined(self, entries: Sequence[Entry]) -> bool:
        return False

    def finish(self) -> list[DataFile]:
        return self._files
