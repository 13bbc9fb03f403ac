"""The first half of a MERGE: find the matching rows of source and target, and assign each row to a clause. Nothing is written.

source keys ─► files of the target that may contain them ─► equal keys ─► the rest of the condition ─► pairs of rows
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.compute.compute import compute, compute_mask
from tahoe.expr.tree.expression import Call, Expression, Reference, columns, conjuncts_of
from tahoe.expr.tree.implied import to_predicate
from tahoe.expr.tree.predicate import FALSE, TRUE, Column, Comparison, In, Literal, Predicate, all_of
from tahoe.ops.merge.clauses import Clause, Kind, of_kind
from tahoe.ops.rows.row_changes import file_with_positions, reading_ahead
from tahoe.protocol.actions import AddFile
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.arrow_values import empty_table, scalar
from tahoe.schema.types import DecimalType, PrimitiveType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.side_by_side import in_threads
from tahoe.txn.transaction import Transaction

PAIRS_AT_ONCE = 1_000_000
"""The number of pairs of rows that are processed together."""
_MOST_VALUES_NAMED = 200


@dataclass(frozen=True)
class Side:
    """The source or the target of a MERGE.

    Args:
        alias: its name in expressions.
        rows: its columns, or the necessary ones, with their unqualified names.
        count: the number of rows.
    """

    alias: str
    rows: pa.Table
    count: int

    def only(self, names: Iterable[str]) -> Side:
        """Return the same rows with these columns only."""
        return Side(self.alias, self.rows.select(sorted(names)), self.count)

    def taken(self, indices: pa.Array) -> dict[str, pa.ChunkedArray]:
        """Return the rows at the indices, as columns ``alias.name``."""
        if not self.rows.num_columns:
            return {}
        rows = self.rows.take(indices)
        return {f"{self.alias}.{name}": rows.column(i) for i, name in enumerate(rows.column_names)}


def files_to_match(
    transaction: Transaction, snapshot: Snapshot, clauses: Sequence[Clause[Any]], predicate: Predicate
) -> pa.Table:
    """Return the files that may have rows on which the MERGE depends (`tahoe.log.replay.FILES_SCHEMA`); registers the read.

    Args:
        predicate: true for every row of the target that a row of the source may match.
    """
    if of_kind(clauses, Kind.NOT_MATCHED_BY_SOURCE):
        transaction.read_whole_table()
        return snapshot.files_matching(TRUE)
    transaction.read(predicate)
    return snapshot.files_matching(predicate)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of matching rows, each an index into the target and an index into the source, sorted by target and then by source."""

    target: pa.Array
    source: pa.Array

    def take(self, indices: pa.Array) -> Pairs:
        """Return the pairs at these positions, in their order."""
        return Pairs(self.target.take(indices), self.source.take(indices))

    def between(self, start: int, end: int) -> Pairs:
        """Return the pairs of the rows of the target from `start` up to, but not including, `end`; nothing is copied."""
        rows = memoryview(self.target.buffers()[1]).cast("q")[self.target.offset :] if len(self.target) else ()
        first, last = (bisect_left(rows, row, 0, len(self.target)) for row in (start, end))
        return Pairs(self.target.slice(first, last - first), self.source.slice(first, last - first))


def pruning_predicate(on: Expression, source: Side, target_alias: str, time_zone: str) -> Predicate:
    """Return a predicate that is true for every row of the target that a row of the source may match.

    It consists of the parts of the condition on the target alone, and the range or the list of the source's keys.
    """
    parts = [to_predicate(on, target_alias, time_zone)]
    parts += [_of_values(mine, compute(theirs, _all(source))) for mine, theirs in _keys(on, target_alias)]
    return all_of(part for part in parts if part is not None)


def are_tiny(adds: Sequence[AddFile]) -> bool:
    """Whether to read the files once, with all columns: opening them again takes longer than reading some more bytes."""
    return sum(add.size for add in adds) <= _BYTES_AT_ONCE and all(add.size <= _BYTES_OF_A_TINY_FILE for add in adds)


def read_target(
    snapshot: Snapshot, adds: Sequence[AddFile], names: Iterable[str], progress: Progress = silent
) -> tuple[pa.Table, list[pa.Array]]:
    """Return columns of the live rows of the files in one table, and the positions of the rows of each file."""
    ordered = sorted(names)
    tables = [empty_table(to_arrow_schema(snapshot.schema.select(ordered)))]
    positions = []
    read = partial(file_with_positions, reading_ahead(snapshot, adds), columns=ordered)
    files = in_threads(snapshot.store, read, adds, sum(add.size for add in adds))
    for rows, places in tracked(files, progress, "files searched", len(adds)):
        tables.append(rows)
        positions.append(places)
    return pa.concat_tables(tables), positions


def find_pairs(on: Expression, target: Side, source: Side) -> Pairs:
    """Return all pairs of rows for which the condition is true."""
    keys = [
        (mine, theirs)
        for mine, theirs in _keys(on, target.alias)
        if not pa.types.is_nested(compute(theirs, _all(source).slice(0, 0)).type)
    ]
    met: list[Pairs] = []
    for pairs in _with_equal_keys(keys, target, source) if keys else _all_pairs(target.count, source.count):
        mask = compute_mask(on, context(target, pairs.target, source, pairs.source))
        met.append(pairs.take(pc.indices_nonzero(mask)))
    if not met:
        return Pairs(pa.nulls(0, pa.int64()), pa.nulls(0, pa.int64()))
    return Pairs(pa.concat_arrays([p.target for p in met]), pa.concat_arrays([p.source for p in met]))


def context(target: Side | None, target_rows: pa.Array | None, source: Side | None, source_rows: pa.Array | None) -> pa.Table:
    """Return the input of expressions: the columns of pairs of rows, or of rows of one side."""
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for side, indices in ((target, target_rows), (source, source_rows)):
        if side is not None and indices is not None:
            # A table of no columns would have no rows.
            columns[""] = indices
            columns.update(side.taken(indices))
    return pa.table(columns)


def choose(conditions: Sequence[Expression | None], rows: pa.Table) -> list[pa.Array]:
    """Return for each condition the indices of the rows for which it is the first true condition; None is always true."""
    rest = pa.arange(0, rows.num_rows)
    chosen = []
    for condition in conditions:
        if condition is None:
            chosen.append(rest)
            rest = rest.slice(0, 0)
            continue
        mask = compute_mask(condition, rows.take(rest))
        chosen.append(rest.filter(mask))
        rest = rest.filter(pc.invert(mask))
    return chosen


_BYTES_AT_ONCE = 16 << 20
_BYTES_OF_A_TINY_FILE = 64 << 10


def _all(side: Side) -> pa.Table:
    whole = {f"{side.alias}.{name}": side.rows.column(i) for i, name in enumerate(side.rows.column_names)}
    # A table of no columns would have no rows.
    return pa.table(whole or {"": pa.arange(0, side.count)})


def _keys(on: Expression, target_alias: str) -> Iterator[tuple[Expression, Expression]]:
    """Yield pairs of an expression over the target and one over the source that must be equal."""
    for part in conjuncts_of(on):
        if not isinstance(part, Call) or part.function != "=":
            continue
        left, right = part.arguments
        sides = [{qualifier for qualifier, _ in columns(side)} for side in (left, right)]
        if len(sides[0]) != 1 or len(sides[1]) != 1 or sides[0] == sides[1]:
            continue
        yield (left, right) if sides[0] == {target_alias} else (right, left)


def _of_values(mine: Expression, values: pa.Array) -> Predicate | None:
    """Return a predicate that is true if a column of the target equals one of the values; None if there is no such predicate."""
    if values.null_count == len(values):
        return FALSE
    if not isinstance(mine, Reference) or not isinstance(mine.data_type, PrimitiveType | DecimalType):
        return None
    if pa.types.is_floating(values.type) or pa.types.is_binary(values.type):
        return None
    column = Column(mine.path)
    distinct = values.drop_null().unique()
    if len(distinct) <= _MOST_VALUES_NAMED:
        return In(column, tuple(Literal(value, mine.data_type) for value in distinct.to_pylist()))
    bounds = pc.min_max(distinct).as_py()
    return all_of(
        [
            Comparison(">=", column, Literal(bounds["min"], mine.data_type)),
            Comparison("<=", column, Literal(bounds["max"], mine.data_type)),
        ]
    )


def _with_equal_keys(keys: Sequence[tuple[Expression, Expression]], target: Side, source: Side) -> Iterator[Pairs]:
    mine = [_comparable(compute(left, _all(target))) for left, _ in keys]
    theirs = [_comparable(compute(other, _all(source))) for _, other in keys]
    # Most rows of the target have a key that no row of the source has: filter them out before the join.
    candidates = pc.indices_nonzero(
        reduce(pc.and_, (_is_in(left, other.drop_null().unique()) for left, other in zip(mine, theirs, strict=True)))
    )
    codes: pa.Array | None = None
    missing: pa.Array | None = None
    for left, other in zip(mine, theirs, strict=True):
        values = pa.concat_arrays([left.take(candidates), other])
        null = values.is_null()
        missing = null if missing is None else pc.or_(missing, null)
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        indices = encoded.indices.cast(pa.int64())
        # Codes are renumbered after each key, so that the product of the keys' sizes cannot overflow.
        codes = indices if codes is None else _small(pc.add(pc.multiply(codes, len(encoded.dictionary)), indices))
    assert codes is not None
    codes_of_rows = pc.if_else(missing, scalar(None, pa.int64()), codes)
    mine_table = pa.table({"code": codes_of_rows.slice(0, len(candidates)), "target": candidates.cast(pa.int64())})
    their_table = pa.table({"code": codes_of_rows.slice(len(candidates)), "source": pa.arange(0, source.count)})
    valid = pc.is_valid(pc.field("code"))
    joined = mine_table.filter(valid).join(their_table.filter(valid), keys="code", join_type="inner")
    joined = joined.sort_by([("target", "ascending"), ("source", "ascending")]).combine_chunks()
    for start in range(0, joined.num_rows, PAIRS_AT_ONCE):
        part = joined.slice(start, PAIRS_AT_ONCE)
        yield Pairs(part.column("target").combine_chunks(), part.column("source").combine_chunks())


def _is_in(values: pa.Array, searched: pa.Array) -> pa.ChunkedArray:
    """Return whether each value is one of the searched ones; many values are compared on all cores."""
    # Each part hashes all searched values again.
    size = max(_ROWS_COMPARED_AT_ONCE, len(searched))
    parts = [values.slice(start, size) for start in range(0, max(1, len(values)), size)]
    is_in = partial(pc.is_in, value_set=searched)
    if len(parts) == 1:
        return pa.chunked_array([is_in(values)])
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="tahoe-match") as pool:
        return pa.chunked_array(list(pool.map(is_in, parts)))


_ROWS_COMPARED_AT_ONCE = 256 * 1024


def _comparable(values: pa.Array) -> pa.Array:
    """Normalize values that SQL treats as equal: -0.0 becomes 0.0."""
    return pc.if_else(pc.equal(values, 0.0), scalar(0.0, values.type), values) if pa.types.is_floating(values.type) else values


def _small(codes: pa.Array) -> pa.Array:
    return pc.dictionary_encode(codes).indices.cast(pa.int64())


def _all_pairs(target_count: int, source_count: int) -> Iterator[Pairs]:
    """Yield every row of the target with every row of the source."""
    if not source_count:
        return
    step = max(1, PAIRS_AT_ONCE // source_count)
    for start in range(0, target_count, step):
        rows = min(step, target_count - start)
        numbers = pa.arange(0, rows * source_count)
        mine = pc.divide(numbers, source_count)
        yield Pairs(pc.add(mine, start), pc.subtract(numbers, pc.multiply(mine, source_count)))
