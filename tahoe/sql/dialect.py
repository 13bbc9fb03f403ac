"""SQL text as Spark's lexer cuts it: words, names in back-ticks, strings, symbols. Comments are no tokens.

Only what the statements of Delta need is parsed here; expressions and queries are passed on to Spark as slices of the user's own text. What
stands in a string, a comment or back-ticks is one token, so it is never taken for a keyword or a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tahoe.exceptions import InvalidRequest

__all__ = ["Cursor", "SqlSyntaxError", "Token", "string_value", "tokenize"]

WORD = "word"
NAME = "name"
STRING = "string"
SYMBOL = "symbol"

_Result = TypeVar("_Result")


class SqlSyntaxError(InvalidRequest):
    """The text begins as a statement of Delta and goes on otherwise."""

    default_code = "PARSE_SYNTAX_ERROR"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind (word, name in back-ticks, string, symbol), and the slice of the text that it is."""

    kind: str
    text: str
    start: int

    @property
    def stop(self) -> int:
        """The place in the statement behind its last character."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords; an identifier in back-ticks never is."""
        return self.kind == WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these signs, such as ``(`` or ``=``."""
        return self.kind == SYMBOL and self.text in symbols

    @property
    def name(self) -> str | None:
        """The identifier that the token is, None for none."""
        if self.kind == NAME:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == WORD else None


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of a text. What is no SQL (a string or a comment that does not end) ends the tokens: the error is Spark's to tell."""
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return tuple(found)
        kind = match.lastgroup
        if kind == "comment":
            end = _end_of_comment(text, place)
            if end is None:
                return tuple(found)
            place = end
            continue
        if kind == "dollar":
            end = text.find(match.group(), match.end())
            if end < 0:
                return tuple(found)
            place = end + len(match.group())
            found.append(Token(STRING, text[match.start() : place], match.start()))
            continue
        place = match.end()
        if kind is not None and kind != "space":
            found.append(Token(kind, match.group(), match.start()))
    return tuple(found)


def string_value(text: str) -> str:
    """What a string literal of Spark stands for: ``'it\\'s'``, ``"it's"``, ``'it''s'`` and ``r'\\d'``, as `SparkParserUtils` reads them."""
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        return text[text.index("$", 1) + 1 : -len(text[: text.index("$", 1) + 1])]
    quote = text[0]
    return _ESCAPE.sub(lambda match: _unescaped(match, quote), text[1:-1])


class Cursor:
    """A place in the tokens of one statement, which moves on as they are understood.

    Args:
        text: the statement, for slices and messages.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.place = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes, an empty symbol after the end."""
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else Token(SYMBOL, "", len(self.text))

    @property
    def at_end(self) -> bool:
        """Whether every token has been gone past."""
        return self.place >= len(self.tokens)

    def comes(self, *words: str) -> bool:
        """Whether these keywords come, in this order."""
        return all(self.peek(ahead).is_word(word) for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Go past these keywords if they come."""
        if not self.comes(*words):
            return False
        self.place += len(words)
        return True

    def take_symbol(self, symbol: str) -> bool:
        """Go past this sign if it comes."""
        if not self.peek().is_symbol(symbol):
            return False
        self.place += 1
        return True

    def need(self, *words: str) -> None:
        """Go past these keywords; `SqlSyntaxError` where they do not come."""
        if not self.take(*words):
            self.fail(" ".join(words))

    def need_symbol(self, symbol: str) -> None:
        """Go past this sign; `SqlSyntaxError` where it does not come."""
        if not self.take_symbol(symbol):
            self.fail(f"'{symbol}'")

    def next(self) -> Token:
        """The token that comes, whatever it is; the cursor goes past it."""
        found = self.peek()
        self.place += 1
        return found

    def string(self) -> str:
        """The value of a string literal; literals that follow each other are one."""
        if self.peek().kind != STRING:
            self.fail("a string")
        value = ""
        while self.peek().kind == STRING:
            value += string_value(self.next().text)
        return value

    def identifier(self) -> str:
        """The name that comes, without its back-ticks; `SqlSyntaxError` where none does."""
        found = self.peek().name
        if found is None:
            self.fail("a name")
        self.place += 1
        return found or ""

    def integer(self) -> int:
        """The whole number that comes, without a sign; `SqlSyntaxError` where none does."""
        token = self.peek()
        if token.kind != WORD or not token.text.isdecimal():
            self.fail("a whole number")
        self.place += 1
        return int(token.text)

    def listed(self, item: Callable[[], _Result]) -> list[_Result]:
        """``(item, item, …)``, at least one."""
        self.need_symbol("(")
        found = [item()]
        while self.take_symbol(","):
            found.append(item())
        self.need_symbol(")")
        return found

    def slice_until(self, *stops: str) -> str:
        """The user's text from here to one of these symbols or keywords outside of all brackets, or to the end."""
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

    def rest(self) -> str:
        """The user's text from here to the end."""
        return self.slice_until()

    def end(self) -> None:
        """Nothing but a semicolon may come."""
        self.take_symbol(";")
        if not self.at_end:
            self.fail("the end of the statement")

    def fail(self, expected: str) -> None:
        """Raises `SqlSyntaxError`, which says what was expected where."""
        found = f"'{self.peek().text}'" if self.peek().text else "the end of input"
        line = self.text.count("\n", 0, self.peek().start) + 1
        position = self.peek().start - (self.text.rfind("\n", 0, self.peek().start) + 1)
        raise SqlSyntaxError(
            f"Syntax error at or near {found} (line {line}, pos {position}): expected "
            f"{expected}. The statement is: {_short(self.text)}",
            line=line,
            position=position,
        )


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--(?:\\\r?\n|[^\r\n])*)
  | (?P<comment>/\*)
  | (?P<string>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<dollar>\$[^\W\d_]*\$)
  | (?P<word>[^\W\d_]+://[\w/\-.?=&#%]+ | \w+)
  | (?P<symbol>[^\s'"`])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([0-3][0-7]{2})|\\(.)|''|\"\"", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_MOST_SHOWN = 200


def _end_of_comment(text: str, start: int) -> int | None:
    """Where a comment in brackets ends; comments nest. None where it does not end."""
    depth, place = 0, start
    while place < len(text):
        if text.startswith("/*", place):
            depth, place = depth + 1, place + 2
        elif text.startswith("*/", place):
            depth, place = depth - 1, place + 2
            if depth == 0:
                return place
        else:
            place += 1
    return None


def _unescaped(match: re.Match[str], quote: str) -> str:
    """What one escape stands for; a doubled quote stands for itself only in a string of that quote."""
    short, long, octal, letter = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    if letter:
        return _LETTERS.get(letter, letter)
    return quote if match.group() == quote * 2 else match.group()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
