"""Resolves a name in an expression to a column of one of the schemas, or to a field inside its structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.wording import suggestion
from tahoe.expr.parse.lexer import NAME, WORD
from tahoe.expr.parse.tokens import Tokens
from tahoe.expr.tree.expression import Reference
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import DataType, StructField, StructType

Schemas: TypeAlias = StructType | Mapping[str, StructType]
"""One schema, or several by their qualifiers (``source``, ``target``)."""


class ColumnNames:
    """Looks names up, each once: a condition may say the same name fifty thousand times."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._references: dict[tuple[str, ...], Reference] = {}

    def reference(self, names: tuple[str, ...], text: str) -> Reference:
        """The column that these names lead to, in the schema's own spelling.

        Args:
            names: a column and fields inside it, perhaps with a qualifier before them; letters' case does not matter.
            text: the names as the user wrote them, for the error.

        Raises:
            InvalidRequest: there is none (``DELTA_COLUMN_NOT_FOUND``), or more than one (``AMBIGUOUS_REFERENCE``).
        """
        reference = self._references.get(names)
        if reference is None:
            reference = self._references[names] = self._looked_up(names, text)
        return reference

    def _looked_up(self, names: tuple[str, ...], text: str) -> Reference:
        if isinstance(self._schemas, StructType):
            reference = _resolved(self._schemas, names, None)
            if reference is None:
                raise _unknown(text, self._schemas.names)
            return reference
        qualifier = next((key for key in self._schemas if key.lower() == names[0].lower()), None)
        if qualifier is not None and len(names) > 1:
            reference = _resolved(self._schemas[qualifier], names[1:], qualifier)
            if reference is not None:
                return reference
        met = [reference for key, schema in self._schemas.items() if (reference := _resolved(schema, names, key)) is not None]
        if len(met) > 1:
            raise InvalidRequest(
                f"The column {text} is in more than one of {', '.join(self._schemas)}; put one of these names before it.",
                code="AMBIGUOUS_REFERENCE",
                column=text,
            )
        if not met:
            raise _unknown(text, [f"{key}.{name}" for key, schema in self._schemas.items() for name in schema.names])
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


def _unknown(text: str, candidates: list[str]) -> InvalidRequest:
    similar = suggestion(text, candidates)
    return InvalidRequest(
        f"There is no column {text}; the columns are: {', '.join(candidates)}.{similar}",
        code="DELTA_COLUMN_NOT_FOUND",
        column=text,
    )
