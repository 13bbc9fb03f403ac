"""The operations of the commits that are still in the log, with their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.log.commit_times import CommitTimes, in_commit_timestamp_of, in_commit_timestamps_from
from tahoe.log.files.commits import read_commits
from tahoe.log.files.listing import commits_between
from tahoe.protocol.actions import CommitInfo
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import LogStore


def parse_timestamp(value: str | date | datetime, time_zone: str = "UTC") -> int:
    """Convert a date, a time, or their ISO text to milliseconds since the epoch.

    Args:
        time_zone: of a value without one.

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
    aware = value if value.tzinfo else value.replace(tzinfo=zone_of(time_zone))
    return int((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def history(store: LogStore, config: TableConfig, newest: int, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Return the commits in the log, newest first, as the columns of DESCRIBE HISTORY (`delta-features`, 2.4).

    Values: ``version`` int, ``timestamp`` datetime in UTC, ``operationParameters`` and ``operationMetrics`` text to text, the
    others as commitInfo has them, None where it has not.

    Args:
        config: of version `newest`.
        newest: the newest version; later commits are ignored.
        limit: the number of versions; None for all.
    """
    first = 0 if limit is None else max(newest - limit + 1, 0)
    versions = [version for version, _ in reversed(commits_between(store, first, newest))]
    times = CommitTimes(store, config, newest)
    stated_from = in_commit_timestamps_from(config)
    for version, actions in read_commits(store, versions):
        infos = [action for action in actions if isinstance(action, CommitInfo)]
        time = in_commit_timestamp_of(infos) if stated_from is not None and version >= stated_from else None
        if time is None:
            time = times.between(version, version)[version]
        yield _row(version, time, infos[0].values if infos else {})


def _row(version: int, timestamp_ms: int, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp": datetime.fromtimestamp(timestamp_ms / 1000, UTC),
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


def _texts(values: object) -> dict[str, str | None] | None:
    if not isinstance(values, dict):
        return None
    return {name: _text(value) for name, value in values.items()}


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
