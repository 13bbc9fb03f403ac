"""Computes the constant parts of a condition once, so that comparisons with them can skip files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute
from tahoe.expr.tree.common_types import VOID
from tahoe.expr.tree.expression import Call, Case, Cast, Expression, Literal, children
from tahoe.schema.types import DecimalType, PrimitiveType, is_geospatial

ONE_ROW = pa.table({"": pa.nulls(1)})  # a list would import pandas
"""The input of an expression without columns."""


def with_constants(expression: Expression) -> Expression:
    """Return the expression with each part that reads no column as a `Literal`.

    A part that cannot be computed, such as ``1 / 0``, stays: it fails only if a row needs it.
    """
    match expression:
        case Cast(child):
            new_child = with_constants(child)
            return _constant(expression if new_child is child else replace(expression, child=new_child))
        case Call(_, arguments):
            new_arguments = tuple(map(with_constants, arguments))
            return _constant(expression if _are_same(new_arguments, arguments) else replace(expression, arguments=new_arguments))
        case Case(branches, otherwise):
            new_branches = tuple((with_constants(condition), with_constants(value)) for condition, value in branches)
            return _constant(replace(expression, branches=new_branches, otherwise=with_constants(otherwise)))
    return expression


def _are_same(new: Iterable[Expression], old: Iterable[Expression]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _constant(expression: Call | Case | Cast) -> Expression:
    data_type = expression.data_type
    is_simple = isinstance(data_type, PrimitiveType | DecimalType) and data_type != VOID and not is_geospatial(data_type)
    if not is_simple or not all(isinstance(child, Literal) for child in children(expression)):
        return expression
    try:
        return Literal(compute(expression, ONE_ROW)[0].as_py(), data_type)
    except (InvalidRequest, OverflowError):  # Python has no dates after the year 9999
        return expression
