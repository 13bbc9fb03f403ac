"""Errors for refused texts show the user's words, and only a part of a long text."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse import refused as module
from tahoe.expr.parse.refused import MOST_LEVELS, check_length, no_condition, refused, short, too_deep


def test_a_long_text_is_shown_by_its_beginning() -> None:
    assert short("x" * 120) == "x" * 120
    assert short("x" * 121) == "x" * 117 + "..."


def test_each_error_has_its_code_and_at_most_a_thousand_characters_of_the_text() -> None:
    text = "y" * 5000
    errors = [refused(text, "why"), no_condition(text, "why"), too_deep(text, 7)]
    assert [error.code for error in errors] == ["TAHOE_EXPRESSION_NOT_ALLOWED", "PARSE_SYNTAX_ERROR", "TAHOE_EXPRESSION_TOO_DEEP"]
    assert all(len(error.message) < 500 and len(value) == 1000 for error in errors for value in error.facts.values())


def test_depth_is_reported_in_operations_or_in_brackets_that_are_open() -> None:
    assert "7 operations stand inside one another" in too_deep("a", 7).message
    said = too_deep("((a) + [b(c)])").message
    assert "3 brackets are open at once" in said and str(MOST_LEVELS) in said


def test_a_text_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LENGTH", 3)
    check_length("abc")
    with pytest.raises(InvalidRequest, match="4 characters; at most 3"):
        check_length("abcd")
