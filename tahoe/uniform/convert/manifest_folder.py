"""Reads, writes and searches the manifests, manifest lists and delete files of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tahoe.store.location import decode_path, is_outside, named_url
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.manifest_caches import ManifestCaches
from tahoe.uniform.convert.manifest_draft import Draft, NewSnapshot, digest, manifest_data, manifest_name, path_hashes
from tahoe.uniform.formats.manifest_pieces import Piece, carried
from tahoe.uniform.formats.manifest_schema import DATA, DELETES, Spec
from tahoe.uniform.formats.manifests import (
    DELETED,
    DataFile,
    Entry,
    ManifestFile,
    live_urls,
    manifest_list_bytes,
    paths_in,
    read_manifest,
    read_manifest_list,
    recorded,
)
from tahoe.uniform.formats.metadata_files import FOLDER
from tahoe.uniform.formats.position_deletes import positions_in

if TYPE_CHECKING:
    from pyroaring import BitMap64


class ManifestFolder:
    """The manifests, manifest lists and delete files of one table, read and written whole, with names derived from their content.

    Args:
        store: all files are in its folder ``metadata``.
        caches: caches of these files; empty by default.
        data_store: the table's store, with its data files; None if it is `store`.
    """

    def __init__(self, store: LogStore, caches: ManifestCaches | None = None, data_store: LogStore | None = None) -> None:
        self._store = store
        self._data_store = data_store or store
        self._caches = caches or ManifestCaches()
        self.root_url = f"{store.url}/"

    def url(self, name: str) -> str:
        """Return the URL of one of Tahoe's files by its store name."""
        return self.root_url + name

    def name(self, url: str) -> str:
        """Return the store name of one of Tahoe's files by its URL."""
        return url.removeprefix(self.root_url)

    def file_url(self, path: str) -> str:
        """Return the full path of a data file by its path in the log; like the table's URL it is not percent-encoded."""
        name = decode_path(path, self._data_store.url, outside=True)
        if is_outside(name):  # raises if its location must not be exposed to Iceberg readers
            self._data_store.outside.at(name)
        return named_url(self._data_store.url, name)

    def put(self, name: str, data: bytes) -> str:
        """Write a file; return its URL."""
        self._store.put(name, data)
        return self.url(name)

    def write(self, draft: Draft, snapshot: NewSnapshot, number: int, content: int = DATA) -> ManifestFile:
        """Write one manifest. Equal entries give an equal name, so a retry overwrites the file with the same bytes."""
        data = manifest_data(draft, snapshot, content)
        url = self.put(manifest_name(data, snapshot.version, number, content), data)
        if draft.known_paths is not None:
            self._caches.paths.put(url, draft.known_paths | path_hashes(self._paths_of(draft.entries, content)))
        return recorded(draft.manifest_file(url, len(data), snapshot, content), snapshot.format_version)

    def pieces(
        self, manifest: ManifestFile, spec: Spec, removed: frozenset[str] = frozenset()
    ) -> tuple[list[Piece], list[Entry]]:
        """Return the manifest's live entries as pieces to carry over, and the entries of removed files.
        See `tahoe.uniform.formats.manifest_pieces.carried`.
        """
        return carried(self._store.get(self.name(manifest.path)), manifest, spec, removed)

    def write_list(self, manifests: Sequence[ManifestFile], snapshot: NewSnapshot) -> str:
        """Write the manifest list of a snapshot; return its URL."""
        data = manifest_list_bytes(
            manifests,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_id,
            sequence_number=snapshot.sequence_number,
            format_version=snapshot.format_version,
        )
        url = self.put(f"{FOLDER}/snap-{snapshot.snapshot_id}-{digest(data)}.avro", data)
        self._caches.lists.put(url, manifests)
        return url

    def read(self, manifest: ManifestFile, spec: Spec) -> list[Entry]:
        """Return all entries of a manifest, including deleted ones."""
        return read_manifest(self._store.get(self.name(manifest.path)), manifest, spec)

    def read_list(self, url: str) -> list[ManifestFile]:
        """Return the manifests in a manifest list."""
        lists = self._caches.lists
        return lists.get(url) or lists.put(url, read_manifest_list(self._store.get(self.name(url)), url))

    def known_paths(self, manifest: ManifestFile) -> frozenset[int] | None:
        """Return hashes of the paths in a manifest if they are cached, else None."""
        return self._caches.paths.of([manifest])[0]

    def positions_in(self, file: DataFile) -> dict[str, BitMap64]:
        """Return the positions in a position delete file, by data file."""
        return positions_in(self._store.get(self.name(file.url)), file.url)

    def about(self, file: DataFile) -> tuple[str, ...]:
        """Return the data files that a delete file deletes rows from."""
        return tuple(self.positions_in(file)) if file.about is None else file.about

    def delete_files_of(self, manifest: ManifestFile) -> set[str]:
        """Return the URLs of the live delete files in a delete manifest, whatever the partitioning was when it was written."""
        return set(live_urls(self._store.get(self.name(manifest.path)), manifest.path))

    def delete_manifests_for(self, urls: frozenset[str], manifests: Sequence[ManifestFile], spec: Spec) -> frozenset[str]:
        """Return the paths of the delete manifests that may delete rows of these data files."""
        paths = []
        hashes = path_hashes(urls)
        for manifest, index in zip(manifests, self._caches.paths.of(manifests), strict=True):
            if index is None:
                index = self._caches.paths.put(manifest.path, path_hashes(self._paths_of(self.read(manifest, spec), DELETES)))
            if not index.isdisjoint(hashes):
                paths.append(manifest.path)
        return frozenset(paths)

    def containing(self, urls: frozenset[str], manifests: Sequence[ManifestFile], spec: Spec) -> dict[str, frozenset[str]]:
        """Return which of the files each manifest may contain, by the manifest's path; manifests that contain none are omitted.

        Files that the index misses are searched entry by entry, so no file is missed.
        """
        matches: dict[str, frozenset[str]] = {}
        hashes = path_hashes(urls)
        for manifest, index in zip(manifests, self._caches.paths.of(manifests), strict=True):
            if index is None:
                index = self._caches.paths.put(manifest.path, self._indexed(manifest))
            if not index.isdisjoint(hashes):
                matches[manifest.path] = frozenset(url for url in urls if hash(url) in index)
        if not urls <= frozenset().union(*matches.values()):
            for manifest in manifests:
                here = urls & {entry.file.url for entry in self.read(manifest, spec)}
                if here:
                    matches[manifest.path] = matches.get(manifest.path, frozenset()) | here
        return matches

    def _paths_of(self, entries: Iterable[Entry], content: int) -> Iterator[str]:
        """Yield the paths of the data files that the live entries name or delete from."""
        for entry in entries:
            if entry.status != DELETED:
                yield from (entry.file.url,) if content == DATA else self.about(entry.file)

    def _indexed(self, manifest: ManifestFile) -> frozenset[int]:
        data = self._store.get(self.name(manifest.path))
        paths = paths_in(data, manifest.path, f"{self._data_store.url}/".encode())
        return path_hashes(path.decode(errors="replace") for path in paths)
