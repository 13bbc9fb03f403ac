"""Which conditions a client refuses by their text: those with subqueries, and those that are not deterministic."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.commands.conditions import ExpressionRules
from tahoe.spark.connect.conditions import check_expression


@pytest.mark.parametrize(
    "text",
    [
        "id IN (SELECT 1)",
        "EXISTS (/* c */ select 1)",
        "a = (VALUES (1))",
        "(TABLE t) = 1",
        "(with c as (select 1) table c) = a",
    ],
)
def test_a_subquery_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="DELTA_UNSUPPORTED_SUBQUERY"):
        check_expression(text, "the condition of DELETE")


@pytest.mark.parametrize("text", ["rand() < 0.5", "`rand` (3) < 0.5", "randstr(5) = 'a'", "a = Uuid()", "uniform(1, 2) = 1"])
def test_a_function_of_chance_is_refused_unless_the_rules_allow_it(text: str) -> None:
    with pytest.raises(InvalidRequest, match="INVALID_NON_DETERMINISTIC_EXPRESSIONS"):
        check_expression(text, "the condition of DELETE")
    check_expression(text, "the value of a column", ExpressionRules(chance=None))


@pytest.mark.parametrize(
    "text",
    [
        "note = '(SELECT 1)'",
        "note LIKE 'rand()%'",
        "(values) > 3",
        "(table.id = 3)",
        "rand = 1 AND uuid IS NULL",
        "`(select` = 1 -- (SELECT rand())",
        "a IN ('x')",
        "",
    ],
)
def test_names_texts_and_comments_are_no_functions(text: str) -> None:
    check_expression(text, "the condition of DELETE")
