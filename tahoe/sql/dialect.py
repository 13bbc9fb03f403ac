"""The tokens of a statement, from `tahoe.expr.parse.lexer`, and a cursor over them.

Only the syntax of Delta's own statements is parsed here; expressions and queries are passed on to Spark as slices of the user's own text.
A string, a comment or a name in back-ticks is matched as a whole, so its text is never taken for a keyword or a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.lexer import NAME, STRING, SYMBOL, WORD, pattern_of, scan, string_value, unquoted

__all__ = ["NAME", "QUERY_WORDS", "STRING", "WORD", "Cursor", "SqlSyntaxError", "Token", "tokenize"]

QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
"""The first words of queries, apart from the seldom MAP and REDUCE."""

_Result = TypeVar("_Result")


class SqlSyntaxError(InvalidRequest):
    """The text begins like a statement of Delta and continues with invalid syntax."""

    default_code = "PARSE_SYNTAX_ERROR"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind (word, name in back-ticks, string, symbol), and the slice of the text that it is."""

    kind: str
    text: str
    start: int

    @property
    def stop(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords; an identifier in back-ticks never is."""
        return self.kind == WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these signs, such as ``(`` or ``=``."""
        return self.kind == SYMBOL and self.text in symbols

    @property
    def name(self) -> str | None:
        """The identifier, or None if the token is not an identifier, such as a number."""
        if self.kind == NAME:
            return unquoted(self.text)
        return self.text if self.kind == WORD and not self.text.isdecimal() else None

    @property
    def is_literal(self) -> bool:
        """Whether it is a text, a number, a boolean or NULL."""
        return self.kind == STRING or self.is_word("NULL", "TRUE", "FALSE") or self.text[0].isdigit()


def tokenize(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text. They end at an unterminated string or comment, for which Spark raises the error."""
    return tuple(Token(*piece) for piece in scan(_PATTERN, text)[0])


class Cursor:
    """A position in the tokens of one statement, which advances as they are parsed.

    Args:
        text: the statement, for slices and messages.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.place = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, an empty symbol at the end."""
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else Token(SYMBOL, "", len(self.text))

    @property
    def at_end(self) -> bool:
        """Whether all tokens are consumed."""
        return self.place >= len(self.tokens)

    @property
    def begins_query(self) -> bool:
        """Whether a query may follow."""
        return self.peek().is_symbol("(") or self.peek().is_word(*QUERY_WORDS)

    def comes(self, *words: str) -> bool:
        """Whether these keywords follow, in this order."""
        return all(self.peek(ahead).is_word(word) for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Consume these keywords if they follow; return whether they did."""
        if not self.comes(*words):
            return False
        self.place += len(words)
        return True

    def take_symbol(self, symbol: str) -> bool:
        """Consume this symbol if it follows; return whether it did."""
        if not self.peek().is_symbol(symbol):
            return False
        self.place += 1
        return True

    def need(self, *words: str) -> None:
        """Consume these keywords; raise `SqlSyntaxError` if they do not follow."""
        if not self.take(*words):
            self.fail(" ".join(words))

    def need_symbol(self, symbol: str) -> None:
        """Consume this symbol; raise `SqlSyntaxError` if it does not follow."""
        if not self.take_symbol(symbol):
            self.fail(f"'{symbol}'")

    def next(self) -> Token:
        """Consume and return the next token of any kind."""
        token = self.peek()
        self.place += 1
        return token

    def string(self) -> str:
        """Consume a string literal and return its value; adjacent literals are concatenated."""
        if self.peek().kind != STRING:
            self.fail("a string")
        value = ""
        while self.peek().kind == STRING:
            value += string_value(self.next().text)
        return value

    def identifier(self) -> str:
        """Consume an identifier and return it without back-ticks; raise `SqlSyntaxError` if none follows."""
        name = self.peek().name
        if name is None:
            self.fail("a name")
        self.place += 1
        return name

    def dotted(self) -> list[str]:
        """Consume identifiers with dots between them, at least one."""
        parts = [self.identifier()]
        while self.take_symbol("."):
            parts.append(self.identifier())
        return parts

    def key(self) -> str:
        """Consume the key of a property, one string or a name with dots; a string that follows is its value."""
        return string_value(self.next().text) if self.peek().kind == STRING else ".".join(self.dotted())

    def pair(self) -> tuple[str, str]:
        """Consume a key and its value, a string or one token; the equals sign between them is optional."""
        key = self.key()
        self.take_symbol("=")
        return key, self.string() if self.peek().kind == STRING else self.next().text

    def pairs(self, pair: Callable[[], tuple[str, str]] | None = None) -> dict[str, str]:
        """Consume keys and their values in brackets; raise `SqlSyntaxError` for a key that is there twice.

        Args:
            pair: consumes a key and its value; `pair` of the cursor if it is not given.
        """
        pairs = self.listed(self.pair if pair is None else pair)
        if len(dict(pairs)) < len(pairs):
            self.fail("each key once")
        return dict(pairs)

    def with_options(self) -> dict[str, str]:
        """Consume ``WITH (key = value, …)`` if it comes, and not the WITH of a named query; return the options."""
        has_options = self.comes("WITH") and self.peek(1).is_symbol("(") and self.take("WITH")
        return self.pairs() if has_options else {}

    def integer(self) -> int:
        """Consume an integer without a sign; raise `SqlSyntaxError` if none follows."""
        token = self.peek()
        if token.kind != WORD or not token.text.isdecimal():
            self.fail("a whole number")
        self.place += 1
        return int(token.text)

    def number(self) -> float:
        """Consume a number, optionally with a sign and a fraction; raise `SqlSyntaxError` if none follows."""
        place = self.place
        text = "-" if self.take_symbol("-") else ""
        while not self.at_end and (self.peek().is_symbol(".") or self.peek().text[:1].isdecimal()):
            if text.strip("-") and self.peek().start > self.peek(-1).stop:
                break  # another number
            text += self.next().text
        try:
            return float(text)
        except ValueError:
            self.place = place
            self.fail("a number")

    def listed(self, item: Callable[[], _Result]) -> list[_Result]:
        """Parse ``(item, item, …)``, with at least one item."""
        self.need_symbol("(")
        items = [item()]
        while self.take_symbol(","):
            items.append(item())
        self.need_symbol(")")
        return items

    def slice_until(self, *stops: str) -> str:
        """Return the user's text from here to one of these symbols or keywords outside of all brackets, or to the end."""
        start, depth, end = self.peek().start, 0, self.peek().start
        while not self.at_end:
            token = self.peek()
            if depth == 0 and (token.is_symbol(*stops) or token.is_word(*stops)):
                break
            depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
            end = token.stop
            self.place += 1
        if end == start:
            self.fail("an expression")
        return self.text[start:end]

    def bracketed(self) -> str:
        """Consume ``(…)`` and return the user's text between the brackets."""
        self.need_symbol("(")
        text = self.slice_until(")")
        self.need_symbol(")")
        return text

    def rest(self) -> str:
        """Return the user's text from here to the end."""
        return self.slice_until()

    def end(self) -> None:
        """Require the end of the statement, optionally after a semicolon."""
        self.take_symbol(";")
        if not self.at_end:
            self.fail("the end of the statement")

    def fail(self, expected: str) -> NoReturn:
        """Raise `SqlSyntaxError` with the expected syntax and the position."""
        next_token = f"'{self.peek().text}'" if self.peek().text else "the end of input"
        line = self.text.count("\n", 0, self.peek().start) + 1
        position = self.peek().start - (self.text.rfind("\n", 0, self.peek().start) + 1)
        raise SqlSyntaxError(
            f"Syntax error at or near {next_token} (line {line}, pos {position}): expected "
            f"{expected}. The statement is: {_short(self.text)}",
            line=line,
            position=position,
        )


_PATTERN = pattern_of(
    r"""
    (?P<word>[^\W\d_]+://[\w/\-.?=&#%]+ | \w+)
  | (?P<symbol>[^\s'"`])"""
)
_MOST_SHOWN = 200


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
