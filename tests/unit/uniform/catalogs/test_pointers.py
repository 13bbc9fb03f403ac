"""Calls to catalogs run in the background: one call at a time for each catalog, and callers pass a timeout."""

from __future__ import annotations

import traceback
from threading import Event, current_thread

import pytest

from tahoe.base.clock import SystemClock
from tahoe.base.exceptions import StorageFailure
from tahoe.uniform.catalogs.catalog_entries import SqlCatalog
from tahoe.uniform.catalogs.pointers import PATIENCE_SECONDS, CatalogCalls, Pointer, PointerFailure

SECONDS = 120
"""Long enough that only a failing test times out."""
TABLE = "file:///t"


class Watch(SystemClock):
    """A clock set by the test."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)


class Hanging:
    """Calls that hang until they are released."""

    def __init__(self, calls: CatalogCalls, catalog: str = "c", kind: str = "ask") -> None:
        self.go_on = Event()
        self.started = Event()
        self.future = calls.submit(TABLE, catalog, kind, 0, self.run)
        assert self.started.wait(SECONDS)

    def run(self) -> str:
        self.started.set()
        assert self.go_on.wait(SECONDS)
        return "late"


def test_a_call_that_hangs_blocks_only_calls_to_its_own_catalog():
    calls = CatalogCalls()
    hanging = Hanging(calls)
    after = calls.submit(TABLE, "c", "move", 1, lambda: "after")
    assert calls.result(TABLE, "other", calls.submit(TABLE, "other", "move", 1, lambda: "other"), SECONDS) == "other"
    with pytest.raises(StorageFailure, match="The catalog c has not answered"):
        calls.result(TABLE, "c", after, 0.01)
    hanging.go_on.set()
    assert calls.result(TABLE, "c", after, SECONDS) == "after"
    assert hanging.future.result(0) == "late"
    assert calls.drain(SECONDS) == []


def test_only_the_newest_queued_call_of_each_kind_is_made():
    calls, made = CatalogCalls(), []
    hanging = Hanging(calls)
    futures = [
        calls.submit(TABLE, "c", "move", version, lambda version=version: made.append(version)) for version in (2, 4, 3, 5, 4)
    ]
    calls.submit(TABLE, "c", "take over", 1, lambda: made.append("all"))
    hanging.go_on.set()
    assert calls.drain(SECONDS) == []
    assert made == [5, "all"]
    assert all(future.done() for future in futures)


def test_a_catalog_that_has_been_silent_for_long_is_not_waited_for_again():
    watch = Watch()
    calls = CatalogCalls(watch)
    hanging = Hanging(calls, kind="move")
    watch.seconds += 30
    with pytest.raises(StorageFailure, match="for 30 seconds"):
        calls.result(TABLE, "c", calls.submit(TABLE, "c", "ask", 0, str), 29)  # would take that long if it waited
    hanging.go_on.set()
    assert calls.drain(SECONDS) == []


def test_each_replacement_thread_may_hang_twice_as_long():
    watch = Watch()
    calls = CatalogCalls(watch)
    first = Hanging(calls)
    watch.seconds += PATIENCE_SECONDS + 1
    second = Hanging(calls, kind="move")
    watch.seconds += PATIENCE_SECONDS + 1
    waits = calls.submit(TABLE, "c", "move", 1, lambda: current_thread().ident)
    assert not waits.done()
    watch.seconds += PATIENCE_SECONDS + 1
    third = calls.submit(TABLE, "c", "ask", 1, lambda: "answer")
    assert calls.result(TABLE, "c", third, SECONDS) == "answer"
    assert calls.result(TABLE, "c", waits, SECONDS)
    assert calls.drain(SECONDS) == []
    for hanging in (first, second):
        hanging.go_on.set()
        assert hanging.future.result(SECONDS) == "late", "a caller still waiting gets the result"
    assert calls.drain(SECONDS) == []


def test_drain_returns_unfinished_pointers():
    calls = CatalogCalls()
    asking = Hanging(calls, "asked")
    hanging = Hanging(calls, kind="move")
    assert calls.drain(0.01) == [(TABLE, "c")]
    assert calls.drain(0.01, "file:///another") == []
    hanging.go_on.set()
    assert calls.drain(SECONDS, TABLE) == [], "drain does not wait for reads"
    asking.go_on.set()


def test_a_failure_is_the_last_move_s_error_or_a_missing_answer():
    watch = Watch()
    calls = CatalogCalls(watch)
    calls.note(TABLE, "c", PointerFailure(3, StorageFailure("down")))
    assert calls.failure(TABLE, "c").error.message == "down"
    hanging = Hanging(calls, kind="move")
    watch.seconds += 12
    assert "has not answered for 12 seconds" in calls.failures(TABLE)["c"].error.message
    assert calls.failures(TABLE)["c"].version == 3
    hanging.go_on.set()
    assert calls.drain(SECONDS) == []
    assert calls.shown(TABLE, "c") is None
    calls.note(TABLE, "c", "file:///t/metadata/v3.metadata.json")
    assert calls.failures(TABLE) == {}
    assert calls.shown(TABLE, "c") == "file:///t/metadata/v3.metadata.json"
    calls.keep(TABLE, ["another"])
    assert calls.shown(TABLE, "c") is None


def test_any_error_becomes_a_tahoe_error_without_its_text():
    calls = CatalogCalls()

    class Broken:
        name = "broken"

        def load(self):
            raise RuntimeError("password=hunter2")

    for here in (True, False):
        pointer = Pointer(TABLE, Broken(), calls, here)
        with pytest.raises(StorageFailure, match=r"broken failed \(RuntimeError\)") as raised:
            pointer.result(pointer.ask(), SECONDS)
        assert "hunter2" not in str(raised.value)
        assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_catalog_passed_as_an_object_is_called_in_the_caller_s_thread():
    """SQLite in memory is another database in each thread."""
    from pyiceberg.catalog.memory import InMemoryCatalog

    theirs = InMemoryCatalog("here")
    pointer = Pointer(TABLE, SqlCatalog(theirs, "a.b"), CatalogCalls(), here=True)
    assert pointer.result(pointer.ask(), 0) is None
    theirs.engine.dispose()
