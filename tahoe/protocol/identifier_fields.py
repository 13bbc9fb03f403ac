"""Iceberg's identifier fields: the columns that identify a row, for clients that upsert rows (format/spec.md, "Identifier Field IDs").

Delta has none, so the table keeps the ids of the columns in a property. They are a statement of the clients, which no writer checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tahoe.base.exceptions import CorruptTable
from tahoe.schema.types import ArrayType, MapType, StructType
from tahoe.settings.property_settings import property_text

IDENTIFIER_FIELDS = "tahoe.identifierFieldIds"
"""The property: ids of columns with commas between them."""

_NO_IDENTIFIERS = ("float", "double", "variant")


def identifier_property(ids: Iterable[int]) -> dict[str, str]:
    """Return the property for the ids of columns; empty without ids."""
    text = ",".join(map(str, sorted(ids)))
    return {IDENTIFIER_FIELDS: text} if text else {}


def without_identifier_property(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table without this one, in any case."""
    return {key: value for key, value in configuration.items() if key.lower() != IDENTIFIER_FIELDS.lower()}


def identifier_fields(schema: StructType, configuration: Mapping[str, str], table: str) -> list[int]:
    """Return the ids of the identifier fields, ascending.

    Columns that were dropped or may be NULL since the property was set are left out.

    Args:
        table: the table's name or URL, for messages.

    Raises `CorruptTable` if the property is no list of ids.
    """
    text = property_text(configuration, IDENTIFIER_FIELDS) or ""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise CorruptTable(
            f"The property {IDENTIFIER_FIELDS} of table {table} is '{text:.200}', and it is a list of column ids with commas between them. "
            "Correct or unset it.",
            code="TAHOE_CORRUPT_TABLE_PROPERTY",
            table=table,
            property=IDENTIFIER_FIELDS,
        )
    return sorted({int(part) for part in parts} & set(possible_identifiers(schema)))


def possible_identifiers(schema: StructType) -> Iterator[int]:
    """Yield the ids of the columns that can be identifier fields: required ones that are no lists, maps, structs, float or double."""
    for column in schema:
        if column.nullable or isinstance(column.data_type, ArrayType | MapType):
            continue
        if isinstance(column.data_type, StructType):
            yield from possible_identifiers(column.data_type)
        elif column.field_id is not None and str(column.data_type) not in _NO_IDENTIFIERS:
            yield column.field_id
