"""Numbers: every overflow and division by zero is an error, as in Spark's ANSI mode; decimals are exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.compute.decimals import COLUMNAR, as_decimals
from tahoe.expr.compute.values import Array, Incomputable, row_by_row
from tahoe.expr.tree.expression import Call, Literal
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.types import DataType, DecimalType

_WIDE = Context(prec=90)
_DIGITS_OF_256_BITS = 76
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
    if pa.types.is_integer(left.type):
        return _whole_remainder(left, right, positive=op == "pmod")
    function = _remainder if op == "%" else _positive_remainder
    return row_by_row(function, to_arrow_type(call.data_type), left, right)


def _decimals(call: Call, left: Array, right: Array) -> Array:
    op = call.function
    if op == "div":
        return row_by_row(lambda a, b: _fits(int(_WIDE.divide_int(a, b)), call.data_type), pa.int64(), left, right)
    target = to_arrow_type(call.data_type)
    columnar = COLUMNAR[op](left, right, target)
    if columnar is not None:
        return columnar
    assert isinstance(call.data_type, DecimalType)
    result_type = call.data_type
    return row_by_row(lambda a, b: _rounded(_DECIMAL[op](a, b), result_type), target, left, right)


def _rounded(value: Decimal, decimal_type: DecimalType) -> Decimal:
    try:
        rounded = value.quantize(Decimal(1).scaleb(-decimal_type.scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation as error:
        raise _out_of_range(decimal_type) from error
    if len(rounded.as_tuple().digits) > decimal_type.precision:
        raise _out_of_range(decimal_type)
    return rounded


def _refuse_zero(op: str, left: Array, right: Array) -> None:
    zero = scalar(Decimal(0) if pa.types.is_decimal(right.type) else 0, right.type)
    if pc.any(pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, zero), False))).as_py():
        raise Incomputable("it divides by zero", "REMAINDER_BY_ZERO" if op in ("%", "pmod") else "DIVIDE_BY_ZERO")


def _whole_remainder(left: Array, right: Array, *, positive: bool) -> Array:
    """The remainder of whole numbers has the dividend's sign; the least number divided by -1 would not fit, and leaves none."""
    divisor = pc.if_else(pc.equal(right, scalar(-1, right.type)), scalar(1, right.type), right)
    remainder = pc.subtract(left, pc.multiply(divisor, pc.divide(left, divisor)))
    if not positive:
        return remainder
    zero = scalar(0, left.type)
    return pc.if_else(pc.and_(pc.less(remainder, zero), pc.greater(right, zero)), pc.add(remainder, right), remainder)


def _remainder(left: float, right: float) -> float:
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _positive_remainder(left: float, right: float) -> float:
    remainder = _remainder(left, right)
    return _remainder(remainder + right, right) if remainder < 0 else remainder


def _decimal_remainder(left: Decimal, right: Decimal) -> Decimal:
    return _WIDE.remainder(left, right)


def _decimal_pmod(left: Decimal, right: Decimal) -> Decimal:
    remainder = _WIDE.remainder(left, right)
    return _WIDE.remainder(_WIDE.add(remainder, right), right) if remainder < 0 else remainder


_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
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
    return _as_long((pc.floor if call.function == "floor" else pc.ceil)(values))


def _as_long(values: Array) -> Array:
    """Convert whole doubles to LONGs; 2 to the 63rd, the double nearest to the greatest LONG, becomes the greatest LONG."""
    limit = float(1 << 63)
    fits = pc.and_(pc.greater_equal(values, -limit), pc.less_equal(values, limit))
    if not pc.all(fits, min_count=0).as_py():
        raise Incomputable("the result does not fit long", "ARITHMETIC_OVERFLOW")
    is_greatest = pc.equal(values, limit)
    return pc.if_else(is_greatest, (1 << 63) - 1, pc.if_else(is_greatest, 0.0, values).cast(pa.int64()))


def _round(call: Call, values: Array, places: Array) -> Array:
    literal = call.arguments[1]
    assert isinstance(literal, Literal)
    digits = int(literal.value)
    mode = ROUND_HALF_UP if call.function == "round" else ROUND_HALF_EVEN
    result_type = call.data_type
    if digits >= 0 and str(result_type) in _BITS:
        return values
    if digits >= 0 and isinstance(result_type, DecimalType):
        half = "half_towards_infinity" if call.function == "round" else "half_to_even"
        wide = values.cast(pa.decimal256(_DIGITS_OF_256_BITS, values.type.scale))
        return as_decimals(pc.round(wide, min(digits, result_type.scale), round_mode=half), to_arrow_type(result_type))

    def of_decimal(value: Decimal) -> Decimal:
        return _rounded_places(value, digits, mode)

    def of_float(value: float) -> float:
        # Spark knows no -0.0 here.
        return float(_rounded_places(Decimal(repr(value)), digits, mode)) + 0.0 if math.isfinite(value) else value

    def of_whole(value: int) -> int:
        return _fits(int(_rounded_places(Decimal(value), digits, mode)), result_type)

    function = of_decimal if isinstance(result_type, DecimalType) else of_whole if str(result_type) in _BITS else of_float
    return row_by_row(function, to_arrow_type(result_type), values)


def _rounded_places(value: Decimal, places: int, mode: str) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), mode, Context(prec=400)) if places > -400 else Decimal(0)


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


def _signum(call: Call, values: Array) -> Array:
    return pc.if_else(pc.equal(values, 0.0), values, pc.sign(values))  # a zero keeps its sign


def _logarithm(kernel: Callable[[Array], Array]) -> Callable[..., Array]:
    """NULL where there is none, as Spark has it."""
    return lambda call, values: kernel(pc.if_else(pc.less_equal(values, 0.0), scalar(None, pa.float64()), values))


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
    "sqrt": lambda call, values: pc.sqrt(values),
    "exp": lambda call, values: pc.exp(values),
    "signum": _signum,
    "power": lambda call, *arrays: row_by_row(_power, pa.float64(), *arrays),
    "ln": _logarithm(pc.ln),
    "log10": _logarithm(pc.log10),
    "log2": _logarithm(pc.log2),
    **dict.fromkeys(("&", "|", "^", "~"), _bits),
}
