"""Partition values as the log's strings, and back (PROTOCOL.md, "Partition Value Serialization")."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.base.lazy import pc
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import array, scalar
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def serialize(value: Any, data_type: DataType) -> str | None:
    """Return the log's string for one partition value; None for NULL, and for an empty string, which the specification equates with NULL.

    Args:
        value: as Arrow's `as_py` gives it: int, float, `Decimal`, str, bytes, bool, `date`; a ``timestamp`` is a `datetime` with
            a time zone, a ``timestamp_ntz`` one without.
    """
    if value is None or value in ("", b""):
        return None
    match data_type:
        case DecimalType(_, scale):
            return f"{_rounded(Decimal(value), scale):f}"
        case PrimitiveType(name) if name in _TO_TEXT:
            return _TO_TEXT[name](value)
    raise InvalidRequest(
        f"A column of type {data_type} cannot partition a table; partition by a primitive column.",
        code="DELTA_INVALID_PARTITION_COLUMN_TYPE",
        type=str(data_type),
    )


def deserialize(text: str | None, data_type: DataType) -> Any:
    """Return the Python value of the log's string; '' and None are NULL. A timestamp without a time zone is read as UTC.

    Raises:
        CorruptTable: the string is not a value of that type.
    """
    if not text:
        return None
    try:
        match data_type:
            case DecimalType(precision, scale):
                return _decimal(text, precision, scale)
            case PrimitiveType(name) if name in _FROM_TEXT:
                return _FROM_TEXT[name](text)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise CorruptTable(
            f"The partition value '{text[:100]}' in the log is no {data_type}; correct or remove the file's add action.",
            code="TAHOE_CORRUPT_PARTITION_VALUES",
            value=text[:100],
        ) from error
    raise Unsupported(
        f"Partition columns of type {data_type} cannot be read.", code="DELTA_INVALID_PARTITION_COLUMN_TYPE", type=str(data_type)
    )


def deserialize_column(values: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    """Convert a column of strings as `deserialize` does, to the type of `tahoe.schema.arrow.to_arrow_type`."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    encoded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
    texts = encoded.dictionary.cast(pa.string())
    texts = pc.if_else(pc.equal(texts, scalar("")), scalar(None, pa.string()), texts)
    target = to_arrow_type(data_type)
    try:
        distinct = _fast(texts, data_type, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Not parsable by Arrow: Spark's spellings of numbers, a time zone, or garbage.
        distinct = array([deserialize(text, data_type) for text in texts.to_pylist()], target)
    return distinct.take(encoded.indices)


def partition_folder(partition_columns: Sequence[str], partition_values: Mapping[str, str | None]) -> str:
    """Return the folder of a partition's data files: `hive_folder`, with letters outside ASCII escaped too, as delta-rs does: ``p=%C3%A9``.

    All writers spell paths in ASCII alike in the log (docs/design/002-log.md).
    """
    return _folder(partition_columns, partition_values, _escape_all)


def hive_folder(partition_columns: Sequence[str], partition_values: Mapping[str, str | None]) -> str:
    """Return the folder of a partition, ``a=1/b=__HIVE_DEFAULT_PARTITION__``, escaped as Hive and Spark do.

    This is the name in storage; `tahoe.store.location.encode_path` makes the log's path of it. No value is ever read from it. A folder
    name beyond the limit of file systems (255 bytes) is shortened to its beginning and a digest.
    """
    return _folder(partition_columns, partition_values, _escape)


def _folder(columns: Sequence[str], values: Mapping[str, str | None], escape: Callable[[str], str]) -> str:
    parts = []
    for column in columns:
        value = values.get(column)
        # A text equal to Hive's name for NULL gets a different folder than NULL.
        text = HIVE_NULL if not value else HIVE_NULL.replace("_", "%5F", 1) if value == HIVE_NULL else escape(value)
        parts.append(_shortened(f"{escape(column)}={text}"))
    return "/".join(parts)


# The characters that Spark's ExternalCatalogUtils escapes: control characters and those with a meaning in paths, globs and Hive; and
# NUL, which no file system allows.
_ESCAPED = frozenset([*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{[]^"])
_LONGEST_NAME = 255
_DIGITS_OF_DIGEST = 32
_NUMBER = re.compile(r"[+-]?\d+")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?\s*(Z|UTC|[+-]\d{2}:?\d{2})?")
_WIDE = Context(prec=80)  # Python's default context rounds to 28 digits
_RANGES = {"byte": 1 << 7, "short": 1 << 15, "integer": 1 << 31, "long": 1 << 63}


def _escape(text: str) -> str:
    return "".join(f"%{ord(character):02X}" if character in _ESCAPED else character for character in text)


def _escape_all(text: str) -> str:
    return "".join(
        character if character.isascii() else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in _escape(text)
    )


def _shortened(name: str) -> str:
    encoded = name.encode()
    if len(encoded) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:_DIGITS_OF_DIGEST]
    beginning = encoded[: _LONGEST_NAME - _DIGITS_OF_DIGEST - 1].decode("utf-8", "ignore")
    return f"{beginning}~{digest}"


def _java_float(digits: str) -> str:
    """Convert Python's shortest digits to the form of Java's Double.toString, which Spark writes."""
    if digits in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[digits]
    sign, figures, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, figures)).lstrip("0").rstrip("0")
    if not text:
        return "-0.0" if sign else "0.0"
    point = len("".join(map(str, figures)).lstrip("0")) + exponent  # digits before the decimal point
    if -3 < point <= 7:
        whole, fraction = (text[:point].ljust(point, "0"), text[point:]) if point > 0 else ("0", "0" * -point + text)
        body = f"{whole}.{fraction or '0'}"
    else:
        body = f"{text[0]}.{text[1:] or '0'}E{point - 1}"
    return f"-{body}" if sign else body


def _shortest_float32(value: float) -> str:
    """Return the fewest digits that read back to the same 32-bit float."""
    if not math.isfinite(value):
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if pa.scalar(float(text), pa.float32()) == pa.scalar(value, pa.float32()):
            return text
    return repr(value)


def _timestamp_text(value: datetime) -> str:
    if value.tzinfo is None:
        raise InvalidRequest(
            "A timestamp partition value must have a time zone; a value without one belongs to timestamp_ntz.",
            code="TAHOE_PARTITION_TIME_ZONE",
        )
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _timestamp_ntz_text(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def _binary_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            "A binary partition value must be valid UTF-8, because the log keeps it as a string; partition by another column.",
            code="DELTA_INVALID_PARTITION_COLUMN_TYPE",
        ) from error


_TO_TEXT: dict[str, Callable[[Any], str]] = {
    "string": str,
    "long": lambda value: str(int(value)),
    "integer": lambda value: str(int(value)),
    "short": lambda value: str(int(value)),
    "byte": lambda value: str(int(value)),
    "float": lambda value: _java_float(_shortest_float32(float(value))),
    "double": lambda value: _java_float(repr(float(value))),
    "boolean": lambda value: "true" if value else "false",
    "binary": _binary_text,
    "date": lambda value: value.isoformat(),
    "timestamp": _timestamp_text,
    "timestamp_ntz": _timestamp_ntz_text,
    "void": str,
}


def _whole(name: str) -> Callable[[str], int]:
    limit = _RANGES[name]

    def parse(text: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise ValueError(text)
        number = int(text)
        if not -limit <= number < limit:
            raise ValueError(text)
        return number

    return parse


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    number = Decimal(text)
    rounded = _rounded(number, scale)
    if rounded != number or len(rounded.as_tuple().digits) > precision:
        raise ValueError(text)
    return rounded


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _day(text: str) -> date:
    """Parse a date, also without leading zeros, as in folders of converted tables."""
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return date(*map(int, match.groups()))


def _moment(text: str) -> tuple[datetime, str | None]:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return datetime.combine(_day(text), time()), None
    day, clock, fraction, zone = match.groups()
    return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6].ljust(6, '0')}"), zone


def _timestamp(text: str) -> datetime:
    moment, zone = _moment(text)
    if zone in (None, "Z", "UTC"):
        return moment.replace(tzinfo=UTC)
    return datetime.fromisoformat(moment.isoformat() + str(zone)).astimezone(UTC)


def _timestamp_ntz(text: str) -> datetime:
    moment, zone = _moment(text)
    if zone is not None:
        raise ValueError(text)
    return moment


_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "string": str,
    "long": _whole("long"),
    "integer": _whole("integer"),
    "short": _whole("short"),
    "byte": _whole("byte"),
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "binary": lambda text: text.encode("utf-8"),
    "date": _day,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "void": lambda text: None,
}


def _fast(texts: pa.Array, data_type: DataType, target: pa.DataType) -> pa.Array:
    if data_type == PrimitiveType("timestamp"):
        # 'T' or a blank between, with or without Z: the same timestamps in UTC. Offsets are left to the slow path.
        return pc.replace_substring_regex(texts, pattern="Z$", replacement="").cast(pa.timestamp("us")).cast(target)
    if isinstance(data_type, PrimitiveType) and data_type.name in ("string", "long", "date", "timestamp_ntz"):
        return texts.cast(target)
    if isinstance(data_type, PrimitiveType) and data_type.name in ("integer", "short", "byte"):
        return texts.cast(pa.int64()).cast(target)
    raise pa.ArrowNotImplementedError("parsed one by one")
