"""The columns that a query in SQL means by stars. Pure.

A column can be left out of them: ``SELECT * FROM t`` becomes ``SELECT * EXCEPT (t.column) FROM t``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from tahoe.expr.parse.lexer import NAME, SYMBOL
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.sql.dialect import QUERY_WORDS, Cursor, Token, tokenize
from tahoe.sql.relation_words import begins_alias
from tahoe.sql.selects import selects_of

_WITHOUT_NAMES = ("NATURAL", "PIVOT", "UNPIVOT", "TABLE", "IDENTIFIER")
_PATTERN = frozenset("*+?|[]()^$")
"""Characters of a name in back-ticks that Spark may read as a pattern of names (``spark.sql.parser.quotedRegexColumnNames``)."""
_TYPES = ("DECIMAL", "DEC", "NUMERIC", "CHAR", "CHARACTER", "VARCHAR")
_KEYWORDS = (
    *("SELECT", "DISTINCT", "ALL", "WHERE", "AND", "OR", "NOT", "ON", "BY", "HAVING", "IN", "EXISTS", "BETWEEN", "LIKE", "WHEN"),
    *(
        "THEN",
        "ELSE",
        "CASE",
        "IS",
        "FILTER",
        "OVER",
        "LIMIT",
        "OFFSET",
        "USING",
        "FROM",
        "JOIN",
        "DIV",
        "RLIKE",
        "ILIKE",
        "UNION",
    ),
    *("INTERSECT", "EXCEPT", "MINUS", "QUALIFY", "ORDER", "GROUP", "PARTITION", "ANY", "SOME", "ROLLUP", "CUBE", "SETS"),
)
"""Words before which or as which no name of a relation stands."""


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


def names_columns_but_stars(tokens: Sequence[Token], is_query: bool = True) -> bool:
    """Whether a text reads no column without its name, apart from those that its stars mean."""
    if any(token.is_word(*_WITHOUT_NAMES) or (token.kind == NAME and _PATTERN & set(token.text)) for token in tokens):
        return False
    if not is_query:
        return True
    selects = sum(token.is_word("SELECT") for token in tokens)
    has_pipe = any(first.is_symbol("|") and second.is_symbol(">") for first, second in pairwise(tokens))
    # FROM without SELECT gives all columns.
    is_plain = bool(tokens) and tokens[0].is_word("SELECT", "WITH") and sum(token.is_word("FROM") for token in tokens) <= selects
    return is_plain and not has_pipe and not _has_column_aliases(tokens)


def is_star(tokens: Sequence[Token], place: int) -> bool:
    """Whether the token at a place is a sign that means columns, and not a multiplication or the sign in ``count(*)``."""
    if not tokens[place].is_symbol("*"):
        return False
    before = tokens[place - 1] if place else None
    if before is None:
        return True
    if before.is_symbol("("):
        return place == 1 or not tokens[place - 2].is_word("COUNT")
    return not before.is_symbol(")", "]") if before.kind == SYMBOL else before.is_word("SELECT", "DISTINCT", "ALL")


def _has_column_aliases(tokens: Sequence[Token]) -> bool:
    """Whether a relation has names for its columns, as ``t AS x (a, b)`` or ``t x (a, b)``; true also for other texts of this form."""
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_name = (
            second.name is not None
            and third.is_symbol("(")
            and not second.is_word("AS", "TABLESAMPLE", "REPEATABLE", *_KEYWORDS, *_TYPES)
        )
        if is_name and first.name is not None and not first.is_word(*_KEYWORDS):
            return True
    return False
