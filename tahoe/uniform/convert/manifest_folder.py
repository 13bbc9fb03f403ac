"""Which manifests the next snapshot has: what a change touches is rewritten, all else is carried over as it is.

Removing a file writes its manifest anew, and each commit writes the list of all manifests. So manifests are small, and larger ones only
where else there were too many (`most_entries`); many small ones, as small commits leave them, are merged now and then. The cost of a small
commit therefore hardly grows with the table.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isqrt
from threading import Lock
from typing import TYPE_CHECKING, Any

from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.uniform.formats.data_files import joined_summaries, partition_summaries
from tahoe.uniform.formats.manifest_pieces import Piece, blocks_of, carried, pieces_of
from tahoe.uniform.formats.manifest_schema import DATA, DELETES, Spec
from tahoe.uniform.formats.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    DataFile,
    Entry,
    ManifestFile,
    ManifestHeader,
    live_urls,
    manifest_bytes,
    manifest_header,
    manifest_list_bytes,
    paths_in,
    read_manifest,
    read_manifest_list,
    recorded,
)
from tahoe.uniform.formats.metadata import Totals
from tahoe.uniform.formats.metadata_files import FOLDER
from tahoe.uniform.formats.position_deletes import positions_in

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = [
    "LEAST_ENTRIES",
    "Counts",
    "Draft",
    "ManifestFolder",
    "NewSnapshot",
    "chunks",
    "forget_paths",
    "manifest_data",
    "manifest_name",
    "many_small",
    "most_entries",
    "next_manifests",
]

LEAST_ENTRIES = 256
"""So many files a manifest may hold at least."""

MAX_SMALL = 32
"""More manifests than this that hold less than half of what they may are merged, twice as many at once at most."""

_INDEXED_PATHS = 2_000_000
_KEPT_LISTS = 32


@dataclass(frozen=True, slots=True, eq=False)
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


class ManifestFolder:
    """Manifests, manifest lists and delete files of one table, read and written whole; names tell their content.

    Args:
        store: the table's store; everything lies in its folder ``metadata``.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.root_url = f"{store.url}/"

    def url(self, name: str) -> str:
        return self.root_url + name

    def name(self, url: str) -> str:
        """The store name of a file of ours."""
        return url.removeprefix(self.root_url)

    def file_url(self, path: str) -> str:
        """The full path of a data file by its path in the log; like the table's URL it is not percent-encoded."""
        return self.root_url + decode_path(path, self._store.url)

    def put(self, name: str, data: bytes) -> str:
        """Write a file; returns its URL."""
        self._store.put(name, data)
        return self.url(name)

    def write(self, draft: Draft, snapshot: NewSnapshot, number: int, content: int = DATA) -> ManifestFile:
        """One manifest. Equal entries give an equal name, so a second try overwrites a file with itself."""
        data = manifest_data(draft, snapshot, content)
        url = self.put(manifest_name(data, snapshot, number, content), data)
        if draft.known is not None:
            _INDEX.put(url, draft.known | _hashes(self._paths_of(draft.entries, content)))
        return recorded(draft.manifest_file(url, len(data), snapshot, content), snapshot.format_version)

    def pieces(
        self, manifest: ManifestFile, spec: Spec, removed: frozenset[str] = frozenset()
    ) -> tuple[list[Piece], list[Entry]]:
        """The manifest's live entries to be carried into another one, and those of removed files.

        See `tahoe.uniform.formats.manifest_pieces.carried`.
        """
        return carried(self._store.get(self.name(manifest.path)), manifest, spec, removed)

    def write_list(self, manifests: Sequence[ManifestFile], snapshot: NewSnapshot) -> str:
        """The manifest list of a snapshot; returns its URL."""
        data = manifest_list_bytes(
            manifests,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_id,
            sequence_number=snapshot.sequence_number,
            format_version=snapshot.format_version,
        )
        url = self.put(f"{FOLDER}/snap-{snapshot.snapshot_id}-{_digest(data)}.avro", data)
        _LISTS.put(url, manifests)
        return url

    def read(self, manifest: ManifestFile, spec: Spec) -> list[Entry]:
        return read_manifest(self._store.get(self.name(manifest.path)), manifest, spec)

    def read_list(self, url: str) -> list[ManifestFile]:
        return _LISTS.get(url) or _LISTS.put(url, read_manifest_list(self._store.get(self.name(url)), url))

    def positions_in(self, file: DataFile) -> dict[str, BitMap64]:
        """What a position delete file says."""
        return positions_in(self._store.get(self.name(file.url)), file.url)

    def about(self, file: DataFile) -> tuple[str, ...]:
        """The data files that a delete file deletes rows from."""
        return tuple(self.positions_in(file)) if file.about is None else file.about

    def delete_files_of(self, manifest: ManifestFile) -> set[str]:
        """URLs of the delete files that are live in a delete manifest, whatever the partitioning was when it was written."""
        return set(live_urls(self._store.get(self.name(manifest.path)), manifest.path))

    def speaking_of(self, urls: frozenset[str], manifests: Sequence[ManifestFile], spec: Spec) -> frozenset[str]:
        """The paths of those delete manifests that may say something of these data files."""
        found = []
        hashes = _hashes(urls)
        for manifest, index in zip(manifests, _INDEX.of(manifests), strict=True):
            if index is None:
                index = _INDEX.put(manifest.path, _hashes(self._paths_of(self.read(manifest, spec), DELETES)))
            if not index.isdisjoint(hashes):
                found.append(manifest.path)
        return frozenset(found)

    def containing(self, urls: frozenset[str], manifests: Sequence[ManifestFile], spec: Spec) -> dict[str, frozenset[str]]:
        """Which of the files each manifest may hold, by the manifest's path; manifests that hold none are left out.

        What a first, fast look misses is looked for entry by entry, so nothing that is there is missed.
        """
        found: dict[str, frozenset[str]] = {}
        hashes = _hashes(urls)
        for manifest, index in zip(manifests, _INDEX.of(manifests), strict=True):
            if index is None:
                index = _INDEX.put(manifest.path, self._indexed(manifest))
            if not index.isdisjoint(hashes):
                found[manifest.path] = frozenset(url for url in urls if hash(url) in index)
        if not urls <= frozenset().union(*found.values()):
            for manifest in manifests:
                here = urls & {entry.file.url for entry in self.read(manifest, spec)}
                if here:
                    found[manifest.path] = found.get(manifest.path, frozenset()) | here
        return found

    def _paths_of(self, entries: Iterable[Entry], content: int) -> Iterator[str]:
        """The data files that the live entries are, or are about."""
        for entry in entries:
            if entry.status != DELETED:
                yield from (entry.file.url,) if content == DATA else self.about(entry.file)

    def _indexed(self, manifest: ManifestFile) -> frozenset[int]:
        data = self._store.get(self.name(manifest.path))
        paths = paths_in(data, manifest.path, self.root_url.encode())
        return _hashes(path.decode(errors="replace") for path in paths)


def manifest_data(draft: Draft, snapshot: NewSnapshot, content: int = DATA) -> bytes:
    """A manifest's bytes."""
    return manifest_bytes(blocks_of([*draft.pieces, *pieces_of(draft.entries)]), _header(snapshot, content))


def manifest_name(data: bytes, snapshot: NewSnapshot, number: int, content: int = DATA) -> str:
    """The store name of a manifest; it tells the content."""
    return f"{FOLDER}/{'m' if content == DATA else 'd'}{snapshot.version}-{number}-{_digest(data)}.avro"


def most_entries(files: int) -> int:
    """How many files a manifest may hold in a table of so many.

    The larger manifests are, the dearer to write one anew; the smaller, the longer their list. Near the square root both grow alike.
    """
    return max(LEAST_ENTRIES, isqrt(files) // 2)


def next_manifests(
    current: Sequence[ManifestFile],
    added: Iterable[DataFile],
    removed: frozenset[str],
    snapshot: NewSnapshot,
    folder: ManifestFolder,
    *,
    coming: int,
) -> tuple[list[ManifestFile], Totals]:
    """The manifests of the next snapshot, written, and what it changed.

    Args:
        current: the manifests of the snapshot before.
        added: files that come; may be long, and is read once, in pieces.
        removed: full paths of files that go; those that are not there are no error.
        coming: how many files are `added`.
    """
    live = [manifest for manifest in current if manifest.live_files]
    most = most_entries(sum(manifest.live_files for manifest in live) + coming)
    touched = folder.containing(removed, live, snapshot.spec) if removed else {}
    carried_over: list[ManifestFile] = []
    written: list[ManifestFile] = []
    counts = Counts()
    for manifest in live:
        if manifest.path not in touched:
            carried_over.append(manifest)
            continue
        pieces, gone = folder.pieces(manifest, snapshot.spec, touched[manifest.path])
        if not gone:
            carried_over.append(manifest)
            continue
        draft = Draft()
        draft.carry(manifest, pieces, gone)
        draft.entries += [counts.gone(entry, snapshot) for entry in gone]
        written.append(folder.write(draft, snapshot, len(written)))
    small = many_small(carried_over, most)
    if small:
        merged = {manifest.path for manifest in small}
        carried_over = [manifest for manifest in carried_over if manifest.path not in merged]
    for draft in _drafts(small, _entries(added, snapshot, counts), snapshot, folder, most):
        written.append(folder.write(draft, snapshot, len(written)))
    return [*written, *carried_over], counts.totals()


def _drafts(
    small: Sequence[ManifestFile], added: Iterator[Entry], snapshot: NewSnapshot, folder: ManifestFolder, most: int
) -> Iterator[Draft]:
    """The manifests that small ones are merged into, filled up with what is added."""
    draft = Draft()
    for manifest in small:
        if draft.files + manifest.live_files > most:
            yield draft
            draft = Draft()
        draft.carry(manifest, *folder.pieces(manifest, snapshot.spec))
    while True:
        draft.entries += islice(added, most - draft.files)
        if not draft.files:
            return
        yield draft
        draft = Draft()


class Draft:
    """What is to be in one manifest: entries that are carried over from others, in pieces, and single ones."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.pieces: list[Piece] = []
        self.entries = list(entries)
        self.known: frozenset[int] | None = frozenset()
        self._carried: list[ManifestFile] = []
        self._files = 0
        self._rows = 0

    @property
    def files(self) -> int:
        return self._files + len(self.entries)

    def carry(self, manifest: ManifestFile, pieces: Sequence[Piece], gone: Sequence[Entry]) -> None:
        """All live entries of a manifest, but those that are gone."""
        self.pieces += pieces
        self._carried.append(manifest)
        self._files += manifest.live_files - len(gone)
        self._rows += manifest.added_rows + manifest.existing_rows - sum(entry.file.record_count for entry in gone)
        (index,) = _INDEX.of([manifest])
        if index is None or self.known is None:
            self.known = None
        else:
            self.known |= index - _hashes(entry.file.url for entry in gone)

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


def many_small(manifests: Sequence[ManifestFile], most: int) -> list[ManifestFile]:
    """The small ones among the manifests, or the oldest of these, where they are too many; else none."""
    small = [manifest for manifest in manifests if manifest.live_files < most // 2]
    return small[-2 * MAX_SMALL :] if len(small) > MAX_SMALL else []


def chunks(entries: Iterator[Entry], most: int) -> Iterator[list[Entry]]:
    """The entries of one manifest after the other."""
    while chunk := list(islice(entries, most)):
        yield chunk


class Counts:
    """Counts up what a snapshot changes."""

    def __init__(self) -> None:
        self.added = [0, 0, 0]
        self.deleted = [0, 0, 0]

    def gone(self, entry: Entry, snapshot: NewSnapshot) -> Entry:
        """The entry of a file that leaves, as it is written; the file is counted."""
        self.count(self.deleted, entry.file)
        return entry._replace(status=DELETED, snapshot_id=snapshot.snapshot_id)

    def totals(self) -> Totals:
        return Totals(*self.added, *self.deleted)

    @staticmethod
    def count(into: list[int], file: DataFile) -> None:
        into[0] += 1
        into[1] += file.record_count
        into[2] += file.size


class _Index:
    """Hashes of the paths in manifests read or written lately. Manifests never change, so what is known of them stays true."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, frozenset[int]] = OrderedDict()
        self._paths = 0
        self._lock = Lock()

    def of(self, manifests: Sequence[ManifestFile]) -> list[frozenset[int] | None]:
        """What is known of each, None where nothing is."""
        with self._lock:
            found = [self._known.get(manifest.path) for manifest in manifests]
            if self._paths > _INDEXED_PATHS // 2:  # until then nothing has to leave for long
                for manifest, hashes in zip(manifests, found, strict=True):
                    if hashes is not None:
                        self._known.move_to_end(manifest.path)
            return found

    def put(self, path: str, hashes: frozenset[int]) -> frozenset[int]:
        with self._lock:
            if path not in self._known:
                self._known[path] = hashes
                self._paths += len(hashes)
            while self._paths > _INDEXED_PATHS and len(self._known) > 1:
                self._paths -= len(self._known.popitem(last=False)[1])
        return hashes

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self._paths = 0


_INDEX = _Index()


class _Lists:
    """Manifest lists read or written lately: the next snapshot goes on from one of them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str) -> list[ManifestFile] | None:
        with self._lock:
            found = self._known.get(url)
            return None if found is None else list(found)

    def put(self, url: str, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        with self._lock:
            self._known[url] = tuple(manifests)
            while len(self._known) > _KEPT_LISTS:
                self._known.popitem(last=False)
        return list(manifests)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


_LISTS = _Lists()


def forget_paths() -> None:
    """Empty the memory of which paths are in which manifests, as a new process begins."""
    _INDEX.clear()
    _LISTS.clear()


def _entries(added: Iterable[DataFile], snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    for file in added:
        counts.count(counts.added, file)
        # Where there is no sequence number, readers take it from the manifest list.
        yield Entry(ADDED, snapshot.snapshot_id, file.sequence_number, None, file)


def _hashes(paths: Iterable[str]) -> frozenset[int]:
    return frozenset(map(hash, paths))


@lru_cache(maxsize=2)
def _header(snapshot: NewSnapshot, content: int) -> ManifestHeader:
    return manifest_header(snapshot.spec, snapshot.schema, format_version=snapshot.format_version, content=content)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
