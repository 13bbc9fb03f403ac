"""Commits to several tables: a crash at any step leaves both or none, and lost answers are resolved."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.several_tables import read_together, transaction
from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CommitStateUnknown, StorageFailure
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import StagedCommit
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.store.log_store import Created, LogStore, PutOutcome, Refused, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import SimulatedCrash, WrappedStore
from tahoe.txn.commit import RetryPolicy

SCHEMA = pa.schema([("n", pa.int64())])
SEEDS = count()
QUICK = RetryPolicy(storage_attempts=3, first_wait_seconds=0, longest_wait_seconds=0)


class Life:
    """Counts the mutating calls of one process, and crashes before or after one of them."""

    def __init__(self, last: int | None = None, *, after: bool = False) -> None:
        self.last, self.after, self.count = last, after, 0
        self.steps: list[str] = []

    def step(self, name: str, run: Callable[[], Any]) -> Any:
        if self.last is not None and self.count > self.last:
            raise SimulatedCrash(name)
        self.count += 1
        self.steps.append(name)
        if self.last == self.count - 1:
            if self.after:
                run()
            self.count += 1
            raise SimulatedCrash(name)
        return run()


class MortalStore(WrappedStore):
    def __init__(self, inner: LogStore, life: Life) -> None:
        super().__init__(inner)
        self._life = life

    def _call(self, method: str, name: str, run: Callable[[], Any]) -> Any:
        return self._life.step(f"{method} {name}", run) if method in ("put", "put_if_absent", "delete") else run()


class MortalCoordinator(SqlCoordinator):
    def __init__(self, url: str, life: Life) -> None:
        super().__init__(url)
        self._life = life

    def ratify(self, proposed: Sequence[StagedCommit], unchanged: Mapping[str, int] | None = None) -> PutOutcome:
        outcome: PutOutcome = self._life.step("ratify", lambda: super(MortalCoordinator, self).ratify(proposed, unchanged))
        return outcome

    def published(self, table: str, version: int) -> None:
        self._life.step("published", lambda: super(MortalCoordinator, self).published(table, version))


class Scene:
    """Two tables with one row each, and their coordinator."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/{uuid.uuid4()}.db"
        self.stores = [open_store(f"memory://{uuid.uuid4()}/t") for _ in range(2)]
        for store in self.stores:
            Table.create(
                store.url,
                SCHEMA,
                properties={"delta.feature.catalogManaged": "supported", "delta.checkpointInterval": "2"},
                store=store,
                coordinator=SqlCoordinator(self.url),
            ).append(pa.table({"n": [100]}))

    def tables(
        self, coordinator: SqlCoordinator | None = None, wrap: Callable[[LogStore], LogStore] = lambda s: s
    ) -> list[Table]:
        coordinator = coordinator or SqlCoordinator(self.url)
        return [
            Table(s.url, store=wrap(s), coordinator=coordinator, clock=SeededClock(next(SEEDS), start_ms=2_000_000_000_000))
            for s in self.stores
        ]

    def seen(self) -> list[int]:
        return [snapshot.scan().to_arrow()["n"].to_pylist()[0] for snapshot in read_together(*self.tables())]


def transfer(tables: Sequence[Table]) -> None:
    here, there = tables
    with transaction(here, there, policy=QUICK) as t:
        t[here].update({"n": "n - 10"})
        t[there].update({"n": "n + 10"})


def test_a_crash_at_any_step_leaves_both_or_none_and_the_next_succeeds(tmp_path: Path) -> None:
    whole, life = Scene(tmp_path), Life()
    transfer(whole.tables(MortalCoordinator(whole.url, life), lambda store: MortalStore(store, life)))
    assert whole.seen() == [90, 110]
    named = " ".join(life.steps)
    assert all(step in named for step in ("_staged_commits", "ratify", "published", "checkpoint.parquet", "02.json", ".crc"))
    seen = []
    for last in range(len(life.steps)):
        for after in (False, True) if last == 0 else (True,):  # before a step equals after the previous one
            scene, dying = Scene(tmp_path), Life(last, after=after)
            with pytest.raises(SimulatedCrash):
                transfer(scene.tables(MortalCoordinator(scene.url, dying), lambda store, life=dying: MortalStore(store, life)))  # type: ignore[misc]
            where = f"{'after' if after else 'before'} {life.steps[last]}"
            balances = scene.seen()
            ratified = last > life.steps.index("ratify") or (last == life.steps.index("ratify") and after)
            assert balances == ([90, 110] if ratified else [100, 100]), where
            transfer(scene.tables())
            assert scene.seen() == [balances[0] - 10, balances[1] + 10], where
            for table in scene.tables():
                assert isinstance(table.store, CoordinatedStore)
                assert table.store.publish() == table.version() == (3 if ratified else 2), where
                if last % 5 == 0:  # slow
                    assert table.check(strict=True) == [], where
            seen.append(ratified)
    assert {False, True} == set(seen)


class Answering(SqlCoordinator):
    """Answers the first requests by a script: whether the request is carried out, and the answer."""

    def __init__(self, url: str, *script: tuple[bool, PutOutcome]) -> None:
        super().__init__(url)
        self.script = list(script)

    def ratify(self, proposed: Sequence[StagedCommit], unchanged: Mapping[str, int] | None = None) -> PutOutcome:
        if not self.script:
            return super().ratify(proposed, unchanged)
        is_done, answer = self.script.pop(0)
        if is_done:
            assert isinstance(super().ratify(proposed, unchanged), Created)
        return answer


@pytest.mark.parametrize(
    "script",
    [
        [(True, Unanswered("gone"))],
        [(False, Unanswered("gone"))],
        [(False, Unanswered("gone")), (True, Unanswered("gone"))],
        [(False, Refused("busy"))],
        [(True, Refused("a lie of a client below"))],
    ],
)
def test_the_transfer_is_made_once_whatever_the_coordinator_answers(
    tmp_path: Path, script: list[tuple[bool, PutOutcome]]
) -> None:
    scene = Scene(tmp_path)
    tables = scene.tables(Answering(scene.url, *script))
    transfer(tables)
    assert scene.seen() == [90, 110]
    assert [table.version() for table in tables] == [2, 2]
    assert [table.check(strict=True) for table in tables] == [[], []]


def test_a_coordinator_that_always_refuses_is_a_failure_without_effect(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with pytest.raises(StorageFailure, match="refused 3 times") as caught:
        transfer(scene.tables(Answering(scene.url, *[(False, Refused("busy"))] * 9)))
    assert not isinstance(caught.value, CommitStateUnknown)
    assert scene.seen() == [100, 100]
    assert len(scene.stores[0].list_from("_delta_log/_staged_commits")) == 1, "the refused staged file is deleted"


def test_an_unknown_outcome_is_reported_and_resolved_later(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    tables = scene.tables(Answering(scene.url, *[(False, Unanswered("gone"))] * 9))
    with pytest.raises(CommitStateUnknown) as caught:
        transfer(tables)
    assert caught.value.resolve() is False and scene.seen() == [100, 100]
