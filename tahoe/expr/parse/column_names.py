"""Resolves a name in an expression to a column of one of the schemas, or to a field inside its structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.lexer import NAME, WORD
from tahoe.expr.parse.tokens import Tokens
from tahoe.expr.tree.expression import Reference
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import DataType, StructField, StructType

__all__ = ["ColumnNames", "Schemas", "name_parts"]

Schemas: TypeAlias = StructType | Mapping[str, StructType]
"""One schema, or several by their qualifiers (``source``, ``target``)."""


class ColumnNames:
    """Looks names up, each once: a condition may say the same name fifty thousand times."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._known: dict[tuple[str, ...], Reference] = {}

    def reference(self, names: tuple[str, ...], shown: str) -> Reference:
        """The column that these names lead to, in the schema's own spelling.

        Args:
            names: a column and fields inside it, perhaps with a qualifier before them; letters' case does not matter.
            shown: as the user wrote them, for the error.

        Raises:
            InvalidRequest: there is none (``DELTA_COLUMN_NOT_FOUND``), or more than one (``AMBIGUOUS_REFERENCE``).
        """
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = self._looked_up(names, shown)
        return found

    def _looked_up(self, names: tuple[str, ...], shown: str) -> Reference:
        if isinstance(self._schemas, StructType):
            found = _resolved(self._schemas, names, None)
            if found is None:
                raise _unknown(shown, self._schemas.names)
            return found
        qualifier = next((key for key in self._schemas if key.lower() == names[0].lower()), None)
        if qualifier is not None and len(names) > 1:
            found = _resolved(self._schemas[qualifier], names[1:], qualifier)
            if found is not None:
                return found
        met = [one for key, schema in self._schemas.items() if (one := _resolved(schema, names, key)) is not None]
        if len(met) > 1:
            raise InvalidRequest(
                f"The column {shown} is in more than one of {', '.join(self._schemas)}; put one of these names before it.",
                code="AMBIGUOUS_REFERENCE",
                column=shown,
            )
        if not met:
            raise _unknown(shown, [f"{key}.{name}" for key, schema in self._schemas.items() for name in schema.names])
        return met[0]


def name_parts(text: str) -> tuple[str, ...] | None:
    """The parts of a name as SQL writes it: ``t.`a b`.c``; None for other text.

    Raises:
        InvalidRequest: a name in back-ticks that does not end.
    """
    tokens = Tokens(text)
    parts = []
    while tokens.tokens[tokens.place][0] in (NAME, WORD):
        parts.append(tokens.name())
        if not tokens.take("."):
            return tuple(parts) if tokens.at_end else None
    return None


def _resolved(schema: StructType, names: tuple[str, ...], qualifier: str | None) -> Reference | None:
    path: list[str] = []
    at: DataType = schema
    column: StructField | None = None
    for name in names:
        column = at.find(name) if isinstance(at, StructType) else None
        if column is None:
            return None
        path.append(column.name)
        at = column.data_type
    return Reference(tuple(path), at, qualifier, column is None or compares_by_bytes(column))


def _unknown(shown: str, known: list[str]) -> InvalidRequest:
    return InvalidRequest(
        f"There is no column {shown}; the columns are: {', '.join(known)}.", code="DELTA_COLUMN_NOT_FOUND", column=shown
    )
