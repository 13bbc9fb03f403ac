"""Parts of a condition without columns are computed once."""

from __future__ import annotations

import pytest

from tahoe.expr.compute.constant_folding import with_constants
from tahoe.expr.parse.parse_expression import parse_condition, parse_expression
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.expression import Literal
from tahoe.schema.types import PrimitiveType, StructField, StructType

SCHEMA = StructType(
    tuple(
        StructField(name, PrimitiveType(type_name))
        for name, type_name in (("i", "long"), ("d", "date"), ("t", "timestamp"), ("s", "string"), ("f", "float"))
    )
)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("i = 1 + 1", "`i` = 2"),
        ("i > 2 * (3 - 1) AND s = upper('a')", "`i` > 4 AND `s` = 'A'"),
        ("d >= date_sub(DATE '2026-11-29', 7)", "`d` >= DATE '2026-11-22'"),
        ("d >= add_months(DATE '2026-03-31', -1)", "`d` >= DATE '2026-02-28'"),
        ("t < TIMESTAMP '2026-11-29 12:00:00' - INTERVAL 1 HOUR", "`t` < TIMESTAMP '2026-11-29 11:00:00Z'"),
        ("s = CASE WHEN 1 < 2 THEN 'a' ELSE 'b' END", "`s` = 'a'"),
        ("i IN (1 + 1, 3)", "`i` IN (2, 3)"),
    ],
)
def test_a_comparison_with_a_computed_constant_skips_files(text, predicate):
    condition = row_condition(text, SCHEMA)
    assert condition.beyond_predicate is None
    assert str(condition.predicate) == predicate


@pytest.mark.parametrize("text", ["i = 1 / 0", "d = DATE '9999-12-31' + INTERVAL 1 DAY"])
def test_a_part_that_cannot_be_computed_fails_only_for_a_row(text):
    expression = parse_condition(text, SCHEMA)
    assert with_constants(expression) == expression


def test_an_unchanged_expression_is_the_same_object():
    expression = parse_expression("i + 1 > 2 AND s LIKE 'a%'", SCHEMA)
    assert with_constants(expression) is expression


@pytest.mark.parametrize("text", ["array(1, 2)", "NULL", "named_struct('a', 1)"])
def test_nested_values_and_null_stay(text):
    expression = parse_expression(text, SCHEMA)
    assert with_constants(expression) == expression


def test_a_condition_of_constants_is_a_literal():
    assert with_constants(parse_condition("1 < 2 AND NOT (3 < 2)", SCHEMA)) == Literal(True, PrimitiveType("boolean"))
