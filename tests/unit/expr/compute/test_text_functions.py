"""Texts, patterns, lists and structs as Spark has them."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.compute.text_functions import like_pattern, safe_regular_expression
from tests.unit.expr.compute.answers import answer, answers


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a%", ["a", "abc", "a\nb"], ["ba", ""]),
        ("_", ["x", "\n", "ü"], ["", "xy"]),
        (r"10\%", ["10%"], ["10", "100"]),
        (r"a\\b", ["a\\b"], ["ab"]),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_a_pattern_of_like_matches_the_whole_text(pattern: str, matching: list[str], others: list[str]) -> None:
    expression = re.compile(like_pattern(pattern).replace(r"\z", r"\Z"))
    assert all(expression.match(text) for text in matching) and not any(expression.match(text) for text in others)


def test_a_backslash_before_anything_else_is_an_error() -> None:
    assert answer(r"concat(one, 'a') LIKE r'a\b'") == "INVALID_FORMAT"


@pytest.mark.parametrize("pattern", ["^[a-c]+$", r"\d{2}\.\s?", "(?:a|b)*c", "[^x-z]", r"a$|b"])
def test_a_plain_regular_expression_is_taken(pattern: str) -> None:
    assert safe_regular_expression(pattern)


@pytest.mark.parametrize("pattern", ["(?i)a", "a*+", "[a[b]]", "[a&&b]", r"\bword", "a$b", "[]a]", r"\1", "(?=a)"])
def test_a_regular_expression_that_java_may_read_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(Unsupported, match="may mean something else to Spark"):
        safe_regular_expression(pattern)


def test_a_dot_and_a_dollar_know_javas_line_breaks() -> None:
    column = pa.array(["a\u2028b", "ab\r\n", "ab\n\n", "ab"])
    assert answers("t RLIKE 'a.b'", t=column) == [False, False, False, False]
    assert answers("t RLIKE 'b$'", t=column) == [True, True, False, True]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("substring('abcdef', 2, 3)", "bcd"),
        ("substring('abcdef', -3)", "def"),
        ("substring('abcdef', 0, 2)", "ab"),
        ("substring('abc', -5, 3)", "a"),
        ("substring('abc', 9)", ""),
        ("left('abc', 2) || right('abc', 1)", "abc"),
        ("right('abc', 0)", ""),
        ("lpad('7', 3, 'ab') || rpad('7', 3)", "ab77  "),
        ("lpad('abc', 2, 'x')", "ab"),
        ("lpad('abc', 5, '')", "abc"),
        ("concat_ws('-', 'a', NULL, 'b')", "a-b"),
        ("concat('a', NULL)", None),
        ("repeat('ab', 2) || repeat('x', -1)", "abab"),
        ("replace('aXbX', 'X') || replace('ab', '', 'x')", "abab"),
        ("instr('hello', 'l') + instr('a', 'z')", 3),
        ("startswith('abc', 'ab') AND endswith('abc', 'bc') AND contains('abc', 'b')", True),
        ("trim('  a ') || ltrim(' b') || rtrim('c ')", "abc"),
        ("upper('straße') || lower('ÄB') || reverse('abc')", "STRASSEäbcba"),
        ("length('ü😀') * 100 + octet_length('ü😀')", 206),
        ("length(X'00FF')", 2),
        ("md5(CAST('a' AS BINARY))", "0cc175b9c0f1b6a831c399e269772661"),
        ("sha1(CAST('a' AS BINARY))", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ],
)
def test_functions_of_texts_equal_those_of_spark(text: str, value: Any) -> None:
    """Once as constants, and once with a column in it, which is another way."""
    assert answer(text) == value
    assert answer(text.replace("'a'", "concat('a', left('x', one - 1))")) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("array(one, 2)[1]", 2),
        ("array(one)[1]", "INVALID_ARRAY_INDEX"),
        ("element_at(array(one, 2), -1)", 2),
        ("element_at(array(one), 0)", "INVALID_INDEX_OF_ZERO"),
        ("element_at(array(one), 2)", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"),
        ("size(array(one, one, 3))", 3),
        ("array_contains(array(one, NULL), 1)", True),
        ("array_contains(array(one, NULL), 2)", None),
        ("array_contains(array(one, 3), 2)", False),
        ("named_struct('a', one, 'b', 'x').b", "x"),
    ],
)
def test_functions_of_lists_and_structs_equal_those_of_spark(text: str, value: Any) -> None:
    assert answer(text) == value


def test_a_key_that_a_map_has_not_gives_null() -> None:
    maps = pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64()))
    assert answers("m['k']", m=maps) == answers("element_at(m, 'k')", m=maps) == [1, None, None]
    assert answers("size(m)", m=maps) == [1, 0, None]


def test_a_pattern_must_be_a_constant() -> None:
    with pytest.raises(InvalidRequest, match="must be a constant text"):
        answers("t LIKE t", t=pa.array(["a"]))
