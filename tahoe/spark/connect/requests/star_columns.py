"""The stars of a query in SQL, without a column: ``SELECT * FROM t`` becomes ``SELECT * EXCEPT (t.column) FROM t``. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.connect.requests.query_columns import is_star, names_columns_but_stars
from tahoe.sql.dialect import QUERY_WORDS, Cursor, Token, tokenize
from tahoe.sql.relation_words import begins_alias
from tahoe.sql.selects import selects_of


def without_column(text: str, relations: Collection[str], column: str) -> str | None:
    """Return a query whose stars leave out a column; None if the query may mean all columns in another way.

    Args:
        relations: the names, in FROM and JOIN, of the relations that have the column.
    """
    tokens = tokenize(text)
    selects = selects_of(tokens).of_tokens
    places = [place for place, token in enumerate(tokens) if token.name in relations and not _is_qualifier(tokens, place)]
    if not names_columns_but_stars(tokens) or any(selects[place] is None for place in places):
        return None
    aliases = [(selects[place], _alias(text, tokens, place)) for place in places]
    parts, end = [], 0
    for place, token in enumerate(tokens):
        if not is_star(tokens, place):
            continue
        of_select = [alias for select, alias in aliases if select == selects[place]]
        qualifier = tokens[place - 2].name if place > 1 and tokens[place - 1].is_symbol(".") else None
        meant = [alias for alias in of_select if qualifier is None or alias.lower() == qualifier.lower()]
        names = ", ".join(f"{quote_identifier(alias)}.{quote_identifier(column)}" for alias in meant)
        if names:
            exceptions = _exceptions(tokens, place)
            stop = token.stop if exceptions is None else exceptions.stop
            parts.append(f"{text[end:stop]} EXCEPT ({names})" if exceptions is None else f"{text[end:stop]}{names}, ")
            end = stop
    return "".join([*parts, text[end:]])


def _is_qualifier(tokens: Sequence[Token], place: int) -> bool:
    return place + 1 < len(tokens) and tokens[place + 1].is_symbol(".")


def _alias(text: str, tokens: Sequence[Token], place: int) -> str:
    """Return the name by which columns of a relation are qualified."""
    cursor = Cursor(text, tokens)
    cursor.place = place
    name = cursor.identifier()
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if cursor.take(word):
            cursor.bracketed()
    if not begins_alias(cursor.peek()):
        return name
    cursor.take("AS")
    return cursor.peek().name or name


def _exceptions(tokens: Sequence[Token], place: int) -> Token | None:
    """Return the bracket after ``* EXCEPT``, unless a query is in it."""
    follows = len(tokens) > place + 3 and tokens[place + 1].is_word("EXCEPT") and tokens[place + 2].is_symbol("(")
    return tokens[place + 2] if follows and not tokens[place + 3].is_word(*QUERY_WORDS) else None
