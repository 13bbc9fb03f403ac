"""What this process remembers of manifests and manifest lists, so that the next conversion need not read again what this one wrote.

Neither kind of file ever changes: what is remembered stays true, also when another process converts in between.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from tahoe.uniform.formats.manifests import ManifestFile

__all__ = ["ManifestCaches", "ManifestLists", "PathIndex"]

_INDEXED_PATHS = 2_000_000
_KEPT_LISTS = 32


class ManifestCaches:
    """Both memories, for all tables that a runtime converts."""

    def __init__(self) -> None:
        self.paths = PathIndex()
        self.lists = ManifestLists()

    def clear(self) -> None:
        """Forget all, as a new process begins."""
        self.paths.clear()
        self.lists.clear()


class PathIndex:
    """Hashes of the paths in manifests read or written lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, frozenset[int]] = OrderedDict()
        self._paths = 0
        self._lock = Lock()

    def of(self, manifests: Sequence[ManifestFile]) -> list[frozenset[int] | None]:
        """What is known of each, None where nothing is."""
        with self._lock:
            known = [self._known.get(manifest.path) for manifest in manifests]
            if self._paths > _INDEXED_PATHS // 2:  # until then nothing has to leave for long
                for manifest, hashes in zip(manifests, known, strict=True):
                    if hashes is not None:
                        self._known.move_to_end(manifest.path)
            return known

    def put(self, path: str, hashes: frozenset[int]) -> frozenset[int]:
        """Remember a manifest's hashes, and give them back; what was not asked for longest is forgotten."""
        with self._lock:
            if path not in self._known:
                self._known[path] = hashes
                self._paths += len(hashes)
            while self._paths > _INDEXED_PATHS and len(self._known) > 1:
                self._paths -= len(self._known.popitem(last=False)[1])
        return hashes

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()
            self._paths = 0


class ManifestLists:
    """Manifest lists read or written lately: the next snapshot goes on from one of them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str) -> list[ManifestFile] | None:
        """The manifests of a list; None where it is not known."""
        with self._lock:
            manifests = self._known.get(url)
            return None if manifests is None else list(manifests)

    def put(self, url: str, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Remember a list's manifests, and give them back."""
        with self._lock:
            self._known[url] = tuple(manifests)
            while len(self._known) > _KEPT_LISTS:
                self._known.popitem(last=False)
        return list(manifests)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()
