"""The partition values of a client's file, from Avro to the texts in Delta's log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import JsonMapping
from tahoe.protocol.config import TableConfig
from tahoe.protocol.partition import serialize
from tahoe.schema.types import DataType, DecimalType, PrimitiveType
from tahoe.uniform.commits.client_manifests import ClientFile

_WIDE = Context(prec=77)


def python_values(file: ClientFile, config: TableConfig, document: JsonMapping) -> dict[str, Any]:
    """Return the partition values of a file by the physical names of the columns.

    Args:
        document: the metadata whose current partition spec the file must have.

    Raises `InvalidRequest`: the file has another partition spec, an invalid value, or an empty text, which Delta equates with NULL.
    """
    spec = next(each for each in document["partition-specs"] if each["spec-id"] == document["default-spec-id"])
    fields = {int(each["field-id"]): int(each["source-id"]) for each in spec["fields"]}
    if set(file.partition) != set(fields):
        raise _invalid(file, f"has the partition fields {sorted(file.partition)}, and the table's spec has {sorted(fields)}")
    by_id = {column.field_id: column for column in config.partition_schema}
    values: dict[str, Any] = {}
    for number, source in fields.items():
        column = by_id[source]
        try:
            values[column.physical_name] = _python(file.partition[number], column.data_type)
        except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
            raise _invalid(file, f"has no valid partition value of column {column.name}: {error}") from error
        if values[column.physical_name] in ("", b""):
            raise _invalid(
                file, f"has an empty text as the partition value of column {column.name}, which Delta equates with NULL"
            )
    return values


def partition_texts(values: Mapping[str, Any], config: TableConfig) -> dict[str, str | None]:
    """Return partition values as Delta's log writes them."""
    types = {column.physical_name: column.data_type for column in config.partition_schema}
    return {name: serialize(value, types[name]) for name, value in values.items()}


def _python(value: Any, data_type: DataType) -> Any:
    """Convert a value of Avro to one of Python (format/spec.md, appendix A)."""
    if value is None:
        return None
    if isinstance(data_type, DecimalType):
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-data_type.scale, _WIDE)
    assert isinstance(data_type, PrimitiveType)
    kind, convert = _CONVERSIONS[data_type.name]
    if type(value) is not kind:
        raise TypeError(f"{value!r:.50} is no {data_type}")
    return convert(value)


def _same(value: Any) -> Any:
    return value


_CONVERSIONS: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), (int, _same)),
    **dict.fromkeys(("float", "double"), (float, _same)),
    "boolean": (bool, _same),
    "string": (str, _same),
    "binary": (bytes, _same),
    "date": (int, lambda days: date(1970, 1, 1) + timedelta(days)),
    "timestamp": (int, lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)),
    "timestamp_ntz": (int, lambda micros: datetime(1970, 1, 1) + timedelta(microseconds=micros)),
}


def _invalid(file: ClientFile, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The file {file.path} {problem}.", code="TAHOE_ICEBERG_PARTITION_VALUE", file=file.path)
