"""VACUUM beside slow writers, readers inside a scan, the change feed, time travel and Iceberg readers, by seed: no needed file is deleted.

The clock of the storage advances by hours between the steps. One number decides the expected results: the latest time for which a VACUUM
was allowed to delete. A version that was the newest at that time or later can be read, with its rows and its changes, also by a scan that
began long ago. A writer is refused only if its files are older. Every acknowledged row exists. UniForm converts each third table: a reader
of its metadata of five minutes ago continues to read, whatever the retention. Streams do not delay VACUUM: a stream that is too late had
its checkpoint before its files were deleted, and a stream that is in time reads every change.
"""

from __future__ import annotations

import io
import random
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.log.files.paths import LOG_FOLDER, commit_name
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.store.stream_records import record_stream
from tahoe.stream.position import Position
from tahoe.testing.aged_store import AgedClock, AgedStore
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, WrappedStore
from tahoe.testing.iceberg_verifier import dead_positions, live_entries, newest_document
from tahoe.testing.table_laws import SIGNS

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.deletedFileRetentionDuration": "interval 24 hours",
    "delta.checkpointInterval": "7",
}
UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.columnMapping.mode": "name",
    "delta.enableIcebergCompatV3": "true",
}
HOUR_MS = 3_600_000
FIVE_MINUTES_MS = 300_000
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


@dataclass
class Stream:
    """A query that reads the table: its checkpoint, its offset, and the rows that result from its changes."""

    checkpoint: str
    feed: bool
    position: Position | None = None
    rows: Counter[int] = field(default_factory=Counter)


class Schedule:
    """One table, its writers and readers, and the expected results."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = AgedStore(open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table"))
        self.clock = AgedClock(self.store)
        self.is_iceberg = seed % 3 == 0
        properties = PROPERTIES | (UNIFORM if self.is_iceberg else {})
        self.table = Table.create(
            self.store.url, SCHEMA, partition_by=["p"], properties=properties, store=self.store, clock=self.clock
        )
        self.next_id = 0
        self.needless_before_ms = 0  # who needs nothing older than this loses nothing
        self.waiting: list[tuple[int, set[int], Callable[[], int]]] = []
        self.rows: dict[int, list[int]] = {}
        self.scans: list[tuple[int, Iterator[pa.RecordBatch], list[int]]] = []
        self.iceberg_readers: list[tuple[int, dict[str, Any]]] = []
        self.streams: list[Stream] = []
        self.told: set[str] = set()
        self.refused = self.deleted = self.scanned = self.read_late = self.too_late = self.in_time = 0

    def run(self) -> None:
        with warnings.catch_warnings():
            # Threads of a pool warn through the same door.
            warnings.showwarning = lambda message, *_, **__: self.told.update(re.findall(r"the checkpoint (\S+)", str(message)))
            warnings.simplefilter("always")
            self.run_steps()

    def run_steps(self) -> None:
        for _ in range(STEPS):
            steps = [self.stage, self.commit, self.change, self.change, self.vacuum, self.vacuum, self.begin_scan, self.end_scan]
            step = self.chance.choice([*steps, self.begin_stream, self.begin_stream, self.read_stream])
            step()
            self.look_at_iceberg()
            self.store.later(self.chance.choice([0, 0.01, 2, 9, 30]))
            self.look(again=step == self.vacuum)
        self.store.later(2)  # until readers of the Iceberg side can only use the newest metadata
        self.needless_before_ms = self.store.now_ms
        self.clean(self.table, 0)
        self.look(again=True)
        assert self.table.check(deep=True) == []
        live = set(self.table.files()["path"].to_pylist())
        left = {entry.name for entry in self.store.walk() if not entry.name.startswith((LOG_FOLDER, "metadata/"))}
        assert {name for name in left if name.endswith(".parquet")} == live

    # ---- steps

    def stage(self) -> None:
        """A writer begins, writes, and does not commit yet."""
        table = Table(self.store.url, store=self.store, clock=self.clock)
        rows = self.new_rows()
        transaction = table.begin()
        started_commit = self.store.now_ms
        operation = stage_write(transaction, rows, WriteOptions())
        self.waiting.append((started_commit, set(rows["id"].to_pylist()), lambda: table.commit(transaction, operation).version))

    def commit(self) -> None:
        """A writer that waited commits, or gets the error that it took too long."""
        if not self.waiting:
            return
        started_commit, ids, commit = self.waiting.pop(self.chance.randrange(len(self.waiting)))
        try:
            version = commit()
        except DeltaConcurrentModificationException:
            # The file of the commit VACUUM START is some milliseconds younger than its measured time.
            assert started_commit < self.needless_before_ms + 1000
            self.refused += 1
        else:
            actual = Table(self.store.url, store=self.store).to_arrow(version=version)
            assert ids <= set(actual["id"].to_pylist())

    def begin_scan(self) -> None:
        """A reader begins: it has the first rows, and knows which files come."""
        table = Table(self.store.url, store=self.store)
        version = table.version()
        batches = table.snapshot().scan().batches()
        first = next(batches, None)
        self.scans.append((version, batches, [] if first is None else first["id"].to_pylist()))

    def end_scan(self) -> None:
        """It reads on."""
        if not self.scans:
            return
        version, batches, ids = self.scans.pop(self.chance.randrange(len(self.scans)))
        try:
            for batch in batches:
                ids += batch["id"].to_pylist()
        except (LookupError, OSError):  # a file is gone
            if self.may_be_read(version):
                raise
        else:
            assert sorted(ids) == self.rows.get(version, sorted(ids))
            self.scanned += 1

    def begin_stream(self) -> None:
        """A query of the table's rows or changes starts: it comes to its first batch."""
        self.streams.append(Stream(f"file:/at/{self.next_id}/{len(self.streams)}", self.chance.random() < 0.7))
        self.read_on(self.streams[-1], 1)

    def read_stream(self) -> None:
        """A query reads on for a while, as it was or started again."""
        if self.streams:
            self.read_on(self.chance.choice(self.streams), self.chance.choice([1, 1, 2, 100]))

    def read_on(self, stream: Stream, most_batches: int) -> None:
        """Read some batches; as Spark's source does, let the table know before each where the stream is."""
        table = Table(self.store.url, store=self.store, clock=self.clock)
        batches = table.tail(
            position=stream.position, read_change_feed=stream.feed, skip_change_commits=not stream.feed, max_files_per_trigger=1
        )
        try:
            for batch, _ in zip(batches, range(most_batches), strict=False):
                record_stream(self.store, stream.checkpoint, (stream.position or batch.source.begin).version)
                rows = batch.to_arrow()
                kinds = rows["_change_type"].to_pylist() if stream.feed else ["insert"] * len(rows)
                for id_, kind in zip(rows["id"].to_pylist(), kinds, strict=True):
                    stream.rows[id_] += SIGNS[kind]
                stream.position = batch.position
        except (LookupError, OSError):  # a file or a commit is gone
            if stream.checkpoint not in self.told:
                raise
            self.streams.remove(stream)
            self.too_late += 1
            return
        if stream.position is None or stream.position.is_initial_snapshot or stream.position.index >= 0:
            return
        record_stream(self.store, stream.checkpoint, stream.position.version)
        version = stream.position.version - 1
        if stream.feed and version in self.rows:
            assert sorted(stream.rows.elements()) == self.rows[version], (stream.checkpoint, version)
            assert min(stream.rows.values(), default=0) >= 0, (stream.checkpoint, version)
            self.in_time += 1

    def look_at_iceberg(self) -> None:
        """Readers of the Iceberg side that came lately read on; others come."""
        if not self.is_iceberg:
            return
        UNIFORM_RUNTIME.drain(120, 0, self.store.url)
        self.table.uniform.sync()
        self.iceberg_readers = [item for item in self.iceberg_readers if item[0] >= self.store.now_ms - FIVE_MINUTES_MS]
        for _, document in self.iceberg_readers:
            self.read_late += self.read_iceberg(document)
        document = newest_document(self.store)
        assert document is not None
        self.read_iceberg(document)
        self.iceberg_readers.append((self.store.now_ms, document))

    def read_iceberg(self, document: dict[str, Any]) -> bool:
        """Read an Iceberg table by known metadata, without the log."""
        snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]}
        if document.get("current-snapshot-id", -1) not in snapshots:
            return False
        snapshot = snapshots[document["current-snapshot-id"]]
        dead, ids = dead_positions(self.store, snapshot), list[int]()
        for url in live_entries(self.store, snapshot):
            name = unquote(url.removeprefix(self.store.url + "/"))
            rows = pq.read_table(io.BytesIO(self.store.get(name)))
            column = next(field.name for field in rows.schema if (field.metadata or {}).get(b"PARQUET:field_id") == b"2")
            ids += [row for position, row in enumerate(rows[column].to_pylist()) if position not in dead.get(url, ())]
        version = int(document["properties"]["delta-version"])
        assert sorted(ids) == self.rows.get(version, sorted(ids)), version
        return True

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
        newest, reported = table.version(), set(self.told)
        up_to_date = {item.checkpoint for item in self.streams if item.position is not None and item.position.version > newest}
        done = table.vacuum(hours, retention_check=False, lite=lite)
        assert not (self.told - reported) & up_to_date, "nothing goes that these would have to read"
        self.needless_before_ms = max(self.needless_before_ms, done.plan.cut_off_ms)
        self.deleted += done.deleted

    def new_rows(self) -> pa.Table:
        count = self.chance.choice([3, 40])
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        return pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids}, SCHEMA)

    # ---- expectations

    def look(self, *, again: bool) -> None:
        """Read every version that must be readable: old ones in a new session, the newest in the oldest session.

        Args:
            again: those too that were read before.
        """
        table = Table(self.store.url, store=self.store)
        newest = table.version()
        for version in range(newest + 1):
            if version in self.rows and not again:
                continue
            if self.may_be_read(version):  # others came and went while something else was going on
                actual = sorted(table.to_arrow(version=version)["id"].to_pylist())
                assert self.rows.setdefault(version, actual) == actual, version
                if version and self.store.written[commit_name(version)] >= self.needless_before_ms:
                    table.changes(version, version)
        assert sorted(self.table.to_arrow()["id"].to_pylist()) == self.rows[newest]

    def may_be_read(self, version: int) -> bool:
        """Whether somebody may need the version still."""
        following = self.store.written.get(commit_name(version + 1))
        return following is None or following >= self.needless_before_ms


_MANY = 100
"""Of so many schedules some have each thing that can happen."""


def run_schedules(seeds: range) -> None:
    refused = deleted = scanned = read_late = too_late = in_time = 0
    for seed in seeds:
        schedule = Schedule(seed)
        try:
            schedule.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        refused += schedule.refused
        deleted += schedule.deleted
        scanned += schedule.scanned
        read_late += schedule.read_late
        too_late += schedule.too_late
        in_time += schedule.in_time
    print(  # noqa: T201 - `pytest -s` shows it
        f"\n{len(seeds)} schedules: {deleted} files deleted, {refused} slow writers refused, {scanned} scans ended, "
        f"{read_late} late reads of the Iceberg side, {too_late} streams too late and told of, {in_time} reads of streams in time, "
        "nothing lost"
    )
    # Schedules in which nothing goes, or nobody is late, would show nothing. Who is late is up to threads: of a few, nobody may be.
    assert deleted > len(seeds) and scanned and read_late and in_time
    if len(seeds) >= _MANY:
        assert deleted > 3 * len(seeds) and refused > len(seeds) / 10 and scanned > len(seeds) / 2 and read_late > len(seeds) / 2
        assert too_late > len(seeds) / 20 and in_time > len(seeds) / 2


def test_nothing_is_lost_that_anyone_may_need() -> None:
    """Five schedules of a second: every version is read again after every VACUUM. `make soak` runs 300."""
    run_schedules(range(5))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_is_lost_that_anyone_may_need_for_long() -> None:
    run_schedules(range(1000, 1300))
