"""Comparisons of two arrays with SQL's answers: NULL where a side is, NaN equal to itself and greater than every number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.compute.values import Array, row_by_row
from tahoe.expr.tree.expression import Call, Literal
from tahoe.schema.arrow_values import scalar


def compare_arrays(op: str, left: Array, right: Array) -> Array:
    """`left op right` for each row; both of one type."""
    if op == "<=>":
        return null_safe_equal(left, right)
    if op == "!=":
        return pc.invert(compare_arrays("=", left, right))
    if op in (">", ">="):
        return compare_arrays("<" if op == ">" else "<=", right, left)
    data_type = left.type
    if pa.types.is_null(data_type):
        return pa.nulls(len(left), pa.bool_())
    if pa.types.is_nested(data_type):
        return _compare_nested(op, left, right)
    if pa.types.is_boolean(data_type):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
    answers = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal}[op](left, right)  # at module level it would import pc
    if not pa.types.is_floating(data_type):
        return answers
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if op == "=":
        return pc.or_(answers, pc.and_(left_nan, right_nan))
    return pc.or_(answers, pc.and_not(right_nan, left_nan) if op == "<" else right_nan)


def null_safe_equal(left: Array, right: Array) -> Array:
    """TRUE where both are NULL or equal; never NULL."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both_null, pc.fill_null(compare_arrays("=", left, right), False))


def is_one_of(values: Array, options: Sequence[Literal]) -> Array:
    """`values IN (options)`: NULL where the value is NULL, or where it is none of them and one of them is NULL."""
    data_type = values.type
    if pa.types.is_null(data_type) or pa.types.is_nested(data_type):
        arrays = (pa.repeat(scalar(option.value, data_type), len(values)) for option in options)
        return reduce(pc.or_kleene, (compare_arrays("=", values, array) for array in arrays))
    constants = pa.array([option.value for option in options if option.value is not None], data_type)
    if pa.types.is_floating(data_type):
        # 0.0 and -0.0 are the same number; adding zero makes both 0.0.
        zero = scalar(0.0, data_type)
        values, constants = pc.add(values, zero), pc.add(constants, zero)
    is_listed = pc.is_in(values, value_set=constants)
    certain = is_listed if len(constants) < len(options) else scalar(True)
    return pc.if_else(pc.and_(values.is_valid(), certain), is_listed, scalar(None, pa.bool_()))


def _comparison(call: Call, left: Array, right: Array) -> Array:
    return compare_arrays(call.function, left, right)


def _in(call: Call, value: Array, *options: Array) -> Array:
    answers = compare_arrays("=", value, options[0])
    for option in options[1:]:
        answers = pc.or_kleene(answers, compare_arrays("=", value, option))
    return answers


def _extreme(call: Call, *arrays: Array) -> Array:
    """greatest and least: NULLs are passed over, NaN is the greatest number."""
    extreme = arrays[0]
    op = ">" if call.function == "greatest" else "<"
    for array in arrays[1:]:
        better = pc.fill_null(compare_arrays(op, array, extreme), pc.fill_null(pc.is_null(extreme), False))
        better = pc.and_(pc.or_(better, pc.is_null(extreme)), pc.is_valid(array))
        extreme = pc.if_else(better, array, extreme)
    return extreme


COMPARISONS: Mapping[str, Callable[..., Array]] = {
    **dict.fromkeys(("=", "<=>", "<", "<=", ">", ">=", "!="), _comparison),
    "in": _in,
    "is null": lambda call, values: pc.is_null(values),
    "is not null": lambda call, values: pc.is_valid(values),
    "isnan": lambda call, values: pc.fill_null(pc.is_nan(values), False),
    "not": lambda call, values: pc.invert(values),
    "greatest": _extreme,
    "least": _extreme,
}


def _compare_nested(op: str, left: Array, right: Array) -> Array:
    """Structs and lists value by value, from left to right; inside them NULL equals NULL and comes first."""

    def compared(item: object, other: object) -> Any:
        first, second = _ordered(item), _ordered(other)
        return first == second if op == "=" else first < second if op == "<" else first <= second

    return row_by_row(compared, pa.bool_(), left, right)


def _ordered(value: object) -> Any:
    """A key that orders as SQL does."""
    match value:
        case None:
            return (0,)
        case dict():
            return (1, tuple(_ordered(part) for part in value.values()))
        case list():
            return (1, tuple(_ordered(part) for part in value))
        case float() if math.isnan(value):
            return (2,)
        case str():
            return (1, value.encode("utf-8", "surrogatepass"))
    return (1, value)
