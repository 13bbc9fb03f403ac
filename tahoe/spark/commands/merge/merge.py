"""MERGE on Spark: match, then write. Everything that can be rejected is rejected before a file is written.

    statement ─► resolved on the table's columns ─► source stored ─► files that may match ─► pairs stored ─► files, vectors, commit

`statement` resolves the clauses, `match` finds the rows and `write` writes files; `tahoe.ops` turns the results into actions, as without
Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.expr.tree.predicate import TRUE, Predicate
from tahoe.ops.merge.clauses import Kind, may_match_often, of_kind, only_inserts, with_default_values
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.merge.report import ambiguous, clauses_explained
from tahoe.ops.merge.schema import check_identity
from tahoe.ops.rows.row_changes import RowsChanged, Staged, snapshot_to_change, uses_vectors
from tahoe.protocol.column_values.default_values import Moment
from tahoe.spark.commands.conditions import text_of
from tahoe.spark.commands.merge.match import is_upsert, numbered, pairs_of
from tahoe.spark.commands.merge.pairs import evaluated
from tahoe.spark.commands.merge.statement import MergeRequest, Sides, evolved, of_clauses, placed, resolved
from tahoe.spark.commands.merge.write import Matched
from tahoe.spark.commands.moment import StatementMoment
from tahoe.spark.commands.row_changes import committed, refuse_connect, with_positions
from tahoe.spark.commands.source_keys import candidates
from tahoe.spark.commands.source_rows import sent_to_all, stored
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.scan.relation import named, shape_of
from tahoe.spark.scan.row_id_columns import with_row_ids
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.fitting import nullable_schema
from tahoe.txn.transaction import Transaction

__all__ = ["MergeRequest", "explain_merge", "merge", "stage_merge"]


def merge(spark: SparkSession, table: Table, request: MergeRequest) -> RowsChanged:
    """Run the clauses in one commit.

    Args:
        spark: a classic session.

    Raises:
        InvalidRequest: clauses that break a rule, expressions that cannot be resolved, an append-only table;
            ``DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE`` if two source rows would change one target row.
        SchemaMismatch: the source does not fit the target.
        InvariantViolation: a new row violates a constraint of the table.
        Unsupported: subqueries in conditions; a Spark Connect session; a writer feature that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed data that this MERGE read.
    """
    refuse_connect(spark, "MERGE")
    with shown_jobs(spark, table.clock), told_once(spark):
        return committed(spark, table, lambda transaction: stage_merge(transaction, spark, request))


def stage_merge(transaction: Transaction, spark: SparkSession, request: MergeRequest) -> Staged:
    """Stage the changes that `merge` commits."""
    with _matched(transaction, spark, request) as matched:
        return matched.staged()


def explain_merge(spark: SparkSession, table: Table, request: MergeRequest) -> MergeExplained:
    """Return the effects of `merge` without writing. Raises the errors that `merge` raises before it writes."""
    refuse_connect(spark, "MERGE")
    with _matched(table.begin(), spark, request) as matched:
        names = set(matched.snapshot.schema.names)
        return MergeExplained(
            matched.snapshot.store.url,
            matched.snapshot.version,
            text_of(request.on),
            clauses_explained(matched.counts()),
            source_rows=matched.source_rows,
            files=len(matched.snapshot.files()),
            files_scanned=matched.files_scanned,
            files_touched=len(matched.changes),
            uses_deletion_vectors=uses_vectors(matched.config),
            new_columns=tuple(name for name in matched.config.schema.names if name not in names),
        )


@contextmanager
def _matched(transaction: Transaction, spark: SparkSession, request: MergeRequest) -> Iterator[Matched]:
    """Run every step before the writing; the stored rows are released at the end of the block."""
    request.check()
    snapshot = snapshot_to_change(transaction)
    if not only_inserts(request.clauses):
        snapshot.config.refuse_if_append_only()
    started = transaction.clock.now_ms()
    moment, zone = StatementMoment(spark), session_time_zone(spark)
    default = written_default(spark, snapshot.config.table)
    clauses = with_default_values(placed(snapshot, request), snapshot.config, Moment(started, zone), default)
    request = replace(request, source=moment.frame(request.source), clauses=clauses)
    columns = nullable_schema(from_spark_schema(request.source.schema))
    config = evolved(transaction, snapshot, request, columns)
    shape = Sides(named(shape_of(spark, snapshot), request.alias), request.source)
    plan = resolved(request, shape, columns, config.schema, moment)
    for step in plan.steps:
        check_identity(config, step.action, {assignment.path[0] for assignment in step.assignments})
    with stored(numbered(request.source)) as stored_source:
        restriction = candidates(snapshot, plan.sides.target, stored_source.frame, plan.parts, of_clauses(plan))
        materialized = transaction.clock.now_ms()
        predicate: Predicate = TRUE
        if of_kind(request.clauses, Kind.NOT_MATCHED_BY_SOURCE):
            transaction.read_whole_table()
        else:
            predicate = restriction.predicate
            transaction.read(predicate)
        files = snapshot.files_matching(predicate)
        rows = with_row_ids(with_positions(spark, snapshot, files, request.options, metadata=False), snapshot.config)
        plan = resolved(request, Sides(named(rows, request.alias), sent_to_all(stored_source)), columns, config.schema, moment)
        upsert = is_upsert(plan, snapshot.config, config)
        with stored(pairs_of(plan, snapshot.config, config, only_places=upsert)) as pairs:
            matches = evaluated(plan, snapshot, files, pairs, needs_once=upsert)
            if matches.ambiguous and not may_match_often(request.clauses):
                raise ambiguous(snapshot.store.url)
            for change in matches.matched:
                # The new rows depend on the matched rows, changed or not.
                transaction.read_rows(change.add.key, change.dead)
            times = (started, materialized, transaction.clock.now_ms())
            yield Matched(
                transaction, snapshot, config, request, plan, restriction.source_rows, len(files), pairs, matches, upsert, times
            )
