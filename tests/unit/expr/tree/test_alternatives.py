"""Long ORs of ANDs: the tables that they become have the answers of the model, and their outlines leave out no row."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.expr.compute import evaluate as evaluating
from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.tree import alternatives
from tahoe.expr.tree.alternatives import outline, split
from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNotNull, IsNull, Literal, Or, Predicate, StartsWith
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.sampling import examples
from tests.unit.expr import sql_model

LONG, STRING, DOUBLE = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("double")
KINDS = sorted(sql_model.POOLS)


@pytest.fixture(autouse=True, scope="module")
def two_are_many():
    """So that small examples are tables too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alternatives, "LONGEST_CHAIN", 1)
        patch.setattr(evaluating, "LONGEST_CHAIN", 1)
        yield


@settings(max_examples=examples(100))
@given(st.data())
def test_every_row_gets_the_answer_that_sql_gives_to_the_terms_one_by_one(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=3))
    rows = data.draw(sql_model.rows(kinds, [], max_size=8))
    table = pa.Table.from_pylist(rows, to_arrow_schema(sql_model.schema_of(kinds, [])))
    # Alternatives of one shape, the same columns and operators with other constants, and something else among them.
    shape = data.draw(st.lists(st.tuples(st.sampled_from(range(len(kinds))), st.sampled_from(ASKED)), min_size=1, max_size=3))
    alike = [
        And(tuple(leaf(place, kinds[place], op, data.draw(sql_model.values(kinds[place]))) for place, op in shape))
        for _ in range(data.draw(st.integers(2, 7)))
    ]
    others = data.draw(st.lists(sql_model.predicates(sql_model.columns_of(kinds, [])), max_size=1))
    predicate = Or((*alike, *others))
    expected = [sql_model.answer(predicate, row) for row in rows]
    assert evaluate(predicate, table).to_pylist() == expected, predicate
    short = evaluate(outline(predicate), table).to_pylist()
    assert all(there is True for there, expected_rows in zip(short, expected, strict=True) if expected_rows is True), outline(
        predicate
    )


ASKED = ("=", "=", "=", "<", "<=", ">", ">=", "!=", "is null", "is not null")


def leaf(place: int, kind: str, op: str, value: object) -> Predicate:
    column = Column((f"c{place}",))
    if op.startswith("is"):
        return IsNull(column) if op == "is null" else IsNotNull(column)
    return Comparison(op, column, Literal(value, sql_model.POOLS[kind][0]))


A, B, S, X = (Column((name,)) for name in "absx")


def pair(a: int, op: str, b: int | None) -> Predicate:
    return And((Comparison("=", A, Literal(a, LONG)), Comparison(op, B, Literal(b, LONG))))


def test_terms_on_the_same_value_become_one_row_where_the_weakest_says_all() -> None:
    (table,), rest = split([pair(1, ">", 7), pair(1, ">", 5), pair(2, ">", 9)])
    assert not rest
    assert (table.values, table.constants) == ((1, 2), ((5,), (9,)))


def test_terms_on_the_same_value_that_say_different_things_become_tables_one_after_the_other() -> None:
    tables, rest = split([pair(n, "!=", m) for n in (1, 2) for m in (3, 4)])
    assert not rest
    assert [(table.values, table.constants) for table in tables] == [((1, 2), ((3,), (3,))), ((1, 2), ((4,), (4,)))]


def test_alternatives_without_an_equality_or_with_a_null_stay_unchanged() -> None:
    parts: list[Predicate] = [pair(1, ">", None), Comparison("<=>", A, Literal(1, LONG)), StartsWith(S, "x"), In(A, ())]
    floating: list[Predicate] = [Comparison("=", X, Literal(value, DOUBLE)) for value in (1.0, math.nan)]
    assert split([*parts, *floating]) == ([], [*parts, *floating])


def test_the_outline_of_terms_on_two_columns_says_something_of_each() -> None:
    assert outline(Or((pair(1, ">", 7), pair(2, ">", 5)))) == And(
        (In(A, (Literal(1, LONG), Literal(2, LONG))), Comparison(">", B, Literal(5, LONG)))
    )


def test_an_outline_says_nothing_of_a_column_that_a_term_does_not_ask_for() -> None:
    alone = Comparison("=", A, Literal(3, LONG))
    assert outline(Or((pair(1, ">", 7), alone))) == In(A, (Literal(1, LONG), Literal(3, LONG)))


def test_a_condition_of_an_expression_has_the_answers_of_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = StructType((StructField("a", LONG), StructField("b", LONG)))
    rows = pa.table({"a": pa.array([1, 2, None, 40, 3], pa.int64()), "b": pa.array([5, None, 7, 1, 0], pa.int32())})
    terms = [f"(a = {n} AND b > {n})" for n in range(60)]
    long = parse_condition(" OR ".join(terms), schema)
    each = [compute(parse_condition(term, schema), rows).to_pylist() for term in terms]
    expected = [True if True in answers else None if None in answers else False for answers in zip(*each, strict=True)]
    assert compute(long, rows).to_pylist() == expected == [True, None, None, False, False]
