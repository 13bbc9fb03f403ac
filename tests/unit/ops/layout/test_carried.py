"""Rows that others delete while OPTIMIZE is at work are dead in the files that it commits, which it does not write again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.carried import RewrittenBin
from tahoe.ops.layout.optimize import optimize, rewritten_here
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.layout.optimize_report import Optimized
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64(), "v": pa.int64()})
TRACKED = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
CLUSTERED = OptimizeRequest(zorder_by=("v", "id"), target_file_size=1500)


def table_of(files: int, properties: dict[str, str] = TRACKED, rows: int = 20) -> Table:
    store = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")
    table = Table.create(store.url, SCHEMA, partition_by=["p"], properties=properties, store=store)
    for number in range(files):
        ids = range(number * rows, number * rows + rows)
        table.append(pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids, "v": [i * 7919 % 31 for i in ids]}, SCHEMA))
    return table


def contents(table: Table) -> pa.Table:
    return table.to_arrow(row_ids="delta.enableRowTracking" in table.snapshot().metadata.configuration).sort_by("id")


def optimized_beside(
    table: Table, meanwhile: Sequence[str], request: OptimizeRequest, *, in_order: bool = True
) -> tuple[Optimized, list[int]]:
    """Optimize, while others delete by the conditions, one before each commit; with the number of bins that each round wrote.

    Args:
        in_order: the result states that its rows have known positions.
    """
    other, waiting, written = Table(table.url, store=table.store), list(meanwhile), list[int]()

    def rewrite(snapshot: Snapshot, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[RewrittenBin]:
        written.append(len(bins))
        for item in rewritten_here(table.clock, snapshot, bins, plan):
            yield replace(item, has_known_places=in_order and item.has_known_places)

    def commit(*arguments: object) -> object:
        if waiting:
            other.delete(waiting.pop(0))
        return table.commit(*arguments)  # type: ignore[arg-type]

    return optimize(table.begin, commit, request, rewrite), written  # type: ignore[arg-type]


@pytest.mark.parametrize("request_", [OptimizeRequest(), CLUSTERED])
def test_nothing_is_written_again_where_rows_died_meanwhile(request_: OptimizeRequest) -> None:
    table = table_of(4)
    table.delete("id in (3, 4, 27)")
    expected = contents(table).filter([i not in (0, 2, 28, 77, 79) for i in contents(table)["id"].to_pylist()])
    done, written = optimized_beside(table, ["id in (0, 28)", "id = 2", "id in (77, 79)"], request_)
    assert (written, done.bins, len(done.removed)) == ([2], 2, 8)
    assert contents(table).equals(expected)
    assert table.check(deep=True) == []
    assert sum(vector["cardinality"] for vector in table.files()["deletionVector"].to_pylist() if vector) == 5
    # Vectors that were written for commits that lost are gone: one file is of the DELETE before, three of those beside, and one is ours.
    assert sum(entry.name.endswith(".bin") for entry in table.store.walk()) == 5


def test_rows_that_others_change_are_dead_in_the_new_file_and_live_in_theirs() -> None:
    table = table_of(3)
    other, ids = Table(table.url, store=table.store), contents(table)

    def commit(*arguments: object) -> object:
        if table.version() == 3:
            other.update({"v": "v + 100"}, "id < 4")
            other.merge(pa.table({"id": [5, 1000]}), "target.id = source.id").when_matched_update(
                {"v": "200"}
            ).when_not_matched_insert({"id": "source.id"}).execute()
        return table.commit(*arguments)  # type: ignore[arg-type]

    done = optimize(table.begin, commit, OptimizeRequest(), lambda *of: rewritten_here(table.clock, *of))  # type: ignore[arg-type]
    actual = contents(table)
    assert done.bins == 2
    assert actual["id"].to_pylist() == [*range(60), 1000]
    assert actual["v"].to_pylist()[:6] == [*(v + 100 for v in ids["v"].to_pylist()[:4]), ids["v"].to_pylist()[4], 200]
    assert actual["_row_id"].to_pylist()[:60] == ids["_row_id"].to_pylist()
    assert table.check(deep=True) == []


def test_a_file_that_is_gone_meanwhile_is_dead_in_the_new_one() -> None:
    table = table_of(4)
    done, written = optimized_beside(table, ["id < 20"], OptimizeRequest())
    assert (written, len(done.removed), contents(table)["id"].to_pylist()) == ([2], 6, [*range(20, 80)])
    assert table.check(deep=True) == []


def test_a_new_file_of_which_no_row_lives_is_not_committed() -> None:
    """A clustered bin becomes many files."""
    table = table_of(4)
    done, written = optimized_beside(table, ["v < 10"], CLUSTERED)
    assert written == [2]
    paths = table.files()["path"].to_pylist()
    assert {add.path for add in done.added} == set(paths)
    assert sum(entry.name.endswith(".parquet") and "_delta_log" not in entry.name for entry in table.store.walk()) == 8 + len(
        paths
    )
    assert all(row["v"] >= 10 for row in contents(table).to_pylist())
    assert table.check(deep=True) == []


@pytest.mark.parametrize("request_", [OptimizeRequest(), CLUSTERED])
def test_rows_without_known_places_have_their_bin_done_again(request_: OptimizeRequest) -> None:
    """As where Spark has shuffled them."""
    table = table_of(4)
    _, written = optimized_beside(table, ["id = 4"], request_, in_order=False)
    assert written == [2, 1]
    assert contents(table)["id"].to_pylist() == [i for i in range(80) if i != 4]


def test_where_most_of_a_bin_is_dead_it_is_done_again() -> None:
    table = table_of(4)
    _, written = optimized_beside(table, ["p = 'a' and id >= 18"], OptimizeRequest())
    assert written == [2, 1]
    assert table.files().num_rows == 2


def test_rows_that_come_back_have_the_bin_done_again() -> None:
    table = table_of(3)
    table.delete("id in (3, 5)")

    def commit(*arguments: object) -> object:
        if table.version() == 4:
            Table(table.url, store=table.store).restore(3)
        return table.commit(*arguments)  # type: ignore[arg-type]

    optimize(table.begin, commit, OptimizeRequest(), lambda *of: rewritten_here(table.clock, *of))  # type: ignore[arg-type]
    assert contents(table)["id"].to_pylist() == [*range(60)]
    assert table.check(deep=True) == []


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_a_crash_at_any_call_leaves_the_rows(step: int) -> None:
    """The results of OPTIMIZE, of the concurrent DELETE, and of the retry."""
    crashed, at = True, 0
    while crashed:
        for after in (False, True):
            table = table_of(2, rows=6)
            store = CrashingStore(table.store, at, after=after)
            crashed = False
            try:
                optimized_beside(Table(table.url, store=store), ["id = 3"], OptimizeRequest())
            except SimulatedCrash:
                crashed = True
            survivor = Table(table.url, store=table.store)
            expected = {*range(12)} - ({3} if "DELETE" in [item["operation"] for item in survivor.history()] else set())
            assert sorted(survivor.to_arrow()["id"].to_pylist()) == sorted(expected), (at, after)
            assert survivor.check() == []
        at += step
    assert at > 20


IDS = st.sets(st.integers(0, 59), min_size=1, max_size=15)
HISTORIES = {
    "before": st.one_of(st.just(set()), IDS),
    "meanwhile": st.lists(IDS, min_size=1, max_size=4),
    "how": st.sampled_from(["pack", "kd", "hilbert", "z"]),
    "properties": st.sampled_from([TRACKED, {"delta.enableDeletionVectors": "true"}]),
}


@settings(max_examples=10, deadline=None)
@given(**HISTORIES)
def test_the_rows_are_those_of_one_after_the_other(
    before: set[int], meanwhile: list[set[int]], how: str, properties: dict[str, str]
) -> None:
    """For deletions before and during OPTIMIZE: ids, versions and values of the remaining rows are unchanged."""
    optimized_as_in_turn(before, meanwhile, how, properties)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None)
@given(**HISTORIES)
def test_the_rows_are_those_of_one_after_the_other_a_thousand_times(
    before: set[int], meanwhile: list[set[int]], how: str, properties: dict[str, str]
) -> None:
    optimized_as_in_turn(before, meanwhile, how, properties)


def optimized_as_in_turn(before: set[int], meanwhile: list[set[int]], how: str, properties: dict[str, str]) -> None:
    table = table_of(3, properties)
    if before:
        table.delete(_in(before))
    rows, gone = contents(table), set(before)
    # A DELETE of rows that are dead commits nothing, and so OPTIMIZE would not lose to it.
    new = [ids - gone.union(*meanwhile[:number]) for number, ids in enumerate(meanwhile)]
    new = [ids for ids in new if ids]
    request = OptimizeRequest() if how == "pack" else OptimizeRequest(zorder_by=("v", "id"), curve=how, target_file_size=1200)
    optimized_beside(table, [_in(ids) for ids in new], request)
    gone = gone.union(*new)
    assert contents(table).equals(rows.filter([i not in gone for i in rows["id"].to_pylist()]))
    assert table.check(deep=True) == []


def _in(ids: set[int]) -> str:
    return f"id in ({', '.join(map(str, sorted(ids)))})"
