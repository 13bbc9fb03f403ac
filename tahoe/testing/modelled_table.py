"""A table next to its model: the rows of every version, and the invariants between the two.

`tahoe.testing.table_machine` has the rules, which change the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import combinations_with_replacement, groupby
from typing import Any, ClassVar

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK, SeededClock
from tahoe.base.exceptions import InvalidRequest, InvariantViolation
from tahoe.base.lazy import pq
from tahoe.ops.check.table_check import TableCheck
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.optimize import rewritten_here
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.extras import extra_missing
from tahoe.testing.row_model import SCHEMA, Rows, arrow, counted, rows_of
from tahoe.testing.row_strategies import some_rows
from tahoe.testing.table_laws import SIGNS
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

try:
    from hypothesis import assume
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["COMPACTION", "FEED", "MOSTLY", "TWICE_MATCHED", "VECTORS", "ModelledTable", "UncommittedChange"]

VECTORS, FEED = "delta.enableDeletionVectors", "delta.enableChangeDataFeed"
TRACKING, COMPACTION = "delta.enableRowTracking", "delta.autoOptimize.autoCompact"
TWICE_MATCHED = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
MOSTLY = st.sampled_from([True, True, False])
_SMALL = AutoCompaction(min_files=2)
"""Histories are short: a few small files trigger auto compaction if the table's properties enable it."""


@dataclass
class UncommittedChange:
    """A change based on an older version and not committed yet."""

    table: Table
    transaction: Transaction
    operation: Operation
    effect: Callable[[Rows], Rows]


class ModelledTable(RuleBasedStateMachine):
    """A table and its rows at every version; without rules.

    Attributes:
        table: the session that the rules use.
        store: the table's store.
        versions: the rows of each version, by the model.
        feed_is_on: for each version, whether it has a change data feed.
        stale: uncommitted changes of other sessions, based on older versions.
    """

    properties: ClassVar[Mapping[str, str]] = {}
    """Properties of every table, in addition to drawn ones. They cannot set the change data feed, which is drawn."""
    most_pairs: ClassVar[int] = 3
    """The maximum number of start versions, or a few more, from which the feed is read at the end."""
    steps_of_a_check: ClassVar[int] = 3
    """After so many steps that made versions, `check()` verifies all commits since its last run, and the files of the newest version."""

    def new_store(self) -> LogStore:
        """Return an empty store for one table; by default in this process's memory."""
        return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")

    def __init__(self) -> None:
        super().__init__()
        # Shared by all sessions: two clocks with the same seed would give the same names.
        self.clock = SeededClock()
        self.stale: list[UncommittedChange] = []
        self.versions: list[Rows] = []
        self.feed_is_on: list[bool] = []
        self.looked_at = -1
        self.unchecked = 0
        self.constrained = False
        self.constrained_at: list[bool] = []

    @initialize(
        vectors=MOSTLY,
        feed=st.booleans(),
        tracking=st.booleans(),
        mapped=st.sampled_from(["none", "name", "id"]),
        partitioned=st.booleans(),
        compacts=st.booleans(),
        converted=st.none() | st.none() | some_rows(1),
        dull=st.sampled_from([True, False, False, False]),
    )
    def create(self, mapped: str, converted: Rows | None, dull: bool, **switches: bool) -> None:
        # Hypothesis starts with the simplest choices, 50 times the same step, which is not a useful history: refuse it.
        """Create the table with the drawn features."""
        assume(not dull)
        # Parquet files of other programs have no names and ids for column mapping.
        may_be = mapped == "none" and self.properties.get("delta.columnMapping.mode", mapped) == mapped
        self.begin(mapped=mapped, converted=converted if may_be else None, **switches)

    def begin(
        self,
        *,
        vectors: bool,
        feed: bool,
        tracking: bool,
        mapped: str,
        partitioned: bool,
        compacts: bool = False,
        converted: Rows | None = None,
    ) -> None:
        """Create the table with the drawn features: deletion vectors, change data feed, row tracking, column mapping, partitions and auto
        compaction; by converting Parquet files with the rows `converted`, if there are any."""
        self.store = self.new_store()
        properties = {VECTORS: str(vectors).lower(), FEED: str(feed).lower(), "delta.checkpointInterval": "6"}
        properties["delta.checkpointPolicy"] = "v2" if partitioned != tracking else "classic"
        if mapped != "none":
            properties["delta.columnMapping.mode"] = mapped
        if tracking:
            properties[TRACKING] = "true"
        if compacts:
            properties[COMPACTION] = "true"
        properties |= self.properties
        self.tracking, self.partitioned = properties.get(TRACKING) == "true", partitioned
        self.table = self.session()
        if converted is None:
            by = ["p"] if partitioned else []
            Table.create(self.store.url, SCHEMA, partition_by=by, properties=properties, clock=self.clock, store=self.store)
        else:
            self.put_parquet(self.store, converted)
            self.table.convert_to_delta({"p": "string"} if partitioned else None, properties=properties)
        self.checker = TableCheck(self.table.store)
        self.done(converted or [], feed)

    def put_parquet(self, store: LogStore, rows: Rows) -> None:
        """Put Parquet files as another program would: one for each folder ``p=…`` of a partitioned table, else one for every three
        rows."""
        if self.partitioned:
            parts = {
                f"p={part or '__HIVE_DEFAULT_PARTITION__'}/": [row for row in rows if row[1] == part]
                for part in {r[1] for r in rows}
            }
        else:
            parts = {f"{start}-": rows[start : start + 3] for start in range(0, len(rows), 3)}
        for prefix, some in parts.items():
            sink, table = BytesIO(), arrow(some)
            pq.write_table(table.drop_columns(["p"]) if self.partitioned else table, sink)
            store.put(f"{prefix}file.parquet", sink.getvalue())

    # ---- invariants
    @invariant()
    def the_newest_rows_are_those_of_the_model(self) -> None:
        """Compare the newest version with the model; run the strict check after every few versions."""
        newest = len(self.versions) - 1
        if newest < 0:
            return
        assert self.table.version() == newest
        if self.looked_at < newest:
            assert counted(rows_of(self.table.to_arrow())) == counted(self.rows)
            self.looked_at = newest
            self.unchecked += 1
        if self.unchecked >= self.steps_of_a_check:
            # The checker does not read again what it has verified before; `teardown` does.
            assert self.checker.violations() == []
            self.unchecked = 0

    def teardown(self) -> None:
        """Check the invariants that concern all versions."""
        if not self.versions:
            return
        fresh = Table(self.store.url, store=self.store)
        assert fresh.check() == []
        for version, rows in enumerate(self.versions):
            actual = fresh.to_arrow(version=version, row_ids=self.tracking)
            assert counted(rows_of(actual)) == counted(rows), version
            if self.tracking:
                assert len(set(actual["_row_id"].to_pylist())) == len(rows), version
        for is_on, group in groupby(range(len(self.versions)), key=lambda version: self.feed_is_on[version]):
            if is_on:
                self.check_feed(fresh, list(group))

    def check_feed(self, table: Table, versions: list[int]) -> None:
        """Check the feed's invariant for a run of versions that all have one."""
        changes = table.changes(versions[0], versions[-1])
        feed_rows = changes.to_pylist()
        for version in versions:
            rows = Counter(self.versions[version - 1] if version else [])
            for change in feed_rows:
                if change["_commit_version"] == version:
                    rows[(change["k"], change["p"], change["v"])] += SIGNS[change["_change_type"]]
            # A count below zero means that a missing row was deleted.
            assert {row: count for row, count in rows.items() if count} == Counter(self.versions[version]), version
        # The feed of a sub-range equals that part of the whole feed, so the invariant follows for any two versions.
        pairs = list(combinations_with_replacement(versions, 2))
        for first, last in pairs[:: max(1, len(pairs) // self.most_pairs)]:
            part = _unordered(table.changes(first, last).to_pylist())
            assert part == _unordered([change for change in feed_rows if first <= change["_commit_version"] <= last]), (
                first,
                last,
            )

    # ---- the model
    def session(self) -> Table:
        """Return the table as a new session sees it."""
        return Table(self.store.url, clock=self.clock, store=self.store, compactor=_compact)

    @property
    def rows(self) -> Rows:
        """The rows of the newest version."""
        return self.versions[-1]

    def done(self, rows: Rows, feed: bool | None = None) -> None:
        """Record a version with its rows, whether that changed the feed, and the version that auto compaction made of it."""
        self.versions.append(list(rows))
        self.constrained_at.append(self.constrained)
        self.feed_is_on.append(self.feed_is_on[-1] if feed is None else feed)
        if self.table.version() == len(self.versions) and self.table.history(1)[0]["operationParameters"].get("auto") == "true":
            assert self.table.snapshot().config.properties.auto_compacts
            self.done(rows)

    def done_if(self, version: int | None, rows: Rows) -> None:
        """Like `done` if the operation made a version; else the rows must be unchanged."""
        if version is None:
            assert counted(rows) == counted(self.rows)
        else:
            assert version == len(self.versions)
            self.done(rows)

    def written(self, version: int, rows: Rows) -> None:
        """Like `done`; a write without effect returns the current version, with the same rows."""
        self.done_if(None if version == len(self.versions) - 1 else version, rows)

    def keys(self) -> list[int]:
        """Return the distinct values of ``k``."""
        return sorted({row[0] for row in self.rows if row[0] is not None})

    def prepare(self, stage: Callable[[Transaction], Operation | None], effect: Callable[[Rows], Rows]) -> None:
        """Stage a change in a session of its own, and keep it in `stale` unless it is refused."""
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
            self.stale.append(UncommittedChange(table, transaction, operation, effect))


def _compact(table: Table, committed: Committed) -> None:
    compaction_after(
        committed, _SMALL, PartitionReservations(), partial(table.compact_gently, partial(rewritten_here, table.clock))
    )


def _unordered(changes: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(tuple(change.values()) for change in changes)
