"""The names in a query of a Spark Connect client, among which are those of the columns that it reads. Pure.

Spark's Python data sources have no column pruning. So the client sends the names with the query, and the source leaves out the other columns.
The names are a superset: every name in the plan and in its SQL texts counts, whatever it means. Where a plan or a text may mean columns
without their names (a star, a natural join, a pivot), all columns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tahoe.expr.parse.lexer import STRING
from tahoe.spark.connect.requests.plan_parts import Message
from tahoe.sql.dialect import Token, tokenize
from tahoe.sql.stars import is_star, names_columns_but_stars

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


@dataclass(frozen=True, slots=True)
class QueryNames:
    """The names in a plan.

    Args:
        names: in lower case.
        are_all: whether the plan means no columns without their names.
    """

    names: frozenset[str]
    are_all: bool


def names_in(plan: Message) -> QueryNames:
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


def _texts(message: Message, kind: str) -> Iterator[tuple[str, str]]:
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


def _kind(name: str, outer: str, message: Message) -> str:
    if name == "unresolved_function" and message.function_name.lower() == _COUNT:
        return _COUNT
    return outer if outer == _COUNT and name == "arguments" else name


def _names_its_columns(tokens: Sequence[Token], is_query: bool) -> bool:
    """Whether a text reads no column without its name."""
    return not any(is_star(tokens, place) for place in range(len(tokens))) and names_columns_but_stars(tokens, is_query)
