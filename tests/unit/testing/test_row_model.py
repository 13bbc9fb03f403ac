"""The model's results compared with hand-computed ones, including NULL values."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.testing.row_model import (
    NOTHING,
    SCHEMA,
    Assignment,
    Clause,
    Condition,
    Merge,
    Row,
    Rows,
    TwiceMatched,
    and_,
    arrow,
    changed,
    counted,
    equal,
    less,
    merge_builder,
    merged,
    not_,
    or_,
    rows_of,
    stay,
)

ROWS: Rows = [(1, "a", 10), (2, None, 20), (None, "b", 30)]
ON = Condition("target.k = source.k", lambda t, s: equal(t[0], s[0]))
ABOVE_1 = Condition("k > 1", lambda t, _: less(1, t[0]))
TWICE = Assignment({"v": "v * 2"}, lambda t, s: (t[0], t[1], t[2] * 2))
ALL = Assignment(None, lambda t, s: s)


def source_value_above_5(t: Row, s: Row) -> bool | None:
    return less(5, s[2])


def test_three_valued_logic_matches_sql() -> None:
    values = (True, False, None)
    assert [not_(value) for value in values] == [False, True, None]
    for left, right in itertools.product(values, values):
        assert and_(left, right) is (False if False in (left, right) else None if None in (left, right) else True)
        assert or_(left, right) is (True if True in (left, right) else None if None in (left, right) else False)
    assert (less(None, 1), less(1, None), less(1, 2), less(2, 2)) == (None, None, True, False)
    assert (equal(None, None), equal(1, 1), equal("a", "b")) == (None, True, False)


def test_rows_convert_to_arrow_and_back() -> None:
    table = arrow(ROWS)
    assert table.schema == SCHEMA and rows_of(table) == ROWS
    assert rows_of(arrow([])) == []
    assert rows_of(table.append_column("more", pa.array([1, 2, 3]))) == ROWS


def test_rows_are_counted_without_order() -> None:
    assert counted([ROWS[0], ROWS[1], ROWS[0]]) == counted([ROWS[1], ROWS[0], ROWS[0]]) != counted(ROWS)


def test_a_null_condition_neither_deletes_nor_updates() -> None:
    assert stay(ROWS, ABOVE_1) == [ROWS[0], ROWS[2]]
    assert stay(ROWS, None) == []
    assert changed(ROWS, ABOVE_1, TWICE) == [ROWS[0], (2, None, 40), ROWS[2]]
    assert changed(ROWS, None, TWICE) == [(1, "a", 20), (2, None, 40), (None, "b", 60)]


def test_only_the_first_applicable_clause_acts_and_null_keys_never_match() -> None:
    clauses = (
        Clause("matched", "delete", Condition("source.v > 5", source_value_above_5), None),
        Clause("matched", "update", None, ALL),
        Clause("not matched", "insert", None, ALL),
        Clause("by source", "delete", None, None),
    )
    source: Rows = [(1, "x", 9), (2, "y", 1), (None, "z", 1)]
    assert merged(ROWS, source, Merge(ON, clauses)) == ([(2, "y", 1), (None, "z", 1)], (1, 2, 1))


def test_two_source_rows_may_match_one_row_only_for_an_unconditional_delete() -> None:
    source: Rows = [(1, "x", 1), (1, "y", 2)]
    with pytest.raises(TwiceMatched):
        merged(ROWS, source, Merge(ON, (Clause("matched", "update", None, ALL),)))
    rows, counts = merged(ROWS, source, Merge(ON, (Clause("matched", "delete", None, None),)))
    assert rows == ROWS[1:] and counts == (0, 1, 0)


def test_the_builder_runs_the_same_merge(memory_url: str) -> None:
    table = Table.create(memory_url, SCHEMA)
    table.append(arrow(ROWS))
    source: Rows = [(1, "x", 9), (7, "y", 1)]
    new = Assignment({"k": "source.k"}, lambda t, s: (s[0], None, None))
    old = Assignment({"p": "'old'"}, lambda t, s: (t[0], "old", t[2]))
    merge = Merge(
        ON,
        (
            Clause("matched", "delete", Condition("source.v < 0", lambda t, s: less(s[2], 0)), None),
            Clause("matched", "update", None, ALL),
            Clause("not matched", "insert", Condition("source.v > 5", source_value_above_5), ALL),
            Clause("not matched", "insert", None, new),
            Clause("by source", "delete", Condition("target.k is null", lambda t, s: t[0] is None), None),
            Clause("by source", "update", None, old),
        ),
    )
    outcome = merge_builder(table, source, merge).execute()
    rows, counts = merged(ROWS, source, merge)
    assert counted(rows_of(table.to_arrow())) == counted(rows)
    assert (outcome.num_updated_rows, outcome.num_deleted_rows, outcome.num_inserted_rows) == counts == (2, 1, 1)


def test_nothing_represents_the_missing_row() -> None:
    assert ON.holds(ROWS[0], NOTHING) is None
