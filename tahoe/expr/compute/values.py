"""Common parts of the modules that evaluate expressions: the error of a value, and functions of single values over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest

Array: TypeAlias = Any
"""`pa.Array`; pyarrow ships no types."""


class Incomputable(Exception):
    """A value that cannot be computed; `code` is Spark's error class. Only `tahoe.expr.compute.compute` sees it."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


def by_value(function: Callable[[Any], Any], values: Array, arrow_type: pa.DataType) -> Array:
    """`function` of each value that is not null, once for equal ones."""
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        return row_by_row(function, arrow_type, values)
    encoded = values.dictionary_encode()
    return pa.array([_called(function, value) for value in _python_values(encoded.dictionary)], arrow_type).take(encoded.indices)


def row_by_row(function: Callable[..., object], arrow_type: pa.DataType, *arrays: Array) -> Array:
    """`function` of each row's values; null where one of them is."""
    rows = zip(*map(_python_values, arrays), strict=True)
    return pa.array([None if any(value is None for value in row) else _called(function, *row) for row in rows], arrow_type)


def beyond_all_dates() -> Incomputable:
    """Return the error of a date or timestamp that Python cannot represent."""
    return Incomputable("the date is beyond the years 1 to 9999", "DATETIME_OVERFLOW")


def _python_values(values: Array) -> list[Any]:
    try:
        listed: list[Any] = values.to_pylist()
    except OverflowError as error:
        raise beyond_all_dates() from error
    return listed


def _called(function: Callable[..., object], *values: object) -> Any:
    if len(values) == 1 and values[0] is None:
        return None
    try:
        return function(*values)
    except InvalidRequest as error:
        raise Incomputable(error.message.rstrip("."), error.code) from error
    except OverflowError as error:  # a time zone moves the first or the last day of the calendar out of it
        raise beyond_all_dates() from error
