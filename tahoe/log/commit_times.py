"""The times of commits: in-commit timestamps, or the modification times of the commits' files (PROTOCOL.md, "In-Commit Timestamps").

In-commit timestamps strictly increase, so a time is found by a search that reads a few dozen commits in each round of requests, however old
the table is. Modification times may decrease, for example in a copied table, so they are known only after a listing of all commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from tahoe.base.exceptions import NotFound
from tahoe.base.lazy import cached_property
from tahoe.log.commit_identity import no_in_commit_timestamp
from tahoe.log.files.commits import check_seal, parse_commit
from tahoe.log.files.listing import commits_between
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import Action, CommitInfo
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import LogStore

_COMMITS_PER_ROUND = 64
"""Three rounds find one of 250,000 commits."""


@dataclass(frozen=True, slots=True)
class CommitTime:
    """A version and its time in milliseconds since the epoch."""

    version: int
    timestamp_ms: int


class CommitTimes:
    """The times of a table's commits, read when they are needed.

    Times are in-commit timestamps from the version that enabled them. Before it they are modification times, each at least a millisecond
    after the previous one.

    Args:
        config: of version `newest`.
        newest: the newest version; later commits are ignored.
    """

    def __init__(self, store: LogStore, config: TableConfig, newest: int) -> None:
        self._store = store
        self._newest = newest
        enabled_from = in_commit_timestamps_from(config)
        self._stated_from = newest + 1 if enabled_from is None else enabled_from
        self._stated: dict[int, int | None] = {}

    def between(self, first: int, last: int) -> dict[int, int]:
        """Return the times of the versions from `first` to `last` whose commits are in the log, oldest first.

        Raises `CorruptTable` for a commit without its in-commit timestamp.
        """
        times = {}
        if first < self._stated_from:
            times = {version: time for version, time in self._modified.items() if first <= version <= last}
        self._read(range(max(first, self._stated_from), last + 1))
        stated = {v: self._stated[v] for v in range(max(first, self._stated_from), last + 1)}
        return times | {version: time for version, time in stated.items() if time is not None}

    def version_at(self, timestamp_ms: int) -> int:
        """Return the newest version at a time.

        Raises:
            NotFound: `DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION` before the first commit in the log,
                `DELTA_TIMESTAMP_GREATER_THAN_COMMIT` after the last one.
            CorruptTable: a commit lacks its in-commit timestamp.
        """
        version = self._last_stated(timestamp_ms)
        if self._stated.get(version) is None:
            older = [v for v, time in self._modified.items() if time <= timestamp_ms]
            if not older:
                raise self._too_early(timestamp_ms)
            version = max(older)
        if version == self._newest or version < self._stated_from:
            latest = self.latest
            if latest is not None and version == latest.version and latest.timestamp_ms < timestamp_ms:
                raise self._too_late(timestamp_ms)
        return version

    def first_version_from(self, timestamp_ms: int) -> int:
        """Return the first version in the log at a time or after it.

        Raises `NotFound` (`DELTA_TIMESTAMP_GREATER_THAN_COMMIT`) after the last one.
        """
        before = self._last_stated(timestamp_ms - 1)
        if self._stated.get(before) is None and before < self._stated_from:
            following = [v for v, time in self._modified.items() if time >= timestamp_ms]
            if following:
                return min(following)
        if before >= self._newest:
            # The error that time travel raises, which names the latest time in the log.
            raise self._too_late(timestamp_ms)
        return before + 1

    def earliest(self) -> CommitTime | None:
        """Return the first commit in the log; None if there is none."""
        if self._stated_from > 0 and self._modified:
            return CommitTime(*next(iter(self._modified.items())))
        first = self._last_stated(-1) + 1
        time = self.between(first, first).get(first) if first <= self._newest else None
        return None if time is None else CommitTime(first, time)

    @property
    def latest(self) -> CommitTime | None:
        """The newest commit in the log; None if there is none."""
        times = self.between(self._newest, self._newest) if self._stated_from <= self._newest else self._modified
        return CommitTime(*next(reversed(times.items()))) if times else None

    @cached_property
    def _modified(self) -> dict[int, int]:
        """The times by version, oldest first, of the commits without in-commit timestamps."""
        times: dict[int, int] = {}
        previous = -1
        for version, entry in commits_between(self._store, 0, min(self._newest, self._stated_from - 1)):
            previous = times[version] = max(entry.modified_ms, previous + 1)
        return times

    def _last_stated(self, timestamp_ms: int) -> int:
        """Return the newest version up to which no commit has an in-commit timestamp after a time.

        That commit may be missing: log cleanup deletes the oldest commits. It is the version before the first in-commit timestamp if all
        of them are later.
        """
        low, high = self._stated_from - 1, self._newest + 1
        while high - low > 1:
            probes = _spread(low + 1, high - 1, 1 if self._store.asks_cheaply else _COMMITS_PER_ROUND)
            self._read(probes)
            later = (v for v in probes if (time := self._stated[v]) is not None and time > timestamp_ms)
            high = next(later, high)
            low = max((v for v in probes if v < high), default=low)
        return low

    def _read(self, versions: Iterable[int]) -> None:
        """Read the in-commit timestamps of these versions; None for a missing commit."""
        unread = [version for version in versions if version not in self._stated]
        if len(unread) < 2 or self._store.asks_cheaply:
            self._stated.update((version, self._in_commit_timestamp(version)) for version in unread)
            return
        with ThreadPoolExecutor(min(_COMMITS_PER_ROUND, len(unread)), thread_name_prefix="tahoe-times") as pool:
            self._stated.update(zip(unread, pool.map(self._in_commit_timestamp, unread), strict=True))

    def _in_commit_timestamp(self, version: int) -> int | None:
        name = commit_name(version)
        try:
            data = self._store.get(name)
        except NotFound:
            return None
        check_seal(name, data, self._store.url)
        time = _stated_in_first_line(data)
        if time is None:
            time = in_commit_timestamp_of(parse_commit(name, data, self._store.url))
        if time is None:
            raise no_in_commit_timestamp(self._store.url, version)
        return time

    def _too_early(self, timestamp_ms: int) -> NotFound:
        earliest = self.earliest()
        first = "none" if earliest is None else _iso(earliest.timestamp_ms)
        return NotFound(
            f"Table {self._store.url} has no version from {_iso(timestamp_ms)}: the earliest in its log is from {first}. Request that time "
            "or a later one.",
            code="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            table=self._store.url,
        )

    def _too_late(self, timestamp_ms: int) -> NotFound:
        latest = self.latest
        last = "none" if latest is None else f"version {latest.version}, is from {_iso(latest.timestamp_ms)}"
        return NotFound(
            f"Table {self._store.url} has no version as late as {_iso(timestamp_ms)}: its latest, {last}. Request that time or an earlier "
            "one, or read without a timestamp.",
            code="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            table=self._store.url,
        )


def in_commit_timestamps_from(config: TableConfig) -> int | None:
    """Return the first version with an in-commit timestamp; None if the table has them disabled."""
    if not config.in_commit_timestamps:
        return None
    noted = config.properties.get("delta.inCommitTimestampEnablementVersion")
    return int(noted) if noted is not None else 0


def in_commit_timestamp_of(actions: Iterable[Action]) -> int | None:
    """Return the in-commit timestamp of a commit; None if it has none."""
    stated = (a.in_commit_timestamp for a in actions if isinstance(a, CommitInfo) and a.in_commit_timestamp is not None)
    return next(stated, None)


def states_its_time(actions: Sequence[Action]) -> bool:
    """Whether a commit begins with a commitInfo with an in-commit timestamp, which the specification requires if those are enabled."""
    return in_commit_timestamp_of(actions[:1]) is not None


def _stated_in_first_line(data: bytes) -> int | None:
    """Return the in-commit timestamp of a commit's first line, the place that the specification requires, without reading the others."""
    try:
        action = json.loads(data.partition(b"\n")[0])
    except ValueError:
        return None
    info = action.get("commitInfo") if isinstance(action, dict) else None
    return CommitInfo(info).in_commit_timestamp if isinstance(info, dict) else None


def _spread(first: int, last: int, count: int) -> list[int]:
    """Return at most `count` versions from `first` to `last`, at equal distances inside that range."""
    size = last - first + 1
    if size <= count:
        return list(range(first, last + 1))
    return [first + (size * number) // (count + 1) for number in range(1, count + 1)]


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
