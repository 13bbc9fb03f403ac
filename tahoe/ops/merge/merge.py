"""MERGE without Spark: match, then write. All checks are made before a file is written.

    source + keys of the target ─► pairs ─► one clause for each row ─┬─ deleted and replaced rows of the target, file by file
                                                                      ├─ new rows: updated, inserted
                                                                      └─ the change data feed, if rows of the target change

A MERGE that only inserts changes no file of the target: it appends the unmatched rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.compute.constant_folding import with_constants
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.tree.expression import Expression, Reference, columns
from tahoe.expr.tree.implied import to_predicate
from tahoe.expr.tree.predicate import TRUE, Predicate, all_of, any_of
from tahoe.log.replay import add_files
from tahoe.ops.merge.clauses import Action, Clause, Kind, MergeStatement, may_match_often, only_inserts
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.merge.match import (
    Pairs,
    Side,
    are_tiny,
    choose,
    context,
    files_to_match,
    find_pairs,
    pruning_predicate,
    read_target,
)
from tahoe.ops.merge.report import (
    ClauseCount,
    MatchSummary,
    StagedMerge,
    Times,
    ambiguous,
    explained,
    merge_metrics,
    merge_parameters,
    staged,
)
from tahoe.ops.merge.schema import check_identity, check_target, evolved_schema, star_pairs, with_places
from tahoe.ops.rows.assigned_places import Columns, assigned_places
from tahoe.ops.rows.assignments import Assignment, assigned, parse_assignments
from tahoe.ops.rows.defaults import Defaults
from tahoe.ops.rows.row_changes import (
    FileChange,
    Staged,
    bitmap,
    file_with_positions,
    is_in,
    mark_dead,
    reading_ahead,
    remove_files,
    snapshot_to_change,
    uses_vectors,
    without_dead_files,
    write_change_data,
    write_rows,
)
from tahoe.ops.tables.create import set_schema
from tahoe.ops.write.arrow_data import as_table
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.row_ids import RowIds
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import has_row_tracking
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.evolve import check_duplicates
from tahoe.schema.types import StructType
from tahoe.snapshot.changes import with_change_type
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.side_by_side import one_ahead
from tahoe.txn.transaction import Transaction


def stage_merge(transaction: Transaction, statement: MergeStatement, progress: Progress = silent) -> Staged:
    """Stage the changes of a MERGE.

    Args:
        progress: called with the numbers of files searched and of files rewritten.

    Raises:
        InvalidRequest: an expression cannot be parsed, the clauses violate a rule, a value cannot be computed, or the table is append-only;
            ``DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE``: two rows of the source would change the same row.
        SchemaMismatch: the source does not fit the target.
        NotFound: there is no table.
    """
    started = transaction.clock.now_ms()
    writing = _matched(transaction, statement, progress)
    return writing.staged(started, transaction.clock.now_ms(), progress)


def explain_merge(transaction: Transaction, statement: MergeStatement) -> MergeExplained:
    """Predict the result of `stage_merge`. Raises the errors that it raises before it writes. Do not commit the transaction."""
    writing = _matched(transaction, statement)
    matched = MatchSummary(
        statement.on, writing.counts(), writing.source.count, len(writing.match.adds), len(writing.file_changes())
    )
    return explained(writing.snapshot, writing.plan.config, matched)


def _matched(transaction: Transaction, statement: MergeStatement, progress: Progress = silent) -> _Writing:
    """Match the rows, without writing."""
    statement.check()
    snapshot = snapshot_to_change(transaction)
    if not only_inserts(statement.clauses):
        snapshot.config.refuse_if_append_only()
    check_target(snapshot.schema, snapshot.config.table, evolving=statement.schema_evolution)
    table = as_table(statement.source)
    source, columns = Side(statement.source_alias, table, table.num_rows), from_arrow_schema(table.schema)
    moment = transaction.moment()
    clauses = with_places(
        statement.clauses,
        Columns.of(snapshot.schema, statement.target_alias),
        lambda: Columns.of(columns, statement.source_alias),
        Defaults(snapshot.config, moment),
        evolving=statement.schema_evolution,
    )
    plan = _plan(transaction, snapshot, replace(statement, clauses=clauses), columns, moment)
    return _Writing(transaction, snapshot, plan, _match(transaction, snapshot, plan, source, progress), source)


@dataclass(frozen=True, slots=True)
class _Step:
    """A parsed clause."""

    clause: Clause[str]
    condition: Expression | None
    assignments: tuple[Assignment, ...]

    def columns_seen(self, alias: str) -> set[str]:
        """Return the columns of a side that the new values use."""
        return {name for assignment in self.assignments for qualifier, name in columns(assignment.value) if qualifier == alias}


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parsed statement.

    Args:
        config: the configuration of the table after the commit.
        time_zone: of the statement.
    """

    statement: MergeStatement
    config: TableConfig
    on: Expression
    steps: tuple[_Step, ...]
    time_zone: str

    def of(self, kind: Kind) -> list[_Step]:
        return [step for step in self.steps if step.clause.kind == kind]

    def target_columns_to_match(self) -> set[str]:
        """Return the columns that must be read from every candidate file."""
        names = columns(self.on)
        for step in self.steps:
            if step.condition is not None:
                names |= columns(step.condition)
        return {name for qualifier, name in names if qualifier == self.statement.target_alias}

    def target_columns_to_write(self, snapshot: Snapshot, steps: Iterable[_Step] | None = None) -> set[str]:
        """Return the columns that new rows need: all to copy rows, else those that new values use, and those that keep their values.

        Args:
            steps: the clauses that update rows; None for all.
        """
        if not uses_vectors(self.config):
            return set(snapshot.schema.names)
        names: set[str] = set()
        for step in self.steps if steps is None else steps:
            if step.clause.action == Action.UPDATE:
                whole = {assignment.path[0] for assignment in step.assignments if assignment.assigns_whole_column}
                names |= step.columns_seen(self.statement.target_alias) | set(snapshot.schema.names) - whole
        return names


@dataclass(frozen=True, slots=True)
class _Match:
    """The rows of each clause.

    Args:
        adds: the files that were searched.
        offsets: the index of each file's first row among the live rows of all files, followed by the number of all rows.
        changes: for each clause that changes rows of the target, the indices of these rows, and of the source rows for matched ones.
        inserts: for each clause that inserts, the indices of the source rows.
        tiny: the live rows of all files in one table, with the columns of new rows, and the physical positions of each file's rows; None
            unless the files are tiny.
    """

    adds: list[AddFile]
    offsets: list[int]
    changes: list[tuple[_Step, Pairs]]
    inserts: list[tuple[_Step, pa.Array]]
    tiny: tuple[pa.Table, list[pa.Array]] | None = None

    def living(self, number: int) -> int:
        """Return the number of live rows in a file."""
        return self.offsets[number + 1] - self.offsets[number]


# ---- parsing the statement


def _plan(transaction: Transaction, snapshot: Snapshot, statement: MergeStatement, source: StructType, moment: Moment) -> _Plan:
    check_duplicates(source)
    schema = snapshot.schema
    if statement.schema_evolution:
        widening = snapshot.config.automatic_widening("ALWAYS")
        schema = evolved_schema(schema, source, statement.clauses, widening)
    config = set_schema(transaction, snapshot.config, schema)
    both = {statement.target_alias: snapshot.schema, statement.source_alias: source}
    on = with_constants(parse_condition(statement.on, both, moment.time_zone, moment.ms))
    steps = tuple(_step(clause, statement, both, config.schema, moment) for clause in statement.clauses)
    for step in steps:
        check_identity(config, step.clause.action, {assignment.path[0] for assignment in step.assignments})
    return _Plan(statement, config, on, steps, moment.time_zone)


def _step(
    clause: Clause[str], statement: MergeStatement, both: Mapping[str, StructType], schema: StructType, moment: Moment
) -> _Step:
    seen = {
        Kind.MATCHED: both,
        Kind.NOT_MATCHED: {statement.source_alias: both[statement.source_alias]},
        Kind.NOT_MATCHED_BY_SOURCE: {statement.target_alias: both[statement.target_alias]},
    }[clause.kind]
    condition = None if clause.condition is None else parse_condition(clause.condition, seen, moment.time_zone, moment.ms)
    if clause.values is None:
        return _Step(clause, condition, _star(clause, statement, both[statement.source_alias], schema, moment))
    keys, texts = (key for key, _ in clause.values), (text for _, text in clause.values)
    places = assigned_places(keys, [Columns.of(schema)], inserts=clause.action == Action.INSERT)
    may_lack_fields = statement.schema_evolution
    assignments = parse_assignments(places, texts, seen, moment, may_lack_fields=may_lack_fields)
    return _Step(clause, condition, assignments)


def _star(
    clause: Clause[str], statement: MergeStatement, source: StructType, schema: StructType, moment: Moment
) -> tuple[Assignment, ...]:
    pairs = star_pairs(clause.action, source, schema, evolving=statement.schema_evolution)
    return tuple(
        Assignment(
            pair.target,
            pair.target_type,
            Reference(pair.source, pair.source_type, statement.source_alias),
            pair.keeps_fields,
            moment.time_zone,
        )
        for pair in pairs
    )


# ---- matching


def _match(transaction: Transaction, snapshot: Snapshot, plan: _Plan, source: Side, progress: Progress) -> _Match:
    statement = plan.statement
    by_source = plan.of(Kind.NOT_MATCHED_BY_SOURCE)
    predicate: Predicate = TRUE
    if not by_source:
        predicate = pruning_predicate(plan.on, source, statement.target_alias, plan.time_zone)
        predicate = all_of([predicate, *_of_clauses(plan)])
    adds = add_files(files_to_match(transaction, snapshot, statement.clauses, predicate))
    names = plan.target_columns_to_match()
    reads_once = are_tiny(adds) and not has_row_tracking(snapshot.config)
    rows, positions = read_target(
        snapshot, adds, names | plan.target_columns_to_write(snapshot) if reads_once else names, progress
    )
    offsets = [0]
    for places in positions:
        offsets.append(offsets[-1] + len(places))
    target = Side(statement.target_alias, rows, offsets[-1]).only(names)
    pairs = find_pairs(plan.on, target, source)
    _note_matched_rows(transaction, adds, positions, offsets, pairs)

    if not may_match_often(statement.clauses) and len(pairs.target) != len(pairs.target.unique()):
        raise ambiguous(snapshot.store.url)
    matched = plan.of(Kind.MATCHED)
    seen = context(target, pairs.target, source, pairs.source)
    changes = list(zip(matched, map(pairs.take, choose([step.condition for step in matched], seen)), strict=True))
    changes = [(step, _each_once(matches)) for step, matches in changes]

    new = _others(source.count, pairs.source)
    inserting = plan.of(Kind.NOT_MATCHED)
    chosen = choose([step.condition for step in inserting], context(None, None, source, new))
    inserts = [(step, new.take(matches)) for step, matches in zip(inserting, chosen, strict=True)]

    alone = _others(target.count, pairs.target) if by_source else pa.nulls(0, pa.int64())
    for step, matches in zip(
        by_source, choose([s.condition for s in by_source], context(target, alone, None, None)), strict=True
    ):
        changes.append((step, Pairs(alone.take(matches), pa.nulls(len(matches), pa.int64()))))
    return _Match(adds, offsets, changes, inserts, (rows, positions) if reads_once else None)


def _of_clauses(plan: _Plan) -> list[Predicate]:
    """If all clauses are WHEN MATCHED: return the predicate that a row of the target satisfies the condition of one of them."""
    statement, parts = plan.statement, []
    for step in plan.steps:
        if step.clause.kind != Kind.MATCHED or step.condition is None:
            return []
        part = to_predicate(step.condition, statement.target_alias, plan.time_zone)
        if part is None:
            return []
        parts.append(part)
    return [any_of(parts)]


def _note_matched_rows(
    transaction: Transaction, adds: Sequence[AddFile], positions: Sequence[pa.Array], offsets: Sequence[int], pairs: Pairs
) -> None:
    """Register the matched rows for conflict detection, changed or not: the result depends on them."""
    for add, places, start in zip(adds, positions, offsets, strict=False):
        inside = pairs.between(start, start + len(places)).target
        if len(inside):
            transaction.read_rows(add.key, bitmap(places.take(pc.subtract(inside, start))))


def _each_once(pairs: Pairs) -> Pairs:
    """Keep one pair for each row of the target: for a DELETE of all matched rows, any pair will do."""
    if len(pairs.target) == len(pairs.target.unique()):
        return pairs
    first = pa.table({"row": pairs.target, "source": pairs.source}).group_by("row").aggregate([("source", "min")])
    first = first.sort_by("row").combine_chunks()
    return Pairs(first.column("row").combine_chunks(), first.column("source_min").combine_chunks())


def _others(count: int, rows: pa.Array) -> pa.Array:
    """Return the indices below `count` that are not in `rows`."""
    numbers = pa.arange(0, count)
    return numbers.filter(pc.invert(pc.is_in(numbers, value_set=rows)))


# ---- writing

_NO_ROWS = pa.table({}), pa.nulls(0, pa.int64())
_BYTES_READ_AHEAD = 32 << 20
"""Files of at most so many bytes are read while the one before is written: two of them are in memory."""


@dataclass(frozen=True, slots=True)
class _Writing:
    """The second half of a MERGE: stage deleted and new rows."""

    transaction: Transaction
    snapshot: Snapshot
    plan: _Plan
    match: _Match
    source: Side

    def staged(self, started: int, scanned: int, progress: Progress) -> Staged:
        transaction, config, statement = self.transaction, self.plan.config, self.plan.statement
        counts = self.counts()
        if not any(count.rows for count in counts) and transaction.metadata is None:
            return Staged(None)
        marked = uses_vectors(config)
        changes = self.file_changes()
        stay = without_dead_files(changes)
        gone = [change.add for change in changes if change.is_whole or not marked]
        remove_files(transaction, gone)
        numbers = [self._numbers(step, len(rows)) for step, rows in self.match.inserts]
        added = write_rows(transaction, config, self._rows(changes, numbers, marked, progress))
        feed = []
        if changes and config.properties.enable_change_data_feed:
            feed = write_change_data(transaction, config, self._feed(changes, numbers))
        if marked:
            mark_dead(transaction, config, stay)
        metrics = merge_metrics(
            self.source.count,
            counts,
            StagedMerge(changes, marked, gone, added, feed),
            Times(started, started, scanned, transaction.clock.now_ms()),
        )
        return staged(merge_parameters(statement.on, statement.clauses), counts, metrics)

    def counts(self) -> list[ClauseCount]:
        """Return the row counts in the order of the statement's clauses."""
        rows = {id(step): len(pairs.target) for step, pairs in self.match.changes}
        rows |= {id(step): len(chosen) for step, chosen in self.match.inserts}
        return [ClauseCount(step.clause, rows[id(step)]) for step in self.plan.steps]

    def file_changes(self) -> list[FileChange]:
        changes, tiny = [], self.match.tiny
        ahead = reading_ahead(self.snapshot, (add for add in self.match.adds if add.deletion_vector is not None))
        for number, add in enumerate(self.match.adds):
            matches = self._of_file(number)
            if matches:
                rows = pa.concat_arrays([pairs.target for _, pairs in matches])
                if add.deletion_vector is not None:
                    rows = (file_with_positions(ahead, add, ())[1] if tiny is None else tiny[1][number]).take(rows)
                changes.append(FileChange(add, self.match.living(number), bitmap(rows)))
        return changes

    def _numbered(self, changes: Iterable[FileChange]) -> Iterator[tuple[int, FileChange]]:
        """Yield each change with the index of its file."""
        numbers = {add.key: number for number, add in enumerate(self.match.adds)}
        return ((numbers[change.add.key], change) for change in changes)

    def _of_file(self, number: int) -> list[tuple[_Step, Pairs]]:
        """Return for each clause the rows of a file that it changes, with indices within the file."""
        start, end = self.match.offsets[number : number + 2]
        changes = []
        for step, pairs in self.match.changes:
            inside = pairs.between(start, end)
            if len(inside.target):
                changes.append((step, Pairs(pc.subtract(inside.target, start), inside.source)))
        return changes

    def _numbers(self, step: _Step, count: int) -> pa.Table:
        """Return the values that the table generates for rows that a clause inserts."""
        return pa.table(Completion(self.transaction, {assignment.path[0] for assignment in step.assignments}).values(count))

    def _rows(
        self, changes: Sequence[FileChange], numbers: Sequence[pa.Table], marked: bool, progress: Progress
    ) -> Iterator[pa.Table]:
        """Yield all rows for new files: updated rows, copied rows if deletion vectors are off, and inserted rows."""
        if self.match.tiny is not None:
            yield from self._rows_of_tiny_files(self.match.tiny[0], changes, marked, progress)
            yield from self._inserted(numbers)
            return
        ahead = reading_ahead(self.snapshot, [change.add for change in changes])
        read = partial(self._rows_of_file, ahead, marked)
        files = self._numbered(tracked(changes, progress, "files rewritten"))
        are_small = all(change.add.size <= _BYTES_READ_AHEAD for change in changes)
        yield from chain.from_iterable(one_ahead(read, files) if are_small else map(read, files))
        yield from self._inserted(numbers)

    def _rows_of_file(self, ahead: Snapshot, marked: bool, numbered: tuple[int, FileChange]) -> list[pa.Table]:
        """Return the rows of one file for new files."""
        number, change = numbered
        updates = [(step, pairs) for step, pairs in self._of_file(number) if step.clause.action == Action.UPDATE]
        if marked and not updates:
            return []
        names = sorted(self.plan.target_columns_to_write(self.snapshot, [step for step, _ in updates])) if marked else None
        rows, positions = _NO_ROWS if names == [] else file_with_positions(ahead, change.add, names)
        ids, tables = RowIds.of(ahead, change.add), []
        if not marked:
            stay = pc.invert(is_in(positions, change.dead))
            unchanged = rows.filter(stay)
            tables.append(ids.onto(assigned(unchanged, self.plan.config.schema, (), unchanged), stay, changed=False))
        return [*tables, *(ids.onto(self._after(rows, step, pairs), pairs.target, changed=True) for step, pairs in updates)]

    def _rows_of_tiny_files(
        self, rows: pa.Table, changes: Sequence[FileChange], marked: bool, progress: Progress
    ) -> Iterator[pa.Table]:
        """Yield the copied and the updated rows of all files together, as a table for each file takes longer than its rows.

        Args:
            rows: the live rows of all files.
        """
        if changes and not marked:
            offsets = self.match.offsets
            of_files = pa.concat_arrays([pa.arange(*offsets[number : number + 2]) for number, _ in self._numbered(changes)])
            changed = pa.concat_arrays([pairs.target for _, pairs in self.match.changes])
            unchanged = rows.take(of_files.filter(pc.invert(pc.is_in(of_files, value_set=changed))))
            yield assigned(unchanged, self.plan.config.schema, (), unchanged)
        for step, pairs in self.match.changes:
            if step.clause.action == Action.UPDATE and len(pairs.target):
                yield self._after(rows, step, pairs)
        progress("files rewritten", len(changes), len(changes))

    def _feed(self, changes: Sequence[FileChange], numbers: Sequence[pa.Table]) -> Iterator[pa.Table]:
        ahead = reading_ahead(self.snapshot, [change.add for change in changes])
        for number, change in self._numbered(changes):
            rows, _ = file_with_positions(ahead, change.add)
            for step, pairs in self._of_file(number):
                taken = rows.take(pairs.target)
                before = assigned(taken, self.plan.config.schema, (), taken)
                if step.clause.action == Action.DELETE:
                    yield with_change_type(before, "delete")
                else:
                    yield with_change_type(before, "update_preimage")
                    yield with_change_type(self._after(rows, step, pairs), "update_postimage")
        for table in self._inserted(numbers):
            yield with_change_type(table, "insert")

    def _after(self, rows: pa.Table, step: _Step, pairs: Pairs) -> pa.Table:
        """Return the updated rows of a file for a clause, in the schema of the table after the commit.

        Args:
            rows: the rows of the file, with at least the columns of `_Plan.target_columns_to_write`.
        """
        alias = self.plan.statement.target_alias
        target = Side(alias, rows, rows.num_rows).only(step.columns_seen(alias))
        source = self.source.only(step.columns_seen(self.source.alias)) if step.clause.kind == Kind.MATCHED else None
        seen = context(target, pairs.target, source, None if source is None else pairs.source)
        whole = {assignment.path[0] for assignment in step.assignments if assignment.assigns_whole_column}
        before = rows.select([name for name in rows.column_names if name not in whole])
        before = before.take(pairs.target) if before.num_columns else before
        return assigned(before, self.plan.config.schema, step.assignments, seen)

    def _inserted(self, numbers: Sequence[pa.Table]) -> Iterator[pa.Table]:
        schema = self.plan.config.schema
        for (step, rows), numbered in zip(self.match.inserts, numbers, strict=True):
            if len(rows):
                yield assigned(numbered, schema, step.assignments, context(None, None, self.source, rows))
