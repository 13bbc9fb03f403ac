"""Single values between Delta and Iceberg: statistics to bounds, partition values to partition tuples.

A bound may be too wide, never too narrow: a statistic without a sound bound is omitted (None), which readers interpret as
"unknown". Bytes are Iceberg's single-value serialization (format/spec.md, appendix D), tuples are Avro (appendix A).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from functools import lru_cache
from typing import Any

from tahoe.base.exceptions import Unsupported
from tahoe.base.json_values import JsonObject
from tahoe.protocol.iceberg_compat import ICEBERG_TYPES
from tahoe.schema.types import DataType, DecimalType, PrimitiveType
from tahoe.uniform.formats.avro import decode_long, encode_bytes, encode_long

VOID = PrimitiveType("void")
"""Format version 3 has this type, as ``unknown``; version 2 does not."""

Bound = Callable[[Any], bytes | None]

_TRUNCATED_MICROSECONDS = 999
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_INT = struct.Struct("<i").pack
_LONG = struct.Struct("<q").pack
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_NO_BOUND = (ValueError, TypeError, AttributeError, ArithmeticError, struct.error)


@dataclass(frozen=True, slots=True)
class Codec:
    """How the values of one primitive column are written.

    Args:
        iceberg_type: the type in schema JSON, e.g. ``timestamptz``.
        avro_type: the Avro schema of a partition value.
        lower, upper: convert a statistic (JSON value or Python value) to a bound; None if there is no sound bound.
        from_python: converts a deserialized partition value to the tuple's value: days, microseconds, unscaled decimals.
        encode: converts the tuple's value to Avro bytes.
        decode: converts Avro bytes at a position to the tuple's value, and the position after it.
        single: converts the tuple's value to Iceberg's single-value bytes.
        order: converts those bytes to a value that compares as Iceberg compares them.
    """

    iceberg_type: str
    avro_type: Any
    lower: Bound
    upper: Bound
    from_python: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes, int], tuple[Any, int]]
    single: Callable[[Any], bytes]
    order: Callable[[bytes], Any]


def iceberg_primitive(data_type: DataType) -> str:
    """Return the Iceberg type of a Delta primitive, in format version 3. Raises `Unsupported` for a type that Iceberg lacks."""
    if isinstance(data_type, DecimalType):
        return f"decimal({data_type.precision}, {data_type.scale})"
    if isinstance(data_type, PrimitiveType) and data_type.name in ICEBERG_TYPES:
        return ICEBERG_TYPES[data_type.name]
    if data_type == VOID:
        return "unknown"
    raise no_iceberg_type(data_type)


def no_iceberg_type(data_type: DataType) -> Unsupported:
    """Return the error for a type that is missing in the table's version of Iceberg's format."""
    return Unsupported(
        f"Iceberg's format version has no type for Delta's {data_type}; drop the column or disable UniForm on the table.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE",
        type=str(data_type),
    )


def codec_of(data_type: DataType) -> Codec:
    """Return the codec of a Delta primitive type. Raises `Unsupported` for a type without values in Iceberg."""
    if data_type == VOID:
        raise no_iceberg_type(data_type)
    iceberg_type = iceberg_primitive(data_type)
    if isinstance(data_type, DecimalType):
        return _decimal_codec(data_type, iceberg_type)
    return _CODECS[iceberg_type]


def _bound(pack: Callable[[Any], bytes], parse: Callable[[Any], Any]) -> Bound:
    """Parse, then pack; None on an error: a malformed statistic has no bound."""

    def guarded(value: object) -> bytes | None:
        try:
            return pack(parse(value))
        except _NO_BOUND:
            return None

    return guarded


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


@lru_cache(maxsize=10_000)
def _days(value: object) -> int:
    if isinstance(value, str):
        value = date.fromisoformat(value[:10]) if value[10:11] in ("", "T", " ") else None
    if not isinstance(value, date):
        raise TypeError(value)
    return value.toordinal() - _EPOCH_DAY


def _microseconds_utc(value: Any) -> int:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value.tzinfo is None:  # without a zone the time is uncertain by 26 hours: no sound bound
        raise ValueError(value)
    return int((value - _EPOCH_UTC) // _MICROSECOND)


def _microseconds(value: Any) -> int:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value.tzinfo is not None:
        raise ValueError(value)
    return int((value - _EPOCH) // _MICROSECOND)


def _real(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    number = float(value)
    if number != number:
        raise ValueError(value)
    return number


def _real_codec(name: str, packer: struct.Struct) -> Codec:
    """Widen zeros, as -0.0 < +0.0 in Iceberg while a statistic does not distinguish them."""

    def decode(data: bytes, position: int) -> tuple[float, int]:
        return float(packer.unpack_from(data, position)[0]), position + packer.size

    return Codec(
        iceberg_type=name,
        avro_type=name,
        lower=_bound(packer.pack, lambda value: _real(value) or -0.0),
        upper=_bound(packer.pack, lambda value: _real(value) or 0.0),
        from_python=float,
        encode=packer.pack,
        decode=decode,
        single=packer.pack,
        order=lambda data: (packer.unpack(data)[0], data[-1] < 0x80),  # -0.0 before +0.0
    )


def _number_codec(
    name: str, avro_type: object, pack: Callable[[int], bytes], parse: Callable[[Any], int], above: int = 0
) -> Codec:
    return Codec(
        iceberg_type=name,
        avro_type=avro_type,
        lower=_bound(pack, parse),
        upper=_bound(pack, lambda value: parse(value) + above) if above else _bound(pack, parse),
        from_python=parse,
        encode=encode_long,
        decode=decode_long,
        single=pack,
        order=lambda data: int.from_bytes(data, "little", signed=True),
    )


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _pack_truth(value: object) -> bytes:
    return b"\1" if value else b"\0"


def _text_bound(value: object) -> bytes | None:
    try:
        return value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:  # half a surrogate pair
        return None


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = decode_long(data, position)
    return data[position : position + length], position + length


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    encoded, position = _read_bytes(data, position)
    return encoded.decode(), position


def _no_bound(value: object) -> bytes | None:
    return None


def _decimal_codec(data_type: DecimalType, iceberg_type: str) -> Codec:
    size = _fixed_size(data_type.precision)
    exponent = Decimal(1).scaleb(-data_type.scale)
    low, high, exact = (Context(prec=77, rounding=mode) for mode in (ROUND_FLOOR, ROUND_CEILING, ROUND_FLOOR))
    exact.traps[Inexact] = True

    def unscaled(value: Any, context: Context) -> int:
        if isinstance(value, bool):
            raise TypeError(value)
        if isinstance(value, str):
            whole, _, fraction = value.partition(".")
            if len(fraction) <= data_type.scale and fraction.isdecimal() and whole.removeprefix("-").isdecimal():
                return int(whole + fraction.ljust(data_type.scale, "0"))
        number = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
        return int(number.quantize(exponent, context=context).scaleb(data_type.scale, context=context))

    def single(value: int) -> bytes:
        return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)

    return Codec(
        iceberg_type=iceberg_type,
        avro_type={
            "type": "fixed",
            "size": size,
            "logicalType": "decimal",
            "precision": data_type.precision,
            "scale": data_type.scale,
            "name": f"decimal_{data_type.precision}_{data_type.scale}",
        },
        lower=_bound(single, lambda value: unscaled(value, low)),
        upper=_bound(single, lambda value: unscaled(value, high)),
        from_python=lambda value: unscaled(value, exact),
        encode=lambda value: value.to_bytes(size, "big", signed=True),
        decode=lambda data, position: (int.from_bytes(data[position : position + size], "big", signed=True), position + size),
        single=single,
        order=lambda data: int.from_bytes(data, "big", signed=True),
    )


def _fixed_size(precision: int) -> int:
    """Return the fewest bytes that fit every unscaled number of that many digits."""
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1


def _timestamp_type(adjust_to_utc: bool) -> JsonObject:
    return {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": adjust_to_utc}


_CODECS = {
    "int": _number_codec("int", "int", _INT, _whole),
    "long": _number_codec("long", "long", _LONG, _whole),
    "date": _number_codec("date", {"type": "int", "logicalType": "date"}, _INT, _days),
    # Delta's statistics truncate timestamps to milliseconds, so the maximum may be up to 999 microseconds higher.
    "timestamptz": _number_codec("timestamptz", _timestamp_type(True), _LONG, _microseconds_utc, _TRUNCATED_MICROSECONDS),
    "timestamp": _number_codec("timestamp", _timestamp_type(False), _LONG, _microseconds, _TRUNCATED_MICROSECONDS),
    "float": _real_codec("float", _FLOAT),
    "double": _real_codec("double", _DOUBLE),
    "boolean": Codec(
        iceberg_type="boolean",
        avro_type="boolean",
        lower=_bound(_pack_truth, _truth),
        upper=_bound(_pack_truth, _truth),
        from_python=_truth,
        encode=_pack_truth,
        decode=lambda data, position: (data[position] == 1, position + 1),
        single=_pack_truth,
        order=bytes,
    ),
    "string": Codec(
        iceberg_type="string",
        avro_type="string",
        lower=_text_bound,
        upper=_text_bound,
        from_python=str,
        encode=lambda value: encode_bytes(value.encode()),
        decode=_read_text,
        single=str.encode,
        order=bytes,
    ),
    "binary": Codec(
        iceberg_type="binary",
        avro_type="bytes",
        lower=_no_bound,
        upper=_no_bound,
        from_python=bytes,
        encode=encode_bytes,
        decode=_read_bytes,
        single=bytes,
        order=bytes,
    ),
}
