"""Partition columns as a caller names them: a mapping of names to types becomes a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tahoe.schema.types import StructType, schema_from_json

__all__ = ["partition_schema"]

_OF_SQL = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte", "bool": "boolean", "real": "float"}


def partition_schema(given: Mapping[str, str] | StructType | None) -> StructType:
    """The columns.

    Args:
        given: name → type, by the specification's name or SQL's: ``date``, ``integer``, ``bigint``, ``decimal(10,2)``.

    Raises `Unsupported` (``DELTA_UNSUPPORTED_DATA_TYPES``): there is no such type.
    """
    if isinstance(given, StructType):
        return given
    fields = []
    for name, kind in (given or {}).items():
        word = kind.strip().lower().replace(" ", "")
        fields.append({"name": name, "type": _OF_SQL.get(word, word), "nullable": True, "metadata": {}})
    return schema_from_json(json.dumps({"type": "struct", "fields": fields}))
