"""Products, quotients and remainders of whole columns of decimals, exact to the last digit.

Arrow computes decimals in 256 bits, and truncates a quotient at a digit that depends on the types. Each function returns None if 76 digits
are not enough; then the values are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.compute.values import Array, Incomputable

_MOST_DIGITS = 76


def as_decimals(values: Array, target: pa.DataType) -> Array:
    """Return decimals of another precision, rounded half up."""
    precision, scale = target.precision, target.scale
    if values.type.scale > scale:
        values = pc.round(values.cast(pa.decimal256(_MOST_DIGITS, values.type.scale)), scale, round_mode="half_towards_infinity")
    wide = pa.decimal256(_MOST_DIGITS, scale)
    try:
        return values.cast(wide).cast(target)
    except pa.ArrowInvalid as error:
        raise Incomputable(f"a number does not fit decimal({precision},{scale})", "NUMERIC_VALUE_OUT_OF_RANGE") from error


def _exact(kernel: Callable[[Array, Array], Array]) -> Callable[[Array, Array, pa.DataType], Array]:
    def computed(left: Array, right: Array, target: pa.DataType) -> Array:
        return as_decimals(kernel(_wide(left), _wide(right)), target)

    return computed


def _product(left: Array, right: Array, target: pa.DataType) -> Array | None:
    if left.type.precision + right.type.precision + 1 > _MOST_DIGITS:
        return None
    return as_decimals(pc.multiply(_wide(left), _wide(right)), target)


def _quotient(left: Array, right: Array, target: pa.DataType) -> Array | None:
    """Compute the quotient, truncated at least one digit after the result's scale, which is sufficient for rounding half up."""
    quotient = _divided(left, right, target.scale + 1)
    return None if quotient is None else as_decimals(quotient, target)


def _remainder(left: Array, right: Array, target: pa.DataType) -> Array | None:
    whole_digits = left.type.precision - left.type.scale + right.type.scale
    quotient = _divided(left, right, 0)
    if quotient is None or whole_digits + right.type.precision + 1 > _MOST_DIGITS:
        return None
    whole = pc.trunc(quotient.cast(pa.decimal256(_MOST_DIGITS, quotient.type.scale))).cast(pa.decimal256(max(whole_digits, 1), 0))
    taken = pc.multiply(whole, _wide(right))
    scale = max(left.type.scale, right.type.scale)
    same = pa.decimal256(_MOST_DIGITS - 1, scale)
    return as_decimals(pc.subtract(_wide(left).cast(same), taken.cast(same)), target)


def _positive_remainder(left: Array, right: Array, target: pa.DataType) -> Array | None:
    remainder = _remainder(left, right, pa.decimal128(38, max(left.type.scale, right.type.scale)))
    if remainder is None:
        return None
    zero = Decimal(0)
    wraps = pc.and_(pc.less(remainder, pa.scalar(zero, remainder.type)), pc.greater(right, pa.scalar(zero, right.type)))
    moved = pc.add(_wide(remainder), _wide(right))
    return as_decimals(pc.if_else(wraps, moved, _wide(remainder).cast(moved.type)), target)


COLUMNAR: Mapping[str, Callable[[Array, Array, pa.DataType], Array | None]] = {
    "+": _exact(pc.add),
    "-": _exact(pc.subtract),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "pmod": _positive_remainder,
}
"""Operators with their function of both columns and the result type; the function returns None if it cannot compute the result."""


def _divided(left: Array, right: Array, places: int) -> Array | None:
    """Compute left / right, truncated after at least so many digits; no right value is 0 where the left is not null."""
    # Arrow cuts at max(4, left's scale + right's precision - right's scale + 1).
    scale = max(left.type.scale, places + right.type.scale - right.type.precision - 1, 0)
    digits = left.type.precision - left.type.scale + scale
    behind = max(4, scale + right.type.precision - right.type.scale + 1)
    if digits > _MOST_DIGITS or digits - scale + right.type.scale + behind > _MOST_DIGITS:
        return None
    return pc.divide(left.cast(pa.decimal256(digits, scale)), _wide(right))


def _wide(values: Array) -> Array:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))
