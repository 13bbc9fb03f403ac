"""The second half of a MERGE on Spark: turns the pairs into files, deletion vectors and change data feed rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import Action, Clause, Kind, may_match_often
from tahoe.ops.merge.report import ClauseCount, StagedMerge, Times, clause_counts, merge_metrics, merge_parameters, staged
from tahoe.ops.rows.row_changes import FileChange, Staged, live_rows, mark_dead, remove_files, uses_vectors, without_dead_files
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.constraints import is_filled_in
from tahoe.spark.commands.conditions import shown_in_history, text_of
from tahoe.spark.commands.merge.match import BEFORE, CLAUSE, SOURCE_ROW, inserted, is_of, of_source, rows_before, together
from tahoe.spark.commands.merge.pairs import PairMatches
from tahoe.spark.commands.merge.statement import MergeRequest, Plan, Step
from tahoe.spark.commands.row_changes import FILE, ROW, TableRows
from tahoe.spark.commands.row_changes import of_kind as of_change
from tahoe.spark.commands.source_rows import stored
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.write.enforce import recomputed

# The target size of new files; they are smaller if more tasks can write in parallel.
_ROWS_OF_A_FILE = 1_000_000
_ROWS_OF_A_TASK = 200_000


@dataclass(frozen=True)
class MatchedMerge:
    """A MERGE whose rows are matched, and not yet written.

    Args:
        plan: bound to the stored source and to the files that were read.
        matches: the pairs, with the clause of each row.
        source_rows: the number of source rows.
        files_scanned: the number of files that were read.
        times: when the MERGE began, when the source was stored, and when the rows were found.
    """

    rows: TableRows
    request: MergeRequest
    plan: Plan
    matches: PairMatches
    source_rows: int
    files_scanned: int
    times: tuple[int, int, int]

    @property
    def changes(self) -> list[FileChange]:
        """The rows to remove from each changed file."""
        return self.matches.changed.changes

    def counts(self) -> list[ClauseCount]:
        """Return the counts in the order of the statement's clauses. Takes one more job if rows may be inserted."""
        by_clause = dict(self.matches.by_clause)
        if self.plan.of(Kind.NOT_MATCHED):
            by_clause |= {row[0]: row[1] for row in self._new().groupBy(CLAUSE).count().collect()}
        return self._counts(by_clause)

    def stage(self, stack: ExitStack) -> Staged:
        """Write and stage files.

        Args:
            stack: releases the stored rows.
        """
        transaction, config, marked = self.rows.transaction, self.rows.config, uses_vectors(self.rows.config)
        new = self._new() if self.plan.of(Kind.NOT_MATCHED) and not self._writes_the_source else None
        if new is not None and self._writes_feed:
            # The feed must contain exactly the rows that were written, even if their values are not deterministic.
            new = stack.enter_context(stored(new)).frame
        removed = [change.add for change in self.changes if change.is_whole or not marked]
        remove_files(transaction, removed)
        numbered = self._write_numbered(new)
        added = [*numbered, *self._write(new, marked)]
        feed = self._write_feed(new, numbered) if self._writes_feed else []
        if marked:
            mark_dead(transaction, config, without_dead_files(self.changes))
        written = StagedMerge(self.changes, marked, removed, added, feed)
        counts = self._counts(self.matches.by_clause | self._inserted(written))
        if not any(count.rows for count in counts) and transaction.metadata is None:
            return Staged(None)
        metrics = merge_metrics(self.source_rows, counts, written, Times(*self.times, transaction.clock.now_ms()))
        return staged(self._parameters(), counts, metrics)

    @property
    def _writes_the_source(self) -> bool:
        """Whether the new rows are exactly the source rows, one for each."""
        return self.plan.is_upsert and self.matches.once

    @property
    def _writes_feed(self) -> bool:
        """Whether change data files are required: a commit that only adds rows needs none."""
        return bool(self.changes) and self.rows.config.properties.enable_change_data_feed

    def _parameters(self) -> dict[str, object]:
        jvm = Jvm.of(self.request.source.sparkSession)

        def shown(condition: Column) -> str:
            return shown_in_history(jvm, jvm.expression(condition))

        steps = self.plan.steps
        clauses = [Clause(s.kind, s.action, None if s.condition is None else shown(s.condition)) for s in steps]
        return merge_parameters(shown(self.plan.on), clauses)

    # -- rows --------------------------------------------------------------------------------------------------------------

    def _new(self) -> DataFrame:
        """Return the rows to insert, and `CLAUSE`."""
        return self._with_generated(inserted(self.plan, self.matches.pairs), self.plan.of(Kind.NOT_MATCHED))

    def _updated(self) -> DataFrame | None:
        """Return the new versions of updated rows; None if no row is updated."""
        steps = [step for step in self.plan.steps if step.action == Action.UPDATE]
        if not any(self.matches.by_clause.get(step.number) for step in steps):
            return None
        if self.plan.is_upsert:
            return of_source(self.plan, self.matches.pairs)
        rows = self.matches.pairs.frame.where(is_of(steps)).drop(FILE, ROW, SOURCE_ROW, BEFORE)
        return self._with_generated(rows, steps).drop(CLAUSE)

    def _with_generated(self, rows: DataFrame, steps: Sequence[Step]) -> DataFrame:
        """Recompute generated columns from their inputs, except in clauses that assign values to them; those are checked."""
        where = {}
        for column in self.rows.config.schema:
            if column.is_generated:
                silent = [step for step in steps if not step.inside(column.name)]
                if silent:
                    where[column.name] = is_of(silent)
        return recomputed(rows, self.rows.config, where) if where else rows

    @cached_property
    def _steps_with_gaps(self) -> dict[tuple[str, ...], list[Step]]:
        """The inserting clauses that omit an identity column or a column with a default, by all columns that the table fills in."""
        steps_by_columns: dict[tuple[str, ...], list[Step]] = {}
        for step in self.plan.of(Kind.NOT_MATCHED):
            silent = [column for column in self.rows.config.schema if is_filled_in(column) and not step.inside(column.name)]
            if any(not column.is_generated for column in silent):
                steps_by_columns.setdefault(tuple(column.name for column in silent), []).append(step)
        return steps_by_columns

    def _write_numbered(self, new: DataFrame | None) -> list[AddFile]:
        """Write the rows with identity values to separate files, because the writing tasks number them."""
        added = []
        for names, steps in ({} if new is None else self._steps_with_gaps).items():
            assert new is not None
            rows = new.where(is_of(steps)).drop(CLAUSE, *names)
            added += self.rows.write(self._laid_out(rows, self.source_rows))
        return added

    def _without_filled_in(self, new: DataFrame) -> DataFrame | None:
        """Return the new rows that have all their values; None if no clause inserts such rows."""
        filled_in = [step for steps in self._steps_with_gaps.values() for step in steps]
        if len(filled_in) == len(self.plan.of(Kind.NOT_MATCHED)):
            return None
        return (new.where(~is_of(filled_in)) if filled_in else new).drop(CLAUSE)

    def _write(self, new: DataFrame | None, marked: bool) -> list[AddFile]:
        stay = [] if marked else without_dead_files(self.changes)
        rows: list[DataFrame] = []
        count = self.matches.rows + sum(change.living - len(change.dead) for change in stay)
        updated = self._updated() if not self._writes_the_source else None
        if updated is not None:
            rows.append(updated)
        if stay:
            rows.append(self.rows.version.remaining_rows(stay).drop(FILE, ROW))
        if new is not None and (complete := self._without_filled_in(new)) is not None:
            rows.append(complete)
            count += self.source_rows
        if self._writes_the_source and self.source_rows:
            rows.append(of_source(self.plan))
            count += self.source_rows - self.matches.rows
        if not rows:
            return []
        return self.rows.write(self._laid_out(together(rows), count))

    def _write_feed(self, new: DataFrame | None, numbered: Sequence[AddFile]) -> list[AddCDCFile]:
        changed = self.matches.pairs.frame.where(sf.col(CLAUSE).isNotNull())
        if may_match_often(self.request.clauses):
            changed = changed.dropDuplicates([FILE, ROW])
        rows = [rows_before(changed, self.plan.steps, self.rows.version.snapshot.schema.names)]
        updated = self._updated()
        if updated is not None:
            rows.append(of_change(updated, "update_postimage"))
        if new is not None and (complete := self._without_filled_in(new)) is not None:
            rows.append(of_change(complete, "insert"))
        if numbered:
            rows.append(of_change(self.rows.written(numbered), "insert"))
        return self.rows.write_change_data(self._laid_out(together(rows), 2 * self.matches.rows + self.source_rows))

    def _laid_out(self, rows: DataFrame, count: int) -> DataFrame:
        """Distribute the rows over as many tasks as files are wanted, grouped by the partition columns that they already have; the table
        fills in the others later.
        """
        if self.rows.config.partition_columns:
            present = [name for name in self.rows.config.partition_columns if name in rows.columns]
            return rows.hint("rebalance", *(sf.col(quote_identifier(name)) for name in present))
        at_once = rows.sparkSession.sparkContext.defaultParallelism
        return rows.coalesce(max(1, min(at_once, ceil(count / _ROWS_OF_A_TASK)), ceil(count / _ROWS_OF_A_FILE)))

    # -- counts ------------------------------------------------------------------------------------------------------------

    def _counts(self, rows: dict[int, int]) -> list[ClauseCount]:
        return clause_counts(self.request.clauses, rows, text_of)

    def _inserted(self, written: StagedMerge) -> dict[int, int]:
        """Return the number of written rows that are neither updated nor copied, counted for the first inserting clause."""
        if not self.plan.of(Kind.NOT_MATCHED):
            return {}
        updated = sum(self.matches.by_clause.get(step.number, 0) for step in self.plan.steps if step.action == Action.UPDATE)
        rows = sum(live_rows(self.rows.version.snapshot, add) for add in written.added)
        return {self.plan.of(Kind.NOT_MATCHED)[0].number: rows - updated - written.copied}
