"""The times and operations of versions, from the commits that are still in the log (PROTOCOL.md, "In-Commit Timestamps")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.commit_identity import no_in_commit_timestamp
from tahoe.log.files.commits import read_commit
from tahoe.log.files.paths import parse
from tahoe.protocol.actions import Action, CommitInfo
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class CommitTime:
    """A version and its time in milliseconds since the epoch."""

    version: int
    timestamp_ms: int


def commit_times(store: LogStore, config: TableConfig) -> list[CommitTime]:
    """Return the commits in the log, oldest first, with times that strictly increase.

    In-commit timestamps are used from the version that enabled them; before it, the files' modification times, each at least a
    millisecond after the previous one.
    """
    commits = [
        (parsed.version, entry.modified_ms)
        for entry in store.list_from("_delta_log")
        if (parsed := parse(entry.name)) is not None and parsed.kind == "commit"
    ]
    enabled_from = in_commit_timestamps_from(config)
    timed: list[CommitTime] = []
    previous = -1
    for version, modified_ms in commits:
        time = modified_ms
        if enabled_from is not None and version >= enabled_from:
            time = _in_commit_timestamp(store, version)
        time = max(time, previous + 1)
        timed.append(CommitTime(version, time))
        previous = time
    return timed


def version_at(store: LogStore, config: TableConfig, timestamp_ms: int) -> int:
    """Return the newest version at a time.

    Raises:
        NotFound: `DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION` before the first commit in the log,
            `DELTA_TIMESTAMP_GREATER_THAN_COMMIT` after the last one.
    """
    times = commit_times(store, config)
    asked = _iso(timestamp_ms)
    if not times or timestamp_ms < times[0].timestamp_ms:
        first = _iso(times[0].timestamp_ms) if times else "none"
        raise NotFound(
            f"Table {store.url} has no version from {asked}: the earliest in its log is from {first}. Request that time or a later one.",
            code="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            table=store.url,
        )
    if timestamp_ms > times[-1].timestamp_ms:
        raise NotFound(
            f"Table {store.url} has no version as late as {asked}: its latest, version {times[-1].version}, is from "
            f"{_iso(times[-1].timestamp_ms)}. Request that time or an earlier one, or read without a timestamp.",
            code="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            table=store.url,
        )
    return max(time.version for time in times if time.timestamp_ms <= timestamp_ms)


def first_version_from(store: LogStore, config: TableConfig, timestamp_ms: int, times: Sequence[CommitTime] | None = None) -> int:
    """Return the first version in the log at a time or after it.

    Args:
        times: the result of `commit_times`, if it is known.

    Raises `NotFound` (`DELTA_TIMESTAMP_GREATER_THAN_COMMIT`) after the last one.
    """
    times = commit_times(store, config) if times is None else times
    following = [time.version for time in times if time.timestamp_ms >= timestamp_ms]
    # Later than everything: the error that time travel gives, which names the latest time there is.
    return min(following) if following else version_at(store, config, timestamp_ms)


def parse_timestamp(value: str | date | datetime) -> int:
    """Convert a date, a time, or their ISO text to milliseconds since the epoch; without a zone it is UTC.

    Raises `InvalidRequest` (`DELTA_TIMESTAMP_INVALID`).
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidRequest(
                f"The provided timestamp ('{value}') cannot be converted to a valid timestamp. Write it as '2026-01-31 12:00:00'.",
                code="DELTA_TIMESTAMP_INVALID",
            ) from error
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return int((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def in_commit_timestamps_from(config: TableConfig) -> int | None:
    """Return the first version with an in-commit timestamp; None if the table has them disabled."""
    if not config.in_commit_timestamps:
        return None
    noted = config.properties.get("delta.inCommitTimestampEnablementVersion")
    return int(noted) if noted is not None else 0


def states_its_time(actions: Sequence[Action]) -> bool:
    """Whether a commit begins with a commitInfo with an in-commit timestamp, which the specification requires if those are enabled."""
    first = actions[0] if actions else None
    return isinstance(first, CommitInfo) and first.in_commit_timestamp is not None


def history(store: LogStore, config: TableConfig, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Return the commits in the log, newest first, as the columns of DESCRIBE HISTORY (`delta-features`, 2.4).

    Values: ``version`` int, ``timestamp`` datetime in UTC, ``operationParameters`` and ``operationMetrics`` text to text, the
    others as commitInfo has them, None where it has not.
    """
    times = commit_times(store, config)
    for time in reversed(times if limit is None else times[max(len(times) - limit, 0) :]):
        info = next((a for a in read_commit(store, time.version) if isinstance(a, CommitInfo)), CommitInfo({}))
        values = info.values
        yield {
            "version": time.version,
            "timestamp": datetime.fromtimestamp(time.timestamp_ms / 1000, UTC),
            "userId": values.get("userId"),
            "userName": values.get("userName"),
            "operation": values.get("operation"),
            "operationParameters": _texts(values.get("operationParameters")),
            "job": values.get("job"),
            "notebook": values.get("notebook"),
            "clusterId": values.get("clusterId"),
            "readVersion": values.get("readVersion"),
            "isolationLevel": values.get("isolationLevel"),
            "isBlindAppend": values.get("isBlindAppend"),
            "operationMetrics": _texts(values.get("operationMetrics")),
            "userMetadata": values.get("userMetadata"),
            "engineInfo": values.get("engineInfo"),
        }


def _in_commit_timestamp(store: LogStore, version: int) -> int:
    for action in read_commit(store, version):
        if isinstance(action, CommitInfo) and action.in_commit_timestamp is not None:
            return action.in_commit_timestamp
    raise no_in_commit_timestamp(store.url, version)


def _texts(values: object) -> dict[str, str | None] | None:
    if not isinstance(values, dict):
        return None
    return {name: _text(value) for name, value in values.items()}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
