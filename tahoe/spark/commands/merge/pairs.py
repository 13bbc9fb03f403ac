"""Evaluates the pairs of a MERGE: the rows to remove from each file, and the number of rows of each clause.

A million pairs are a few MB: one job of one stage collects them on the driver. If there are more, executors compute bitmaps and counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import functions as sf

from tahoe.base.lazy import pc
from tahoe.ops.merge.clauses import Kind
from tahoe.ops.rows.row_changes import FileChange
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.merge.match import CLAUSE, SOURCE_ROW
from tahoe.spark.commands.merge.statement import Plan
from tahoe.spark.commands.row_changes import FILE, ROW, RowMatches, bitmaps_of, changes_in, matches_of
from tahoe.spark.commands.source_rows import StoredRows

_MOST_PAIRS_HERE = 2**20
_NOTHING = RowMatches([], False)


@dataclass(frozen=True, slots=True)
class PairMatches:
    """The target rows that match, and those that a clause changes.

    Args:
        changed: the rows that a clause changes.
        matched: the matched rows, changed or not; empty for a MERGE with WHEN NOT MATCHED BY SOURCE, which depends on all rows.
        ambiguous: whether two source rows match one target row, whichever clause applies.
        by_clause: clause number → number of its rows.
        once: whether it is known that no source row matches two target rows.
        pairs: the stored result of `tahoe.spark.commands.merge.match.pairs_of`.
    """

    changed: RowMatches
    matched: list[FileChange]
    ambiguous: bool
    by_clause: dict[int, int]
    once: bool
    pairs: StoredRows

    @property
    def rows(self) -> int:
        """The number of changed rows."""
        return sum(self.by_clause.values())


def evaluated(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: StoredRows) -> PairMatches:
    """Evaluate the pairs.

    Args:
        files: the files that were read.
        pairs: of `tahoe.spark.commands.merge.match.pairs_of`; the first query here computes them.
    """
    if pairs.count() <= _MOST_PAIRS_HERE:
        return _on_driver(plan, snapshot, files, pairs)
    return _on_executors(plan, snapshot, files, pairs)


def _on_driver(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: StoredRows) -> PairMatches:
    places = pairs.frame.select(FILE, ROW, SOURCE_ROW, CLAUSE).toArrow()
    with_clause = places.filter(pc.is_valid(places[CLAUSE]))
    changed = changes_in(snapshot, files, with_clause)
    all_changed = len(with_clause) == len(places)
    if changed.ambiguous:
        with_clause = with_clause.group_by([FILE, ROW]).aggregate([(CLAUSE, "min")]).rename_columns([FILE, ROW, CLAUSE])
    counts = {entry["values"]: entry["counts"] for entry in with_clause[CLAUSE].value_counts().to_pylist()}
    with_source = places.filter(pc.is_valid(places[SOURCE_ROW]))
    matches = changed if all_changed else changes_in(snapshot, files, with_source)
    once = pc.count_distinct(with_source[SOURCE_ROW]).as_py() == len(with_source)
    return PairMatches(changed, _matched(plan, matches), matches.ambiguous, counts, once, pairs)


def _on_executors(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: StoredRows) -> PairMatches:
    changing = plan.of(Kind.MATCHED, Kind.NOT_MATCHED_BY_SOURCE)
    with_clause = pairs.frame.where(sf.col(CLAUSE).isNotNull())
    changed = matches_of(snapshot, files, bitmaps_of(with_clause)) if changing else _NOTHING
    if len(changing) > 1:
        single = with_clause.dropDuplicates([FILE, ROW]) if changed.ambiguous else with_clause
        counts = {row[0]: row[1] for row in single.groupBy(CLAUSE).count().collect()}
    else:
        counts = {step.number: sum(len(change.dead) for change in changed.changes) for step in changing}
    clauses = plan.of(Kind.MATCHED)
    changes_all = bool(clauses) and clauses[-1].condition is None
    matches = (
        changed if changes_all else matches_of(snapshot, files, bitmaps_of(pairs.frame.where(sf.col(SOURCE_ROW).isNotNull())))
    )
    # One more job, which only an upsert needs.
    once = plan.is_upsert and _is_once(pairs)
    return PairMatches(changed, _matched(plan, matches), matches.ambiguous, counts, once, pairs)


def _matched(plan: Plan, matched: RowMatches) -> list[FileChange]:
    return [] if plan.of(Kind.NOT_MATCHED_BY_SOURCE) else matched.changes


def _is_once(pairs: StoredRows) -> bool:
    matched = pairs.frame.where(sf.col(SOURCE_ROW).isNotNull()).agg(sf.count("*"), sf.count_distinct(SOURCE_ROW)).first()
    assert matched is not None
    return bool(matched[0] == matched[1])
