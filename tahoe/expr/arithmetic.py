"""Numbers: every overflow and division by zero is an error, as in Spark's ANSI mode; decimals are exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.expr.column_cast import as_decimals
from tahoe.expr.expression import Call, Literal
from tahoe.expr.values import Array, Incomputable, row_by_row
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import DataType, DecimalType

__all__ = ["ARITHMETIC"]

_WIDE = Context(prec=90)
_BITS = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def _binary(call: Call, left: Array, right: Array) -> Array:
    op = call.function
    if op in ("/", "%", "div", "pmod"):
        _refuse_zero(op, left, right)
    if pa.types.is_decimal(left.type):
        return _decimals(call, left, right)
    if op in _CHECKED:
        try:
            return _CHECKED[op](left, right)
        except pa.ArrowInvalid as error:
            narrow = str(call.data_type) in ("byte", "short")
            code = "BINARY_ARITHMETIC_OVERFLOW" if narrow else "ARITHMETIC_OVERFLOW"
            raise Incomputable(f"the result does not fit {call.data_type}", code) from error
    if op == "/":
        return pc.divide(left, right)
    if op == "div":
        try:
            return pc.divide_checked(left, right)
        except pa.ArrowInvalid as error:
            raise _overflow(call.data_type) from error
    function = _remainder if op == "%" else _positive_remainder
    return row_by_row(function, to_arrow_type(call.data_type), left, right)


def _decimals(call: Call, left: Array, right: Array) -> Array:
    op = call.function
    if op == "div":
        return row_by_row(lambda a, b: _fits(int(_WIDE.divide_int(a, b)), call.data_type), pa.int64(), left, right)
    target = to_arrow_type(call.data_type)
    exact = _EXACT.get(op)
    if exact is not None:
        wide = exact(left.cast(pa.decimal256(left.type.precision, left.type.scale)), right.cast(_as_256(right.type)))
        return as_decimals(wide, target)
    assert isinstance(call.data_type, DecimalType)
    wanted = call.data_type
    return row_by_row(lambda a, b: _rounded(_DECIMAL[op](a, b), wanted), target, left, right)


def _as_256(data_type: pa.DataType) -> pa.DataType:
    return pa.decimal256(data_type.precision, data_type.scale)


def _rounded(value: Decimal, wanted: DecimalType) -> Decimal:
    try:
        found = value.quantize(Decimal(1).scaleb(-wanted.scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation as error:
        raise _out_of_range(wanted) from error
    if len(found.as_tuple().digits) > wanted.precision:
        raise _out_of_range(wanted)
    return found


def _refuse_zero(op: str, left: Array, right: Array) -> None:
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal(right.type) else 0, right.type)
    if pc.any(pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, zero), False))).as_py():
        raise Incomputable("it divides by zero", "REMAINDER_BY_ZERO" if op in ("%", "pmod") else "DIVIDE_BY_ZERO")


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return left - right * int(_WIDE.divide_int(Decimal(left), Decimal(right)))


def _positive_remainder(left: Any, right: Any) -> Any:
    found = _remainder(left, right)
    return _remainder(found + right, right) if found < 0 else found


def _decimal_remainder(left: Decimal, right: Decimal) -> Decimal:
    return _WIDE.remainder(left, right)


def _decimal_pmod(left: Decimal, right: Decimal) -> Decimal:
    found = _WIDE.remainder(left, right)
    return _WIDE.remainder(_WIDE.add(found, right), right) if found < 0 else found


_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_EXACT = {"+": pc.add, "-": pc.subtract}
_DECIMAL: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "*": _WIDE.multiply,
    "/": _WIDE.divide,
    "%": _decimal_remainder,
    "pmod": _decimal_pmod,
}


def _negative(call: Call, values: Array) -> Array:
    if pa.types.is_integer(values.type):
        try:
            return pc.negate_checked(values)
        except pa.ArrowInvalid as error:
            raise _overflow(call.data_type) from error
    return pc.negate(values)


def _abs(call: Call, values: Array) -> Array:
    try:
        return pc.abs_checked(values) if pa.types.is_integer(values.type) else pc.abs(values)
    except pa.ArrowInvalid as error:
        raise _overflow(call.data_type) from error


def _whole(call: Call, values: Array) -> Array:
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    if pa.types.is_decimal(values.type):
        rounded = (pc.floor if call.function == "floor" else pc.ceil)(values.cast(pa.decimal256(76, values.type.scale)))
        return as_decimals(rounded, to_arrow_type(call.data_type))
    rounding = math.floor if call.function == "floor" else math.ceil
    return row_by_row(lambda value: _whole_number(value, rounding), pa.int64(), values)


def _whole_number(value: float, rounding: Callable[[float], int]) -> int:
    """The whole number as a LONG; 2 to the 63rd, which a double cannot tell from the greatest LONG, is that."""
    limit = 1 << 63
    if not -limit <= value <= limit:
        raise Incomputable("the result does not fit long", "ARITHMETIC_OVERFLOW")
    return min(rounding(value), limit - 1)


def _round(call: Call, values: Array, places: Array) -> Array:
    literal = call.arguments[1]
    assert isinstance(literal, Literal)
    digits = int(literal.value)
    mode = ROUND_HALF_UP if call.function == "round" else ROUND_HALF_EVEN
    wanted = call.data_type

    def of_decimal(value: Decimal) -> Decimal:
        kept = min(digits, wanted.scale) if isinstance(wanted, DecimalType) and digits >= 0 else digits
        return _rounded_places(value, kept, mode)

    def of_float(value: float) -> float:
        # Spark knows no -0.0 here.
        return float(_rounded_places(Decimal(repr(value)), digits, mode)) + 0.0 if math.isfinite(value) else value

    def of_whole(value: int) -> int:
        return value if digits >= 0 else _fits(int(_rounded_places(Decimal(value), digits, mode)), wanted)

    function = of_decimal if isinstance(wanted, DecimalType) else of_whole if str(wanted) in _BITS else of_float
    return row_by_row(function, to_arrow_type(wanted), values)


def _rounded_places(value: Decimal, places: int, mode: str) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), mode, Context(prec=400)) if places > -400 else Decimal(0)


def _double(function: Callable[..., float]) -> Callable[..., Array]:
    def kernel(call: Call, *arrays: Array) -> Array:
        return row_by_row(function, pa.float64(), *arrays)

    return kernel


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _power(base: float, exponent: float) -> float:
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan  # where C and Java part
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            return -math.inf if math.copysign(1, base) < 0 and exponent % 2 == 1 else math.inf
        return math.nan


def _logarithm(function: Callable[[float], float]) -> Callable[..., Array]:
    """NULL where there is none, as Spark has it."""

    def kernel(call: Call, values: Array) -> Array:
        return row_by_row(lambda value: None if value <= 0 else function(value), pa.float64(), values)

    return kernel


def _bits(call: Call, *arrays: Array) -> Array:
    return _BITWISE[call.function](*arrays)


_BITWISE = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor, "~": pc.bit_wise_not}


def _fits(value: int, data_type: DataType) -> int:
    limit = 1 << _BITS[str(data_type)]
    if not -limit <= value < limit:
        raise _overflow(data_type)
    return value


def _overflow(data_type: DataType) -> Incomputable:
    return Incomputable(f"the result does not fit {data_type}", "ARITHMETIC_OVERFLOW")


def _out_of_range(data_type: DataType) -> Incomputable:
    return Incomputable(f"the result does not fit {data_type}", "NUMERIC_VALUE_OUT_OF_RANGE")


ARITHMETIC: Mapping[str, Callable[..., Array]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "pmod"), _binary),
    "negative": _negative,
    "abs": _abs,
    **dict.fromkeys(("floor", "ceil"), _whole),
    **dict.fromkeys(("round", "bround"), _round),
    "sqrt": _double(_sqrt),
    "exp": _double(_exp),
    "signum": _double(lambda value: value if value == 0 or math.isnan(value) else math.copysign(1.0, value)),
    "power": _double(_power),
    "ln": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "log2": _logarithm(lambda value: math.log(value) / math.log(2.0)),
    **dict.fromkeys(("&", "|", "^", "~"), _bits),
}
