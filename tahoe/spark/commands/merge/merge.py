"""MERGE on Spark: match, then write. Everything that can be rejected is rejected before a file is written.

    statement ─► resolved on the table's columns ─► source stored ─► files that may match ─► pairs stored ─► files, vectors, commit

`statement` resolves the clauses, `match` finds the rows and `write` writes files; `tahoe.ops` turns the results into actions, as without
Spark.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from tahoe.expr.tree.predicate import TRUE, Predicate
from tahoe.ops.merge.clauses import Kind, check_clauses, may_match_often, of_kind, only_inserts, with_default_values
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.merge.report import ambiguous, clauses_explained
from tahoe.ops.merge.schema import check_identity
from tahoe.ops.rows.row_changes import RowsChanged, Staged, snapshot_to_change, uses_vectors
from tahoe.protocol.column_values.default_values import Moment
from tahoe.spark.commands.conditions import text_of
from tahoe.spark.commands.merge.match import is_upsert, numbered, pairs_of, with_identities
from tahoe.spark.commands.merge.pairs import evaluated
from tahoe.spark.commands.merge.statement import MergeRequest, Sides, evolved, of_clauses, placed, resolved
from tahoe.spark.commands.merge.write import MatchedMerge
from tahoe.spark.commands.row_changes import TableRows
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.commands.source_keys import candidates
from tahoe.spark.commands.source_rows import sent_to_all, stored
from tahoe.spark.commands.statement_time import StatementTime
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.scan.inputs import inputs_of
from tahoe.spark.scan.row_id_columns import with_row_ids
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.fitting import nullable_schema
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
        matched = _match(target.table.begin(), target, request, stack)
        snapshot, config = matched.rows.version.snapshot, matched.rows.config
        existing = set(snapshot.schema.names)
        return MergeExplained(
            snapshot.store.url,
            snapshot.version,
            text_of(request.on),
            clauses_explained(matched.counts()),
            source_rows=matched.source_rows,
            files=len(snapshot.files()),
            files_scanned=matched.files_scanned,
            files_touched=len(matched.changes),
            uses_deletion_vectors=uses_vectors(config),
            new_columns=tuple(name for name in config.schema.names if name not in existing),
        )


def _match(transaction: Transaction, target: CommandTarget, request: MergeRequest, stack: ExitStack) -> MatchedMerge:
    """Run every step before the writing.

    Args:
        stack: releases the stored rows.
    """
    spark, request = target.spark, request.under(target.spark)
    check_clauses(request.clauses)
    snapshot = snapshot_to_change(transaction)
    if not only_inserts(request.clauses):
        snapshot.config.refuse_if_append_only()
    version = target.at(snapshot)
    started = transaction.clock.now_ms()
    statement_time, moment = StatementTime(spark), Moment(started, session_time_zone(spark))
    default = written_default(spark, snapshot.config.table)
    clauses = with_default_values(placed(version, request), snapshot.config, moment, default)
    request = replace(request, source=statement_time.frame(request.source), clauses=clauses)
    columns = nullable_schema(from_spark_schema(request.source.schema))
    config = evolved(transaction, snapshot.config, request, columns)
    plan = resolved(request, Sides(version.shape(), request.source), columns, config.schema, statement_time)
    for step in plan.steps:
        check_identity(config, step.action, {assignment.path[0] for assignment in step.assignments})
    transaction.inputs = inputs_of(request.source)
    source = stack.enter_context(stored(numbered(request.source)))
    keys = candidates(snapshot, plan.sides.target, source.frame, plan.parts, of_clauses(plan))
    materialized = transaction.clock.now_ms()
    predicate: Predicate = TRUE
    if of_kind(request.clauses, Kind.NOT_MATCHED_BY_SOURCE):
        transaction.read_whole_table()
    else:
        predicate = keys.predicate
        transaction.read(predicate)
    files = snapshot.files_matching(predicate)
    rows = with_row_ids(version.with_positions(files, metadata=False), snapshot.config)
    plan = replace(plan, sides=Sides(with_identities(rows, plan.sides.target), sent_to_all(source)))
    plan = replace(plan, is_upsert=is_upsert(plan, snapshot.config, config))
    matches = evaluated(plan, snapshot, files, stack.enter_context(stored(pairs_of(plan, snapshot.config, config))))
    if matches.ambiguous and not may_match_often(request.clauses):
        raise ambiguous(snapshot.store.url)
    for change in matches.matched:
        # The new rows depend on the matched rows, changed or not.
        transaction.read_rows(change.add.key, change.dead)
    return MatchedMerge(
        rows=TableRows.of(version, transaction, config),
        request=request,
        plan=plan,
        matches=matches,
        source_rows=keys.source_rows,
        files_scanned=len(files),
        times=(started, materialized, transaction.clock.now_ms()),
    )
