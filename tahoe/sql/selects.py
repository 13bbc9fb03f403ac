"""The SELECTs of a query: to which of them a token belongs, and which of them is inside of which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tahoe.expr.parse.lexer import SYMBOL
from tahoe.sql.dialect import QUERY_WORDS, Token, tokenize


@dataclass(frozen=True, slots=True)
class Selects:
    """The SELECTs of a text, numbered in its order.

    Args:
        of_tokens: the number of the SELECT that each token belongs to; None before a SELECT.
        around: the number of the SELECT around each one.
    """

    of_tokens: Sequence[int | None]
    around: Mapping[int, int | None]

    def is_inside(self, inner: int | None, outer: int | None) -> bool:
        """Whether a SELECT is another one, or a subquery of it."""
        while inner is not None and inner != outer:
            inner = self.around[inner]
        return inner is not None


def selects_of(tokens: Sequence[Token]) -> Selects:
    """Return the SELECTs of a text. Brackets without a query belong to the SELECT around them."""
    of_tokens, around = list[int | None](), dict[int, int | None]()
    opened: list[int | None] = [None]
    outside: list[int | None] = [None]
    for place, token in enumerate(tokens):
        if token.is_word("SELECT"):
            opened[-1] = len(around)
            around[len(around)] = outside[-1]
        of_tokens.append(opened[-1])
        if token.is_symbol("("):
            begins_query = place + 1 < len(tokens) and tokens[place + 1].is_word(*QUERY_WORDS)
            outside.append(opened[-1] if begins_query else outside[-1])
            opened.append(None if begins_query else opened[-1])
        elif token.is_symbol(")") and len(opened) > 1:
            opened.pop()
            outside.pop()
    return Selects(of_tokens, around)


def has_subquery(expression: str) -> bool:
    """Whether a query is part of an expression."""
    return any(True for _ in subqueries_in(expression))


def subqueries_in(expression: str) -> Iterator[str]:
    """Yield the kinds of the subqueries in an expression, by the names of Catalyst's expressions."""
    tokens = tokenize(expression)
    for place, following in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if _begins_query(*following):
            before = tokens[place - 1] if place else None
            is_list, is_test = (before is not None and before.is_word(word) for word in ("IN", "EXISTS"))
            yield "ListQuery" if is_list else "Exists" if is_test else "ScalarSubquery"


def _begins_query(bracket: Token, word: Token, after: Token) -> bool:
    if not bracket.is_symbol("("):
        return False
    # A column may have the name of one of the other words.
    return word.is_word("SELECT") or (word.is_word("WITH", "TABLE", "VALUES") and (after.kind != SYMBOL or after.is_symbol("(")))
