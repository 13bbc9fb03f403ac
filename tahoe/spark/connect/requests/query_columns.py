"""The names in a query of a Spark Connect client, among which are those of the columns that it reads. Pure.

Spark's Python data sources have no column pruning. So the client sends the names with the query, and the source leaves out the other columns.
The names are a superset: every name in the plan and in its SQL texts counts, whatever it means. Where a plan or a text may mean columns
without their names (a star, a natural join, a pivot), all columns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tahoe.expr.parse.lexer import NAME, STRING, SYMBOL
from tahoe.sql.dialect import Token, tokenize

TRANSPARENT = frozenset(
    {
        *("filter", "join", "sort", "limit", "offset", "tail", "sample", "subquery_alias", "hint", "drop", "collect_metrics"),
        *("repartition", "repartition_by_expression", "with_columns", "with_columns_renamed", "show_string", "html_string"),
    }
)
"""The nodes of a plan whose result has the columns of their input, and which read no column without its name."""
CHOOSING = frozenset({"project", "aggregate"})
"""The nodes whose result has only the columns that they name."""

_STARS = frozenset({"unresolved_star", "unresolved_regex"})
_TEXTS = {("sql", "query"), ("expression_string", "expression")}
"""The messages and their fields with SQL."""
_COUNT = "count"
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


@dataclass(frozen=True, slots=True)
class QueryNames:
    """The names in a plan.

    Args:
        names: in lower case.
        are_all: whether the plan means no columns without their names.
    """

    names: frozenset[str]
    are_all: bool


def names_in(plan: Any) -> QueryNames:
    """Return all names in a plan (``spark.connect.Plan``) or in a part of one."""
    names, are_all = set[str](), True
    for kind, text in _texts(plan, ""):
        tokens = tokenize(text)
        are_all = are_all and kind not in _STARS and (not kind or _names_its_columns(tokens, kind == "sql"))
        names.add(text.lower())
        names.update(token.name.lower() for token in tokens if token.name is not None)
        # With ``spark.sql.ansi.doubleQuotedIdentifiers`` they are names.
        names.update(token.text[1:-1].lower() for token in tokens if token.kind == STRING)
    return QueryNames(frozenset(names), are_all)


def _texts(message: Any, kind: str) -> Iterator[tuple[str, str]]:
    """Yield all texts in a message, each with its kind: ``sql``, ``expression_string``, one of `_STARS`, or empty.

    Args:
        kind: the field that has the message; `_COUNT` for the function of that name, and for its arguments.
    """
    for field, value in message.ListFields():
        if field.message_type is None:
            values = [value] if isinstance(value, str | bytes | int | float) else value
            yield from ((kind if (kind, field.name) in _TEXTS else "", text) for text in values if isinstance(text, str))
        elif field.message_type.GetOptions().map_entry:
            for key, part in value.items():
                yield "", str(key)
                yield from _texts(part, "") if hasattr(part, "ListFields") else [("", str(part))]
        else:
            for part in [value] if hasattr(value, "ListFields") else value:
                if field.name not in _STARS:
                    yield from _texts(part, _kind(field.name, kind, part))
                elif kind != _COUNT:
                    yield field.name, ""


def _kind(name: str, outer: str, message: Any) -> str:
    if name == "unresolved_function" and message.function_name.lower() == _COUNT:
        return _COUNT
    return outer if outer == _COUNT and name == "arguments" else name


def _names_its_columns(tokens: Sequence[Token], is_query: bool) -> bool:
    """Whether a text reads no column without its name."""
    return not any(is_star(tokens, place) for place in range(len(tokens))) and names_columns_but_stars(tokens, is_query)


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
