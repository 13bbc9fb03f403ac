"""A listing of the log, sorted by kinds of files, with further requests for files that it may lack.

A listing may lag behind the newest writes: it may lack the newest commit, or a commit in the middle. It is therefore only a starting
point. The names after its newest commit are requested one by one until one is absent (one more request for each read of the newest
version), and a gap is an error only after the missing names were requested too. A listing that lacks a checkpoint or a compaction only
costs time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from tahoe.log.files.paths import LOG_FOLDER, ParsedLogPath, commit_name, parse
from tahoe.store.log_store import Entry, LogStore, is_paged, pages_from


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One complete checkpoint.

    Args:
        kind: by its name; a ``classic`` one may follow the V2 specification all the same.
        entries: its files, parts in order; sidecars are named inside and not listed here.
    """

    version: int
    kind: Literal["classic", "multi-part", "uuid"]
    entries: tuple[Entry, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its files in the store, in the order of its parts."""
        return tuple(entry.name for entry in self.entries)


def checkpoints_in(entries: Iterable[Entry]) -> dict[int, list[Checkpoint]]:
    """Return the complete checkpoints of a listing by version; multi-part checkpoints that lack a part do not count (PROTOCOL.md)."""
    complete: dict[int, list[Checkpoint]] = {}
    parts: dict[tuple[int, int], dict[int, Entry]] = {}
    for entry in entries:
        parsed = parse(entry.name) if ".checkpoint." in entry.name else None
        if parsed is None:
            continue
        if parsed.part is not None and parsed.parts is not None:
            parts.setdefault((parsed.version, parsed.parts), {})[parsed.part] = entry
        else:
            kind: Literal["classic", "uuid"] = "classic" if parsed.unique_id is None else "uuid"
            complete.setdefault(parsed.version, []).append(Checkpoint(parsed.version, kind, (entry,)))
    for (version, count), by_part in parts.items():
        if len(by_part) == count:
            entries_in_order = tuple(by_part[part] for part in range(1, count + 1))
            complete.setdefault(version, []).append(Checkpoint(version, "multi-part", entries_in_order))
    return complete


def entries_between(store: LogStore, first: int, last: int) -> list[Entry]:
    """Return the files of the log whose version, or first version, is in a range, sorted by name; lists no further than needed."""
    end = f"{LOG_FOLDER}/{last + 1:020d}"
    entries: list[Entry] = []
    for page in pages_from(store, LOG_FOLDER, f"{first:020d}"):
        entries.extend(page)
        if page and page[-1].name >= end:
            break
    return [entry for entry in entries if entry.name < end]


def commits_between(store: LogStore, first: int, last: int) -> list[tuple[int, Entry]]:
    """Return the commits in the log in a range of versions, oldest first; lists parts of a long range in parallel."""
    if last < first:
        return []
    if last - first < _VERSIONS_OF_A_PART or not is_paged(store):
        return _commits(entries_between(store, first, last))
    listed = _commits(next(store.pages_from(LOG_FOLDER, f"{first:020d}"), []))
    if not listed or listed[-1][0] >= last:
        return [commit for commit in listed if commit[0] <= last]
    # Log cleanup deletes the oldest commits, so the first page shows where the range really begins. Its last version may be incomplete.
    begin = listed[-1][0] + 1
    size = max(_VERSIONS_OF_A_PART, -(-(last + 1 - begin) // _PARTS))
    parts = [(start, min(start + size - 1, last)) for start in range(begin, last + 1, size)]
    with ThreadPoolExecutor(len(parts), thread_name_prefix="tahoe-list") as pool:
        rest = pool.map(lambda part: _commits(entries_between(store, *part)), parts)
        return [*listed, *(commit for part in rest for commit in part)]


def _commits(entries: Iterable[Entry]) -> list[tuple[int, Entry]]:
    parsed = ((parse(entry.name), entry) for entry in entries)
    return [(path.version, entry) for path, entry in parsed if path is not None and path.kind == "commit"]


@dataclass(slots=True)
class Listing:
    """A listing of the log from one version on, sorted into kinds. `start` None: from the beginning."""

    start: int | None
    commits: dict[int, Entry]
    complete_checkpoints: dict[int, list[Checkpoint]]
    compactions: list[tuple[ParsedLogPath, Entry]]
    checksums: dict[int, Entry]
    is_empty: bool

    @classmethod
    def read(cls, store: LogStore, start: int | None, last: int | None = None) -> Listing:
        """List the log from version `start` on, or all of it; files with names that the specification does not define are ignored.

        Args:
            last: the last version, if later ones are not needed; only with `start`.
        """
        if start is not None and last is not None:
            entries = entries_between(store, start, last)
        else:
            entries = store.list_from(LOG_FOLDER, "" if start is None else f"{start:020d}")
        commits: dict[int, Entry] = {}
        compactions: list[tuple[ParsedLogPath, Entry]] = []
        checksums: dict[int, Entry] = {}
        for entry in entries:
            parsed = parse(entry.name)
            if parsed is None:
                continue
            if parsed.kind == "commit":
                commits[parsed.version] = entry
            elif parsed.kind == "compaction":
                compactions.append((parsed, entry))
            elif parsed.kind == "checksum":
                checksums[parsed.version] = entry
        return cls(start, commits, checkpoints_in(entries), compactions, checksums, not entries)

    def checkpoints(self, version: int | None, without: Collection[str]) -> Iterator[Checkpoint]:
        """The complete checkpoints up to a version, newest first; of one version the classic one first."""
        for candidate in sorted(self.complete_checkpoints, reverse=True):
            if version is None or candidate <= version:
                for checkpoint in sorted(self.complete_checkpoints[candidate], key=lambda c: _PREFERENCE[c.kind]):
                    if not any(name in without for name in checkpoint.names):
                        yield checkpoint

    def newest(self) -> int | None:
        """The newest version that has a commit or a complete checkpoint in the listing; None where there is neither."""
        return max((*self.commits, *self.complete_checkpoints), default=None)


def probe_upward(store: LogStore, listing: Listing, newest: int, limit: int | None = None) -> int:
    """Return the newest existing version up to `limit`; commits that are found by name are added to the listing."""
    while limit is None or newest < limit:
        entry = store.head(commit_name(newest + 1))
        if entry is None:
            return newest
        newest += 1
        listing.commits[newest] = entry
    return newest


def fill_gaps(store: LogStore, listing: Listing, missing: Iterable[int]) -> None:
    """Request commits that the listing lacks by name; stop at the first that does not exist."""
    for version in missing:
        entry = store.head(commit_name(version))
        if entry is None:
            return
        listing.commits[version] = entry


_PARTS = 64
_VERSIONS_OF_A_PART = 300
"""A page of a listing has 1,000 names, and a version has two or three."""

_PREFERENCE = {"classic": 0, "uuid": 1, "multi-part": 2}
