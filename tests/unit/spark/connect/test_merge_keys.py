"""The keys of a MERGE, from the text after ON."""

from __future__ import annotations

import pytest

from tahoe.spark.connect.merge_keys import equalities

KEYS = {
    "t.id = s.id": [("t.id", "s.id")],
    "((t.id == s.id) AND (a = b AND `c d` = s.e))": [("t.id", "s.id"), ("a", "b"), ("c d", "s.e")],
    "NOT t.a = s.b AND t.x = s.y": [("t.x", "s.y")],
    "t.x BETWEEN 1 AND s.y AND t.id = s.id": [("t.id", "s.id")],
    "t.id = s.id OR t.x = s.x": [],
    "t.id = s.id AND t.x = s.x OR true": [],
    "(t.id = s.id OR t.x = s.x) AND t.p = s.p": [("t.p", "s.p")],
    "CASE WHEN a THEN b AND t.id = s.id END": [],
    "t.a <= s.a AND t.b != s.b AND t.c <=> s.c": [],
    "t.id = s.id + 1 AND t.p = 3 AND f(t.id) = s.id": [],
}


@pytest.mark.parametrize(("text", "expected"), KEYS.items(), ids=KEYS)
def test_only_equal_names_that_and_joins_are_keys(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(".".join(left), ".".join(right)) for left, right in equalities(text)] == expected
