"""VACUUM against slow writers, readers inside a scan and time travel, by seed: nothing is lost that anyone may need.

The clock of the storage goes on by hours between the steps. What is right at a moment follows from one number, the latest time before which
any VACUUM so far was told that nobody needs what went: a version that was the newest at that time or later can be read, with the rows
that it had; a writer is refused only where his files are older; and what was acknowledged is there.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import DeltaConcurrentModificationException
from tahoe.log.files.paths import LOG_FOLDER, commit_name
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.table import Table
from tahoe.testing.aged_store import AgedClock, AgedStore
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, WrappedStore

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.deletedFileRetentionDuration": "interval 24 hours",
    "delta.checkpointInterval": "7",
}
HOUR_MS = 3_600_000
STEPS = 25


class Meddled(WrappedStore):
    """At its n-th call something else happens first."""

    def __init__(self, inner: LogStore, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self.left, self.meanwhile, self.lock = at, meanwhile, threading.Lock()

    def _call(self, method: str, name: str, run: Callable[[], Any]) -> Any:
        with self.lock:
            self.left -= 1
            now = self.left == -1
        if now:
            self.meanwhile()
        return run()


class Schedule:
    """One table, those who work on it, and what must be there."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = AgedStore(open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table"))
        self.clock = AgedClock(self.store)
        self.table = Table.create(
            self.store.url, SCHEMA, partition_by=["p"], properties=PROPERTIES, store=self.store, clock=self.clock
        )
        self.next_id = 0
        self.needless_before_ms = 0  # who needs nothing older than this loses nothing
        self.waiting: list[tuple[int, set[int], Callable[[], int]]] = []
        self.rows: dict[int, list[int]] = {}
        self.refused = self.deleted = 0

    def run(self) -> None:
        for _ in range(STEPS):
            step = self.chance.choice([self.stage, self.commit, self.change, self.change, self.vacuum, self.vacuum])
            step()
            self.store.later(self.chance.choice([0, 0.01, 2, 9, 30]))
            self.look(again=step == self.vacuum)
        self.needless_before_ms = self.store.now_ms
        self.clean(self.table, 0)
        self.look(again=True)
        assert self.table.check(deep=True) == []
        live = set(self.table.files()["path"].to_pylist())
        left = {entry.name for entry in self.store.walk() if not entry.name.startswith(LOG_FOLDER)}
        assert {name for name in left if name.endswith(".parquet")} == live

    # ---- what happens

    def stage(self) -> None:
        """A writer begins, writes, and does not commit yet."""
        table = Table(self.store.url, store=self.store, clock=self.clock)
        rows = self.new_rows()
        transaction = table.begin()
        begun = self.store.now_ms
        operation = stage_write(transaction, rows, WriteOptions())
        self.waiting.append((begun, set(rows["id"].to_pylist()), lambda: table.commit(transaction, operation).version))

    def commit(self) -> None:
        """One who waited commits, or is told that it took too long."""
        if not self.waiting:
            return
        begun, ids, commit = self.waiting.pop(self.chance.randrange(len(self.waiting)))
        try:
            version = commit()
        except DeltaConcurrentModificationException:
            # The file of the commit VACUUM START is some milliseconds younger than what it measured.
            assert begun < self.needless_before_ms + 1000
            self.refused += 1
        else:
            found = Table(self.store.url, store=self.store).to_arrow(version=version)
            assert ids <= set(found["id"].to_pylist())

    def change(self) -> None:
        """A writer that is quick."""
        table = Table(self.store.url, store=self.store, clock=self.clock)
        newest = table.version()
        change: Callable[[], object] = self.chance.choice(
            [
                lambda: table.append(self.new_rows()),
                lambda: table.overwrite(self.new_rows()),
                lambda: table.delete(f"id % 5 = {self.chance.randrange(5)}"),
                lambda: table.update({"id": "id + 100000"}, f"id % 7 = {self.chance.randrange(7)}"),
                lambda: table.optimize(),
                lambda: table.restore(max(0, newest - self.chance.randrange(1, 5)), ignore_missing_files=False),
            ]
        )
        try:
            change()
        except (DeltaConcurrentModificationException, LookupError, ValueError):
            return  # RESTORE: files are gone, or may go yet; or there is no older version

    def vacuum(self) -> None:
        """Somebody cleans up, while others work, and may die in it."""
        hours = self.chance.choice([None, None, 0, 5])
        now_ms = self.store.now_ms
        self.needless_before_ms = max(self.needless_before_ms, now_ms - round((24 if hours is None else hours) * HOUR_MS))
        how = self.chance.random()
        at = self.chance.randrange(40)
        if how < 0.3:
            crashing = CrashingStore(self.store, at, after=self.chance.random() < 0.5)
            try:
                self.clean(Table(self.store.url, store=crashing, clock=self.clock), hours)
            except SimulatedCrash:  # it may have asked for the time as late as this
                self.needless_before_ms += self.store.now_ms - now_ms
        else:
            meanwhile = self.chance.choice([self.commit, self.change, self.stage])
            store = Meddled(self.store, at, meanwhile) if how < 0.8 else self.store
            self.clean(Table(self.store.url, store=store, clock=self.clock), hours)

    def clean(self, table: Table, hours: float | None) -> None:
        lite = self.chance.random() < 0.3 and hours is None
        done = table.vacuum(hours, retention_check=False, lite=lite)
        self.needless_before_ms = max(self.needless_before_ms, done.plan.cut_off_ms)
        self.deleted += done.deleted

    def new_rows(self) -> pa.Table:
        count = self.chance.choice([3, 40])
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        return pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids}, SCHEMA)

    # ---- what must be

    def look(self, *, again: bool) -> None:
        """Read what may be read: versions by a session that knows nothing, the newest by one that has been there all along.

        Args:
            again: those too that were read before.
        """
        table = Table(self.store.url, store=self.store)
        newest = table.version()
        for version in range(newest + 1):
            if version in self.rows and not again:
                continue
            until_ms = self.store.now_ms if version == newest else self.store.written[commit_name(version + 1)]
            if version not in self.rows or until_ms >= self.needless_before_ms:
                if version not in self.rows and until_ms < self.needless_before_ms:
                    continue  # it came and went while something else was going on
                found = sorted(table.to_arrow(version=version)["id"].to_pylist())
                assert self.rows.setdefault(version, found) == found, version
                if version and self.store.written[commit_name(version)] >= self.needless_before_ms:
                    table.changes(version, version)
        assert sorted(self.table.to_arrow()["id"].to_pylist()) == self.rows[newest]


def run_schedules(seeds: range) -> None:
    refused = deleted = 0
    for seed in seeds:
        schedule = Schedule(seed)
        try:
            schedule.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        refused += schedule.refused
        deleted += schedule.deleted
    # Schedules in which nothing goes, or nobody is late, would show nothing.
    assert deleted > 3 * len(seeds) and refused > len(seeds) / 10


def test_nothing_is_lost_that_anyone_may_need() -> None:
    """Ten schedules of a second: every version is read again after every VACUUM. `make soak` runs 300."""
    run_schedules(range(10))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_is_lost_that_anyone_may_need_for_long() -> None:
    run_schedules(range(1000, 1300))
