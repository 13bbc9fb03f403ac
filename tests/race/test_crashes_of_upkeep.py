"""Who keeps a table up and dies at any step leaves its rows; the next one does the work. The whole list: `test_upkeep_is_held`."""

from __future__ import annotations

import pytest

from tahoe.api.table import Table
from tahoe.store.log_store import LogStore
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore
from tests.race.operations import contents, rows
from tests.race.test_crashes import crash_points
from tests.race.test_lost_answers_of_upkeep import BEFORE, FILES, UPKEEP, prepared

CRASHING = ("purge", "cluster", "optimize of a clustered table", "statistics")


@pytest.mark.parametrize("name", CRASHING)
def test_a_crash_at_any_store_call_leaves_the_rows_and_the_next_does_the_work(name: str) -> None:
    upkeep = UPKEEP[name]
    tracing = TracingStore(prepared(clustered=upkeep.clustered))
    upkeep.run(tracing)
    versions = set()
    for at, after in crash_points(tracing.calls):
        inner = prepared(clustered=upkeep.clustered)
        with pytest.raises(SimulatedCrash):
            upkeep.run(CrashingStore(inner, at, after=after))
        survivor = Table(inner.url, store=inner)
        versions.add(survivor.version())
        assert contents(survivor) == sorted(BEFORE), (at, after)
        upkeep.run(inner)
        again = Table(inner.url, store=inner)
        again.append(rows("z", 999))
        assert contents(again) == sorted([*BEFORE, ("z", 999)]), (at, after)
        done = {entry["operation"] for entry in again.history()}
        assert set(upkeep.operations) <= done and again.check() == [], (at, after)
    assert versions == set(range(4, 5 + len(upkeep.operations)))


@pytest.mark.damages_tables
def test_a_crash_in_the_repair_of_a_log_leaves_the_rows_and_the_next_repairs() -> None:
    repair = FILES["repair_log"]
    tracing = TracingStore(repair.before())
    repair.run(Table(tracing.url, store=tracing))
    left = set()
    for at, after in crash_points(tracing.calls):
        inner: LogStore = repair.before()
        with pytest.raises(SimulatedCrash):
            repair.run(Table(inner.url, store=CrashingStore(inner, at, after=after)))
        left.add(repair.holds(inner))
        survivor = Table(inner.url, store=inner)
        assert (contents(survivor), survivor.version()) == (sorted(BEFORE), 4), (at, after)
        repair.run(survivor)
        assert repair.holds(inner) and survivor.check(deep=True) == [], (at, after)
    assert False in left
