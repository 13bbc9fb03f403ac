"""MERGE in sessions of Spark Connect: match, then write, as in a classic session (`tahoe.spark.commands.merge`).

    source ─► stored on the server ─► pairs with the target rows, stored ─► bitmaps and counts to the client ─► new files ─► one commit

What is stored is computed once, and never again: if blocks of it are lost, the query fails. So a source that gives other rows when it is
read again, and a non-deterministic value, are seen once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import (
    Action,
    Clause,
    Kind,
    may_match_often,
    of_kind,
)
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.merge.match import files_to_match
from tahoe.ops.merge.report import (
    ClauseCount,
    MatchSummary,
    StagedMerge,
    Times,
    ambiguous,
    clause_counts,
    explained,
    merge_metrics,
    merge_parameters,
    staged,
)
from tahoe.ops.merge.schema import star_pairs
from tahoe.ops.rows.assigned_places import Columns
from tahoe.ops.rows.defaults import Defaults
from tahoe.ops.rows.row_changes import (
    RowsChanged,
    Staged,
    live_rows,
    mark_dead,
    remove_files,
    snapshot_to_change,
    uses_vectors,
    without_dead_files,
)
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.column_values.identity import identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.evolve import store_anything
from tahoe.schema.types import GENERATION_EXPRESSION
from tahoe.spark.commands.assignments import Assignment, Value
from tahoe.spark.commands.conditions import OF_MERGE
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder
from tahoe.spark.commands.merge.match import (
    BEFORE,
    CLAUSE,
    SOURCE_ROW,
    first_true,
    is_of,
    numbered,
    outcome,
    rows_before,
    together,
)
from tahoe.spark.commands.merge.statement import MergeRequest, PreparedMerge, Sides, Step, Term, prepared
from tahoe.spark.commands.row_changes import FILE, ROW, RowMatches, bitmaps_of, matches_of
from tahoe.spark.commands.row_changes import of_kind as of_change
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.connect.assigned import fit_of, parse_assignments
from tahoe.spark.connect.conditions import check_boolean, check_expression, columns_in, text_of
from tahoe.spark.connect.merge_keys import MergeSource, candidates
from tahoe.spark.connect.remote_rows import RemoteRows, RemoteVersion
from tahoe.spark.connect.requests.client_requests import reads_newest
from tahoe.spark.names.frame_columns import column_in, column_of
from tahoe.spark.names.settings import is_case_sensitive, setting_of, settings_of
from tahoe.spark.versions.connect_frames import alias_of, checkpointed, with_alias_of, with_known_columns
from tahoe.spark.versions.plan_ids import stands_for
from tahoe.spark.write.enforce import in_session_zone
from tahoe.spark.write.fitting import Casts, assignment_casts, columns_of
from tahoe.spark.write.server_defaults import written_by_server
from tahoe.txn.transaction import Transaction

_MATCHED_ROW = "__tahoe_matched_row"
_ROWS_OF_A_FILE = 1_000_000
_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_MOST_BYTES_BROADCAST = 32 * 1024 * 1024
_BYTES = {
    **dict.fromkeys(("boolean", "byte", "short", "integer", "float", "date"), 4),
    **dict.fromkeys(("long", "double", "timestamp"), 8),
}
_BYTES_OF_OTHERS = 100
"""The estimated bytes of a value of other types."""


class RemoteMergeBuilder(DeltaMergeBuilder):
    """Builds a MERGE in a session of Spark Connect."""

    def _merge(self) -> RowsChanged:
        return merge(self._target, self._request)

    def explain(self) -> MergeExplained:
        """Return the effects of `execute` on the current table, clause by clause, without writing."""
        return explain_merge(self._target, self._request)


def merge(target: CommandTarget, request: MergeRequest) -> RowsChanged:
    """Run the clauses in one commit. Raises the errors of `tahoe.spark.commands.merge.merge.merge`."""
    target = _in_session_of(request.source, target)
    return run_row_command(target, "MERGE", lambda transaction: _matched(transaction, target, request).stage())


def explain_merge(target: CommandTarget, request: MergeRequest) -> MergeExplained:
    """Return the effects of `merge` without writing. Raises the errors that `merge` raises before it writes."""
    matched = _matched(in_session_zone(target.spark, target.table.begin()), _in_session_of(request.source, target), request)
    changes = matched.changed.changes
    summary = MatchSummary(text_of(request.on), matched.counts(), matched.source_rows, matched.files_scanned, len(changes))
    return explained(matched.rows.version.snapshot, matched.rows.config, summary)


def _in_session_of(source: DataFrame, target: CommandTarget) -> CommandTarget:
    """Return the target with the source's session: since Spark 4.3 the batches of `foreachBatch` have a session of their own."""
    session = source.sparkSession
    return target if session is target.spark else replace(target, spark=session)


def _matched(transaction: Transaction, target: CommandTarget, request: MergeRequest) -> _MatchedMerge:
    """Run every step before the writing."""
    request = request.under(target.spark)
    snapshot = snapshot_to_change(transaction)
    version, started = RemoteVersion(target.spark, snapshot, target.alias), transaction.clock.now_ms()
    if reads_newest(request.source, transaction.store.url):
        transaction.read_all_rows()
    merge = _prepared(transaction, version, request, started)
    source = _stored_source(request.source)
    casts = assignment_casts(settings_of(target.spark).get)
    resolver = _Resolver(version, merge, source, casts)
    (on, text), steps = resolver.on(), resolver.steps()
    merge.check_identities(steps)
    keys = candidates(snapshot, version.qualifier, MergeSource(source, merge.columns, alias_of(request.source)), request.on)
    materialized = transaction.clock.now_ms()
    files = files_to_match(transaction, snapshot, request.clauses, keys.predicate)
    columns = _columns_to_match(version, merge, steps)
    rows = version.named(version.with_positions(files, ids=True, columns=columns))
    sides = _Sides(*_with_hints(rows, source, keys.source_rows), on, columns, casts)
    pairs = checkpointed(sides.pairs(steps, snapshot.config, merge.config))
    bitmaps = bitmaps_of(pairs, clause=sf.col(CLAUSE), is_pair=sf.col(SOURCE_ROW).isNotNull())
    with_clause = bitmaps.filter(pc.is_valid(bitmaps["clause"]))
    changed = matches_of(snapshot, files, with_clause)
    matched = matches_of(snapshot, files, bitmaps.filter(bitmaps["is_pair"]))
    if matched.ambiguous and not may_match_often(request.clauses):
        raise ambiguous(snapshot.store.url)
    for change in () if of_kind(request.clauses, Kind.NOT_MATCHED_BY_SOURCE) else matched.changes:
        # The new rows depend on the matched rows, changed or not.
        transaction.read_rows(change.add.key, change.dead)
    single, counts = pairs.where(sf.col(CLAUSE).isNotNull()), _rows_by_clause(with_clause)
    if changed.ambiguous:
        single = single.dropDuplicates([FILE, ROW])
        counts = _counted(single)
    times = (started, materialized, transaction.clock.now_ms())
    return _MatchedMerge(
        RemoteRows(transaction, merge.config, version=version),
        request,
        text,
        steps,
        source,
        single,
        pairs.where(sf.col(SOURCE_ROW).isNotNull()),
        changed,
        counts,
        keys.source_rows,
        len(files),
        times,
        casts,
    )


def _rows_by_clause(bitmaps: pa.Table) -> dict[int, int]:
    counts = bitmaps.group_by("clause").aggregate([("rows", "sum")])
    return dict(zip(counts["clause"].to_pylist(), counts["rows_sum"].to_pylist(), strict=True))


def _counted(rows: DataFrame) -> dict[int, int]:
    """Return the number of rows by clause."""
    return {int(row[0]): int(row[1]) for row in rows.groupBy(CLAUSE).count().collect()}


def _columns_to_match(version: RemoteVersion, merge: PreparedMerge, steps: Sequence[Step]) -> tuple[str, ...] | None:
    """Return the target's columns that the pairs need; None for all."""
    schema, clauses = version.snapshot.schema, merge.request.clauses
    updates = [step for step in steps if step.action == Action.UPDATE and step.kind != Kind.NOT_MATCHED]
    has_values = any(clause.values is not None for clause in clauses)
    if has_values or merge.config.properties.enable_change_data_feed:
        return None
    conditions = [clause.condition for clause in clauses if clause.condition is not None]
    named = columns_in(schema, merge.request.on, *conditions)
    if named is None or any(assignment.keeps_fields for step in updates for assignment in step.assignments):
        return None
    # A column that an update leaves out keeps its value.
    unassigned = {name for name in schema.names for step in updates if not step.inside(name)}
    return tuple(name for name in schema.names if name in unassigned or name in named)


def _with_hints(target: DataFrame, source: DataFrame, source_rows: int) -> tuple[DataFrame, DataFrame]:
    """Return both sides of the join with a hint: the source is broadcast if it is small, and if the session allows that.

    Without a hint the server would take the target for small, as it does not see the files behind it, and collect it.
    """
    width = sum(_BYTES.get(str(column.data_type), _BYTES_OF_OTHERS) for column in columns_of(source))
    is_off = str(setting_of(source.sparkSession, _THRESHOLD) or "0").strip().startswith("-")
    if not is_off and source_rows * width <= _MOST_BYTES_BROADCAST:
        return target, source.hint("broadcast")
    return target.hint("merge"), source


def _prepared(transaction: Transaction, version: RemoteVersion, request: MergeRequest, started: int) -> PreparedMerge:
    before, case_sensitive = version.snapshot.config, is_case_sensitive(version.spark)
    source = Columns.of(columns_of(request.source), alias_of(request.source), case_sensitive=case_sensitive)
    target = Columns.of(before.schema, version.alias, case_sensitive=case_sensitive)
    defaults = Defaults(before, Moment(started, transaction.time_zone), written_by_server(version.spark, before))
    return prepared(transaction, request, target, lambda: source, defaults)


def _stored_source(source: DataFrame) -> DataFrame:
    """Return the source with `SOURCE_ROW`, stored, under its alias; columns taken from it refer to the stored rows."""
    alias: Any = source._plan
    is_named = alias_of(source) is not None
    inner: Any = alias._child if is_named else alias
    stored: Any = checkpointed(numbered(source))
    with_known_columns(stored, StructType([*source.schema, StructField(SOURCE_ROW, LongType(), nullable=False)]))
    stands_for(stored._plan, inner)
    renamed: Any = with_alias_of(stored, source) if is_named else stored
    if is_named:
        stands_for(renamed._plan, alias)
    frame: DataFrame = renamed
    return frame


@dataclass(frozen=True)
class _Resolver:
    """Resolves the clauses: analyzes each expression on the side or sides that its clause may see."""

    version: RemoteVersion
    merge: PreparedMerge
    source: DataFrame
    casts: Casts

    def on(self) -> tuple[Column, str]:
        return self._condition(
            self.merge.request.on, Kind.MATCHED, "the search condition of a MERGE", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE"
        )

    def steps(self) -> tuple[Step, ...]:
        return tuple(self._step(number, clause) for number, clause in enumerate(self.merge.request.clauses))

    def _step(self, number: int, clause: Clause[Term]) -> Step:
        where = f"WHEN {clause.kind.words} THEN {clause.action.name} of a MERGE"
        condition, text = None, None
        if clause.condition is not None:
            condition, text = self._condition(clause.condition, clause.kind, f"the condition of {where}")
        assignments = self._star(clause) if clause.values is None else self._assignments(clause.values, clause.kind, where)
        return Step(number, clause.kind, clause.action, condition, assignments, text)

    def _seen(self, kind: Kind) -> DataFrame:
        return Sides(self.version.shape(), self.source).seen_by(kind)

    def _condition(
        self, term: Term, kind: Kind, where: str, code: str = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
    ) -> tuple[Column, str]:
        """Return a condition, and its text for the history."""
        column, text = column_of(term), text_of(term)
        check_expression(text, where, OF_MERGE)
        with _naming(where):
            shown = check_boolean(self._seen(kind), column, text, where[0].upper() + where[1:], code, OF_MERGE)
        return column, shown

    def _assignments(self, values: Sequence[tuple[str, Term]], kind: Kind, where: str) -> tuple[Assignment, ...]:
        evolving, target = self.merge.request.schema_evolution, Columns.of(self.merge.config.schema)
        with _naming(where):
            return parse_assignments(self._seen(kind), values, target, where, self.casts, may_lack_fields=evolving)

    def _star(self, clause: Clause[Term]) -> tuple[Assignment, ...]:
        evolving, schema = self.merge.request.schema_evolution, self.merge.config.schema
        pairs = star_pairs(clause.action, self.merge.columns, schema, evolving=evolving, stores=store_anything)
        return tuple(
            Assignment(pair.target, Value(column_in(self.source, pair.source[0]), pair.source_type), pair.keeps_fields)
            for pair in pairs
        )


class _naming:  # noqa: N801 - a context manager
    """Turns the server's error for a name that a clause cannot see into Tahoe's."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from pyspark.errors import AnalysisException

        if isinstance(error, AnalysisException) and str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
            reason = str(error).partition("\n")[0].partition(" SQLSTATE")[0]
            raise InvalidRequest(
                f"Cannot resolve {self._where}: {reason} Give source and target names by alias() and use these, as in 't.id = s.id'; a "
                "clause for rows that do not match sees the columns of its own side alone.",
                code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            ) from error


@dataclass(frozen=True)
class _Sides:
    """The rows of the target with their places, the stored source, and the condition after ON.

    Args:
        columns: the columns of the target that are read; None for all.
        casts: of the session.
    """

    target: DataFrame
    source: DataFrame
    on: Column
    columns: tuple[str, ...] | None
    casts: Casts

    def pairs(self, steps: Sequence[Step], before: TableConfig, after: TableConfig) -> DataFrame:
        """Return the matched target rows, each with its source row, and the unmatched target rows that a clause changes.

        Returns:
            `FILE`, `ROW`, `SOURCE_ROW`, `CLAUSE`; if there are updates, the columns of the table after the MERGE and the row ids; `BEFORE`
            if the change data feed is on.
        """
        matched = [step for step in steps if step.kind == Kind.MATCHED]
        alone = [step for step in steps if step.kind == Kind.NOT_MATCHED_BY_SOURCE]
        updates = any(step.action == Action.UPDATE for step in (*matched, *alone))
        shape = _Outcome(self.target, before, after, updates, self.columns, self.casts)
        joined = self.target.join(self.source, self.on, "inner")
        pairs = shape.of(joined, matched, self.source[SOURCE_ROW])
        if not alone:
            return pairs
        unmatched = shape.of(self.target.join(self.source, self.on, "left_anti"), alone, sf.lit(None).cast("long"))
        return pairs.unionByName(unmatched.where(sf.col(CLAUSE).isNotNull()))


@dataclass(frozen=True)
class _Outcome:
    """The columns of the pairs.

    Args:
        updates: whether a clause updates rows, so that the pairs have the table's columns.
        columns: the columns of the target that are read; None for all. Every update assigns to the others.
    """

    target: DataFrame
    before: TableConfig
    after: TableConfig
    updates: bool
    columns: tuple[str, ...] | None
    casts: Casts

    def of(self, rows: DataFrame, steps: Sequence[Step], source_row: Column) -> DataFrame:
        """Return the pairs, or the rows without a match, with the clause that applies and the resulting row."""
        chosen = rows.select("*", first_true([(step, None) for step in steps]).alias(CLAUSE))
        target = self.target
        columns = [target[FILE], target[ROW], source_row.alias(SOURCE_ROW), sf.col(CLAUSE)]
        if self.after.properties.enable_change_data_feed:
            fields = [column_in(target, column.name).alias(column.name) for column in self.before.schema]
            columns.append(sf.struct(*fields).alias(BEFORE))
        if self.updates:
            tracked = materialized_columns(self.before)
            # The version stays NULL, which means that of the coming commit.
            columns += [] if tracked is None else [target[tracked.row_id]]
            updating = [step for step in steps if step.action == Action.UPDATE]
            columns += outcomes(updating, self.after, self._old, self.casts)
        return chosen.select(*columns)

    def _old(self, name: str) -> Value | None:
        existing = self.before.schema.find(name)
        if existing is not None and self.columns is not None and existing.name not in self.columns:
            return None  # PySpark 4.0 asks the server about each column
        return None if existing is None else Value(column_in(self.target, existing.name), existing.data_type)


def outcomes(steps: Sequence[Step], config: TableConfig, old: Callable[[str], Value | None], casts: Casts) -> list[Column]:
    """Return the table's columns, computed by the clause of the row; NULL if there is no clause.

    Args:
        old: returns the value of a column before the MERGE, or None.
    """
    columns = []
    for column in config.schema:
        fit = fit_of(config.table, column, casts)
        value = outcome(steps, column, old(column.name), fit) if steps else fit(None, column.data_type, ()).alias(column.name)
        columns.append(value)
    return columns


@dataclass(frozen=True)
class _MatchedMerge:
    """A MERGE whose rows are matched, and not yet written.

    Args:
        on: the condition after ON, for the history.
        source: the stored source.
        pairs: the stored pairs to which a clause applies, one for each target row.
        matched_rows: the stored pairs of source and target rows, whether a clause applies or not.
        changed: the target rows to remove from each file.
        by_clause: clause number → number of its target rows.
        files_scanned: the number of files that were read.
        times: when the MERGE began, when the source was stored, and when the rows were found.
    """

    rows: RemoteRows
    request: MergeRequest
    on: str
    steps: Sequence[Step]
    source: DataFrame
    pairs: DataFrame
    matched_rows: DataFrame
    changed: RowMatches
    by_clause: dict[int, int]
    source_rows: int
    files_scanned: int
    times: tuple[int, int, int]
    casts: Casts

    def counts(self) -> list[ClauseCount]:
        """Return the counts in the order of the statement's clauses. Takes one more query if rows may be inserted."""
        new = self._new()
        return self._counts({} if new is None else _counted(new))

    def stage(self) -> Staged:
        """Write and stage files."""
        transaction, config, marked = self.rows.transaction, self.rows.config, uses_vectors(self.rows.config)
        changes = self.changed.changes
        removed = [change.add for change in changes if change.is_whole or not marked]
        remove_files(transaction, removed)
        updates, inserts, inserted = self._write()
        stay = [] if marked else without_dead_files(changes)
        copied = self.rows.copy(stay)
        feed = self._write_feed(updates, inserts) if changes and config.properties.enable_change_data_feed else []
        if marked:
            mark_dead(transaction, config, without_dead_files(changes))
        counts = self._counts(inserted)
        if not any(count.rows for count in counts) and transaction.metadata is None:
            return Staged(None)
        written = StagedMerge(changes, marked, removed, [*updates, *inserts, *copied], feed)
        metrics = merge_metrics(self.source_rows, counts, written, Times(*self.times, transaction.clock.now_ms()))
        return staged(self._parameters(), counts, metrics)

    def _parameters(self) -> dict[str, object]:
        return merge_parameters(self.on, [Clause(step.kind, step.action, step.text) for step in self.steps])

    def _counts(self, inserted: dict[int, int]) -> list[ClauseCount]:
        rows = self.by_clause | inserted
        return clause_counts(self.request.clauses, rows, text_of)

    def _new(self) -> DataFrame | None:
        """Return the rows to insert for source rows without a match: `CLAUSE`, and the table's columns; None if no clause inserts."""
        steps = [step for step in self.steps if step.kind == Kind.NOT_MATCHED]
        if not steps:
            return None
        matched = self.matched_rows.select(sf.col(SOURCE_ROW).alias(_MATCHED_ROW))
        unmatched = self.source.join(matched, self.source[SOURCE_ROW] == sf.col(_MATCHED_ROW), "left_anti")
        chosen = unmatched.select("*", first_true([(step, None) for step in steps]).alias(CLAUSE)).where(
            sf.col(CLAUSE).isNotNull()
        )
        return chosen.select(CLAUSE, *outcomes(steps, self.rows.config, lambda _: None, self.casts))

    def _write(self) -> tuple[list[AddFile], list[AddFile], dict[int, int]]:
        """Write the updated and the new rows; return their files, and the number of new rows by clause.

        Each query of a client costs some tenths of a second, so one writes all rows where the table fills in no column, and the files of a
        single clause tell how many rows it inserts.
        """
        new, inserting = self._new(), [step for step in self.steps if step.action == Action.INSERT]
        if new is None:
            return self._write_updates(), [], {}
        if len(inserting) > 1:
            new = checkpointed(new)
            inserted = _counted(new)
            return self._write_updates(), self._write_inserts(new, inserted), inserted
        number = inserting[0].number
        if self._has_gaps or self.rows.config.properties.enable_change_data_feed:
            updates, inserts = self._write_updates(), self._write_inserts(new, {number: self.source_rows})
            return updates, inserts, {number: self._live(inserts)}
        updating = [step for step in self.steps if step.action == Action.UPDATE]
        count = sum(self.by_clause.get(step.number, 0) for step in updating)
        rows = [self._updated(updating)] if count else []
        added = self.rows.write(self._laid_out(together([*rows, new.drop(CLAUSE)]), count + self.source_rows))
        return added, [], {number: self._live(added) - count}

    @property
    def _has_gaps(self) -> bool:
        """Whether a clause leaves columns to the table."""
        groups = (*self._by_gaps(Action.UPDATE, GENERATION_EXPRESSION), *self._by_gaps(Action.INSERT, None))
        return any(groups)

    def _live(self, adds: Sequence[AddFile]) -> int:
        return sum(live_rows(self.rows.version.snapshot, add) for add in adds)

    def _updated(self, steps: Sequence[Step]) -> DataFrame:
        return self.pairs.where(is_of(steps)).drop(FILE, ROW, SOURCE_ROW, CLAUSE, BEFORE)

    def _write_updates(self) -> list[AddFile]:
        added = []
        for names, steps in self._by_gaps(Action.UPDATE, GENERATION_EXPRESSION).items():
            rows = sum(self.by_clause.get(step.number, 0) for step in steps)
            if rows:
                added += self.rows.write(self._laid_out(self._updated(steps).drop(*names), rows))
        return added

    def _write_inserts(self, new: DataFrame | None, counts: dict[int, int]) -> list[AddFile]:
        groups = self._by_gaps(Action.INSERT, None)
        identities = {column.name for column in identity_columns(self.rows.config.schema, self.rows.config.table)}
        if len([names for names in groups if identities & set(names)]) > 1:
            raise Unsupported(
                f"A MERGE into {self.rows.config.table} whose INSERT clauses omit different columns that the table fills in, among them an "
                "identity column, is not supported in a session of Spark Connect. Let the clauses assign the same columns.",
                code="TAHOE_SPARK_CONNECT",
                table=self.rows.config.table,
            )
        added = []
        for names, steps in groups.items():
            rows = sum(counts.get(step.number, 0) for step in steps)
            if new is not None and rows:
                added += self.rows.write(self._laid_out(new.where(is_of(steps)).drop(CLAUSE, *names), rows))
        return added

    def _by_gaps(self, action: Action, key: str | None) -> dict[tuple[str, ...], list[Step]]:
        """Return the clauses of an action by the columns that they leave to the table.

        Args:
            key: the metadata of the columns that the table fills in; None for all kinds of them.
        """
        groups: dict[tuple[str, ...], list[Step]] = {}
        for step in self.steps:
            if step.action == action:
                silent = [column for column in self.rows.config.schema if not step.inside(column.name)]
                names = (column.name for column in silent if (is_filled_in(column) if key is None else key in column.metadata))
                groups.setdefault(tuple(names), []).append(step)
        return groups

    def _write_feed(self, updates: Sequence[AddFile], inserts: Sequence[AddFile]) -> list[AddCDCFile]:
        """Write the rows before and after the MERGE; those after it are read from the new files."""
        rows = [rows_before(self.pairs, self.steps, self.rows.version.snapshot.schema.names)]
        for adds, name in ((updates, "update_postimage"), (inserts, "insert")):
            if adds:
                rows.append(of_change(self.rows.written(adds), name))
        return self.rows.write_change_data(together(rows))

    def _laid_out(self, rows: DataFrame, count: int) -> DataFrame:
        """Distribute the rows over as many tasks as files are wanted, grouped by the partition columns that they have."""
        partitions = [name for name in self.rows.config.partition_columns if name in rows.columns]
        if self.rows.config.partition_columns:
            return (
                rows.hint("rebalance", *(sf.col(quote_identifier(name)) for name in partitions))
                if partitions
                else rows.coalesce(1)
            )
        return rows.coalesce(max(1, ceil(count / _ROWS_OF_A_FILE)))
