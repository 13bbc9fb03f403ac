"""The lexer of expressions and statements, which splits SQL text into tokens like Spark's, in one pass. Comments are skipped.

A string, a comment or a name in back-ticks is matched as a whole, so its text is never taken for a keyword, an operator or a name.
"""

from __future__ import annotations

import re
from typing import TypeAlias

WORD = "word"
NAME = "name"
STRING = "string"
SYMBOL = "symbol"
NUMBER = "number"

Piece: TypeAlias = tuple[str, str, int]
"""A token: its kind, its slice of the text, and its offset."""


def pattern_of(words_and_symbols: str) -> re.Pattern[str]:
    """Return the pattern of a lexer: the common tokens of SQL (spaces, comments, strings, names in back-ticks), and its own.

    Args:
        words_and_symbols: alternatives with names, in the verbose syntax of regular expressions: ``word`` and ``symbol`` at least.
    """
    return re.compile(f"{_SHARED}{words_and_symbols}{_NOTHING_ELSE}", re.VERBOSE | re.DOTALL)


def scan(pattern: re.Pattern[str], text: str) -> tuple[list[Piece], int]:
    """Return the tokens of a text, and the offset of their end, which is before the end of the text if a string, name or comment is open."""
    pieces: list[Piece] = []
    place = 0
    while place < len(text):
        for match in pattern.finditer(text, place):
            kind = match.lastgroup
            place = match.end()
            if kind in _NO_TOKENS:
                if kind == "space":
                    continue
                stop = _end_of_comment(text, match.start()) if kind == "comment" else _end_of_dollars(text, match)
                if stop is None or kind == "wrong":
                    return pieces, match.start()
                if kind == "dollar":
                    pieces.append((STRING, text[match.start() : stop], match.start()))
                place = stop
                break
            pieces.append((kind or "", match.group(), match.start()))
    return pieces, place


def string_value(text: str) -> str:
    """Return the value of a string literal of Spark: ``'it\\'s'``, ``"it's"``, ``'it''s'`` and ``r'\\d'``, as `SparkParserUtils`."""
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        return text[text.index("$", 1) + 1 : -len(text[: text.index("$", 1) + 1])]
    quote = text[0]
    if "\\" not in text and text.count(quote) == 2:
        return text[1:-1]
    value = _ESCAPE.sub(lambda match: _unescaped(match, quote), text[1:-1])
    return value if _HALF.search(value) is None else _without_halves(value)


def unquoted(text: str) -> str:
    """Return the name in back-ticks."""
    return text[1:-1].replace("``", "`")


_SHARED = r"""
    (?P<space>\s+|--(?:\\\r?\n|[^\r\n])*)
  | (?P<comment>/\*)
  | (?P<string>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<dollar>\$[^\W\d_]*\$)
  | """
_NOTHING_ELSE = r"""
  | (?P<wrong>.)"""
_NO_TOKENS = frozenset({"space", "comment", "dollar", "wrong"})
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([0-3][0-7]{2})|\\(.)|''|\"\"", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_COMMENT_SIGNS = re.compile(r"/\*|\*/")


def _end_of_comment(text: str, start: int) -> int | None:
    """Return the end of a bracketed comment; comments nest. None if it is not closed."""
    depth = 0
    for sign in _COMMENT_SIGNS.finditer(text, start):
        depth += 1 if sign.group() == "/*" else -1
        if depth == 0:
            return sign.end()
    return None


def _end_of_dollars(text: str, opening: re.Match[str]) -> int | None:
    """Where a text between two equal ``$tag$`` ends."""
    stop = text.find(opening.group(), opening.end())
    return None if stop < 0 else stop + len(opening.group())


def _unescaped(match: re.Match[str], quote: str) -> str:
    """Return the text of one escape sequence; a doubled quote is an escape only in a string with that quote."""
    short, long, octal, letter = match.groups()
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code <= _LAST_CODE else match.group()[1:]
    if octal:
        return chr(int(octal, 8))
    if letter:
        return _LETTERS.get(letter, letter)
    return quote if match.group() == quote * 2 else match.group()


def _without_halves(value: str) -> str:
    """Join surrogate pairs from two escapes into one character; a lone surrogate becomes a question mark, as in Java."""
    joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _HALF.sub("?", joined)


_LAST_CODE = 0x10FFFF
_HALF = re.compile("[\ud800-\udfff]")
