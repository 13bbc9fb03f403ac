"""In-process caches of manifests and manifest lists, so that the next conversion need not read files that this one wrote.

Neither kind of file ever changes, so cached content stays valid even if another process converts in between.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from tahoe.uniform.formats.manifests import ManifestFile

_INDEXED_PATHS = 2_000_000
_KEPT_LISTS = 32


class ManifestCaches:
    """The caches of all tables that a runtime converts."""

    def __init__(self) -> None:
        self.paths = PathIndex()
        self.lists = ManifestLists()

    def clear(self) -> None:
        """Clear the caches, as in a new process."""
        self.paths.clear()
        self.lists.clear()


class PathIndex:
    """Hashes of the paths in recently read or written manifests."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[str, frozenset[int]] = OrderedDict()
        self._paths = 0
        self._lock = Lock()

    def of(self, manifests: Sequence[ManifestFile]) -> list[frozenset[int] | None]:
        """Return the hashes of each manifest; None if unknown."""
        with self._lock:
            hashes_of = [self._hashes.get(manifest.path) for manifest in manifests]
            if self._paths > _INDEXED_PATHS // 2:  # until then no eviction is near
                for manifest, hashes in zip(manifests, hashes_of, strict=True):
                    if hashes is not None:
                        self._hashes.move_to_end(manifest.path)
            return hashes_of

    def put(self, path: str, hashes: frozenset[int]) -> frozenset[int]:
        """Cache and return a manifest's hashes; the least recently used are evicted."""
        with self._lock:
            if path not in self._hashes:
                self._hashes[path] = hashes
                self._paths += len(hashes)
            while self._paths > _INDEXED_PATHS and len(self._hashes) > 1:
                self._paths -= len(self._hashes.popitem(last=False)[1])
        return hashes

    def clear(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._hashes.clear()
            self._paths = 0


class ManifestLists:
    """Recently read or written manifest lists: the next snapshot starts from one of them."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str) -> list[ManifestFile] | None:
        """Return the manifests of a list; None if it is not cached."""
        with self._lock:
            manifests = self._hashes.get(url)
            return None if manifests is None else list(manifests)

    def put(self, url: str, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Cache and return a list's manifests."""
        with self._lock:
            self._hashes[url] = tuple(manifests)
            while len(self._hashes) > _KEPT_LISTS:
                self._hashes.popitem(last=False)
        return list(manifests)

    def clear(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._hashes.clear()
