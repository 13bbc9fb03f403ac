"""The text of a row: cells between ` | `, the same for both engines and in any time zone of the machine."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, TimestampType

__all__ = ["collected", "schema_text"]

_PLAIN_NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")


def collected(frame: DataFrame) -> tuple[str, ...]:
    """The rows of a DataFrame as text, sorted."""
    types = [field.dataType for field in frame.schema.fields]
    return tuple(sorted(_row(row, types) for row in frame.collect()))


def schema_text(schema: StructType) -> str:
    """Names and types as DDL, without nullability and comments: ``id int, s struct<`a b`: string>``."""
    return ", ".join(f"{_name(field.name)} {_type_text(field.dataType)}" for field in schema.fields)


def _type_text(data_type: DataType) -> str:
    if isinstance(data_type, StructType):
        fields = (f"{_name(field.name)}: {_type_text(field.dataType)}" for field in data_type.fields)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{_type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{_type_text(data_type.keyType)}, {_type_text(data_type.valueType)}>"
    return data_type.simpleString()


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _row(values: Sequence[Any], types: Sequence[DataType]) -> str:
    return " | ".join(_cell(value, data_type) for value, data_type in zip(values, types, strict=True))


def _cell(value: Any, data_type: DataType) -> str:
    """A value at the top of a row: a string without quotes where its text cannot be anything else."""
    if isinstance(data_type, StringType) and value is not None and not _needs_quotes(value):
        return str(value)
    return _text(value, data_type)


def _needs_quotes(text: str) -> bool:
    return text in ("", "NULL") or text != text.strip() or text.startswith("'") or "|" in text or not text.isprintable()


def _text(value: Any, data_type: DataType) -> str:
    if value is None:
        return "NULL"
    if isinstance(data_type, StringType):
        return repr(value)
    if isinstance(data_type, BinaryType):
        return f"X'{bytes(value).hex().upper()}'"
    if isinstance(data_type, TimestampType):
        # PySpark's value is a local time of this machine; the text is in UTC.
        return str(value.astimezone(datetime.UTC).replace(tzinfo=None))
    if isinstance(data_type, ArrayType):
        return "[" + ", ".join(_text(element, data_type.elementType) for element in value) + "]"
    if isinstance(data_type, MapType):
        entries = (f"{_text(key, data_type.keyType)}: {_text(item, data_type.valueType)}" for key, item in value.items())
        return "{" + ", ".join(sorted(entries)) + "}"
    if isinstance(data_type, StructType):
        fields = zip(data_type.fields, value, strict=True)
        return "(" + ", ".join(f"{field.name}={_text(item, field.dataType)}" for field, item in fields) + ")"
    return str(value)
