"""`Table.tail`: its start, and its waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest
from tahoe.stream.position import Position
from tahoe.stream.tail_batch import TailBatch


def ids(batch: TailBatch) -> list[int]:
    return batch.to_arrow()["id"].to_pylist()


class Waiting(SeededClock):
    """A clock that calls a function instead of each wait."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        super().__init__()
        self.happenings = list(happenings)
        self.waited: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.happenings.pop(0)()


def test_a_stream_that_follows_waits_for_commits(make: Callable[..., Table]) -> None:
    table = make([1])

    def append(number: int) -> Callable[[], object]:
        return lambda: Table(table.url, store=table.store).append(pa.table({"id": [number]}))

    clock = Waiting(lambda: None, append(2), append(3))
    stream = Table(table.url, store=table.store, clock=clock).tail(follow=True, poll_seconds=7)
    assert [ids(next(stream)) for _ in range(3)] == [[1], [2], [3]]
    assert clock.waited == [7, 7, 7]


def test_a_stream_that_does_not_follow_ends_and_continues_from_its_position(make: Callable[..., Table]) -> None:
    table = make([1])
    *_, last = table.tail()
    assert list(table.tail(position=last.position)) == []
    table.append(pa.table({"id": [2]}))
    for position in (last.position, str(last.position)):
        assert [ids(batch) for batch in table.tail(position=position)] == [[2]]


def test_the_start_of_a_stream_can_be_chosen(make: Callable[..., Table]) -> None:
    table = make([1], [2], properties={"delta.enableInCommitTimestamps": "true"})
    assert [ids(batch) for batch in table.tail(2)] == [[2]]
    assert [ids(batch) for batch in table.tail(from_timestamp=table.history()[0]["timestamp"])] == [[2]]
    latest = list(table.tail("latest"))
    assert [ids(batch) for batch in latest] == [[]]
    table.append(pa.table({"id": [3]}))
    assert [ids(batch) for batch in table.tail("latest", position=latest[0].position)] == [[3]]


def test_two_starts_are_refused(make: Callable[..., Table]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make([1]).tail(1, from_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    assert caught.value.code == "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"


def test_the_position_of_another_table_is_refused(make: Callable[..., Table]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        next(make([1]).tail(position=Position("other", 1)))
    assert caught.value.code == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
