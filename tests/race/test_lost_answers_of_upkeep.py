"""Lost answers to commits of maintenance, copies and conversions: the commit is in the log exactly once, and its caller succeeds.

GENERATE and REPAIR make no commit: if a file or an answer is lost, the caller gets an error, the table is unchanged, and a second run
succeeds.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import StorageFailure
from tahoe.log.files.paths import LAST_CHECKPOINT, checksum_name
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.optimize import rewritten_here
from tahoe.store.log_store import LogStore, PutOutcome, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import CrashingStore, FaultyStore, PutFault, SimulatedCrash, TracingStore, WrappedStore
from tahoe.txn.commit import Committed, RetryPolicy
from tests.race.operations import SCHEMA, contents, rows

FAULTS = [fault for fault in PutFault if fault is not PutFault.NONE]
POLICY = RetryPolicy(storage_attempts=3)
SEEDS = count()  # of two sessions, each gives its commits ids of their own
BEFORE = [("a", 2), ("a", 3), ("b", 11), ("b", 12), ("b", 13)]


def new_store() -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table")


def table_over(store: LogStore, compactor: Callable[[Table, Committed], None] | None = None) -> Table:
    """A table whose waits take no time."""
    clock = SeededClock(next(SEEDS), start_ms=time.time_ns() // 1_000_000)
    return Table(store.url, store=store, clock=clock, policy=POLICY, compactor=compactor)


@lru_cache(maxsize=2)
def files_of_a_table(clustered: bool) -> list[tuple[str, bytes]]:
    """Of a table with three files, of one of which a row is dead, at version 4."""
    store = new_store()
    properties = {"delta.enableDeletionVectors": "true"}
    table = Table.create(store.url, SCHEMA, cluster_by=["id"] if clustered else None, properties=properties, store=store)
    for number in (1, 2, 3):
        table.append(pa.concat_tables([rows("a", number), rows("b", 10 + number)]))
    assert table.delete("id = 1").version == 4
    return [(entry.name, store.get(entry.name)) for entry in store.walk()]


def prepared(*, clustered: bool = False) -> LogStore:
    store = new_store()
    for name, data in files_of_a_table(clustered):
        store.put(name, data)
    return store


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The operation, the expected rows of the table, and the operations of the commits, newest last."""

    run: Callable[[LogStore], object]
    operations: tuple[str, ...]
    clustered: bool = False
    after: tuple[tuple[str, int], ...] = tuple(BEFORE)


def compact(table: Table, committed: Committed) -> None:
    settings = AutoCompaction(enabled=True, min_files=3)
    compaction_after(
        committed, settings, PartitionReservations(), partial(table.compact_gently, partial(rewritten_here, table.clock))
    )


def lose_a_file_and_fsck(store: LogStore) -> None:
    table = table_over(store)
    paths = table.files(filter="id < 2")["path"].to_pylist()
    for path in paths:
        store.delete(path)
    assert len(paths) == 1
    table.fsck()


def other_statistics(store: LogStore) -> None:
    table = table_over(store)
    table.set_properties({"delta.dataSkippingNumIndexedCols": "1"})
    table.compute_statistics()


WITHOUT_11 = tuple(row for row in BEFORE if row != ("b", 11))
UPKEEP = {
    "purge": Upkeep(lambda store: table_over(store).purge(), ("REORG",)),
    "cluster": Upkeep(lambda store: table_over(store).cluster_by(["part"]), ("CLUSTER BY",), clustered=True),
    "optimize of a clustered table": Upkeep(lambda store: table_over(store).optimize(), ("OPTIMIZE",), clustered=True),
    "statistics": Upkeep(other_statistics, ("SET TBLPROPERTIES", "COMPUTE STATS")),
    "vacuum": Upkeep(lambda store: table_over(store).vacuum(), ("VACUUM START", "VACUUM END")),
    "fsck": Upkeep(lose_a_file_and_fsck, ("FSCK",), after=WITHOUT_11),
    "auto compaction": Upkeep(
        lambda store: table_over(store, compact).append(rows("a", 100)), ("WRITE", "OPTIMIZE"), after=(*BEFORE, ("a", 100))
    ),
    "auto compaction of a clustered table": Upkeep(
        lambda store: table_over(store, compact).append(rows("a", 100)),
        ("WRITE", "OPTIMIZE"),
        clustered=True,
        after=(*BEFORE, ("a", 100)),
    ),
}


@pytest.mark.parametrize("name", UPKEEP)
def test_one_fault_at_any_commit_makes_no_difference_to_upkeep(name: str) -> None:
    upkeep = UPKEEP[name]
    for place in range(len(upkeep.operations)):
        for fault in FAULTS:
            inner = prepared(clustered=upkeep.clustered)
            store = FaultyStore(inner, puts=[PutFault.NONE] * place + [fault])
            upkeep.run(store)
            assert [what for what, _ in store.injected] == [fault.value]
            actual = Table(inner.url, store=inner)
            made = [entry["operation"] for entry in actual.history(len(upkeep.operations))]
            assert (actual.version(), made[::-1]) == (4 + len(upkeep.operations), list(upkeep.operations)), fault
            assert contents(actual) == sorted(upkeep.after), fault
            assert actual.check(deep=True) == [], fault


def test_auto_compaction_of_a_clustered_table_clusters() -> None:
    store = prepared(clustered=True)
    table_over(store, compact).append(rows("a", 100))
    table = Table(store.url, store=store)
    commit = table.history(1)[0]["operationParameters"]
    assert (commit["auto"], commit["clusterBy"]) == ("true", '["id"]')
    assert table.files().num_rows == 1
    (tags,) = table.files()["tags"].to_pylist()
    assert tags, "the new file says of which cube it is"
    assert table.check(deep=True) == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("shallow", [False, True], ids=["deep", "shallow"])
def test_one_fault_makes_no_difference_to_a_clone(fault: PutFault, shallow: bool) -> None:
    source, inner = prepared(), new_store()
    store = FaultyStore(inner, puts=[fault])
    Table(source.url, store=source).clone(table_over(store), shallow=shallow)
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual), actual.check()) == (0, BEFORE, [])
    assert [what for what, _ in store.injected] == [fault.value]


def folder() -> LogStore:
    store = new_store()
    for number in range(3):
        sink = BytesIO()
        pq.write_table(rows("a", number).drop_columns(["part"]), sink)
        store.put(f"part={'ab'[number % 2]}/{number}.parquet", sink.getvalue())
    return store


def convert(store: LogStore) -> bool:
    return table_over(store).convert_to_delta({"part": "string"}).was_delta


CONVERTED = [("a", 0), ("a", 2), ("b", 1)]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_makes_no_difference_to_a_conversion(fault: PutFault) -> None:
    inner = folder()
    store = FaultyStore(inner, puts=[fault])
    assert not convert(store), "it is ours, and not the table of another"
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual), actual.check(deep=True)) == (0, CONVERTED, [])
    assert [what for what, _ in store.injected] == [fault.value]


def test_a_crash_at_any_store_call_of_a_conversion_leaves_a_table_or_files_that_can_be_converted() -> None:
    tracing = TracingStore(folder())
    convert(tracing)
    seen = set()
    for at, call in enumerate(tracing.calls):
        for after in (False, True):
            inner = folder()
            files = {entry.name: inner.get(entry.name) for entry in inner.walk()}
            with pytest.raises(SimulatedCrash):
                convert(CrashingStore(inner, at, after=after))
            survivor = Table(inner.url, store=inner)
            there = survivor.exists()
            assert convert(inner) is there, (at, call, after)
            assert (survivor.version(), contents(survivor), survivor.check(deep=True)) == (0, CONVERTED, []), (at, call, after)
            assert all(inner.get(name) == data for name, data in files.items()), "files stay as they are"
            seen.add(there)
    assert seen == {False, True}


class LosesAWrite(WrappedStore):
    """The n-th of its writes and deletions is done or not, and nobody hears of it."""

    def __init__(self, inner: LogStore, at: int, *, done: bool) -> None:
        super().__init__(inner)
        self.left, self.done, self.lost, self.lock = at, done, "", threading.Lock()

    def put(self, name: str, data: bytes) -> None:
        if self.loses(name, lambda: self.inner.put(name, data)):
            raise StorageFailure(f"no answer for '{name}'", table=self.url, file=name)

    def delete(self, name: str) -> None:
        if self.loses(name, lambda: self.inner.delete(name)):
            raise StorageFailure(f"no answer for '{name}'", table=self.url, file=name)

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        outcomes: list[PutOutcome] = []
        if self.loses(name, lambda: outcomes.append(self.inner.put_if_absent(name, data))):
            return Unanswered("the answer was lost")
        return outcomes[0]

    def loses(self, name: str, run: Callable[[], object]) -> bool:
        with self.lock:
            self.left -= 1
            lost = self.left == -1
        if self.done or not lost:
            run()
        if lost:
            self.lost = name
        return lost


def listed() -> LogStore:
    """A table with manifests that are old: one is of a partition that has no file any more."""
    store = new_store()
    table = Table.create(store.url, SCHEMA, partition_by=["part"], store=store)
    for part in "abc":
        table.append(rows(part, ord(part)))
    table.generate()
    table.delete("part = 'a'")
    table.append(pa.concat_tables([rows("b", 1), rows("d", 2)]))
    return store


def manifests(store: LogStore) -> dict[str, list[str]]:
    return {entry.name: store.get(entry.name).decode().splitlines() for entry in store.walk("_symlink_format_manifest")}


def broken_log() -> LogStore:
    """A table whose newest checkpoint, hint and checksum are damaged."""
    store = prepared()
    table_over(store).checkpoint()
    for entry in store.list_from("_delta_log"):
        if ".checkpoint." in entry.name:
            store.put(entry.name, b"PAR1 damaged PAR1")
    store.put(LAST_CHECKPOINT, b"{")
    store.delete(checksum_name(4))
    return store


@dataclass(frozen=True, slots=True)
class Files:
    """An operation that writes files beside the commits: its table, the call, and the property of the storage afterwards."""

    before: Callable[[], LogStore]
    run: Callable[[Table], object]
    holds: Callable[[LogStore], bool]


def lists_the_newest(store: LogStore) -> bool:
    names = {name.split("/")[-2]: {path.rsplit("/", 1)[-1] for path in paths} for name, paths in manifests(store).items()}
    live: dict[str, set[str]] = {}
    for path in Table(store.url, store=store).files()["path"].to_pylist():
        live.setdefault(path.split("/")[0], set()).add(path.rsplit("/", 1)[-1])
    return names == live and set(live) == {"part=b", "part=c", "part=d"}


def is_whole(store: LogStore) -> bool:
    actual = Table(store.url, store=store).repair_log(dry_run=True)
    return actual.findings == ()


FILES = {
    "generate": Files(listed, lambda table: table.generate(), lists_the_newest),
    "repair_log": Files(broken_log, lambda table: table.repair_log(), is_whole),
}


@pytest.mark.damages_tables
@pytest.mark.parametrize("done", [True, False], ids=["the answer is lost", "the request is lost"])
@pytest.mark.parametrize("name", FILES)
def test_a_lost_file_beside_the_log_is_reported_and_a_second_run_repairs_it(name: str, done: bool) -> None:
    files, lost = FILES[name], list[str]()
    while True:
        inner = files.before()
        assert not files.holds(inner)
        log = {entry.name: inner.get(entry.name) for entry in inner.list_from("_delta_log") if entry.name[-5:] == ".json"}
        rows_before = contents(Table(inner.url, store=inner))
        store = LosesAWrite(inner, len(lost), done=done)
        message = None
        try:
            files.run(table_over(store))
        except StorageFailure as error:
            message = str(error)
        if not store.lost:
            assert message is None and files.holds(inner)
            break
        assert message is not None and store.lost in message
        lost.append(store.lost)
        survivor = Table(inner.url, store=inner)
        assert contents(survivor) == rows_before, store.lost
        assert all(path.endswith(".parquet") for paths in manifests(inner).values() for path in paths), "whole lists only"
        files.run(survivor)
        assert files.holds(inner), store.lost
        assert {name: inner.get(name) for name in log} == log
        assert survivor.check(deep=True) == []

    assert len(lost) == {"generate": 4, "repair_log": 4}[name], lost
