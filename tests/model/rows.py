"""What a table's rows are to SQL, in plain Python: rows as tuples, conditions and assignments as pairs of text and function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

__all__ = [
    "ONLY_NEW",
    "SCHEMA",
    "Assignment",
    "Clause",
    "Condition",
    "Merge",
    "Row",
    "Rows",
    "TwiceMatched",
    "arrow",
    "assignments",
    "conditions",
    "counted",
    "merged",
    "merges",
    "rows_of",
    "rows_of_keys",
    "some_rows",
    "with_keys",
]

Row = tuple[Any, Any, Any]
"""k (long), p (text), v (long); each may be None."""
Rows = list[Row]

SCHEMA = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


@dataclass(frozen=True)
class Condition:
    """SQL text, and what it is for a row of the target and a row of the source: True, False or None."""

    text: str
    holds: Callable[[Row, Row], bool | None]

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Assignment:
    """Column → SQL, and what it makes of a row of the target and a row of the source."""

    texts: dict[str, str] | None
    apply: Callable[[Row, Row], Row]

    def __repr__(self) -> str:
        return str(self.texts or "*")


@dataclass(frozen=True)
class Clause:
    kind: str
    action: str
    condition: Condition | None
    assignment: Assignment | None


@dataclass(frozen=True)
class Merge:
    on: Condition
    clauses: tuple[Clause, ...]


class TwiceMatched(Exception):
    """Two rows of the source would change one row of the target."""


def arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.names)}, schema=SCHEMA)


def rows_of(table: pa.Table) -> Rows:
    return list(zip(*(table.column(name).to_pylist() for name in SCHEMA.names), strict=True))


def counted(rows: Sequence[Row]) -> Counter[Row]:
    return Counter(rows)


def merged(target: Rows, source: Sequence[Row], merge: Merge) -> tuple[Rows, tuple[int, int, int]]:
    """The rows after a MERGE, by nested loops, and how many were updated, deleted and inserted."""
    result: Rows = []
    updated = deleted = inserted = 0
    matched_sources: set[int] = set()
    for row in target:
        pairs = [number for number, other in enumerate(source) if merge.on.holds(row, other)]
        matched_sources.update(pairs)
        if pairs:
            acting = [(c, source[n]) for n in pairs if (c := _first(merge, "matched", row, source[n])) is not None]
            only_deletes = [c for c in merge.clauses if c.kind == "matched"] == [Clause("matched", "delete", None, None)]
            if len(acting) > 1 and not only_deletes:
                raise TwiceMatched
            chosen = acting[0] if acting else None
        else:
            clause = _first(merge, "by source", row, _NOTHING)
            chosen = None if clause is None else (clause, _NOTHING)
        if chosen is None:
            result.append(row)
        elif chosen[0].action == "delete":
            deleted += 1
        else:
            assert chosen[0].assignment is not None
            updated += 1
            result.append(chosen[0].assignment.apply(row, chosen[1]))
    for number, other in enumerate(source):
        clause = None if number in matched_sources else _first(merge, "not matched", _NOTHING, other)
        if clause is not None:
            assert clause.assignment is not None
            inserted += 1
            result.append(clause.assignment.apply(_NOTHING, other))
    return result, (updated, deleted, inserted)


_NOTHING: Row = (None, None, None)


def _first(merge: Merge, kind: str, row: Row, other: Row) -> Clause | None:
    return next(
        (c for c in merge.clauses if c.kind == kind and (c.condition is None or c.condition.holds(row, other) is True)), None
    )


# ---- strategies: each is made once, for Hypothesis looks one through before its first draw

_KEYS = st.integers(0, 12)
_PARTS = st.sampled_from(["a", "b", "c"])


@cache
def some_rows(least: int = 0, most: int = 8) -> st.SearchStrategy[Rows]:
    row = st.tuples(st.none() | _KEYS, st.none() | _PARTS, st.none() | st.integers(-3, 20))
    return st.lists(row, min_size=least, max_size=most)


def rows_of_keys(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Rows]:
    """A few rows with keys of the strategy, each once, and others."""
    named = st.lists(
        st.tuples(keys, st.none() | _PARTS, st.integers(-3, 14)), min_size=1, max_size=2, unique_by=lambda row: row[0]
    )
    return st.builds(lambda these, others: [*these, *others], named, some_rows(0, 2))


def _less(left: int | None, right: int | None) -> bool | None:
    return None if left is None or right is None else left < right


def _equal(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return _not(_and(_not(left), _not(right)))


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _leaf(kind: str, c: int, part: str, q: str) -> Condition:
    """One comparison; `q` stands before the names of columns."""
    leaves: dict[str, Condition] = {
        "key": Condition(f"{q}k = {c}", lambda t, s: _equal(t[0], c)),
        "keys": Condition(f"{q}k in ({c}, {c + 3}, 5)", lambda t, s: None if t[0] is None else t[0] in (c, c + 3, 5)),
        "below": Condition(f"{q}k < {c}", lambda t, s: _less(t[0], c)),
        "even": Condition(f"{q}k % 2 = 0", lambda t, s: None if t[0] is None else t[0] % 2 == 0),
        "part": Condition(f"{q}p = '{part}'", lambda t, s: _equal(t[1], part)),
        "no part": Condition(f"{q}p is null", lambda t, s: t[1] is None),
        "no value": Condition(f"{q}v is null", lambda t, s: t[2] is None),
        "value": Condition(f"{q}v > {c}", lambda t, s: _less(c, t[2])),
        "both": Condition(f"{q}v > {q}k", lambda t, s: _less(t[0], t[2])),
    }
    return leaves[kind]


def _both(a: Condition, b: Condition) -> Condition:
    return Condition(f"({a} and {b})", lambda t, s: _and(a.holds(t, s), b.holds(t, s)))


_LEAVES = ("key", "keys", "below", "even", "part", "no part", "no value", "value", "both")


@cache
def conditions(qualifier: str = "") -> st.SearchStrategy[Condition]:
    """Conditions over the target's columns."""
    leaf = st.builds(_leaf, st.sampled_from(_LEAVES), _KEYS, _PARTS, st.just(qualifier))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(_both, inner, inner),
            st.builds(lambda a, b: Condition(f"({a} or {b})", lambda t, s: _or(a.holds(t, s), b.holds(t, s))), inner, inner),
            st.builds(lambda a: Condition(f"not ({a})", lambda t, s: _not(a.holds(t, s))), inner),
        ),
        max_leaves=3,
    )


def with_keys(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Condition]:
    """Conditions that hold for rows with one or two keys of the strategy, or for some of these rows."""
    one = st.builds(lambda a: Condition(f"k = {a}", lambda t, s: _equal(t[0], a)), keys)
    two = st.builds(lambda a, b: Condition(f"k in ({a}, {b})", lambda t, s: None if t[0] is None else t[0] in (a, b)), keys, keys)
    return one | two | st.builds(_both, one | two, conditions())


@cache
def assignments(q: str = "") -> st.SearchStrategy[Assignment]:
    """New values over the target's own columns."""
    return st.sampled_from(
        [
            Assignment({"v": f"coalesce({q}v, 0) + 1"}, lambda t, s: (t[0], t[1], (t[2] or 0) + 1)),
            Assignment({"v": "null"}, lambda t, s: (t[0], t[1], None)),
            Assignment({"v": f"{q}k * 2", "p": "'b'"}, lambda t, s: (t[0], "b", None if t[0] is None else t[0] * 2)),
            Assignment({"p": "'c'"}, lambda t, s: (t[0], "c", t[2])),
            Assignment({"k": "7"}, lambda t, s: (7, t[1], t[2])),
        ]
    )


_SOURCE_VALUE = Condition("source.v > 5", lambda t, s: _less(5, s[2]))
_ON = Condition("target.k = source.k", lambda t, s: _equal(t[0], s[0]))
_ONS = [
    _ON,
    Condition("target.k = source.k and target.p = 'a'", lambda t, s: _and(_equal(t[0], s[0]), _equal(t[1], "a"))),
    Condition("target.k = source.k and target.p = source.p", lambda t, s: _and(_equal(t[0], s[0]), _equal(t[1], s[1]))),
    Condition("target.k = source.k and target.v < source.v", lambda t, s: _and(_equal(t[0], s[0]), _less(t[2], s[2]))),
    Condition("target.k + 1 = source.k", lambda t, s: _equal(None if t[0] is None else t[0] + 1, s[0])),
    Condition("target.k <=> source.k", lambda t, s: t[0] == s[0]),
]
_ALL = Assignment(None, lambda t, s: s)
_BOTH = Assignment({"v": "target.v + source.v"}, lambda t, s: (t[0], t[1], None if t[2] is None or s[2] is None else t[2] + s[2]))
_NEW = Assignment({"k": "source.k", "v": "source.v - 1"}, lambda t, s: (s[0], None, None if s[2] is None else s[2] - 1))


ONLY_NEW = Merge(_ON, (Clause("not matched", "insert", None, _ALL),))
"""It reads the rows that match and changes none."""


@cache
def merges() -> st.SearchStrategy[Merge]:
    """Any number of clauses of each kind; only the last of a kind may be without a condition."""
    target = conditions("target.")
    maybe_target = st.none() | target
    deletes = st.sampled_from([_SOURCE_VALUE]) | target
    updates = st.sampled_from([_ALL, _ALL, _BOTH]) | assignments("target.")
    last_updates = st.builds(Clause, st.just("matched"), st.just("update"), maybe_target, updates)
    inserts, ons = st.sampled_from([_ALL, _NEW]), st.sampled_from(_ONS)

    @st.composite
    def merge(draw: st.DrawFn) -> Merge:
        clauses: list[Clause] = []
        if draw(st.booleans()):
            if draw(st.booleans()):
                clauses.append(Clause("matched", "delete", draw(deletes), None))
            clauses.append(draw(last_updates))
        elif draw(st.booleans()):
            clauses.append(Clause("matched", "delete", None, None))
        if draw(st.booleans()):
            clauses.append(Clause("not matched", "insert", _SOURCE_VALUE, draw(inserts)))
        if draw(st.booleans()) or not clauses:
            clauses.append(Clause("not matched", "insert", None, draw(inserts)))
        if draw(st.integers(0, 3)) == 0:
            clauses.append(Clause("by source", "delete", draw(target), None))
            clauses.append(Clause("by source", "update", draw(maybe_target), draw(assignments("target."))))
        return Merge(draw(ons), tuple(clauses))

    return merge()
