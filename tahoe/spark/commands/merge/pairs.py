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
from tahoe.spark.commands.row_changes import FILE, ROW, Found, changes_in, changes_of
from tahoe.spark.commands.source_rows import Held

__all__ = ["PairsFound", "found_in"]

_MOST_PAIRS_HERE = 2**20
_NOTHING = Found([], False)


@dataclass(frozen=True, slots=True)
class PairsFound:
    """The target rows that match, and those that a clause changes.

    Args:
        taken: the rows that a clause changes.
        met: the matched rows, changed or not; empty for a MERGE with WHEN NOT MATCHED BY SOURCE, which depends on all rows.
        ambiguous: whether two source rows match one target row, whichever clause applies.
        by_clause: clause number → number of its rows.
        once: whether it is known that no source row matches two target rows.
    """

    taken: Found
    met: list[FileChange]
    ambiguous: bool
    by_clause: dict[int, int]
    once: bool


def found_in(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: Held, *, ask_once: bool) -> PairsFound:
    """Evaluate the pairs.

    Args:
        files: the files that were read.
        pairs: of `tahoe.spark.commands.merge.match.pairs_of`; the first query here computes them.
        ask_once: whether to compute `PairsFound.once`, which takes an extra job if there are many pairs.
    """
    if pairs.count() <= _MOST_PAIRS_HERE:
        return _found_here(plan, snapshot, files, pairs)
    return _found_by_executors(plan, snapshot, files, pairs, ask_once)


def _found_here(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: Held) -> PairsFound:
    places = pairs.frame.select(FILE, ROW, SOURCE_ROW, CLAUSE).toArrow()
    mine = places.filter(pc.is_valid(places[CLAUSE]))
    taken = changes_in(snapshot, files, mine)
    all_taken = len(mine) == len(places)
    if taken.ambiguous:
        mine = mine.group_by([FILE, ROW]).aggregate([(CLAUSE, "min")]).rename_columns([FILE, ROW, CLAUSE])
    counts = {one["values"]: one["counts"] for one in mine[CLAUSE].value_counts().to_pylist()}
    matched = places.filter(pc.is_valid(places[SOURCE_ROW]))
    met = taken if all_taken else changes_in(snapshot, files, matched)
    once = pc.count_distinct(matched[SOURCE_ROW]).as_py() == len(matched)
    return PairsFound(taken, _met(plan, met), met.ambiguous, counts, once)


def _found_by_executors(plan: Plan, snapshot: Snapshot, files: pa.Table, pairs: Held, ask_once: bool) -> PairsFound:
    changing = plan.of(Kind.MATCHED, Kind.NOT_MATCHED_BY_SOURCE)
    mine = pairs.frame.where(sf.col(CLAUSE).isNotNull())
    taken = changes_of(snapshot, files, mine) if changing else _NOTHING
    if len(changing) > 1:
        single = mine.dropDuplicates([FILE, ROW]) if taken.ambiguous else mine
        counts = {row[0]: row[1] for row in single.groupBy(CLAUSE).count().collect()}
    else:
        counts = {step.number: sum(len(change.dead) for change in taken.changes) for step in changing}
    matched = plan.of(Kind.MATCHED)
    takes_all = bool(matched) and matched[-1].condition is None
    met = taken if takes_all else changes_of(snapshot, files, pairs.frame.where(sf.col(SOURCE_ROW).isNotNull()))
    return PairsFound(taken, _met(plan, met), met.ambiguous, counts, ask_once and _is_once(pairs))


def _met(plan: Plan, matched: Found) -> list[FileChange]:
    return [] if plan.of(Kind.NOT_MATCHED_BY_SOURCE) else matched.changes


def _is_once(pairs: Held) -> bool:
    matched = pairs.frame.where(sf.col(SOURCE_ROW).isNotNull()).agg(sf.count("*"), sf.count_distinct(SOURCE_ROW)).first()
    assert matched is not None
    return bool(matched[0] == matched[1])
