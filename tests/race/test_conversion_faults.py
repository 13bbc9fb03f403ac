"""A conversion that fails in every way: no commit fails or waits for it, and the next conversion repairs the rest."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar, cast

import pyarrow as pa
import pytest

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import StorageFailure, Unsupported
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Exists, InFlight, LogStore, PutOutcome, Refused, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, SimulatedCrash, TracingStore, WrappedStore
from tahoe.testing.iceberg_verifier import live_entries, newest_document, verify
from tahoe.uniform.convert.converter import Converter
from tests.race.processes import acknowledged, start, wait_until_ready, writer_process
from tests.sampling import sampled

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
NAMED = {"delta.universalFormat.config.iceberg.catalogs": "any:sales.orders"}
SCHEMA = pa.schema({"part": pa.string(), "id": pa.int64()})
SECONDS = 120
"""More than enough: only a test that fails takes so long."""
Answer = TypeVar("Answer")


def rows(part: str, *ids: int) -> pa.Table:
    return pa.table({"part": [part] * len(ids), "id": pa.array(ids, pa.int64())}, SCHEMA)


def uniform_table(store: LogStore, **properties: str) -> Table:
    """A table whose waits take no time."""
    clock = SeededClock(start_ms=time.time_ns() // 1_000_000)
    table = Table.create(store.url, SCHEMA, partition_by=["part"], properties={**UNIFORM, **properties}, store=store, clock=clock)
    drained()
    return table


def drained() -> None:
    assert UNIFORM_RUNTIME.drain(SECONDS, SECONDS) == []


def new_store() -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table")


# -- every store call ----------------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    """The faults of the next conversions.

    Args:
        at: the number of the call that goes wrong, from 0; None for none.
        how: a name of `FAULTS`.
        calls: the calls of conversions so far.
    """

    at: int | None = None
    how: str = ""
    calls: list[Call] = field(default_factory=list)
    struck: Call | None = None


class ConverterFaults(WrappedStore):
    """Goes wrong for the converter's threads alone; the writer's calls are untouched."""

    def __init__(self, inner: LogStore) -> None:
        super().__init__(inner)
        self.plan = Plan()

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        if not threading.current_thread().name.startswith("tahoe-uniform"):
            return run()
        plan, call = self.plan, Call(method, name)
        number = len(plan.calls)
        plan.calls.append(call)
        if plan.struck is not None and plan.how.startswith("crash"):
            raise SimulatedCrash(f"dead since {plan.struck}")
        if number != plan.at:
            return run()
        plan.struck = call
        if plan.how in _DONE_FIRST:
            run()
        if plan.how.startswith("crash"):
            raise SimulatedCrash(plan.how)
        if plan.how == "panic":
            raise BaseException("a compiled library panicked")
        if method == "put_if_absent":
            return cast(Answer, _OUTCOMES[plan.how])
        raise StorageFailure(f"{plan.how}: {method} of {name}")


_OUTCOMES: dict[str, PutOutcome] = {
    "failed": Refused("busy"),
    "answer lost": Unanswered("the answer was lost"),
    "answered as taken": Exists(),
    "request lost": Unanswered("the request was lost"),
    "in flight": InFlight("another write"),
}
_DONE_FIRST = {"answer lost", "answered as taken", "crash after"}
READ_FAULTS = ("failed", "crash before")
WRITE_FAULTS = ("failed", "answer lost", "crash before", "crash after")
COMMIT_FAULTS = (*_OUTCOMES, "crash before", "crash after", "panic")


def faults_of(call: Call) -> tuple[str, ...]:
    return {"put_if_absent": COMMIT_FAULTS, "put": WRITE_FAULTS, "delete": WRITE_FAULTS}.get(call.method, READ_FAULTS)


def append(table: Table, number: int) -> int:
    return table.append(rows(f"p{number % 3}", number))


def overwrite(table: Table, number: int) -> int:
    return table.overwrite(rows(f"p{number % 3}", number), replace_where=f"part = 'p{number % 3}'")


def new_column(table: Table, number: int) -> int:
    return table.append(rows("p0", number).append_column(f"c{number}", pa.array([number], pa.int64())), merge_schema=True)


CHANGES: dict[str, Callable[[Table, int], int]] = {
    "append": append,
    "overwrite": overwrite,
    "append with a new column": new_column,
}


@pytest.mark.parametrize("name", sampled(CHANGES, len(CHANGES)))
def test_a_conversion_that_fails_at_any_store_call_is_no_matter_to_the_writer_and_the_next_one_heals_it(name: str) -> None:
    """Three commits for each store call of a conversion and each way in which it can go wrong, and more of them until the kinds
    together are 500."""
    change, number, commits = CHANGES[name], 100, 0
    calls = _calls_of_a_conversion(change)
    cases = [(at, how) for at, call in enumerate(calls) for how in faults_of(call)]
    cases = list(islice(cycle(cases), max(len(cases), 50)))
    for first in range(0, len(cases), 10):  # a table for some of the cases: small tables are quickly compared with their logs
        inner = new_store()
        store = ConverterFaults(inner)
        table = _prepared(store)
        for at, how in cases[first : first + 10]:
            where = f"{how} at call {at} ({calls[at]}) of the conversion of an {name}"
            number += 1
            store.plan = Plan(at, how)
            before = table.version()
            assert change(table, number) == before + 1, where
            assert append(table, number + 1000) == before + 2, where
            drained()
            assert store.plan.struck is not None, where
            if newest_document(inner) is not None:
                assert before <= shown(inner) <= before + 2, where

            store.plan = Plan()
            assert append(table, number + 2000) == before + 3, where
            drained()
            assert shown(inner) == before + 3, where
            assert table.uniform.status().last_error is None, where
        commits += table.version() + 1
        verify(inner)
    assert commits * len(CHANGES) >= 500


def shown(store: LogStore) -> int:
    """The version that readers see; its current snapshot has the files that the log has at that version."""
    document = newest_document(store)
    assert document is not None
    version = int(document["properties"]["delta-version"])
    actual = {path.rpartition("/")[2] for path in live_entries(store, document["snapshots"][-1])}
    assert actual == {path.rpartition("/")[2] for path in Snapshot.at(store, version).files()["path"].to_pylist()}
    return version


def _prepared(store: ConverterFaults) -> Table:
    table = uniform_table(store)
    for number in (1, 2, 3):
        append(table, number)
        drained()
    return table


def _calls_of_a_conversion(change: Callable[[Table, int], int]) -> list[Call]:
    store = ConverterFaults(new_store())
    table = _prepared(store)
    store.plan = Plan()
    change(table, 100)
    drained()
    return store.plan.calls


# -- catalogs ------------------------------------------------------------------------------------------------------------------


class Pointer:
    """A catalog that answers, refuses or hangs on request."""

    name, swaps = "any:sales.orders", True

    def __init__(self) -> None:
        self.location: str | None = None
        self.error: Exception | None = None
        self.hangs: threading.Event | None = None

    def load(self) -> str | None:
        self._suffer()
        return self.location

    def commit(self, old: str | None, new: str) -> bool:
        self._suffer()
        if old != self.location:
            return False
        self.location = new
        return True

    def _suffer(self) -> None:
        if self.hangs is not None:
            self.hangs.wait(SECONDS)
        if self.error is not None:
            raise self.error


@pytest.fixture
def pointer(monkeypatch: pytest.MonkeyPatch) -> Pointer:
    actual = Pointer()
    monkeypatch.setattr(UNIFORM_RUNTIME.catalogs, "named", lambda name: actual)
    return actual


@pytest.mark.parametrize(
    "error", [StorageFailure("down"), Unsupported("not of this kind"), RuntimeError("its library has a bug")]
)
def test_a_catalog_that_is_down_holds_up_no_commit_and_is_caught_up(pointer: Pointer, error: Exception) -> None:
    store = new_store()
    table = uniform_table(store, **NAMED)
    for number in range(10):
        pointer.error = error if number % 2 else None
        version = append(table, number)
        drained()
        if number % 2:
            assert table.uniform.status().last_error is not None
            assert pointer.location is not None and not pointer.location.endswith(f"/v{version}.metadata.json")
            assert verify(store) == version, "readers by path need no catalog"
        else:
            assert pointer.location == f"{store.url}/metadata/v{version}.metadata.json"
            assert table.uniform.status().last_error is None
    pointer.error = None
    table.uniform.sync()
    assert pointer.location == f"{store.url}/metadata/v{table.version()}.metadata.json"
    assert verify(store) == 10


def test_a_catalog_that_hangs_holds_up_no_commit_and_no_reader_by_path(pointer: Pointer) -> None:
    store = new_store()
    table = uniform_table(store, **NAMED)
    pointer.hangs = threading.Event()
    for number in range(20):
        assert append(table, number) == number + 1
    assert UNIFORM_RUNTIME.queue.drain(SECONDS)
    assert verify(store) == 20
    assert pointer.location is not None and not pointer.location.endswith("/v20.metadata.json")
    assert UNIFORM_RUNTIME.drain(SECONDS, 0.0) == [
        f"the catalog any:sales.orders of {table.url} has not answered and may be out of date; readers by path are not affected"
    ]
    pointer.hangs.set()
    drained()
    assert verify(store) == 20
    assert pointer.location == f"{store.url}/metadata/v20.metadata.json"


# -- processes -----------------------------------------------------------------------------------------------------------------


def test_a_process_that_is_killed_while_it_converts_is_made_up_for_by_the_next(tmp_path: Path) -> None:
    """Twice: a writer appends with pending conversions and is killed; the next writer converts them."""
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64()}), properties=UNIFORM)
    drained()
    for writer in (1, 2):
        before = table.version()
        with writer_process(str(tmp_path / "t"), writer, appends=100_000) as process:
            wait_until_ready(process)
            start(process)
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(8 + writer)]
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
        reported = acknowledged("".join(lines) + rest)
        version = table.version()
        assert version >= reported[-1][0] > before
        if newest_document(table.store) is not None:
            assert verify(table.store) <= version
        assert table.uniform.sync().version == version
        assert verify(table.store) == version


# -- a stream of commits -------------------------------------------------------------------------------------------------------

COMMITS = 40


@dataclass
class Held:
    """Conversions of one table, none of which goes on before `go_on` is set."""

    started_commit: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    conversions: int = 0
    at_once: int = 0
    most_at_once: int = 0


@contextmanager
def held(table: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    seen, lock, convert = Held(), threading.Lock(), Converter.convert

    def slow(self: Converter, *arguments: object, **options: object) -> object:
        if self._delta.url != table:
            return convert(self, *arguments, **options)
        with lock:
            seen.conversions += 1
            seen.at_once += 1
            seen.most_at_once = max(seen.most_at_once, seen.at_once)
        try:
            seen.started_commit.set()
            assert seen.go_on.wait(SECONDS)
            return convert(self, *arguments, **options)
        finally:
            with lock:
                seen.at_once -= 1

    with monkeypatch.context() as patched:
        patched.setattr(Converter, "convert", slow)
        yield seen


def test_a_stream_of_commits_is_not_delayed_by_a_conversion_that_lasts_longer_than_they(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables take turns to be committed to, alike but that one asks for UniForm, and has a conversion that does not end before the
    stream. Both ask storage for the same."""
    compatible = {"delta.enableIcebergCompatV2": "true"}  # both tables are written and checked alike
    on, off = TracingStore(new_store()), TracingStore(new_store())
    tables = {
        store: Table.create(store.url, SCHEMA, properties=properties, store=store)
        for store, properties in ((on, UNIFORM), (off, compatible))
    }
    drained()
    with held(on.url, monkeypatch) as seen:
        for number in range(COMMITS):
            asked = []
            for store, table in tables.items():
                store.calls.clear()
                assert append(table, number) == number + 1
                # Sorted, since independent calls after a commit begin in any order.
                asked.append(sorted((call.method, "_delta_log" in call.name) for call in store.calls))
            assert asked[0] == asked[1]
            assert seen.started_commit.wait(SECONDS)
            assert (on.url in UNIFORM_RUNTIME.queue._waiting) == (number > 0)
        seen.go_on.set()
        drained()
    assert (seen.conversions, seen.most_at_once) == (2, 1)
    assert verify(on) == COMMITS, "the last commit is visible in the end"
    document = newest_document(on)
    assert document is not None
    versions = [snapshot["summary"]["delta-version"] for snapshot in document["snapshots"]]
    assert versions == ["0", "1", str(COMMITS)], "snapshots are far fewer than commits"
