"""Columns with the database of their table, ``db.t.column``, where the table has only its own name: ``t.column``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tahoe.sql.dialect import tokenize
from tahoe.sql.dml import Delete, Merge, MergeClause, Update

Names = Sequence[Sequence[str]]
"""Names of tables, each with its database, perhaps with its catalog."""


def without_databases(text: str, tables: Names) -> str:
    """Return a text with ``t.column`` in place of ``db.t.column`` and ``catalog.db.t.column``.

    Args:
        tables: those that have no alias.
    """
    known = {tuple(part.lower() for part in name[-count:]) for name in tables for count in (2, 3) if len(name) >= count}
    tokens, parts, start = tokenize(text) if known else (), list[str](), 0
    for place, token in enumerate(tokens):
        if token.name is None or (place and tokens[place - 1].is_symbol(".")):
            continue
        for count in (3, 2):
            chain = tokens[place : place + 2 * count]
            is_chain = len(chain) == 2 * count and all(dot.is_symbol(".") for dot in chain[1::2])
            if is_chain and tuple(str(part.name).lower() for part in chain[::2]) in known:
                parts.append(text[start : token.start])
                start = chain[-2].start
    return "".join([*parts, text[start:]])


def with_short_names(statement: Delete | Update | Merge, tables: Names) -> Delete | Update | Merge:
    """Return a statement whose conditions and assignments name columns without databases."""

    def short(text: str) -> str:
        return without_databases(text, tables)

    def of_values(values: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((short(column), short(value)) for column, value in values)

    def of_clause(clause: MergeClause) -> MergeClause:
        condition = None if clause.condition is None else short(clause.condition)
        return replace(clause, condition=condition, values=None if clause.values is None else of_values(clause.values))

    if isinstance(statement, Merge):
        return replace(statement, on=short(statement.on), clauses=tuple(map(of_clause, statement.clauses)))
    where = None if statement.where is None else short(statement.where)
    if isinstance(statement, Update):
        return replace(statement, values=of_values(statement.values), where=where)
    return replace(statement, where=where)
