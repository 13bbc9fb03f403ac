"""A writer that dies at any step: acknowledged commits stay, the others exist as a whole or not at all, the next writer succeeds."""

from __future__ import annotations

import os
import random
import re
import signal
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.log.checkpoints.checkpoint_reader import sidecars_of
from tahoe.log.cleanup import clean_up_log
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.optimize import rewritten_here
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, CrashingStore, SimulatedCrash, TracingStore
from tahoe.txn.commit import Committed
from tests.race.operations import BEFORE, OPERATIONS, SCHEMA, contents, prepared, rows
from tests.race.processes import acknowledged, start, wait_until_ready, writer_process
from tests.sampling import FIRST_OR_ALL, sampled

WRITES = ("put", "put_if_absent", "delete")
_IDENTIFIER = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def new_store() -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table")


def trace(operation: Callable[[Table], object], prepare: Callable[[LogStore], object]) -> list[Call]:
    inner = new_store()
    prepare(inner)
    store = TracingStore(inner)
    operation(Table(store.url, store=store))
    return store.calls


def crash_points(calls: list[Call]) -> list[tuple[int, bool]]:
    """(number, after) of every place to die: before each call, and after each that writes. (After a read nothing differs from
    before the next call.)"""
    assert any(call.method in WRITES for call in calls)
    return [(at, after) for at, call in enumerate(calls) for after in (False, True) if not after or call.method in WRITES]


def first_of_each_kind(calls: list[Call], points: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """The first of all crash points at the same method and the same file, ignoring identifiers in its name."""
    kinds = {(calls[at].method, _IDENTIFIER.sub("", calls[at].name), after): (at, after) for at, after in reversed(points)}
    return sorted(kinds.values())


@pytest.mark.parametrize("first", FIRST_OR_ALL)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_crash_at_any_store_call_leaves_all_or_nothing_and_the_next_writer_continues(name: str, first: bool) -> None:
    operation = OPERATIONS[name]
    committed_at_all = set()
    calls = trace(operation.run, prepared)
    points = crash_points(calls)
    for at, after in first_of_each_kind(calls, points) if first else points:
        inner = new_store()
        prepared(inner)
        store = CrashingStore(inner, at, after=after)
        with pytest.raises(SimulatedCrash):
            operation.run(Table(store.url, store=store))
        where = f"crash {'after' if after else 'before'} call {at} ({store.crashed_at}) of {name}"

        survivor = Table(inner.url, store=inner)
        committed = survivor.version() == 4
        assert contents(survivor) == sorted(operation.after if committed else BEFORE), where
        assert survivor.append(rows("z", 999)) == (5 if committed else 4), where
        assert contents(survivor) == sorted([*(operation.after if committed else BEFORE), ("z", 999)]), where
        assert survivor.check() == [], where
        committed_at_all.add(committed)
    assert committed_at_all == {False, True}


def compacting(store: LogStore) -> Table:
    """A table of which three small files of a partition are compacted after a write."""
    settings = AutoCompaction(enabled=True, min_files=3)

    def compact(table: Table, committed: Committed) -> None:
        compaction_after(
            committed, settings, PartitionReservations(), partial(table.compact_gently, partial(rewritten_here, table.clock))
        )

    return Table(store.url, store=store, compactor=compact)


def test_a_crash_in_the_compaction_after_a_write_leaves_the_write() -> None:
    tracing = TracingStore(new_store())
    prepared(tracing.inner)
    compacting(tracing).append(rows("a", 100))
    assert compacting(tracing.inner).history(1)[0]["operation"] == "OPTIMIZE"
    seen = set()
    for at, after in crash_points(tracing.calls):
        inner = new_store()
        prepared(inner)
        with pytest.raises(SimulatedCrash):
            compacting(CrashingStore(inner, at, after=after)).append(rows("a", 100))
        survivor = Table(inner.url, store=inner)
        version = survivor.version()
        assert contents(survivor) == sorted(BEFORE | {("a", 100)} if version > 3 else BEFORE), (at, after)
        assert survivor.check() == []
        seen.add(version)
    assert seen == {3, 4, 5}


def test_a_crash_while_making_a_checkpoint_leaves_the_table_as_it_was() -> None:
    for at, after in crash_points(trace(lambda table: table.checkpoint(), prepared)):
        inner = new_store()
        prepared(inner)
        with pytest.raises(SimulatedCrash):
            Table(inner.url, store=CrashingStore(inner, at, after=after)).checkpoint()
        survivor = Table(inner.url, store=inner)
        assert (contents(survivor), survivor.version()) == (sorted(BEFORE), 3)
        assert survivor.check() == []


def test_a_crash_while_making_a_v2_checkpoint_leaves_the_table_as_it_was_and_orphans_that_go_in_the_end() -> None:
    """It takes seconds, for it dies at each of some sixty places."""

    def with_sidecars(store: LogStore) -> None:
        prepared(store)
        table = Table(store.url, store=store)
        table.set_properties({"delta.checkpointPolicy": "v2"})
        table.checkpoint()
        table.append(rows("z", 999))

    made = new_store()
    with_sidecars(made)
    objects = {entry.name: made.get(entry.name) for entry in made.walk()}

    def copied(store: LogStore) -> None:
        for name, body in objects.items():
            store.put(name, body)

    expected = sorted([*BEFORE, ("z", 999)])
    left_orphans = False
    for at, after in crash_points(trace(lambda table: table.checkpoint(), copied)):
        inner = new_store()
        copied(inner)
        with pytest.raises(SimulatedCrash):
            Table(inner.url, store=CrashingStore(inner, at, after=after)).checkpoint()
        survivor = Table(inner.url, store=inner)
        assert (contents(survivor), survivor.version()) == (expected, 5)
        before = {entry.name for entry in inner.list_from("_delta_log/_sidecars")}
        assert survivor.checkpoint() == 5 and survivor.check() == []
        snapshot, later = survivor.snapshot(), SYSTEM_CLOCK.now_ms() + 100 * 86_400_000
        clean_up_log(inner, snapshot.config, later)
        there = {entry.name for entry in inner.list_from("_delta_log/_sidecars")}
        named = {name for entry in inner.list_from("_delta_log") for name in sidecars_of(inner, entry)}
        assert there == named, "what is there is named, and nothing that is named is gone"
        left_orphans |= bool(before - there)
        assert contents(Table(inner.url, store=inner)) == expected
    assert left_orphans


def test_a_crash_while_creating_leaves_a_table_or_none() -> None:
    def create(store: LogStore) -> None:
        Table.create(store.url, SCHEMA, partition_by=["part"], store=store)

    inner = new_store()
    tracing = TracingStore(inner)
    create(tracing)
    for at, after in crash_points(tracing.calls):
        inner = new_store()
        with pytest.raises(SimulatedCrash):
            create(CrashingStore(inner, at, after=after))
        survivor = Table(inner.url, store=inner)
        if not survivor.exists():
            create(inner)
        survivor.append(rows("a", 1))
        assert contents(survivor) == [("a", 1)]
        assert survivor.check() == []


def test_a_crash_while_the_first_append_makes_the_table_leaves_all_or_nothing() -> None:
    for at, after in crash_points(trace(lambda table: table.append(rows("a", 1)), lambda store: None)):
        inner = new_store()
        with pytest.raises(SimulatedCrash):
            Table(inner.url, store=CrashingStore(inner, at, after=after)).append(rows("a", 1))
        survivor = Table(inner.url, store=inner)
        actual = contents(survivor) if survivor.exists() else []
        assert actual in ([], [("a", 1)])
        survivor.append(rows("b", 2))
        assert contents(survivor) == sorted([*actual, ("b", 2)])
        assert survivor.check() == []


@pytest.mark.parametrize("kill", sampled(range(4), 4))
def test_a_killed_process_has_lost_nothing_that_it_acknowledged(tmp_path: Path, kill: int) -> None:
    path = str(tmp_path / "table")
    table = Table.create(path, pa.schema({"id": pa.int64()}), properties={"delta.checkpointInterval": "3"})
    with writer_process(path, 0, appends=1_000_000) as process:
        assert process.stdout is not None
        wait_until_ready(process)
        start(process)
        lines = [process.stdout.readline() for _ in range(5 + kill)]
        time.sleep(random.Random(kill).random() * 0.03)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read()
    acks = acknowledged("".join(lines) + rest)
    assert len(acks) >= 5 + kill
    read = table.to_arrow()["id"].to_pylist()
    whole_appends, odd = divmod(len(read), 3)
    assert odd == 0
    assert sorted(read) == list(range(3 * whole_appends))
    assert whole_appends - len(acks) in (0, 1)  # the last may have been killed between its commit and its acknowledgement
    assert table.check() == []
    table.append(pa.table({"id": [-1]}))
    assert sorted(table.to_arrow()["id"].to_pylist()) == [-1, *range(3 * whole_appends)]
    assert table.check() == []
