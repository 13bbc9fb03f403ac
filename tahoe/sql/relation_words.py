"""The words that may follow the name of a relation in FROM, and so are not its alias."""

from __future__ import annotations

from tahoe.sql.dialect import NAME, Token

_JOINS = {"JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "SEMI", "ANTI", "LATERAL", "ON", "USING"}
_CLAUSES = {
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "WINDOW",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "OFFSET",
    "PIVOT",
    "UNPIVOT",
    "WITH",
}
_VERSIONS = {"FOR", "VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "TABLESAMPLE"}
_SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "INSERT", "MAP", "REDUCE", "SET", "WHEN", "THEN", "ELSE", "END"}
_NO_ALIAS = _JOINS | _CLAUSES | _VERSIONS | _SETS
"""The words after a table name that are no alias."""
ENDS_OF_FROM = (_CLAUSES | _SETS) - {"PIVOT", "UNPIVOT", "MAP", "REDUCE"}
"""The words after which a comma does not continue a FROM."""


def begins_alias(token: Token) -> bool:
    """Whether the token after the name of a relation is its alias, or the AS before it."""
    return token.name is not None and (token.kind == NAME or token.text.upper() not in _NO_ALIAS)
