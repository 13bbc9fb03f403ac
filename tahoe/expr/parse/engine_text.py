"""Expressions that only Spark can evaluate: the text, and the columns whose names occur in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tahoe.expr.parse.lexer import NAME, STRING, unquoted
from tahoe.expr.parse.tokens import pieces_of
from tahoe.expr.tree.expression import EngineText, Reference
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import StructType


def engine_text(text: str, schema: StructType, code: str, reason: str) -> EngineText:
    """An expression for Spark to read.

    Args:
        schema: of the columns that it may read.
        code, reason: of the error that says why Tahoe does not read it.
    """
    return EngineText(text, tuple(_reads(schema, _names(text), ())), code, reason)


def _names(text: str) -> frozenset[str]:
    """Every name and every word outside of strings, in lower case."""
    names, words, end = [], [], 0
    for kind, piece, start in pieces_of(text)[0]:
        if kind in (NAME, STRING):
            names += [unquoted(piece)] if kind == NAME else []
            words += re.findall(r"\w+", text[end:start])
            end = start + len(piece)
    return frozenset(name.lower() for name in (*names, *words, *re.findall(r"\w+", text[end:])))


def _reads(schema: StructType, names: frozenset[str], path: tuple[str, ...], by_bytes: bool = True) -> Iterator[Reference]:
    """The columns of these names, and the fields of these names in their structs."""
    for column in schema:
        if column.name.lower() not in names:
            continue
        here = (*path, column.name)
        compared = by_bytes and compares_by_bytes(column)
        yield Reference(here, column.data_type, by_bytes=compared)
        if isinstance(column.data_type, StructType):
            yield from _reads(column.data_type, names, here, compared)
