"""A table compared with a list of rows and versions: every operation in any order, from sessions that may be stale.

After each step the newest rows must equal the model's, and after every few steps `check()` must be clean. At the end every version is
read again by time travel, and the invariant of the change feed is checked for every version that has one:

    rows at a, without deleted or changed rows, with inserted or changed rows = rows at b

To run histories on tables of your own kind, set their store and properties::

    class OnMyStore(TableMachine):
        properties = {"delta.logRetentionDuration": "interval 1 day"}

        def new_store(self) -> LogStore:
            return MyStore(...)

    def test_a_table_on_my_store_does_what_a_list_of_rows_does() -> None:
        run_histories(OnMyStore, range(20))

A failure prints the steps, as Hypothesis does for its state machines. Needs the extra ``testing``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, InvariantViolation
from tahoe.ops.layout.cluster_columns import with_statistics
from tahoe.ops.layout.curves import CURVES
from tahoe.ops.merge.merge import stage_merge
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.rows.update import stage_update
from tahoe.ops.tables.cluster_by import clustering_columns, is_clustered
from tahoe.testing.extras import extra_missing
from tahoe.testing.modelled_table import COMPACTION, FEED, MOSTLY, TWICE_MATCHED, VECTORS, ModelledTable, UncommittedChange
from tahoe.testing.row_model import (
    NOTHING,
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
from tahoe.txn.transaction import Operation, Transaction

try:
    import pytest
    from hypothesis import HealthCheck, seed, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule, run_state_machine_as_test
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["Change", "TableMachine", "changes", "run_histories"]

CONSTRAINT = Condition("v is null or v < 15", lambda row, _: row[2] is None or row[2] < 15)
# Without a condition all rows are deleted or changed, and later steps have little to work on: draw that rarely.
_WHERE = st.one_of(conditions(), conditions(), conditions(), conditions(), st.none())


@dataclass(frozen=True)
class Change:
    """A MERGE, an UPDATE, or without an assignment a DELETE."""

    condition: Condition | None = None
    assignment: Assignment | None = None
    merge: Merge | None = None
    source: Sequence[Row] = ()

    def stage(self, transaction: Transaction, table: Table) -> Operation | None:
        """Stage it; return None if there is nothing to do."""
        where = _text(self.condition)
        if self.merge is not None:
            return stage_merge(transaction, merge_builder(table, self.source, self.merge).statement).operation
        if self.assignment is not None:
            return stage_update(transaction, self.assignment.texts or {}, where).operation
        return stage_delete(transaction, where).operation

    def effect(self, rows: Rows) -> Rows:
        """Return the rows after the change."""
        if self.merge is not None:
            return merged(rows, self.source, self.merge)[0]
        return changed(rows, self.condition, self.assignment) if self.assignment is not None else stay(rows, self.condition)


def changes(where: st.SearchStrategy[Condition | None], source: st.SearchStrategy[Rows]) -> st.SearchStrategy[Change]:
    """Draw changes. A MERGE that only inserts commits because of unmatched rows, and reads others without changing them."""
    return st.one_of(
        st.builds(Change, where),
        st.builds(Change, where, assignments()),
        st.builds(Change, merge=merges(), source=source),
        st.builds(Change, merge=st.just(ONLY_NEW), source=source),
    )


class TableMachine(ModelledTable):
    """The rules: operations on the table. `ModelledTable` has the model and the invariants."""

    # ---- writes
    @rule(rows=some_rows(1), size=st.sampled_from([None, None, 2]))
    def append(self, rows: Rows, size: int | None) -> None:
        """Append rows, in one file or in files of two rows."""
        after = [*self.rows, *rows]
        if self.takes(after, lambda: self.table.append(arrow(rows), max_rows_per_file=size)):
            self.done(after)

    @rule(rows=some_rows())
    def overwrite(self, rows: Rows) -> None:
        """Replace all rows."""
        version = self.takes(rows, lambda: self.table.overwrite(arrow(rows)))
        if version:
            self.written(version, rows)

    @rule(rows=some_rows(1))
    def overwrite_partitions(self, rows: Rows) -> None:
        """Replace the partitions that the new rows belong to; all rows of a table without partitions."""
        parts = {row[1] for row in rows}
        after = [*(row for row in self.rows if self.partitioned and row[1] not in parts), *rows]
        if self.takes(after, lambda: self.table.overwrite(arrow(rows), dynamic_partitions=True)):
            self.done(after)

    @rule(rows=some_rows(), condition=conditions())
    def replace(self, rows: Rows, condition: Condition) -> None:
        """Replace the rows that satisfy a condition (`replaceWhere`)."""
        new = [row for row in rows if condition.holds(row, NOTHING)]
        after = [*(row for row in self.rows if not condition.holds(row, NOTHING)), *new]
        version = self.takes(after, lambda: self.table.overwrite(arrow(new), replace_where=condition.text))
        if version:
            self.written(version, after)

    @rule(condition=_WHERE)
    def delete(self, condition: Condition | None) -> None:
        """Delete the rows that satisfy a condition, or all; the result has their number."""
        after = stay(self.rows, condition)
        outcome = self.table.delete(_text(condition))
        assert outcome.num_deleted_rows == len(self.rows) - len(after)
        self.done_if(outcome.version, after)

    @rule(condition=_WHERE, assignment=assignments())
    def update(self, condition: Condition | None, assignment: Assignment) -> None:
        """Update the rows that satisfy a condition, or all; the result has their number."""
        assert assignment.texts is not None
        texts, after = assignment.texts, changed(self.rows, condition, assignment)
        outcome = self.takes(after, lambda: self.table.update(texts, _text(condition)))
        if outcome:
            assert outcome.num_updated_rows == len(self.rows) - len(stay(self.rows, condition))
            self.done_if(outcome.version, after)

    @rule(source=some_rows(), merge=merges())
    def merge(self, source: Rows, merge: Merge) -> None:
        """Merge a source; a target row with two matches must be refused."""
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

    def takes(self, after: Rows, write: Callable[[], object]) -> Any:
        """Return the write's result; None if the constraint forbids the resulting rows, in which case the write must fail."""
        if not self.constrained or all(CONSTRAINT.holds(row, NOTHING) for row in after):
            return write()
        with pytest.raises(InvariantViolation):
            write()
        return None

    # ---- properties
    @rule(on=MOSTLY)
    def auto_compaction(self, on: bool) -> None:
        """Switch auto compaction on or off."""
        self.table.set_properties({COMPACTION: str(on).lower()})
        self.done(self.rows)

    @rule(on=MOSTLY)
    def vectors(self, on: bool) -> None:
        """Switch deletion vectors on or off."""
        self.table.set_properties({VECTORS: str(on).lower()})
        self.done(self.rows)

    @rule(on=st.booleans())
    def feed(self, on: bool) -> None:
        """Switch the change data feed on or off."""
        self.table.set_properties({FEED: str(on).lower()})
        self.done(self.rows, on)

    @rule(on=st.booleans())
    def constraint(self, on: bool) -> None:
        """Add or drop a CHECK constraint; it must be refused if a row violates it."""
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
        """Write a checkpoint of the newest version."""
        assert self.table.checkpoint() == len(self.versions) - 1

    @rule()
    def purge(self) -> None:
        """Rewrite files without their deleted rows (REORG TABLE … APPLY (PURGE))."""
        self.written(self.table.purge(), self.rows)

    @rule(columns=st.sampled_from([(), (), ("v",), ("k", "v")]), curve=st.sampled_from(sorted(CURVES)), small=st.booleans())
    def optimize(self, columns: Sequence[str], curve: str, small: bool) -> None:
        """Compact, cluster or Z-order the files."""
        by = () if is_clustered(now := self.table.snapshot()) else with_statistics(now, columns)
        sizes: Any = {"target_file_size": 1500, "min_cube_size": 2000, "full": bool(clustering_columns(now))} if small else {}
        self.done_if(self.table.optimize(zorder_by=by, curve=curve, **sizes).version, self.rows)

    @rule()
    def compute_statistics(self) -> None:
        """Compute missing statistics of the files."""
        self.done_if(self.table.compute_statistics().version, self.rows)

    @rule()
    def repair_log(self) -> None:
        """Check that nothing needs repair, and that no version is made."""
        assert self.table.repair_log().findings == ()

    @precondition(lambda self: not self.partitioned)
    @rule(columns=st.sampled_from([(), ("k",), ("v", "k")]))
    def cluster_by(self, columns: Sequence[str]) -> None:
        """Set or remove the clustering columns."""
        self.written(self.table.cluster_by(by := with_statistics(self.table.snapshot(), columns)), self.rows)
        assert self.table.detail()["clusteringColumns"] == by

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Restore an earlier version, with its constraint and its change data feed."""
        if len(self.versions) < 2:
            return
        target = data.draw(st.integers(0, len(self.versions) - 2))
        self.table.restore(target)
        self.constrained = self.constrained_at[target]
        self.done(self.versions[target], self.feed_is_on[target])

    @rule(shallow=st.booleans())
    def clone(self, shallow: bool) -> None:
        """Clone the table, shallow or deep, and compare the rows of the clone."""
        self.table.clone(target := Table("", store=self.new_store(), clock=self.clock), shallow=shallow)
        assert counted(rows_of(target.to_arrow())) == counted(self.rows)

    @rule()
    def convert(self) -> None:
        """Convert Parquet files of another program, with the same rows, to a table beside this one."""
        self.put_parquet(store := self.new_store(), self.rows)
        if self.rows:
            target = Table("", store=store, clock=self.clock)
            target.convert_to_delta({"p": "string"} if self.partitioned else None)
            assert counted(rows_of(target.to_arrow())) == counted(self.rows)
            assert target.check(deep=True) == []

    @rule(lite=st.booleans())
    def vacuum(self, lite: bool) -> None:
        """Delete unused files; VACUUM commits its start and its end."""
        self.table.vacuum(lite=lite)
        self.done(self.rows)  # VACUUM START
        self.done(self.rows)  # VACUUM END

    # ---- sessions
    def prepare_change(self, change: Change) -> None:
        """Stage a change in a session of its own."""
        self.prepare(lambda transaction: change.stage(transaction, self.table), change.effect)

    @rule()
    def a_new_session_opens(self) -> None:
        """Continue with a new `Table` of the same storage."""
        self.table = self.session()

    @rule(change=st.builds(Change, _WHERE))
    def a_session_prepares_a_delete(self, change: Change) -> None:
        """Stage a DELETE that another session commits later."""
        self.prepare_change(change)

    @rule(change=st.builds(Change, _WHERE, assignments()))
    def a_session_prepares_an_update(self, change: Change) -> None:
        """Stage an UPDATE that another session commits later."""
        self.prepare_change(change)

    @rule(change=st.builds(Change, merge=merges(), source=some_rows()))
    def a_session_prepares_a_merge(self, change: Change) -> None:
        """Stage a MERGE that another session commits later."""
        self.prepare_change(change)

    @rule(rows=some_rows(1))
    def a_session_prepares_an_append(self, rows: Rows) -> None:
        """Stage an append that another session commits later."""
        self.prepare(lambda t: stage_write(t, arrow(rows), WriteOptions()), lambda before: [*before, *rows])

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def a_stale_session_commits(self, data: st.DataObject) -> None:
        """Commit one of the staged changes."""
        self.commit(self.stale.pop(data.draw(st.integers(0, len(self.stale) - 1))))

    @rule(part=st.sampled_from(["a", "b", None]), recreated=st.booleans(), data=st.data())
    def two_sessions_change_rows_of_the_same_files(self, part: str | None, recreated: bool, data: st.DataObject) -> None:
        """Both begin now, each with one or two existing rows: the same rows, or others of the same file."""
        if recreated or len(self.keys()) < 2:
            self.overwrite([(key, part, key + 2) for key in range(8)])
        started_commit, keys = len(self.stale), st.sampled_from(self.keys())
        for _ in range(2):
            self.prepare_change(data.draw(changes(with_keys(keys), rows_of_keys(keys))))
        while len(self.stale) > started_commit:
            self.commit(self.stale.pop(started_commit))

    def commit(self, stale: UncommittedChange) -> None:
        """Commit a stale change, or expect a conflict, which changes nothing."""
        try:
            stale.table.commit(stale.transaction, stale.operation)
        except DeltaConcurrentModificationException:
            return
        # A commit that succeeds must have the same effect as if it had begun only now.
        self.done(stale.effect(self.rows))


def _text(condition: Condition | None) -> str | None:
    return None if condition is None else condition.text


_SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def run_histories(machine: type[TableMachine], seeds: Iterable[int], *, steps: int = 50) -> None:
    """Run one history per seed. (By default, Hypothesis would spend most of its runs on variants of a few.)

    Args:
        machine: `TableMachine`, or a subclass.
        seeds: the same seed gives the same history.
        steps: the maximum number of steps of a history.

    Raises `AssertionError` with the shortest failing history.
    """
    single_run = settings(max_examples=1, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=_SLOW)
    for number in seeds:
        run_state_machine_as_test(seed(number)(type(machine.__name__, (machine,), {})), settings=single_run)
