"""Expressions as texts for Spark's parser."""

from __future__ import annotations

from tahoe.sql.dialect import QUERY_WORDS, tokenize


def in_brackets(text: str) -> str:
    """Return an expression in brackets, for Spark's ``expr``.

    ``expr`` takes a last word for an alias: it accepts ``id = 1 AND``, the beginning of a condition. In brackets an expression has none.
    A text that only brackets would make an expression stays as it is, so that Spark refuses it.
    """
    depth = 0
    tokens = tokenize(text)
    for token in tokens:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth < 0 or (depth == 0 and token.is_symbol(",")):
            return text
    begins_query = bool(tokens) and tokens[0].is_word(*QUERY_WORDS)
    return text if depth or begins_query or not tokens else f"({text}\n)"
