"""SQL text is cut as Spark cuts it."""

from __future__ import annotations

import pytest

from tahoe.expr.parse.lexer import NAME, STRING, SYMBOL, WORD, pattern_of, scan, string_value, unquoted

PATTERN = pattern_of(r"(?P<word>\w+) | (?P<symbol>[^\s'\"`])")


def cut(text: str) -> list[tuple[str, str]]:
    tokens, end = scan(PATTERN, text)
    assert end == len(text), text[end:]
    assert all(text.startswith(token, place) for _, token, place in tokens)
    return [(kind, token) for kind, token, _ in tokens]


def test_comments_and_blanks_are_no_tokens() -> None:
    assert cut("a -- to the end 'of the line\n+ /* in /* and in */ brackets */ b") == [(WORD, "a"), (SYMBOL, "+"), (WORD, "b")]
    assert cut("a -- goes on \\\n still\nb") == [(WORD, "a"), (WORD, "b")]


def test_quoted_text_is_one_token_whatever_is_in_it() -> None:
    assert cut("'a -- b' `or ``x` \"/*\" r'\\d' $t$ it's $t$") == [
        (STRING, "'a -- b'"),
        (NAME, "`or ``x`"),
        (STRING, '"/*"'),
        (STRING, "r'\\d'"),
        (STRING, "$t$ it's $t$"),
    ]


@pytest.mark.parametrize("text", ["a 'open", "a `open", "a /* open /* */", "a $t$ open $u$"])
def test_an_unterminated_token_ends_the_tokens_where_it_begins(text: str) -> None:
    tokens, end = scan(PATTERN, text)
    assert ([token for _, token, _ in tokens], end) == (["a"], 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'plain'", "plain"),
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ("\"a''b\"", "a''b"),
        ("r'\\d'", "\\d"),
        ("'\\n\\t\\0'", "\n\t\0"),
        ("'\\%\\_'", "\\%\\_"),
        ("'\\u00fc\\U0001F600'", "ü😀"),
        ("'\\uD83D\\uDE00'", "😀"),
        ("'\\uD83D'", "?"),
        ("'\\101'", "A"),
        ("$$x$$", "x"),
        ("$tag$a$b$tag$", "a$b"),
    ],
)
def test_a_string_has_the_value_of_spark(text: str, value: str) -> None:
    assert string_value(text) == value


def test_a_name_in_back_ticks_may_hold_one() -> None:
    assert unquoted("`a``b c`") == "a`b c"
