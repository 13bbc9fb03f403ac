"""Long and deep expressions: as fast as they are long, with the answers of the short ones, or refused by their depth."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute, compute_mask
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_condition, parse_expression
from tahoe.expr.parse.refused import MOST_LEVELS
from tahoe.expr.tree.expression import Call, sql_of_expression, walk
from tahoe.expr.tree.implied import to_predicate
from tahoe.expr.tree.predicate import LONGEST_CHAIN, Column, Comparison, In, Literal, Not, Or, all_of, any_of, normalise
from tahoe.schema.types import PrimitiveType, StructField, StructType

KINDS = {"a": "long", "b": "long", "x": "double", "s": "string", "i": "integer"}
SCHEMA = StructType(tuple(StructField(name, PrimitiveType(kind)) for name, kind in KINDS.items()))
ROWS = pa.table(
    {
        "a": pa.array([0, 1, 2, None, 30, -7], pa.int64()),
        "b": pa.array([5, None, 2, 1, 3, 0], pa.int64()),
        "x": pa.array([0.0, -0.0, math.nan, None, 3.5, math.inf], pa.float64()),
        "s": pa.array(["0", "1", "x", None, "30", ""]),
        "i": pa.array([0, 1, None, 3, 4, 5], pa.int32()),
    }
)
MANY = range(2 * LONGEST_CHAIN)
VALUES = {
    "a": [str(n) for n in MANY],
    "x": ["0.0D", "CAST('NaN' AS DOUBLE)", *(f"{n}.5D" for n in MANY)],
    "s": [f"'{n}'" for n in MANY],
    "i": [str(n) for n in MANY],
}


def one_by_one(column: str, op: str, join: str, values: list[str]) -> list[bool | None]:
    """The answer of a chain too short to become a list, joined two by two."""
    parts = [f"({column} {op} {value})" for value in values]
    while len(parts) > 1:
        parts = [f"({f' {join} '.join(parts[at : at + 8])})" for at in range(0, len(parts), 8)]
    actual: list[bool | None] = compute(parse_condition(parts[0], SCHEMA), ROWS).to_pylist()
    return actual


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize(("op", "join"), [("=", "OR"), ("!=", "AND")])
@pytest.mark.parametrize("with_null", [False, True])
def test_a_chain_that_becomes_a_list_has_the_answers_of_the_chain(column: str, op: str, join: str, with_null: bool) -> None:
    values = [*VALUES[column], *(["NULL"] if with_null else [])]
    text = f" {join} ".join(f"{column} {op} {value}" if n % 2 else f"{value} {op} {column}" for n, value in enumerate(values))
    long = parse_condition(text, SCHEMA)
    assert isinstance(long, Call)
    assert any(isinstance(item, Call) and item.function == "in" for item in walk(long))
    assert sum(isinstance(item, Call) for item in walk(long)) <= 4, "one list, and a NULL by itself"
    expected = one_by_one(column, op, join, values)
    assert compute(long, ROWS).to_pylist() == expected
    assert compute(parse_condition(sql_of_expression(long), SCHEMA), ROWS).to_pylist() == expected
    implied = to_predicate(long)
    if implied is not None:
        met = evaluate(implied, ROWS).to_pylist()
        assert all(there is True for there, item in zip(met, expected, strict=True) if item is True)


def test_a_chain_on_two_columns_becomes_two_lists_and_other_tests_stay() -> None:
    text = " OR ".join(f"a = {n} OR b = {n}" for n in MANY) + " OR s = 'x' OR a > 100"
    actual = parse_condition(text, SCHEMA)
    assert isinstance(actual, Call)
    assert [item.function for item in actual.arguments if isinstance(item, Call)] == ["in", "in", "=", ">"]


def test_a_list_does_not_pass_by_a_part_that_may_fail() -> None:
    chain = " OR ".join(f"a = {n}" for n in MANY)
    with pytest.raises(InvalidRequest, match="cannot be computed for row"):
        compute_mask(parse_condition(f"b = 99 OR 1 / (b - b) > 1 OR {chain}", SCHEMA), ROWS.slice(2, 1))
    assert compute_mask(parse_condition(f"{chain} OR 1 / (b - b) > 1", SCHEMA), ROWS.slice(2, 1)).to_pylist() == [True]


def test_predicates_of_many_equalities_are_one_list_and_mean_the_same() -> None:
    column, kind = Column(("a",)), PrimitiveType("long")
    parts = [Comparison("=", column, Literal(n, kind)) for n in MANY]
    assert any_of(parts) == In(column, tuple(part.literal for part in parts))
    assert all_of(Comparison("!=", column, part.literal) for part in parts) == Not(any_of(parts))
    assert normalise(Not(Or(tuple(parts)))) == Not(any_of(parts))
    assert evaluate(any_of(parts), ROWS).to_pylist() == [True, True, True, None, True, False]


def test_a_list_of_wide_values_is_looked_up_in_a_narrow_column() -> None:
    wide = In(Column(("i",)), tuple(Literal(n, PrimitiveType("long")) for n in (1, 1 << 40)))
    assert evaluate(wide, ROWS).to_pylist() == [False, True, None, False, False, False]


def test_zero_is_minus_zero_and_nan_is_nan_in_a_list() -> None:
    floats = [Literal(value, PrimitiveType("double")) for value in (0.0, math.nan)]
    assert evaluate(In(Column(("x",)), tuple(floats)), ROWS).to_pylist() == [True, True, True, None, False, False]
    assert compute(parse_expression("x IN (-0.0D, CAST('NaN' AS DOUBLE))", SCHEMA), ROWS).to_pylist() == [
        *(True, True, True),
        *(None, False, False),
    ]


@pytest.mark.parametrize("kind", ["struct('p', a)", "array(a)", "a", "s", "x"])
def test_a_case_of_many_branches_takes_its_first_that_is_true(kind: str) -> None:
    if "(" in kind:
        kind = "a"
    text = "CASE " + " ".join(f"WHEN a = {n} THEN {kind}" for n in (1, 1, 30)) + " END"
    expected = [value if n in (1, 30) else None for n, value in zip(ROWS["a"].to_pylist(), ROWS[kind].to_pylist(), strict=True)]
    assert compute(parse_expression(text, SCHEMA), ROWS).to_pylist() == expected


DEEP = {
    "sums": lambda n: "a" + " + 1" * n + " > 0",
    "texts": lambda n: "s" + " || 'x'" * n + " = 'x'",
    "calls": lambda n: "abs(" * n + "a" + ")" * n + " > 0",
    "parentheses": lambda n: "(" * n + "a = 1" + ")" * n,
    "denials": lambda n: "NOT (" * n + "a = 1" + ")" * n,
    "cases": lambda n: "CASE WHEN a = 1 THEN 1 ELSE " * n + "0" + " END" * n + " = 1",
    "by turns": lambda n: "".join(f"(a = {i} {'AND' if i % 2 else 'OR'} " for i in range(n)) + "a = 0" + ")" * n,
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("depth", [10, 25, 60, MOST_LEVELS - 5, MOST_LEVELS, 150, 300, 500, 900, 2000])
def test_a_deep_expression_works_everywhere_or_is_refused_by_its_depth(shape: str, depth: int) -> None:
    text = DEEP[shape](depth)
    if depth > 25 and (shape not in ("sums", "texts") or depth > MOST_LEVELS - 5):
        try:
            parse_condition(text, SCHEMA)
        except InvalidRequest:
            with pytest.raises(InvalidRequest, match=f"{MOST_LEVELS} operations inside one another are allowed") as caught:
                parse_condition(text, SCHEMA)
            assert caught.value.code == "TAHOE_EXPRESSION_TOO_DEEP"
            return
        assert depth < MOST_LEVELS
    actual = parse_condition(text, SCHEMA)
    compute_mask(actual, ROWS)
    to_predicate(actual)
    again = parse_condition(sql_of_expression(actual), SCHEMA) if depth < 20 else parse_condition(text, SCHEMA)
    assert again == actual
    assert hash(again) == hash(actual)
