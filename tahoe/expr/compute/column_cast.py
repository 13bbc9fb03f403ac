"""Arrays of one type as arrays of another, by the rules of Spark's casts in ANSI mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.expr.compute.decimals import as_decimals
from tahoe.expr.compute.values import Array, Incomputable, by_value
from tahoe.expr.tree.common_types import is_integral, is_numeric, same_type
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, is_opaque


def cast_array(values: Array, source: DataType, target: DataType, time_zone: str = "UTC", *, lenient: bool = False) -> Array:
    """The values in another type.

    Args:
        lenient: null in place of a value that cannot be cast.

    Raises:
        Incomputable: a value does not fit, or no such cast is known.
    """
    arrow_type = to_arrow_type(target)
    if same_type(source, target):
        return values if values.type == arrow_type else values.cast(arrow_type)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), arrow_type)
    cast = _cast_of(source, target, time_zone)
    if cast is None:
        raise InvalidRequest(f"There is no cast from {source} to {target}; use another type.", code="DATATYPE_MISMATCH")
    if not lenient:
        return cast(values, arrow_type)
    try:
        return cast(values, arrow_type)
    except Incomputable:
        return pa.array([_or_null(cast, values.slice(i, 1), arrow_type) for i in range(len(values))], arrow_type)


def text_of(value: object, source: DataType, time_zone: str = "UTC") -> str:
    """A value as Spark casts it to a text."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return _text_of_float(value, source == PrimitiveType("float"))
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.decode("utf-8", "replace")
        case datetime():
            local = value.astimezone(zone_of(time_zone)).replace(tzinfo=None) if value.tzinfo else value
            text = f"{local.year:04d}-{local:%m-%d %H:%M:%S}"
            return f"{text}.{local.microsecond:06d}".rstrip("0") if local.microsecond else text
    return str(value)


_Cast = Callable[[Array, pa.DataType], Array]
_WIDE = Context(prec=80)
_MOST_DIGITS = 38
_BITS = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def _cast_of(source: DataType, target: DataType, time_zone: str) -> _Cast | None:
    """How to cast; None where there is no such cast."""
    zone = zone_of(time_zone)
    text = PrimitiveType("string")
    if is_opaque(source) or is_opaque(target):
        return None  # only engines that support variants and geometries can cast them
    if target == text and isinstance(source, PrimitiveType | DecimalType):
        if is_integral(source) or source == PrimitiveType("date"):
            return lambda values, arrow_type: values.cast(arrow_type)
        return lambda values, arrow_type: by_value(lambda value: text_of(value, source, time_zone), values, arrow_type)
    if source == text:
        return lambda values, arrow_type: by_value(lambda value: cast_value(value, target, zone), values, arrow_type)
    if is_numeric(source) and is_numeric(target):
        return _number_cast(source, target)
    if source == PrimitiveType("boolean") and is_numeric(target):
        return lambda values, arrow_type: by_value(
            lambda value: Decimal(value) if isinstance(target, DecimalType) else int(value), values, arrow_type
        )
    if target == PrimitiveType("boolean") and is_numeric(source):
        return lambda values, arrow_type: by_value(lambda value: value != 0, values, arrow_type)
    names = (str(source), str(target))
    if names == ("timestamp", "long"):
        return lambda values, arrow_type: by_value(
            lambda value: math.floor((value - _EPOCH) / timedelta(seconds=1)), values, arrow_type
        )
    if names == ("long", "timestamp"):
        return lambda values, arrow_type: by_value(_timestamp_of_seconds, values, arrow_type)
    if set(names) <= {"date", "timestamp", "timestamp_ntz"}:
        return lambda values, arrow_type: _time(values, arrow_type, names, time_zone)
    return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _number_cast(source: DataType, target: DataType) -> _Cast:
    if isinstance(target, DecimalType):
        if isinstance(source, DecimalType):
            return as_decimals
        if is_integral(source):
            return lambda values, arrow_type: as_decimals(values.cast(pa.decimal128(20, 0)), arrow_type)
        return lambda values, arrow_type: by_value(lambda value: _decimal_of_float(value, target), values, arrow_type)
    if not is_integral(target):
        if isinstance(source, DecimalType):  # Arrow's own cast is not correctly rounded
            return lambda values, arrow_type: by_value(lambda value: float(value), values, pa.float64()).cast(
                arrow_type, safe=False
            )
        return lambda values, arrow_type: values.cast(arrow_type, safe=False)
    if isinstance(source, DecimalType):
        return lambda values, arrow_type: _one_by_one(values, arrow_type, target)
    if is_integral(source):
        return lambda values, arrow_type: _checked(values, arrow_type, target)
    return lambda values, arrow_type: _cut_off(values, arrow_type, target)


def _cut_off(values: Array, arrow_type: pa.DataType, target: DataType) -> Array:
    """Floating-point numbers without the places behind the point."""
    limit = float(1 << _BITS[str(target)])
    whole = pc.trunc(values)
    fits = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
    if pc.all(fits, min_count=0).as_py():
        return whole.cast(arrow_type)
    return _one_by_one(values, arrow_type, target)


def _one_by_one(values: Array, arrow_type: pa.DataType, target: DataType) -> Array:
    return by_value(lambda value: _whole(value, target), values, arrow_type)


def _checked(values: Array, arrow_type: pa.DataType, target: DataType) -> Array:
    try:
        return values.cast(arrow_type)
    except pa.ArrowInvalid as error:
        raise Incomputable(f"a number does not fit {target}", "CAST_OVERFLOW") from error


def _whole(value: float | Decimal, target: DataType) -> int:
    """Without the places behind the point."""
    limit = 1 << _BITS[str(target)]
    if isinstance(value, float) and not math.isfinite(value):
        raise Incomputable(f"{value} does not fit {target}", "CAST_OVERFLOW")
    whole = int(value)
    if isinstance(value, float) and str(target) == "long" and whole == limit:
        return limit - 1  # as Java's double, which has no greatest LONG
    if not -limit <= whole < limit:
        raise Incomputable(f"{value} does not fit {target}", "CAST_OVERFLOW")
    return whole


def _decimal_of_float(value: float, target: DecimalType) -> Decimal | None:
    if not math.isfinite(value):
        raise Incomputable(f"{value} does not fit {target}", "CAST_INVALID_INPUT")
    decimal = Decimal(repr(value))
    if decimal.adjusted() > _MOST_DIGITS:
        raise Incomputable(f"{value} does not fit {target}", "NUMERIC_VALUE_OUT_OF_RANGE")
    rounded = decimal.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _WIDE)
    if len(rounded.as_tuple().digits) > max(target.precision, target.scale):
        raise Incomputable(f"{value} does not fit {target}", "NUMERIC_VALUE_OUT_OF_RANGE")
    return rounded


def _timestamp_of_seconds(seconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise Incomputable(f"{seconds} seconds are beyond all timestamps", "CAST_OVERFLOW") from error


def _time(values: Array, arrow_type: pa.DataType, names: tuple[str, str], time_zone: str) -> Array:
    """Between dates, timestamps and timestamps without zone; a date is its midnight on the session's wall clock."""
    if zone_of(time_zone) == UTC:
        if names[1] == "date":
            return pc.floor_temporal(values.view(pa.timestamp("us")), unit="day").cast(arrow_type)
        return (values.cast(pa.timestamp("us")) if names[0] == "date" else values.view(pa.timestamp("us"))).view(arrow_type)
    zone = zone_of(time_zone)

    def moved(value: date) -> Any:
        return cast_value(value, PrimitiveType(names[1]), zone)

    return by_value(moved, values, arrow_type)


def _text_of_float(value: float, single: bool) -> str:
    """As Java writes it: with a point, and an exponent below 0.001 and from ten million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    shortest = Decimal(_shortest_single(value) if single else repr(value)).normalize()
    if len(shortest.as_tuple().digits) == 1 and _reads_back(f"{value:.1e}", value, single):
        shortest = Decimal(f"{value:.1e}")  # of two digits Java takes the nearest
    sign, digits, exponent = shortest.normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    minus = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _shortest_single(value: float) -> str:
    """The fewest digits that read back as the same 32-bit number."""
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if _reads_back(text, value, True):
            return text
    return repr(value)


def _reads_back(text: str, value: float, single: bool) -> bool:
    number = pa.scalar(float(text), pa.float64())
    return bool((number.cast(pa.float32(), safe=False) if single else number).as_py() == value)


def _or_null(cast: _Cast, value: Array, arrow_type: pa.DataType) -> Any:
    try:
        return cast(value, arrow_type)[0].as_py()
    except Incomputable:
        return None
