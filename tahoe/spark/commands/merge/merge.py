"""MERGE on Spark: match, then write. Everything that can be rejected is rejected before a file is written.

    statement ─► resolved on the table's columns ─► source stored ─► files that may match ─► pairs stored ─► files, vectors, commit

`statement` resolves the clauses, `match` finds the rows and `write` writes files; `tahoe.ops` turns the results into actions, as without
Spark.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from tahoe.ops.merge.clauses import may_match_often
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.merge.match import files_to_match
from tahoe.ops.merge.report import MatchSummary, ambiguous, explained
from tahoe.ops.rows.row_changes import RowsChanged, Staged, snapshot_to_change
from tahoe.spark.commands.conditions import text_of
from tahoe.spark.commands.merge.match import is_upsert, numbered, pairs_of, with_identities
from tahoe.spark.commands.merge.pairs import evaluated
from tahoe.spark.commands.merge.statement import MergeRequest, Sides, of_clauses, resolved
from tahoe.spark.commands.merge.write import MatchedMerge
from tahoe.spark.commands.row_changes import TableRows
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.commands.source_keys import candidates
from tahoe.spark.commands.source_rows import sent_to_all, stored
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.scan.inputs import inputs_of
from tahoe.spark.scan.row_id_columns import with_row_ids
from tahoe.spark.write.enforce import in_session_zone
from tahoe.txn.transaction import Transaction

__all__ = ["MergeRequest", "explain_merge", "merge", "stage_merge"]


def merge(target: CommandTarget, request: MergeRequest) -> RowsChanged:
    """Run the clauses in one commit.

    Raises:
        InvalidRequest: clauses that break a rule, expressions that cannot be resolved, an append-only table;
            ``DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE`` if two source rows would change one target row.
        SchemaMismatch: the source does not fit the target.
        InvariantViolation: a new row violates a constraint of the table.
        Unsupported: subqueries in conditions; a Spark Connect session; a writer feature that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed data that this MERGE read.
    """
    return run_row_command(target, "MERGE", lambda transaction: stage_merge(transaction, target, request))


def stage_merge(transaction: Transaction, target: CommandTarget, request: MergeRequest) -> Staged:
    """Stage the changes that `merge` commits."""
    with ExitStack() as stack:
        return _match(transaction, target, request, stack).stage(stack)


def explain_merge(target: CommandTarget, request: MergeRequest) -> MergeExplained:
    """Return the effects of `merge` without writing. Raises the errors that `merge` raises before it writes."""
    with ExitStack() as stack:
        matched = _match(in_session_zone(target.spark, target.table.begin()), target, request, stack)
        summary = MatchSummary(
            text_of(request.on), matched.counts(), matched.source_rows, matched.files_scanned, len(matched.changes)
        )
        return explained(matched.rows.version.snapshot, matched.plan.config, summary)


def _match(transaction: Transaction, target: CommandTarget, request: MergeRequest, stack: ExitStack) -> MatchedMerge:
    """Run every step before the writing.

    Args:
        stack: releases the stored rows.
    """
    request = request.under(target.spark)
    snapshot = snapshot_to_change(transaction)
    version, started = target.at(snapshot), transaction.clock.now_ms()
    plan = resolved(transaction, version, request, started)
    transaction.inputs = inputs_of(plan.sides.source)
    source = stack.enter_context(stored(numbered(plan.sides.source)))
    on = Jvm.of(target.spark).expression(plan.on)
    keys = candidates(snapshot, plan.sides.target, source, on, of_clauses(plan))
    materialized = transaction.clock.now_ms()
    files = files_to_match(transaction, snapshot, request.clauses, keys.predicate)
    rows = with_row_ids(version.with_positions(files, metadata=False), snapshot.config)
    sides = Sides(with_identities(rows, plan.sides.target), sent_to_all(source))
    plan = replace(plan, sides=sides, is_upsert=is_upsert(plan, snapshot.config))
    matches = evaluated(plan, snapshot, files, stack.enter_context(stored(pairs_of(plan, snapshot.config))))
    if matches.ambiguous and not may_match_often(request.clauses):
        raise ambiguous(snapshot.store.url)
    for change in matches.matched:
        # The new rows depend on the matched rows, changed or not.
        transaction.read_rows(change.add.key, change.dead)
    return MatchedMerge(
        rows=TableRows.of(version, transaction, plan.config),
        request=request,
        plan=plan,
        matches=matches,
        source_rows=keys.source_rows,
        files_scanned=len(files),
        times=(started, materialized, transaction.clock.now_ms()),
    )
