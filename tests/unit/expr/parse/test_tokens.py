"""The tokens of an expression, their keys, and texts that do not end."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.tokens import Tokens


def test_words_are_keys_in_capitals_and_names_in_back_ticks_are_never_keywords() -> None:
    tokens = Tokens("a and `and` <= 1.5")
    assert tokens.keys == ["A", "AND", "", "<=", "", "", ""]
    assert [text for _, text, _ in tokens.tokens[:5]] == ["a", "and", "`and`", "<=", "1.5"]
    assert not tokens.at_end and tokens.start() == 0
    tokens.place = 5
    assert tokens.at_end


def test_an_empty_text_is_at_its_end() -> None:
    assert Tokens(" -- nothing").at_end


def test_unterminated_tokens_are_reported_with_their_position() -> None:
    with pytest.raises(InvalidRequest, match=r"begins with ''open.*' at character 5 does not end") as caught:
        Tokens("a = 'open")
    assert caught.value.code == "PARSE_SYNTAX_ERROR"
