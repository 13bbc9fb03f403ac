"""The tokens of an expression, and a place in them which moves on as they are understood."""

from __future__ import annotations

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.lexer import NAME, SYMBOL, WORD, Piece, pattern_of, scan, unquoted
from tahoe.expr.parse.literals import NUMBER_PATTERN
from tahoe.expr.parse.refused import no_condition, short


def pieces_of(text: str) -> tuple[list[Piece], int]:
    """The tokens of an expression's text, and where they end (`tahoe.expr.parse.lexer.scan`)."""
    return scan(_PATTERN, text)


class Tokens:
    """The tokens of a text, with an empty one after the last.

    Beside the tokens are their keys: a word in capitals, a symbol; nothing for a constant, or for a name in back-ticks, which is never a
    keyword.

    Raises:
        InvalidRequest: a string, a comment or a name does not end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens, end = pieces_of(text)
        if end < len(text):
            raise no_condition(text, f"what begins with '{short(text[end : end + 20])}' at character {end + 1} does not end")
        self.keys = [token.upper() if kind == WORD else token if kind == SYMBOL else "" for kind, token, _ in self.tokens]
        # Two, so that the parser can look two tokens ahead everywhere.
        self.tokens += [("", "", len(text))] * 2
        self.keys += ["", ""]
        self.place = 0

    @property
    def at_end(self) -> bool:
        """Whether all tokens are consumed."""
        return self.place >= len(self.tokens) - 2

    def start(self) -> int:
        """Return the offset of the next token."""
        return self.tokens[self.place][2]

    def since(self, start: int) -> str:
        """The text from there to the last token that was understood."""
        _, text, begin = self.tokens[max(self.place - 1, 0)]
        return self.text[start : begin + len(text)]

    def take(self, key: str) -> bool:
        """Consume this keyword or symbol if it follows; return whether it did."""
        if self.keys[self.place] != key:
            return False
        self.place += 1
        return True

    def need(self, key: str) -> None:
        """Consume this keyword or symbol, which must follow."""
        if self.keys[self.place] != key:
            raise self.expected(key)
        self.place += 1

    def name(self) -> str:
        """Consume a name, in back-ticks or not, which must follow."""
        kind, text, _ = self.tokens[self.place]
        if kind not in (NAME, WORD):
            raise self.expected("a name")
        self.place += 1
        return text if kind == WORD else unquoted(text)

    def expected(self, expectation: str) -> InvalidRequest:
        """Return the error for an unexpected token."""
        start = self.start()
        actual = f"'{short(self.text[start : start + 60])}'" if start < len(self.text) else "the end"
        return no_condition(self.text, f"expected {expectation} at character {start + 1}, found {actual}")


_PATTERN = pattern_of(
    rf"""{NUMBER_PATTERN}
  | (?P<word>\w+)
  | (?P<symbol><=>|<=|>=|<>|!=|==|\|\||::|->|=>|[^\s'"`])"""
)
