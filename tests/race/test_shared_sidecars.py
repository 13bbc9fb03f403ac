"""Cleaning beside checkpoints that name old sidecars again: wherever one comes between the other's store calls, no checkpoint is left
that names a sidecar which is gone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import NotFound
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint, read_through
from tahoe.log.cleanup import clean_up_log
from tahoe.log.files.listing import checkpoints_in
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.aged_store import AgedStore
from tahoe.testing.faulty_store import WrappedStore
from tahoe.txn.hooks import checkpoint_snapshot
from tests.race.operations import SCHEMA, contents, rows

Answer = TypeVar("Answer")
IDS = range(5)


class _Interrupted(WrappedStore):
    """Lets another process do all of its work before the call of that number."""

    def __init__(self, inner: LogStore, at: int, other: Callable[[], object]) -> None:
        super().__init__(inner)
        self._left, self._other = at, other

    @property
    def was_reached(self) -> bool:
        return self._left < 0

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        self._left -= 1
        if self._left == -1:
            self._other()
        return run()


def made() -> AgedStore:
    """Version 6 of a table; a checkpoint of version 2, and it and the commits up to version 4 have expired."""
    store = AgedStore(open_store(f"memory://{uuid.uuid4()}/table"))
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000"}
    table = Table.create(store.url, SCHEMA, partition_by=["part"], properties=properties, store=store)
    table.append(rows("a", *range(100, 130)), max_rows_per_file=1)  # so many that a sidecar of theirs stays
    for number in IDS:
        table.append(rows("a", number))
        if number == 0:
            table.checkpoint()
        if number == 2:
            store.later(40 * 24)
    return store


def checkpoints(store: LogStore, now_ms: int) -> None:
    checkpoint_snapshot(Snapshot.at(store, 6), SeededClock(1, now_ms))


def makes_another_and_cleans(store: LogStore, now_ms: int) -> None:
    checkpoint_snapshot(Snapshot.at(store, 4), SeededClock(2, now_ms), from_scratch=True)
    clean_up_log(store, Snapshot.at(store, 6).config, now_ms)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(checkpoints, makes_another_and_cleans, id="writer"),
        pytest.param(makes_another_and_cleans, checkpoints, id="cleaner", marks=pytest.mark.long),
    ],
)
def test_no_checkpoint_is_left_without_a_sidecar(
    one: Callable[[LogStore, int], None], other: Callable[[LogStore, int], None]
) -> None:
    """It takes seconds, for the other comes before each of some dozens of calls. A writer whose log was cleaned while he read it fails."""
    at, reached, made_it = 0, True, 0
    while reached:
        store = made()
        interrupted = _Interrupted(store, at, lambda store=store: other(store, store.now_ms))
        with suppress(NotFound):
            one(interrupted, store.now_ms)
        reached = interrupted.was_reached
        actual = [each for of_one in checkpoints_in(store.list_from("_delta_log")).values() for each in of_one]
        for checkpoint in actual:
            read_through(open_checkpoint(store, checkpoint))
        assert not reached or 4 in {checkpoint.version for checkpoint in actual}, at
        made_it += 6 in {checkpoint.version for checkpoint in actual}
        assert contents(Table(store.url, store=store)) == sorted(("a", number) for number in (*IDS, *range(100, 130)))
        at += 1
    assert at > 10 and made_it > 5
