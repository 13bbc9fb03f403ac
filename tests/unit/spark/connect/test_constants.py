"""The values of EXECUTE IMMEDIATE over Spark Connect, as texts that mean the same in every statement."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.spark.connect.constants import _as_literal


@pytest.mark.parametrize(
    ("expression", "kind", "text", "expected"),
    [
        ("a", "int", "5", "5"),
        ("a", "int", None, "CAST(NULL AS int)"),
        ("a", "string", "it's", "'it\\'s'"),
        ("a", "date", "2024-02-29", "DATE'2024-02-29'"),
        ("(a + 1)", "decimal(5,2)", "1.50", "CAST('1.50' AS decimal(5,2))"),
        ("a", "array<int>", "[1]", "system.session.a"),
        ("(session.a)", "array<int>", "[1]", "system.session.a"),
        ("(array(1, NULL))", "array<int>", "[1, null]", "(array(1, NULL))"),
    ],
)
def test_a_value_is_written_without_the_name_of_a_column(expression: str, kind: str, text: str | None, expected: str) -> None:
    assert _as_literal(expression, kind, None if text is None else text.encode().hex()) == expected


@pytest.mark.parametrize("expression", ["(array(1) || a)", "(array(a))", "(a || array(1))"])
def test_a_value_without_a_literal_that_names_a_variable_is_refused(expression: str) -> None:
    with pytest.raises(Unsupported, match="has no literal"):
        _as_literal(expression, "array<int>", "")
