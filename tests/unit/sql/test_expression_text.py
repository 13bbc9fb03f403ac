"""Expressions as texts for Spark's parser."""

from __future__ import annotations

import pytest

from tahoe.sql.expression_text import in_brackets


@pytest.mark.parametrize("text", ["id = 1", "id = 1 AND", "f(a, b) > ')'", "a -- a comment", "(id = 1) OR (id = 2)"])
def test_an_expression_gets_brackets(text: str) -> None:
    assert in_brackets(text) == f"({text}\n)"


@pytest.mark.parametrize("text", ["id = 1) OR (id = 2", "(id = 1", "id, name", "SELECT 1", "", " "])
def test_another_text_does_not_become_an_expression(text: str) -> None:
    assert in_brackets(text) == text
