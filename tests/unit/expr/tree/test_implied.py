"""The implication of an expression for skipping: true wherever the expression is, and as sharp as a filter of the same text."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute_mask
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.implied import to_predicate
from tahoe.expr.tree.predicate import FALSE, references
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.unit.expr import sql_model

KINDS = sorted(sql_model.POOLS)
INNER = StructType((StructField("inner", PrimitiveType("integer")),))
SCHEMA = StructType((*(StructField(f"c_{kind}", sql_model.POOLS[kind][0]) for kind in KINDS), StructField("s", INNER)))
CONSTANTS = (
    "0",
    "1",
    "-1",
    "0.5",
    "1e2",
    "'1'",
    "NULL",
    "CAST('NaN' AS DOUBLE)",
    "'1970-01-01'",
    "DATE '2024-02-29'",
    "true",
    "'a'",
)
OPERATORS = ("=", "<", "<=", ">", ">=", "!=", "<=>")


def rows():
    actual = []
    for i in range(20):
        pools = {kind: [*sql_model.POOLS[kind][1], None] for kind in KINDS}
        row = {f"c_{kind}": pool[i % len(pool)] for kind, pool in pools.items()}
        actual.append({**row, "s": None if i % 4 == 3 else {"inner": [1, 2, None][i % 3]}})
    return pa.Table.from_pylist(actual, to_arrow_schema(SCHEMA))


def understood():
    """Every comparison of a column with a constant that has a meaning, as text."""
    texts = []
    for kind, op, constant in itertools.product(KINDS, OPERATORS, CONSTANTS):
        text = f"c_{kind} {op} {constant}"
        try:
            expression = parse_condition(text, SCHEMA)
            compute_mask(expression, rows())
        except InvalidRequest:
            continue
        texts.append(text)
    return texts


TEXTS = [
    *understood(),
    *("c_boolean", "NOT c_boolean", "c_boolean IS NOT TRUE", "s.inner IN (1, NULL)", "s.inner NOT IN (1, 3)", "s.inner IS NULL"),
    *("c_string LIKE 'a%'", "c_string NOT LIKE 'a%'", "c_string LIKE 'a_%'", "c_string LIKE '%'", "startswith(c_string, 'a')"),
    *("1 < c_integer", "c_integer BETWEEN 0 AND 1.5", "c_byte < c_long", "c_byte + 1 > 0", "abs(c_integer) = 1", "NULL", "false"),
    *("CAST(c_integer AS STRING) LIKE '1%'", "c_byte LIKE '1%'", "upper(c_string) = 'A'", "CASE WHEN c_byte > 0 THEN true END"),
]


def is_implied(text):
    expression = parse_condition(text, SCHEMA)
    predicate = to_predicate(expression)
    if predicate is None:
        return
    meant = compute_mask(expression, rows())
    remaining = pc.fill_null(evaluate(predicate, rows()), False)
    assert not pc.any(pc.and_not(meant, remaining)).as_py(), (text, str(predicate))


def test_there_is_something_to_test():
    assert len(TEXTS) > 400


def test_an_implication_is_true_wherever_the_expression_is():
    for text in TEXTS:
        is_implied(text)


@pytest.mark.parametrize("seed", range(4))
def test_so_it_is_under_and_or_and_not(seed):
    chance = random.Random(seed)

    def condition(depth):
        kind = chance.randrange(4) if depth else 0
        if kind == 0:
            return chance.choice(TEXTS)
        if kind == 1:
            return f"NOT ({condition(depth - 1)})"
        return f"({condition(depth - 1)}) {chance.choice(('AND', 'OR'))} ({condition(depth - 1)})"

    for _ in range(100):
        is_implied(condition(3))


def test_it_keeps_no_more_rows_than_a_filter_of_the_same_text():
    sharper = []
    for text in TEXTS:
        try:
            exact = evaluate(row_condition(text, SCHEMA).predicate, rows())
        except InvalidRequest:
            continue
        predicate = to_predicate(parse_condition(text, SCHEMA))
        remaining = rows().num_rows if predicate is None else pc.sum(evaluate(predicate, rows())).as_py() or 0
        if remaining > (pc.sum(exact).as_py() or 0):
            sharper.append(text)
    assert sharper == []


def test_of_two_tables_only_one_is_spoken_of():
    schemas = {"source": SCHEMA, "target": SCHEMA}
    text = (
        "source.c_long = target.c_long AND target.c_date > DATE '2020-01-01' AND source.c_byte = 1 AND target.c_integer + 1 > 2"
    )
    predicate = to_predicate(parse_condition(text, schemas), "target")
    assert predicate is not None
    assert references(predicate) == {("c_date",)}
    assert str(predicate) == "`c_date` > DATE '2020-01-01'"


def test_an_expression_that_is_never_true_implies_false():
    assert to_predicate(parse_condition("NULL AND c_byte = 1", SCHEMA)) == FALSE
    assert to_predicate(parse_condition("true", SCHEMA)) is None
