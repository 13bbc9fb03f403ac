"""Which manifests the next snapshot has: what a change touches is rewritten, all else is carried over as it is.

Manifests hold at most `MAX_ENTRIES` files, so that removing a few files rewrites little; many small ones, as small commits leave
them, are merged now and then. The cost of a small commit therefore does not grow with the table.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.uniform.files import joined_summaries, partition_summaries
from tahoe.uniform.manifest_schema import DATA, DELETES, Spec
from tahoe.uniform.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    DataFile,
    Entry,
    ManifestFile,
    live_urls,
    manifest_bytes,
    manifest_list_bytes,
    paths_in,
    read_manifest,
    read_manifest_list,
)
from tahoe.uniform.metadata import Totals
from tahoe.uniform.pieces import Piece, blocks_of, carried, pieces_of
from tahoe.uniform.position_deletes import positions_in

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = [
    "FOLDER",
    "MAX_ENTRIES",
    "Counts",
    "Draft",
    "ManifestFolder",
    "NewSnapshot",
    "chunks",
    "forget_paths",
    "many_small",
    "next_manifests",
]

FOLDER = "metadata"
MAX_ENTRIES = 1000
"""Entries in one manifest at most: few enough that it costs little to write it anew, and enough that lists of manifests stay short."""

SMALL_ENTRIES = MAX_ENTRIES // 2
MAX_SMALL = 32
"""More manifests than this below `SMALL_ENTRIES` are merged."""

_INDEXED_PATHS = 4_000_000
_KEPT_LISTS = 32


@dataclass(frozen=True, slots=True)
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
        blocks = blocks_of([*draft.pieces, *pieces_of(draft.entries)])
        data = manifest_bytes(blocks, snapshot.spec, snapshot.schema, format_version=snapshot.format_version, content=content)
        kind = "m" if content == DATA else "d"
        url = self.put(f"{FOLDER}/{kind}{snapshot.version}-{number}-{_digest(data)}.avro", data)
        if draft.known is not None:
            paths = _hashes(self._paths_of(draft.entries, content))
            _INDEX.put(url, array("q", sorted(draft.known + paths)) if draft.known else paths)
        return draft.manifest_file(url, len(data), snapshot, content)

    def pieces(
        self, manifest: ManifestFile, spec: Spec, removed: frozenset[str] = frozenset()
    ) -> tuple[list[Piece], list[Entry]]:
        """The manifest's live entries to be carried into another one, and those of removed files (`tahoe.uniform.pieces.carried`)."""
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
        for manifest in manifests:
            index = _INDEX.get(manifest.path)
            if index is None:
                index = _INDEX.put(manifest.path, _hashes(self._paths_of(self.read(manifest, spec), DELETES)))
            if any(_contains(index, hash(url)) for url in urls):
                found.append(manifest.path)
        return frozenset(found)

    def containing(self, urls: frozenset[str], manifests: Sequence[ManifestFile], spec: Spec) -> dict[str, frozenset[str]]:
        """Which of the files each manifest may hold, by the manifest's path; manifests that hold none are left out.

        What a first, fast look misses is looked for entry by entry, so nothing that is there is missed.
        """
        found: dict[str, frozenset[str]] = {}
        for manifest in manifests:
            index = _INDEX.get(manifest.path)
            if index is None:
                index = _INDEX.put(manifest.path, self._indexed(manifest))
            here = frozenset(url for url in urls if _contains(index, hash(url)))
            if here:
                found[manifest.path] = here
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

    def _indexed(self, manifest: ManifestFile) -> array[int]:
        data = self._store.get(self.name(manifest.path))
        paths = paths_in(data, manifest.path, self.root_url.encode())
        return _hashes(path.decode(errors="replace") for path in paths)


def next_manifests(
    current: Sequence[ManifestFile],
    added: Iterable[DataFile],
    removed: frozenset[str],
    snapshot: NewSnapshot,
    folder: ManifestFolder,
) -> tuple[list[ManifestFile], Totals]:
    """The manifests of the next snapshot, written, and what it changed.

    Args:
        current: the manifests of the snapshot before.
        added: files that come; may be long, and is read once, in pieces.
        removed: full paths of files that go; those that are not there are no error.
    """
    live = [manifest for manifest in current if manifest.live_files]
    touched = folder.containing(removed, live, snapshot.spec) if removed else {}
    carried_over: list[ManifestFile] = []
    written: list[ManifestFile] = []
    counts = Counts()
    for manifest in live:
        here = touched.get(manifest.path)
        pieces, gone = folder.pieces(manifest, snapshot.spec, here) if here else ([], [])
        if not gone:
            carried_over.append(manifest)
            continue
        draft = Draft()
        draft.carry(manifest, pieces, gone)
        draft.entries += [counts.gone(entry, snapshot) for entry in gone]
        written.append(folder.write(draft, snapshot, len(written)))
    small = many_small(carried_over)
    carried_over = [manifest for manifest in carried_over if manifest not in small]
    for draft in _drafts(small, _entries(added, snapshot, counts), snapshot, folder):
        written.append(folder.write(draft, snapshot, len(written)))
    return [*written, *carried_over], counts.totals()


def _drafts(
    small: Sequence[ManifestFile], added: Iterator[Entry], snapshot: NewSnapshot, folder: ManifestFolder
) -> Iterator[Draft]:
    """The manifests that small ones are merged into, filled up with what is added."""
    draft = Draft()
    for manifest in small:
        if draft.files + manifest.live_files > MAX_ENTRIES:
            yield draft
            draft = Draft()
        draft.carry(manifest, *folder.pieces(manifest, snapshot.spec))
    while True:
        draft.entries += islice(added, MAX_ENTRIES - draft.files)
        if not draft.files:
            return
        yield draft
        draft = Draft()


class Draft:
    """What is to be in one manifest: entries that are carried over from others, in pieces, and single ones."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.pieces: list[Piece] = []
        self.entries = list(entries)
        self.known: array[int] | None = array("q")
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
        index = _INDEX.get(manifest.path)
        left = {hash(entry.file.url) for entry in gone}
        if index is None or self.known is None:
            self.known = None
        else:
            part = index[:]
            for found in left:
                position = bisect_left(part, found)
                if position < len(part) and part[position] == found:
                    del part[position]
            self.known += part

    def manifest_file(self, path: str, length: int, snapshot: NewSnapshot, content: int) -> ManifestFile:
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


def many_small(manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
    """The small ones among the manifests where they are too many; else none."""
    small = [manifest for manifest in manifests if manifest.live_files < SMALL_ENTRIES]
    return small if len(small) > MAX_SMALL else []


def chunks(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """The entries of one manifest after the other."""
    while chunk := list(islice(entries, MAX_ENTRIES)):
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
        self._known: OrderedDict[str, array[int]] = OrderedDict()
        self._paths = 0
        self._lock = Lock()

    def get(self, path: str) -> array[int] | None:
        with self._lock:
            found = self._known.get(path)
            if found is not None:
                self._known.move_to_end(path)
            return found

    def put(self, path: str, hashes: array[int]) -> array[int]:
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


def _contains(index: array[int], wanted: int) -> bool:
    position = bisect_left(index, wanted)
    return position < len(index) and index[position] == wanted


def _entries(added: Iterable[DataFile], snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    for file in added:
        counts.count(counts.added, file)
        # Where there is no sequence number, readers take it from the manifest list.
        yield Entry(ADDED, snapshot.snapshot_id, file.sequence_number, None, file)


def _hashes(paths: Iterable[str]) -> array[int]:
    return array("q", sorted(map(hash, paths)))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
