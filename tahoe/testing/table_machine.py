"""A table against a list of rows and a list of versions: every operation in any order, from sessions that may be stale.

After each step the newest rows are those of the model, and after every few `check()` is clean. At the end every version is read
again by time travel, and the law of the change feed is held against every version that has one:

    rows at a, without what was deleted or changed since, with what was inserted or changed to = rows at b

To have histories of tables of your own kind, say where they are and which properties they have::

    class OnMyStore(TableMachine):
        properties = {"delta.logRetentionDuration": "interval 1 day"}

        def new_store(self) -> LogStore:
            return MyStore(...)

    def test_a_table_on_my_store_does_what_a_list_of_rows_does() -> None:
        run_histories(OnMyStore, range(20))

A failure prints the steps, as Hypothesis does for its state machines. Needs the extra ``testing``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby
from typing import Any, ClassVar

from tahoe.clock import SYSTEM_CLOCK, SeededClock
from tahoe.exceptions import DeltaConcurrentModificationException, InvalidRequest, InvariantViolation
from tahoe.ops.layout.cluster_columns import with_statistics
from tahoe.ops.layout.curves import CURVES
from tahoe.ops.merge.merge import stage_merge
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.rows.update import stage_update
from tahoe.ops.tables.cluster_by import clustering_columns, is_clustered
from tahoe.ops.upkeep.check import TableCheck
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.table import Table
from tahoe.testing.extras import extra_missing
from tahoe.testing.row_model import (
    NOTHING,
    SCHEMA,
    Assignment,
    Condition,
    Merge,
    Row,
    Rows,
    TwiceMatched,
    arrow,
    changed,
    counted,
    merge_builder,
    merged,
    rows_of,
    stay,
)
from tahoe.testing.row_strategies import ONLY_NEW, assignments, conditions, merges, rows_of_keys, some_rows, with_keys
from tahoe.testing.table_laws import SIGNS
from tahoe.txn.transaction import Operation, Transaction

try:
    import pytest
    from hypothesis import HealthCheck, assume, seed, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["Change", "Stale", "TableMachine", "changes", "run_histories"]

VECTORS, FEED = "delta.enableDeletionVectors", "delta.enableChangeDataFeed"
TRACKING = "delta.enableRowTracking"
CONSTRAINT = Condition("v is null or v < 15", lambda row, _: row[2] is None or row[2] < 15)
TWICE_MATCHED = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
# Without a condition all rows go or change, and what comes after has little to work on: seldom, then.
_WHERE = st.one_of(conditions(), conditions(), conditions(), conditions(), st.none())
_MOSTLY = st.sampled_from([True, True, False])


@dataclass(frozen=True)
class Change:
    """A MERGE; or an UPDATE, or without an assignment a DELETE."""

    condition: Condition | None = None
    assignment: Assignment | None = None
    merge: Merge | None = None
    source: Sequence[Row] = ()

    def stage(self, transaction: Transaction, table: Table) -> Operation | None:
        """Stage it; None where there is nothing to do."""
        where = _text(self.condition)
        if self.merge is not None:
            return stage_merge(transaction, merge_builder(table, self.source, self.merge).statement).operation
        if self.assignment is not None:
            return stage_update(transaction, self.assignment.texts or {}, where).operation
        return stage_delete(transaction, where).operation

    def effect(self, rows: Rows) -> Rows:
        """The rows after it."""
        if self.merge is not None:
            return merged(rows, self.source, self.merge)[0]
        return changed(rows, self.condition, self.assignment) if self.assignment is not None else stay(rows, self.condition)


def changes(where: st.SearchStrategy[Condition | None], source: st.SearchStrategy[Rows]) -> st.SearchStrategy[Change]:
    """A MERGE that only inserts commits because of rows that match nothing, and reads others that it does not change."""
    return st.one_of(
        st.builds(Change, where),
        st.builds(Change, where, assignments()),
        st.builds(Change, merge=merges(), source=source),
        st.builds(Change, merge=st.just(ONLY_NEW), source=source),
    )


@dataclass
class Stale:
    """A change that was made on an older version and is not committed yet."""

    table: Table
    transaction: Transaction
    operation: Operation
    effect: Callable[[Rows], Rows]


class TableMachine(RuleBasedStateMachine):
    """The table, and beside it its rows at every version.

    Attributes:
        table: the session that the rules use.
        store: where the table is.
        versions: the rows of each version, by the model.
        feed_is_on: for each version, whether it has a change data feed.
        stale: what other sessions made ready on older versions and have not committed yet.
    """

    properties: ClassVar[Mapping[str, str]] = {}
    """Of every table, over those that are drawn. The feed is drawn, and not for them to say."""
    most_pairs: ClassVar[int] = 3
    """From so many versions to others, or a few more, the feed is read at the end."""
    steps_of_a_check: ClassVar[int] = 3
    """After so many steps that made versions `check()` looks at all commits since it last looked, and at the files of the newest."""

    def new_store(self) -> LogStore:
        """An empty store for one table; here in this process's memory."""
        return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")

    def __init__(self) -> None:
        super().__init__()
        # One for all sessions: two of the same seed would give the same names.
        self.clock = SeededClock()
        self.stale: list[Stale] = []
        self.versions: list[Rows] = []
        self.feed_is_on: list[bool] = []
        self.looked_at = -1
        self.unchecked = 0
        self.constrained = False
        self.constrained_at: list[bool] = []

    @initialize(
        vectors=_MOSTLY,
        feed=st.booleans(),
        tracking=st.booleans(),
        mapped=st.sampled_from(["none", "name", "id"]),
        partitioned=st.booleans(),
        dull=st.sampled_from([True, False, False, False]),
    )
    def create(self, vectors: bool, feed: bool, tracking: bool, mapped: str, partitioned: bool, dull: bool) -> None:
        # Hypothesis begins with the simplest choices of all, 50 times the same step: refused here, they are no history.
        assume(not dull)
        self.begin(vectors=vectors, feed=feed, tracking=tracking, mapped=mapped, partitioned=partitioned)

    def begin(self, *, vectors: bool, feed: bool, tracking: bool, mapped: str, partitioned: bool) -> None:
        """Make the table, with deletion vectors, change data feed, row tracking, column mapping and partitions as told."""
        self.store = self.new_store()
        properties = {VECTORS: str(vectors).lower(), FEED: str(feed).lower(), "delta.checkpointInterval": "6"}
        properties["delta.checkpointPolicy"] = "v2" if partitioned != tracking else "classic"
        if mapped != "none":
            properties["delta.columnMapping.mode"] = mapped
        if tracking:
            properties[TRACKING] = "true"
        properties |= self.properties
        self.tracking, self.partitioned = properties.get(TRACKING) == "true", partitioned
        self.table = Table.create(
            self.store.url,
            SCHEMA,
            partition_by=["p"] if partitioned else [],
            properties=properties,
            clock=self.clock,
            store=self.store,
        )
        self.checker = TableCheck(self.table.store)
        self.done([], feed)

    # ---- writes
    @rule(rows=some_rows(1), size=st.sampled_from([None, None, 2]))
    def append(self, rows: Rows, size: int | None) -> None:
        after = [*self.rows, *rows]
        if self.takes(after, lambda: self.table.append(arrow(rows), max_rows_per_file=size)):
            self.done(after)

    @rule(rows=some_rows())
    def overwrite(self, rows: Rows) -> None:
        version = self.takes(rows, lambda: self.table.overwrite(arrow(rows)))
        if version:
            self.written(version, rows)

    @rule(rows=some_rows(1))
    def overwrite_partitions(self, rows: Rows) -> None:
        parts = {row[1] for row in rows}
        after = [*(row for row in self.rows if self.partitioned and row[1] not in parts), *rows]
        if self.takes(after, lambda: self.table.overwrite(arrow(rows), dynamic_partitions=True)):
            self.done(after)

    @rule(rows=some_rows(), condition=conditions())
    def replace(self, rows: Rows, condition: Condition) -> None:
        new = [row for row in rows if condition.holds(row, NOTHING)]
        after = [*(row for row in self.rows if not condition.holds(row, NOTHING)), *new]
        version = self.takes(after, lambda: self.table.overwrite(arrow(new), replace_where=condition.text))
        if version:
            self.written(version, after)

    @rule(condition=_WHERE)
    def delete(self, condition: Condition | None) -> None:
        after = stay(self.rows, condition)
        outcome = self.table.delete(_text(condition))
        assert outcome.num_deleted_rows == len(self.rows) - len(after)
        self.done_if(outcome.version, after)

    @rule(condition=_WHERE, assignment=assignments())
    def update(self, condition: Condition | None, assignment: Assignment) -> None:
        assert assignment.texts is not None
        texts, after = assignment.texts, changed(self.rows, condition, assignment)
        outcome = self.takes(after, lambda: self.table.update(texts, _text(condition)))
        if outcome:
            assert outcome.num_updated_rows == len(self.rows) - len(stay(self.rows, condition))
            self.done_if(outcome.version, after)

    @rule(source=some_rows(), merge=merges())
    def merge(self, source: Rows, merge: Merge) -> None:
        try:
            rows, counts = merged(self.rows, source, merge)
        except TwiceMatched:
            with pytest.raises(InvalidRequest) as caught:
                merge_builder(self.table, source, merge).execute()
            assert caught.value.code == TWICE_MATCHED
            return
        outcome = self.takes(rows, lambda: merge_builder(self.table, source, merge).execute())
        if outcome:
            assert (outcome.num_updated_rows, outcome.num_deleted_rows, outcome.num_inserted_rows) == counts
            self.done_if(outcome.version, rows)

    def takes(self, after: Rows, write: Callable[[], Any]) -> Any:
        """What the write returns; None where the constraint forbids the rows that it would leave, and so it must fail."""
        if not self.constrained or all(CONSTRAINT.holds(row, NOTHING) for row in after):
            return write()
        with pytest.raises(InvariantViolation):
            write()
        return None

    # ---- properties
    @rule(on=_MOSTLY)
    def vectors(self, on: bool) -> None:
        self.table.set_properties({VECTORS: str(on).lower()})
        self.done(self.rows)

    @rule(on=st.booleans())
    def feed(self, on: bool) -> None:
        self.table.set_properties({FEED: str(on).lower()})
        self.done(self.rows, on)

    @rule(on=st.booleans())
    def constraint(self, on: bool) -> None:
        if on == self.constrained:
            return
        if not on:
            self.table.drop_constraint("small")
        elif all(CONSTRAINT.holds(row, NOTHING) for row in self.rows):
            self.table.add_constraint("small", CONSTRAINT.text)
        else:
            with pytest.raises(InvalidRequest):
                self.table.add_constraint("small", CONSTRAINT.text)
            return
        self.constrained = on
        self.done(self.rows)

    @rule()
    def checkpoint(self) -> None:
        assert self.table.checkpoint() == len(self.versions) - 1

    @rule()
    def purge(self) -> None:
        self.written(self.table.purge(), self.rows)

    @rule(columns=st.sampled_from([(), (), ("v",), ("k", "v")]), curve=st.sampled_from(sorted(CURVES)), small=st.booleans())
    def optimize(self, columns: Sequence[str], curve: str, small: bool) -> None:
        by = () if is_clustered(now := self.table.snapshot()) else with_statistics(now, columns)
        sizes: Any = {"target_file_size": 1500, "min_cube_size": 2000, "full": bool(clustering_columns(now))} if small else {}
        self.done_if(self.table.optimize(zorder_by=by, curve=curve, **sizes).version, self.rows)

    @precondition(lambda self: not self.partitioned)
    @rule(columns=st.sampled_from([(), ("k",), ("v", "k")]))
    def cluster_by(self, columns: Sequence[str]) -> None:
        self.written(self.table.cluster_by(by := with_statistics(self.table.snapshot(), columns)), self.rows)
        assert self.table.detail()["clusteringColumns"] == by

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        if len(self.versions) < 2:
            return
        target = data.draw(st.integers(0, len(self.versions) - 2))
        self.table.restore(target)
        self.constrained = self.constrained_at[target]
        self.done(self.versions[target], self.feed_is_on[target])

    @rule(shallow=st.booleans())
    def clone(self, shallow: bool) -> None:
        self.table.clone(other := Table("", store=self.new_store(), clock=self.clock), shallow=shallow)
        assert counted(rows_of(other.to_arrow())) == counted(self.rows)

    @rule(lite=st.booleans())
    def vacuum(self, lite: bool) -> None:
        self.table.vacuum(lite=lite)
        self.done(self.rows)  # VACUUM START
        self.done(self.rows)  # VACUUM END

    # ---- sessions
    @rule()
    def a_new_session_opens(self) -> None:
        self.table = self.session()

    @rule(change=st.builds(Change, _WHERE))
    def a_session_prepares_a_delete(self, change: Change) -> None:
        self.prepare_change(change)

    @rule(change=st.builds(Change, _WHERE, assignments()))
    def a_session_prepares_an_update(self, change: Change) -> None:
        self.prepare_change(change)

    @rule(change=st.builds(Change, merge=merges(), source=some_rows()))
    def a_session_prepares_a_merge(self, change: Change) -> None:
        self.prepare_change(change)

    @rule(rows=some_rows(1))
    def a_session_prepares_an_append(self, rows: Rows) -> None:
        self.prepare(lambda t: stage_write(t, arrow(rows), WriteOptions()), lambda before: [*before, *rows])

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def a_stale_session_commits(self, data: st.DataObject) -> None:
        self.commit(self.stale.pop(data.draw(st.integers(0, len(self.stale) - 1))))

    @rule(part=st.sampled_from(["a", "b", None]), anew=st.booleans(), data=st.data())
    def two_sessions_change_rows_of_the_same_files(self, part: str | None, anew: bool, data: st.DataObject) -> None:
        """Both begin now, each with a row or two that are there: the same rows, or others of the same file."""
        if anew or len(self.keys()) < 2:
            self.overwrite([(key, part, key + 2) for key in range(8)])
        begun, keys = len(self.stale), st.sampled_from(self.keys())
        for _ in range(2):
            self.prepare_change(data.draw(changes(with_keys(keys), rows_of_keys(keys))))
        while len(self.stale) > begun:
            self.commit(self.stale.pop(begun))

    def commit(self, stale: Stale) -> None:
        """Commit what is stale, or meet a conflict, which changes nothing."""
        try:
            stale.table.commit(stale.transaction, stale.operation)
        except DeltaConcurrentModificationException:
            return
        # Whoever may commit must leave what it would have left, had it begun only now.
        self.done(stale.effect(self.rows))

    # ---- laws
    @invariant()
    def the_newest_rows_are_those_of_the_model(self) -> None:
        newest = len(self.versions) - 1
        if newest < 0:
            return
        assert self.table.version() == newest
        if self.looked_at < newest:
            assert counted(rows_of(self.table.to_arrow())) == counted(self.rows)
            self.looked_at = newest
            self.unchecked += 1
        if self.unchecked >= self.steps_of_a_check:
            # What it found in order before, it does not read again; `teardown` does.
            assert self.checker.violations() == []
            self.unchecked = 0

    def teardown(self) -> None:
        """Hold the laws that concern all versions."""
        if not self.versions:
            return
        fresh = Table(self.store.url, store=self.store)
        assert fresh.check() == []
        for version, rows in enumerate(self.versions):
            found = fresh.to_arrow(version=version, row_ids=self.tracking)
            assert counted(rows_of(found)) == counted(rows), version
            if self.tracking:
                assert len(set(found["_row_id"].to_pylist())) == len(rows), version
        for is_on, group in groupby(range(len(self.versions)), key=lambda version: self.feed_is_on[version]):
            if is_on:
                self.check_feed(fresh, list(group))

    def check_feed(self, table: Table, versions: list[int]) -> None:
        """Hold the law of the feed against a run of versions that all have one."""
        changes = table.changes(versions[0], versions[-1])
        told = changes.to_pylist()
        for version in versions:
            rows = Counter(self.versions[version - 1] if version else [])
            for change in told:
                if change["_commit_version"] == version:
                    rows[(change["k"], change["p"], change["v"])] += SIGNS[change["_change_type"]]
            # A count below zero says that a row went which was not there.
            assert {row: count for row, count in rows.items() if count} == Counter(self.versions[version]), version
        # Every part of the range is told as it is within the whole, so the law holds from any version to any other.
        pairs = list(combinations_with_replacement(versions, 2))
        for first, last in pairs[:: max(1, len(pairs) // self.most_pairs)]:
            part = _unordered(table.changes(first, last).to_pylist())
            assert part == _unordered([change for change in told if first <= change["_commit_version"] <= last]), (first, last)

    # ---- the model
    def session(self) -> Table:
        """The table as a new session sees it."""
        return Table(self.store.url, clock=self.clock, store=self.store)

    @property
    def rows(self) -> Rows:
        """Those of the newest version."""
        return self.versions[-1]

    def done(self, rows: Rows, feed: bool | None = None) -> None:
        """Note a version with its rows, and whether it has a feed where that changed."""
        self.versions.append(list(rows))
        self.constrained_at.append(self.constrained)
        self.feed_is_on.append(self.feed_is_on[-1] if feed is None else feed)

    def done_if(self, version: int | None, rows: Rows) -> None:
        """As `done`, where the operation made a version; else the rows must be the same as before."""
        if version is None:
            assert counted(rows) == counted(self.rows)
        else:
            assert version == len(self.versions)
            self.done(rows)

    def written(self, version: int, rows: Rows) -> None:
        """As `done`; a write that had nothing to do gives the version that was there, and leaves its rows."""
        self.done_if(None if version == len(self.versions) - 1 else version, rows)

    def keys(self) -> list[int]:
        """The values of ``k``, each once."""
        return sorted({row[0] for row in self.rows if row[0] is not None})

    def prepare_change(self, change: Change) -> None:
        """Make a change ready in a session of its own."""
        self.prepare(lambda transaction: change.stage(transaction, self.table), change.effect)

    def prepare(self, stage: Callable[[Transaction], Operation | None], effect: Callable[[Rows], Rows]) -> None:
        """Make something ready in a session of its own, and keep it in `stale` unless it is refused."""
        table = self.session()
        transaction = table.begin()
        try:
            operation = stage(transaction)
        except InvariantViolation:
            assert self.constrained
            return
        except InvalidRequest as error:
            if error.code != TWICE_MATCHED:
                raise
            return
        if operation is not None:
            self.stale.append(Stale(table, transaction, operation, effect))


def _unordered(changes: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(tuple(change.values()) for change in changes)


def _text(condition: Condition | None) -> str | None:
    return None if condition is None else condition.text


_SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def run_histories(machine: type[TableMachine], seeds: Iterable[int], *, steps: int = 50) -> None:
    """One history for each seed. (Left to itself, Hypothesis would spend most of its runs on variants of a few.)

    Args:
        machine: `TableMachine`, or a subclass.
        seeds: the same seed gives the same history.
        steps: at most so many in a history.

    Raises `AssertionError`: whatever did not hold, with the shortest history found that shows it.
    """
    one = settings(max_examples=1, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=_SLOW)
    for number in seeds:
        run_state_machine_as_test(seed(number)(type(machine.__name__, (machine,), {})), settings=one)
