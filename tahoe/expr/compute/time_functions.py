"""Functions of dates and timestamps; the local time of a timestamp is that of the session's time zone."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa

from tahoe.base.clock import zone_of
from tahoe.base.lazy import pc
from tahoe.expr.compute.values import Array, Incomputable, beyond_all_dates, by_value, row_by_row
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.expression import PLUS_MICROSECONDS, PLUS_MONTHS, Call, Literal
from tahoe.schema.types import PrimitiveType


def _date_part(kernel: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda call, values: kernel(values).cast(pa.int32())


def _clock_part(kernel: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda call, values: kernel(_local_time(call, values)).cast(pa.int32())


def _local_time(call: Call, values: Array) -> Array:
    """The wall clock in the session's zone, as timestamps without zone."""
    if _is_utc(call, values):
        return values.view(pa.timestamp("us"))
    return pc.local_timestamp(values.cast(pa.timestamp("us", _arrow_name(zone_of(call.time_zone)))))


def _arrow_name(zone: tzinfo) -> str:
    """Return Arrow's name of a zone: of a region, or an offset such as ``+08:00``."""
    return zone.key if isinstance(zone, ZoneInfo) else str(zone).removeprefix("UTC")


def _moved(kernel: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Days on or back, as long as the date has a year of four digits."""

    def moved(call: Call, days: Array, numbers: Array) -> Array:
        shifted = kernel(days.cast(pa.int32()).cast(pa.int64()), numbers.cast(pa.int64()))
        fits = pc.and_(pc.greater_equal(shifted, _FIRST_DAY), pc.less_equal(shifted, _LAST_DAY))
        if not pc.all(fits, min_count=0).as_py():
            raise beyond_all_dates()
        return shifted.cast(pa.int32()).cast(pa.date32())

    return moved


_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))


def _add_months(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if not 1 <= year <= 9999:
        raise beyond_all_dates()
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _plus_microseconds(call: Call, times: Array, numbers: Array) -> Array:
    """Spark adds whole days to the local time, so that they may have 23 or 25 hours, and the rest to the instant."""
    if _is_utc(call, times):
        try:
            return pc.add_checked(times.cast(pa.int64()), numbers).cast(times.type)
        except pa.ArrowInvalid as error:
            raise beyond_all_dates() from error
    zone = zone_of(call.time_zone)

    def plus(moment: datetime, number: int) -> datetime:
        # Rounded to zero, as Java divides.
        days = abs(number) // _DAY * (1 if number > 0 else -1)
        moved = _at_local_time(moment, moment.astimezone(zone).replace(tzinfo=None) + timedelta(days=days), zone)
        return moved + timedelta(microseconds=number - days * _DAY)

    return row_by_row(plus, times.type, times, numbers)


def _plus_months(call: Call, times: Array, numbers: Array) -> Array:
    zone = zone_of(call.time_zone)

    def plus(moment: datetime, months: int) -> datetime:
        local = moment if moment.tzinfo is None else moment.astimezone(zone).replace(tzinfo=None)
        moved = datetime.combine(_add_months(local.date(), months), local.time())
        return moved if moment.tzinfo is None else _at_local_time(moment, moved, zone)

    return row_by_row(plus, times.type, times, numbers)


def _is_utc(call: Call, times: Array) -> bool:
    return times.type.tz is None or zone_of(call.time_zone) == UTC


def _at_local_time(before: datetime, local: datetime, zone: tzinfo) -> datetime:
    """Return the instant of a local time. Of two, in autumn, it is the one with the offset of the instant before, as in Java."""
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    kept = second if second.utcoffset() == before.astimezone(zone).utcoffset() and _exists(second) else first
    return kept.astimezone(UTC)


def _exists(local: datetime) -> bool:
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) == local.replace(tzinfo=None)


def _last_day(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError) as error:
        raise Incomputable(f"there is no date {year}-{month}-{day}", "DATETIME_FIELD_OUT_OF_BOUNDS") from error


def _truncated(call: Call, first: Array, second: Array) -> Array:
    unit_at, values = (0, second) if call.function == "date_trunc" else (1, first)
    unit = call.arguments[unit_at]
    assert isinstance(unit, Literal)
    if call.function == "trunc":
        return pc.floor_temporal(values.cast(pa.timestamp("us")), unit=unit.value).cast(pa.date32())
    floored = pc.floor_temporal(_local_time(call, values), unit=unit.value)
    if _is_utc(call, values):
        return floored.view(values.type)
    zone = zone_of(call.time_zone)
    return by_value(lambda value: cast_value(value, PrimitiveType("timestamp"), zone), floored, values.type)


def _formatted(call: Call, values: Array, _: Array) -> Array:
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)

    def text(local: datetime) -> str:
        written: str = pattern.value
        for part, number, width in (
            ("yyyy", local.year, 4),
            ("MM", local.month, 2),
            ("dd", local.day, 2),
            ("HH", local.hour, 2),
            ("mm", local.minute, 2),
            ("ss", local.second, 2),
        ):
            written = written.replace(part, f"{number:0{width}d}")
        return written

    return by_value(text, _local_time(call, values), pa.string())


TIMES: Mapping[str, Callable[..., Array]] = {
    "year": _date_part(pc.year),
    "quarter": _date_part(pc.quarter),
    "month": _date_part(pc.month),
    "day": _date_part(pc.day),
    "dayofweek": _date_part(lambda days: pc.day_of_week(days, count_from_zero=False, week_start=7)),
    "weekday": _date_part(pc.day_of_week),
    "dayofyear": _date_part(pc.day_of_year),
    "weekofyear": _date_part(pc.iso_week),
    "hour": _clock_part(pc.hour),
    "minute": _clock_part(pc.minute),
    "second": _clock_part(pc.second),
    "date_add": _moved(pc.add),
    "date_sub": _moved(pc.subtract),
    "add_months": lambda call, days, months: row_by_row(_add_months, pa.date32(), days, months),
    PLUS_MICROSECONDS: _plus_microseconds,
    PLUS_MONTHS: _plus_months,
    "datediff": lambda call, ends, starts: pc.subtract(ends.cast(pa.int32()), starts.cast(pa.int32())),
    "last_day": lambda call, days: by_value(_last_day, days, pa.date32()),
    "make_date": lambda call, *parts: row_by_row(_make_date, pa.date32(), *parts),
    "date_trunc": _truncated,
    "trunc": _truncated,
    "date_format": _formatted,
}
