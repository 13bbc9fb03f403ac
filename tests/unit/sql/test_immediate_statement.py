"""EXECUTE IMMEDIATE: its text, its variables, and the values of the parameters."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.sql.immediate_statement import execute_immediate
from tahoe.sql.parameters import values_for, with_values


@pytest.mark.parametrize(
    ("text", "query", "into"),
    [
        ("EXECUTE IMMEDIATE 'SELECT 1'", "'SELECT 1'", ""),
        ("execute immediate 'SELECT ' || x INTO a, db.b;", "'SELECT ' || x", "a, db.b"),
        ("EXECUTE IMMEDIATE t INTO v USING 1", "t", "v"),
    ],
)
def test_the_text_and_the_variables(text: str, query: str, into: str) -> None:
    statement = execute_immediate(text)
    assert statement is not None
    assert (statement.text, statement.into) == (query, into)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("1, x + 1", "1 (x + 1)"),
        ("(1 + 2) * 3, f(1, 2)", "((1 + 2) * 3) (f(1, 2))"),
        ("(1, CAST('2' AS INT))", "1 (CAST('2' AS INT))"),
        ("(-1, DATE'2026-01-01')", "(-1) (DATE'2026-01-01')"),
        ("1 AS a, 2", "1 2"),
        ("x, 2 AS x", "x 2"),
    ],
)
def test_values_by_place(values: str, expected: str) -> None:
    statement = execute_immediate(f"EXECUTE IMMEDIATE t USING {values}")
    assert statement is not None
    assert with_values("? ?", values_for("? ?", statement.arguments)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("1 AS a, (2) b", "1 ((2))"),
        ("(v b, f(1) AS a)", "(f(1)) v"),
        ("1 + 1 AS b, 'x' a", "'x' (1 + 1)"),
        ("a, session.b", "a (session.b)"),
        ("`a`, 2 AS b", "`a` 2"),
    ],
)
def test_values_by_name(values: str, expected: str) -> None:
    statement = execute_immediate(f"EXECUTE IMMEDIATE t USING {values}")
    assert statement is not None
    assert with_values(":a :b", values_for(":a :b", statement.arguments)) == expected


@pytest.mark.parametrize(
    "text", ["SELECT 1", "EXECUTE", "EXECUTE IMMEDIATE", "EXECUTE IMMEDIATE t USING", "EXECUTE IMMEDIATE t USING 1 AS"]
)
def test_other_texts_are_left_to_the_server(text: str) -> None:
    assert execute_immediate(text) is None


def test_values_without_names_are_no_values_of_names() -> None:
    statement = execute_immediate("EXECUTE IMMEDIATE t USING 1 AS a, 2")
    assert statement is not None
    with pytest.raises(InvalidRequest, match=r"ALL_PARAMETERS_MUST_BE_NAMED.*have none: 2\."):
        values_for("SELECT :a", statement.arguments)
