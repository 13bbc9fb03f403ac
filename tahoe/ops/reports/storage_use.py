"""The storage that a table uses, by kind of file, from one listing of its folder."""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.base.html import html_part, html_size, html_table
from tahoe.base.progress import Progress, silent, tracked_listing
from tahoe.log.files.paths import LOG_FOLDER, SIDECAR_FOLDER, parse
from tahoe.ops.upkeep.vacuum_needed import file_names
from tahoe.snapshot.snapshot import Snapshot

LIVE = "live data"
REMOVED = "removed data"
CHANGES = "change data"
COMMITS = "commits"
CHECKPOINTS = "checkpoints"
OTHER_LOG = "other log files"
ICEBERG = "Iceberg metadata"
UNKNOWN = "not in the log"

_ORDER = (LIVE, REMOVED, CHANGES, COMMITS, CHECKPOINTS, OTHER_LOG, ICEBERG, UNKNOWN)
_KINDS_OF_LOG_FILES = {"commit": COMMITS, "checkpoint": CHECKPOINTS}


@dataclass(frozen=True, slots=True)
class Storage:
    """Files of one kind: their number and their size in bytes."""

    kind: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class StorageUse:
    """The files below a table's folder, by kind.

    Args:
        kinds: those that exist. Removed data is in the log as removed: VACUUM deletes it after its retention. Files that are not in the
            log remain from failed writes, belong to a writer that has not committed yet, or come from another program.
    """

    table: str
    version: int
    kinds: tuple[Storage, ...]

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return sum(kind.size for kind in self.kinds)

    def _repr_html_(self) -> str:
        rows = [(kind.kind, kind.files, html_size(kind.size)) for kind in self.kinds]
        return html_part(html_table(("kind", "files", "size"), rows, title=f"{html_size(self.size)} in {self.table}"))


def storage_use(snapshot: Snapshot, progress: Progress = silent) -> StorageUse:
    """List the table's folder and add up the sizes of its files.

    Files of a shallow clone's source are outside the folder, so they do not count.
    """
    store = snapshot.store
    live = set(file_names(snapshot.files(), store.url))
    removed = set(file_names(snapshot.tombstones(), store.url))
    totals: dict[str, tuple[int, int]] = {}
    for entry in tracked_listing(store.walk(), progress):
        kind = _kind(entry.name, live, removed)
        files, size = totals.get(kind, (0, 0))
        totals[kind] = files + 1, size + entry.size
    kinds = tuple(Storage(kind, *totals[kind]) for kind in _ORDER if kind in totals)
    return StorageUse(store.url, snapshot.version, kinds)


def _kind(name: str, live: set[str], removed: set[str]) -> str:
    if name in live:
        return LIVE
    if name in removed:
        return REMOVED
    if name.startswith(f"{LOG_FOLDER}/"):
        return _log_kind(name)
    if name.startswith("_change_data/") or "/_change_data/" in name:
        return CHANGES
    return ICEBERG if name.startswith("metadata/") else UNKNOWN


def _log_kind(name: str) -> str:
    if name.startswith(f"{SIDECAR_FOLDER}/"):
        return CHECKPOINTS
    parsed = parse(name)
    return OTHER_LOG if parsed is None else _KINDS_OF_LOG_FILES.get(parsed.kind, OTHER_LOG)
