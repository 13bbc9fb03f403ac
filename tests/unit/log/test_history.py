"""The history of a table."""

from __future__ import annotations

from datetime import UTC, datetime

from tahoe.log.history import history
from tests.unit.log.test_commit_times import FROM_2, ON, At, config, logged


def test_the_newest_commit_comes_first_and_the_limit_is_kept() -> None:
    log = logged(None, None, None)
    rows = list(history(log.store, config(), 2, 2))
    assert [(row["version"], row["operation"]) for row in rows] == [(2, "WRITE"), (1, "WRITE")]
    assert len(list(history(log.store, config(), 2))) == 3
    assert [row["version"] for row in history(log.store, config(), 1)] == [1, 0], "later commits are ignored"
    assert list(history(log.store, config(), 2, 0)) == []


def test_each_commit_has_its_in_commit_timestamp_or_its_modification_time() -> None:
    store = At(logged(None, 7, 5000).store)
    store.times = (1000, 2000, 9000)
    assert _times(history(store, config(FROM_2), 2)) == [5000, 2000, 1000]
    assert _times(history(logged(10, 20).store, config(ON), 1, 1)) == [20]


def _times(rows: object) -> list[int]:
    assert hasattr(rows, "__iter__")
    return [round((row["timestamp"] - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000) for row in rows]
