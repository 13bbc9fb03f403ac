"""The named queries of a text, ``WITH name [(columns)] AS (query), …``, with the part of the text in which each name has its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tahoe.sql.dialect import Token

_ROW_LEVEL = 3
"""The words between a recursive query's name and AS: ``MAX RECURSION LEVEL``, before a number."""


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A common table expression. Places are those of tokens.

    Args:
        name: in lower case.
        start, stop: the places from which on, and before which, the name is that of the query.
    """

    name: str
    start: int
    stop: int

    def is_meant(self, name: str, place: int) -> bool:
        """Whether a name without a database at this place is that of the query."""
        return self.start <= place < self.stop and name.lower() == self.name


def named_queries(tokens: Sequence[Token]) -> Iterator[NamedQuery]:
    """Yield the named queries of a text, in their order.

    A name is known after its query, also inside of it if the list is RECURSIVE, up to the end of the brackets around the list.
    """
    closings, ends = _brackets(tokens)
    for place, token in enumerate(tokens):
        if token.is_word("WITH"):
            yield from _listed(tokens, place, closings, ends[place])


def uses_each_at_most_once(tokens: Sequence[Token]) -> bool:
    """Whether no named query of a text is scanned twice. False if the text may have a name that is not recognized."""
    queries = list(named_queries(tokens))
    if len(queries) < sum(first.is_word("AS") and second.is_symbol("(") for first, second in pairwise(tokens)):
        return False
    return all(sum(_is_scan(tokens, place, query) for place in range(query.start, query.stop)) <= 1 for query in queries)


def _is_scan(tokens: Sequence[Token], place: int, query: NamedQuery) -> bool:
    name, before = tokens[place].name, tokens[place - 1]
    if name is None or not query.is_meant(name, place) or (place + 1 < len(tokens) and tokens[place + 1].is_symbol(".")):
        return False
    return before.is_word("FROM", "JOIN", "TABLE", "STREAM") or before.is_symbol(",", "(")


def _listed(tokens: Sequence[Token], place: int, closings: dict[int, int], end: int) -> Iterator[NamedQuery]:
    """Yield the queries of the list after WITH."""
    is_recursive = place + 2 < len(tokens) and tokens[place + 1].is_word("RECURSIVE") and tokens[place + 2].name is not None
    place += 2 if is_recursive else 1
    while place < end and (name := tokens[place].name) is not None:
        start = _body(tokens, place + 1, closings)
        if start is None:
            return
        stop = closings.get(start, end)
        yield NamedQuery(name.lower(), start if is_recursive else stop, end)
        if stop + 1 >= end or not tokens[stop + 1].is_symbol(","):
            return
        place = stop + 2


def _body(tokens: Sequence[Token], place: int, closings: dict[int, int]) -> int | None:
    """Return the place of the bracket before a query, from the place after its name; None if there is no query."""
    if place < len(tokens) and tokens[place].is_symbol("("):
        place = closings.get(place, len(tokens)) + 1
    if place + _ROW_LEVEL < len(tokens) and tokens[place].is_word("MAX"):
        place += _ROW_LEVEL + 1
    follows = place + 1 < len(tokens) and tokens[place].is_word("AS") and tokens[place + 1].is_symbol("(")
    return place + 1 if follows else None


def _brackets(tokens: Sequence[Token]) -> tuple[dict[int, int], list[int]]:
    """Return the place of the closing bracket of each opening one, and for each token the end of the brackets around it."""
    closings, opened = dict[int, int](), list[int]()
    around = []
    for place, token in enumerate(tokens):
        if token.is_symbol(")") and opened:
            closings[opened.pop()] = place
        around.append(opened[-1] if opened else -1)
        if token.is_symbol("("):
            opened.append(place)
    return closings, [closings.get(bracket, len(tokens)) for bracket in around]
