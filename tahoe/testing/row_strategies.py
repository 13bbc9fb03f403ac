"""Hypothesis strategies for rows, conditions, assignments and merges: see `tahoe.testing.row_model`.

Values are few and close together, so that conditions match rows and source rows match target rows.
"""

from __future__ import annotations

from functools import cache

from tahoe.testing.extras import extra_missing
from tahoe.testing.row_model import Assignment, Clause, Condition, Merge, Rows, and_, equal, less, not_, or_

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["ONLY_NEW", "assignments", "conditions", "merges", "rows_of_keys", "some_rows", "with_keys"]

_KEYS = st.integers(0, 12)
_PARTS = st.sampled_from(["a", "b", "c"])


@cache
def some_rows(least: int = 0, most: int = 8) -> st.SearchStrategy[Rows]:
    """Draw between `least` and `most` rows; each value may be None."""
    row = st.tuples(st.none() | _KEYS, st.none() | _PARTS, st.none() | st.integers(-3, 20))
    return st.lists(row, min_size=least, max_size=most)


def rows_of_keys(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Rows]:
    """Draw rows with distinct keys of the strategy, and a few others."""
    named = st.lists(
        st.tuples(keys, st.none() | _PARTS, st.integers(-3, 14)), min_size=1, max_size=2, unique_by=lambda row: row[0]
    )
    return st.builds(lambda these, further: [*these, *further], named, some_rows(0, 2))


def _leaf(kind: str, c: int, part: str, q: str) -> Condition:
    """Return a comparison; `q` qualifies the names of columns."""
    leaves: dict[str, Condition] = {
        "key": Condition(f"{q}k = {c}", lambda t, s: equal(t[0], c)),
        "keys": Condition(f"{q}k in ({c}, {c + 3}, 5)", lambda t, s: None if t[0] is None else t[0] in (c, c + 3, 5)),
        "below": Condition(f"{q}k < {c}", lambda t, s: less(t[0], c)),
        "even": Condition(f"{q}k % 2 = 0", lambda t, s: None if t[0] is None else t[0] % 2 == 0),
        "part": Condition(f"{q}p = '{part}'", lambda t, s: equal(t[1], part)),
        "no part": Condition(f"{q}p is null", lambda t, s: t[1] is None),
        "no value": Condition(f"{q}v is null", lambda t, s: t[2] is None),
        "value": Condition(f"{q}v > {c}", lambda t, s: less(c, t[2])),
        "both": Condition(f"{q}v > {q}k", lambda t, s: less(t[0], t[2])),
    }
    return leaves[kind]


def _both(a: Condition, b: Condition) -> Condition:
    return Condition(f"({a} and {b})", lambda t, s: and_(a.holds(t, s), b.holds(t, s)))


_LEAVES = ("key", "keys", "below", "even", "part", "no part", "no value", "value", "both")


@cache
def conditions(qualifier: str = "") -> st.SearchStrategy[Condition]:
    """Draw conditions over the target's columns."""
    leaf = st.builds(_leaf, st.sampled_from(_LEAVES), _KEYS, _PARTS, st.just(qualifier))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(_both, inner, inner),
            st.builds(lambda a, b: Condition(f"({a} or {b})", lambda t, s: or_(a.holds(t, s), b.holds(t, s))), inner, inner),
            st.builds(lambda a: Condition(f"not ({a})", lambda t, s: not_(a.holds(t, s))), inner),
        ),
        max_leaves=3,
    )


def with_keys(keys: st.SearchStrategy[int]) -> st.SearchStrategy[Condition]:
    """Draw conditions that are true for rows with one or two keys of the strategy, or for some of these rows."""
    single_key = st.builds(lambda a: Condition(f"k = {a}", lambda t, s: equal(t[0], a)), keys)
    two = st.builds(lambda a, b: Condition(f"k in ({a}, {b})", lambda t, s: None if t[0] is None else t[0] in (a, b)), keys, keys)
    return single_key | two | st.builds(_both, single_key | two, conditions())


@cache
def assignments(q: str = "") -> st.SearchStrategy[Assignment]:
    """Draw new values over the target's own columns."""
    return st.sampled_from(
        [
            Assignment({"v": f"coalesce({q}v, 0) + 1"}, lambda t, s: (t[0], t[1], (t[2] or 0) + 1)),
            Assignment({"v": "null"}, lambda t, s: (t[0], t[1], None)),
            Assignment({"v": f"{q}k * 2", "p": "'b'"}, lambda t, s: (t[0], "b", None if t[0] is None else t[0] * 2)),
            Assignment({"p": "'c'"}, lambda t, s: (t[0], "c", t[2])),
            Assignment({"k": "7"}, lambda t, s: (7, t[1], t[2])),
        ]
    )


_SOURCE_VALUE = Condition("source.v > 5", lambda t, s: less(5, s[2]))
_ON = Condition("target.k = source.k", lambda t, s: equal(t[0], s[0]))
_ONS = [
    _ON,
    Condition("target.k = source.k and target.p = 'a'", lambda t, s: and_(equal(t[0], s[0]), equal(t[1], "a"))),
    Condition("target.k = source.k and target.p = source.p", lambda t, s: and_(equal(t[0], s[0]), equal(t[1], s[1]))),
    Condition("target.k = source.k and target.v < source.v", lambda t, s: and_(equal(t[0], s[0]), less(t[2], s[2]))),
    Condition("target.k + 1 = source.k", lambda t, s: equal(None if t[0] is None else t[0] + 1, s[0])),
    Condition("target.k <=> source.k", lambda t, s: t[0] == s[0]),
]
_ALL = Assignment(None, lambda t, s: s)
_BOTH = Assignment({"v": "target.v + source.v"}, lambda t, s: (t[0], t[1], None if t[2] is None or s[2] is None else t[2] + s[2]))
_NEW = Assignment({"k": "source.k", "v": "source.v - 1"}, lambda t, s: (s[0], None, None if s[2] is None else s[2] - 1))


ONLY_NEW = Merge(_ON, (Clause("not matched", "insert", None, _ALL),))
"""A MERGE that reads the matching rows and changes none."""


@cache
def merges() -> st.SearchStrategy[Merge]:
    """Draw merges with any number of clauses of each kind; only the last of a kind may lack a condition."""
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
