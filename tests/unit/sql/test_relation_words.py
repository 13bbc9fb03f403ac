"""The words after the name of a relation that are not its alias."""

from __future__ import annotations

import pytest

from tahoe.sql.dialect import tokenize
from tahoe.sql.relation_words import begins_alias


@pytest.mark.parametrize(
    ("text", "begins"), [("x", True), ("AS x", True), ("`where`", True), ("where", False), ("Join", False), (",", False)]
)
def test_an_alias_is_a_name_that_is_no_keyword(text: str, begins: bool) -> None:
    assert begins_alias(tokenize(text)[0]) is begins
