"""Schemas and types in the forms in which callers write them: pyarrow's, PySpark's, a mapping of names to types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.wording import suggestion
from tahoe.schema.arrow import from_arrow_schema, from_arrow_type
from tahoe.schema.types import (
    PRIMITIVES,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_from_json,
)

TypeLike: TypeAlias = str | DataType | pa.DataType
"""A type: Delta's, pyarrow's, or its name in the specification or in SQL: ``long``, ``bigint``, ``decimal(10,2)``."""
SchemaLike: TypeAlias = pa.Schema | StructType | Mapping[str, TypeLike]
"""A schema: pyarrow's, Delta's, PySpark's, or ``{"id": "long", "name": "string"}``."""

_OF_ARROW = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "date32": "date",
    "datetime": "timestamp",
    "text": "string",
    "utf8": "string",
}
_OF_SQL = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "bool": "boolean",
    "str": "string",
    "varchar": "string",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


def schema_of(schema: SchemaLike) -> StructType:
    """Convert a schema to Delta's.

    Raises:
        InvalidRequest: ``TAHOE_WRONG_SCHEMA`` for a value that is not a schema.
        Unsupported: ``DELTA_UNSUPPORTED_DATA_TYPES`` for a type that Delta does not have.
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema)
    if isinstance(schema, Mapping):
        return StructType(tuple(StructField(str(name), type_of(data_type, str(name))) for name, data_type in schema.items()))
    if hasattr(schema, "__arrow_c_schema__"):
        return from_arrow_schema(pa.schema(schema))
    if type(schema).__name__ == "StructType" and hasattr(schema, "json"):  # of PySpark
        return schema_from_json(schema.json())
    raise InvalidRequest(
        f"A schema is a pyarrow.Schema, a StructType, or a mapping of column names to types, found {type(schema).__name__}.",
        code="TAHOE_WRONG_SCHEMA",
    )


def type_of(data_type: object, column: str = "") -> DataType:
    """The Delta type.

    Args:
        column: for errors.

    Raises: as `schema_of`.
    """
    if isinstance(data_type, PrimitiveType | DecimalType | ArrayType | MapType | StructType):
        return data_type
    if isinstance(data_type, pa.DataType):
        return from_arrow_type(data_type, (column,) if column else ())
    if isinstance(data_type, str):
        word, bracket, sizes = data_type.strip().lower().replace(" ", "").partition("(")
        name = _OF_SQL.get(word, word)
        field = {"name": column, "type": f"{name}{bracket}{sizes}", "nullable": True, "metadata": {}}
        try:
            return schema_from_json(json.dumps({"type": "struct", "fields": [field]})).fields[0].data_type
        except Unsupported as error:
            if error.code != "DELTA_UNSUPPORTED_DATA_TYPES":
                raise
            raise _unknown_type(data_type, column) from None
    if hasattr(data_type, "jsonValue"):  # of PySpark
        field = {"name": column, "type": data_type.jsonValue(), "nullable": True, "metadata": {}}
        return schema_from_json(json.dumps({"type": "struct", "fields": [field]})).fields[0].data_type
    raise InvalidRequest(
        f"The type of column '{column}' must be a name such as 'long' or 'decimal(10,2)', or a type of pyarrow or Delta, found "
        f"{data_type!r} ({type(data_type).__name__}).",
        code="TAHOE_WRONG_SCHEMA",
        column=column,
    )


def _unknown_type(data_type: str, column: str) -> Unsupported:
    lowered = data_type.strip().lower()
    similar = f" Did you mean '{_OF_ARROW[lowered]}'?" if lowered in _OF_ARROW else suggestion(lowered, PRIMITIVES)
    return Unsupported(
        f"Column '{column}' cannot have the type '{data_type[:200]}': this version of Tahoe has no type of that name.{similar} The types are "
        f"{', '.join(sorted(PRIMITIVES))} and decimal(10,2). For lists, maps and structs pass a type of pyarrow.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        type=data_type,
        column=column,
    )
