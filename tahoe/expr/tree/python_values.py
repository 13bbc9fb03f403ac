"""Python's values as constants of an expression, and as SQL text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.common_types import decimal_type_of
from tahoe.expr.tree.predicate import Literal, quote_literal
from tahoe.schema.types import DataType, PrimitiveType

SqlValues: TypeAlias = Mapping[str, Any]
"""Column → SQL text, or a Python value: a number, a truth value, a date, bytes, None for NULL."""


def literal_of(value: object, place: str = "") -> Literal:
    """The constant that a Python value is; numbers of numpy and scalars of pyarrow are as Python's.

    Args:
        place: the column that it is for, for the error.

    Raises `InvalidRequest` (``TAHOE_LITERAL_TYPE``): no constant is written with such a value.
    """
    plain = _plain(value)
    data_type = _type_of(plain)
    if data_type is None:
        raise InvalidRequest(
            f"A value of type {type(value).__name__}{f' for {place!r}' if place else ''} cannot be written as an SQL literal. Give a number, "
            "a text, a truth value, a date, bytes or None, or write SQL text.",
            code="TAHOE_LITERAL_TYPE",
            type=type(value).__name__,
        )
    return Literal(plain, data_type)


def sql_texts(values: SqlValues) -> dict[str, str]:
    """Each value as SQL text. A text is SQL already: a string constant is written ``"'text'"``."""
    return {key: value if isinstance(value, str) else quote_literal(literal_of(value, key)) for key, value in values.items()}


def _plain(value: object) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "as_py"):
        value = value.as_py()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _type_of(value: object) -> DataType | None:
    match value:
        case None:
            return PrimitiveType("void")
        case bool():
            return PrimitiveType("boolean")
        case int() if -(2**63) <= value < 2**63:
            return PrimitiveType("integer" if -(2**31) <= value < 2**31 else "long")
        case int():
            return decimal_type_of(Decimal(value))
        case float():
            return PrimitiveType("double")
        case Decimal() if value.is_finite():
            return decimal_type_of(value)
        case str():
            return PrimitiveType("string")
        case bytes():
            return PrimitiveType("binary")
        case datetime():
            return PrimitiveType("timestamp_ntz" if value.tzinfo is None else "timestamp")
        case date():
            return PrimitiveType("date")
    return None
