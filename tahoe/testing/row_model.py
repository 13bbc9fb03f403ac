"""SQL's semantics for a table's rows, in plain Python: rows as tuples, conditions and assignments as pairs of text and function.

    even = Condition("k % 2 = 0", lambda row, _: None if row[0] is None else row[0] % 2 == 0)
    table.delete(even.text)
    assert counted(rows_of(table.to_arrow())) == counted(stay(rows, even))

The module is independent of Tahoe's implementation. `tahoe.testing.row_strategies` draws conditions, assignments and merges with
Hypothesis; `tahoe.testing.table_machine` compares whole histories with this model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.ops.merge.clauses import MergeBuilder

__all__ = [
    "NOTHING",
    "SCHEMA",
    "Assignment",
    "Clause",
    "Condition",
    "Merge",
    "Row",
    "Rows",
    "TwiceMatched",
    "and_",
    "arrow",
    "changed",
    "counted",
    "equal",
    "less",
    "merge_builder",
    "merged",
    "not_",
    "or_",
    "rows_of",
    "stay",
]

Row = tuple[Any, Any, Any]
"""k (long), p (text), v (long); each may be None."""
Rows = list[Row]

SCHEMA = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
"""The schema of every table of the model."""
NOTHING: Row = (None, None, None)
"""Represents the missing row of the other side."""


@dataclass(frozen=True)
class Condition:
    """A condition in SQL, and as a function.

    Args:
        text: SQL over the columns of `SCHEMA`; in a MERGE they are qualified by ``target.`` and ``source.``.
        holds: evaluates the condition for a target row and a source row (`NOTHING` if missing): True, False, or None for NULL.
    """

    text: str
    holds: Callable[[Row, Row], bool | None]

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Assignment:
    """New values of a row in SQL, and as a function.

    Args:
        texts: SQL by column; None to take all columns from the source.
        apply: returns the new row for a target row and a source row.
    """

    texts: dict[str, str] | None
    apply: Callable[[Row, Row], Row]

    def __repr__(self) -> str:
        return str(self.texts or "*")


@dataclass(frozen=True)
class Clause:
    """One clause of a MERGE.

    Args:
        kind: ``matched``, ``not matched`` or ``by source`` (rows of the target that no row of the source matches).
        action: ``update``, ``delete`` or ``insert``.
        condition: restricts the rows; None for all rows.
        assignment: the new values; None for ``delete``.
    """

    kind: str
    action: str
    condition: Condition | None
    assignment: Assignment | None


@dataclass(frozen=True)
class Merge:
    """A MERGE: its match condition and its clauses, of which only the first that applies is carried out."""

    on: Condition
    clauses: tuple[Clause, ...]


class TwiceMatched(Exception):
    """Two rows of the source would change one row of the target."""


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table of `SCHEMA`."""
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.names)}, schema=SCHEMA)


def rows_of(table: pa.Table) -> Rows:
    """Return the rows of an Arrow table that has the columns of `SCHEMA`, and perhaps others."""
    return list(zip(*(table.column(name).to_pylist() for name in SCHEMA.names), strict=True))


def counted(rows: Sequence[Row]) -> Counter[Row]:
    """Return rows as a multiset: a table has no order."""
    return Counter(rows)


def merged(target: Rows, source: Sequence[Row], merge: Merge) -> tuple[Rows, tuple[int, int, int]]:
    """Return the rows after a MERGE, by nested loops, and the numbers of updated, deleted and inserted rows.

    Raises:
        TwiceMatched: SQL refuses the MERGE.
    """
    result: Rows = []
    updated = deleted = inserted = 0
    matched_sources: set[int] = set()
    for row in target:
        pairs = [number for number, source_row in enumerate(source) if merge.on.holds(row, source_row)]
        matched_sources.update(pairs)
        if pairs:
            acting = [(c, source[n]) for n in pairs if (c := _first(merge, "matched", row, source[n])) is not None]
            only_deletes = [c for c in merge.clauses if c.kind == "matched"] == [Clause("matched", "delete", None, None)]
            only_inserts = all(c.action == "insert" for c in merge.clauses)
            if len(pairs) > 1 and not only_deletes and not only_inserts:
                raise TwiceMatched
            chosen = acting[0] if acting else None
        else:
            clause = _first(merge, "by source", row, NOTHING)
            chosen = None if clause is None else (clause, NOTHING)
        if chosen is None:
            result.append(row)
        elif chosen[0].action == "delete":
            deleted += 1
        else:
            assert chosen[0].assignment is not None
            updated += 1
            result.append(chosen[0].assignment.apply(row, chosen[1]))
    for number, source_row in enumerate(source):
        clause = None if number in matched_sources else _first(merge, "not matched", NOTHING, source_row)
        if clause is not None:
            assert clause.assignment is not None
            inserted += 1
            result.append(clause.assignment.apply(NOTHING, source_row))
    return result, (updated, deleted, inserted)


def _first(merge: Merge, kind: str, row: Row, source_row: Row) -> Clause | None:
    return next(
        (c for c in merge.clauses if c.kind == kind and (c.condition is None or c.condition.holds(row, source_row) is True)), None
    )


def stay(rows: Rows, condition: Condition | None) -> Rows:
    """Return the rows after a DELETE; none are left without a condition."""
    return [] if condition is None else [row for row in rows if not condition.holds(row, NOTHING)]


def changed(rows: Rows, condition: Condition | None, assignment: Assignment) -> Rows:
    """Return the rows after an UPDATE; all are changed without a condition."""
    return [assignment.apply(row, NOTHING) if condition is None or condition.holds(row, NOTHING) else row for row in rows]


def merge_builder(table: Table, source: Sequence[Row], merge: Merge) -> MergeBuilder:
    """Return the same MERGE as a builder of Tahoe's: call `execute` on it."""
    builder = table.merge(arrow(source), merge.on.text)
    for clause in merge.clauses:
        condition = None if clause.condition is None else clause.condition.text
        values: Any = clause.assignment and clause.assignment.texts
        match clause.kind, clause.action:
            case "matched", "delete":
                builder = builder.when_matched_delete(condition)
            case "matched", "update":
                builder = (
                    builder.when_matched_update_all(condition)
                    if values is None
                    else builder.when_matched_update(values, condition)
                )
            case "not matched", _:
                builder = (
                    builder.when_not_matched_insert_all(condition)
                    if values is None
                    else builder.when_not_matched_insert(values, condition)
                )
            case _, "delete":
                builder = builder.when_not_matched_by_source_delete(condition)
            case _:
                builder = builder.when_not_matched_by_source_update(values, condition)
    return builder


# ---- SQL's three-valued logic


def less(left: int | None, right: int | None) -> bool | None:
    """``left < right``."""
    return None if left is None or right is None else left < right


def equal(left: object, right: object) -> bool | None:
    """``left = right``."""
    return None if left is None or right is None else left == right


def and_(left: bool | None, right: bool | None) -> bool | None:
    """``left AND right``."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def or_(left: bool | None, right: bool | None) -> bool | None:
    """``left OR right``."""
    return not_(and_(not_(left), not_(right)))


def not_(value: bool | None) -> bool | None:
    """``NOT value``."""
    return None if value is None else not value
