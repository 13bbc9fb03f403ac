"""Results of SQL text over the columns of a test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.schema.arrow import from_arrow_schema

ONE_ROW = pa.table({"one": pa.array([1], pa.int32())})


def answers(text: str, time_zone: str = "UTC", **columns: pa.Array) -> list[Any]:
    """The values of the expression, one a row; of a single row where no columns are given."""
    table = pa.table(columns) if columns else ONE_ROW
    return compute(parse_expression(text, from_arrow_schema(table.schema), time_zone=time_zone), table).to_pylist()


def answer(text: str, time_zone: str = "UTC") -> Any:
    """The value of an expression without columns; where it is an error, its code."""
    try:
        (actual,) = answers(text, time_zone)
    except InvalidRequest as error:
        return error.code
    return actual
