"""The initial snapshot of a stream in event time order (`withEventTimeOrder`): each batch reads a bucket of time.

    … ──[ NULL, and before 10:00 )──[ 10:00, 10:30 )──[ 10:30, … ]──► the commits

The stream's limits determine where a bucket ends. For each bucket, the files that their statistics do not exclude are read, and their
rows are filtered by the bucket: each row is in exactly one bucket, whatever is known of its file.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import TRUE, Column, Comparison, IsNull, Literal, Predicate, all_of, any_of
from tahoe.protocol.config import TableConfig
from tahoe.protocol.skipping import keep, partition_column, statistics_of
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.stream.admission import UNLIMITED, Room
from tahoe.stream.position import BASE_INDEX, EventTime, Position

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LEAST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_GREATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MILLISECOND = 1000
"""Statistics are truncated to milliseconds: a file's last event may be up to this many microseconds later."""
_TIMESTAMPS = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A part of the initial snapshot by the event time of its rows.

    Args:
        version: the version of the snapshot.
        column: the column of the event time.
        first: microseconds since the epoch; None from the beginning, including rows without a time.
        stop: like `first`, exclusive; None for the end.
    """

    version: int
    column: StructField
    first: int | None
    stop: int | None

    @property
    def predicate(self) -> Predicate:
        """The predicate that is true exactly for its rows."""
        column = Column((self.column.name,))
        parts: list[Predicate] = []
        if self.first is not None:
            parts.append(Comparison(">=", column, self._literal(self.first)))
        if self.stop is not None:
            before = Comparison("<", column, self._literal(self.stop))
            parts.append(before if parts else any_of((IsNull(column), before)))
        return all_of(parts) if parts else TRUE

    def may_be_in(self, files: pa.Table, config: TableConfig) -> pa.BooleanArray:
        """Return for each file whether it may contain rows of the bucket."""
        return keep(self.predicate, files, config.schema, config.partition_columns)

    def _literal(self, micros: int) -> Literal:
        timestamp = _EPOCH + timedelta(microseconds=micros)
        has_zone = self.column.data_type == PrimitiveType("timestamp")
        return Literal(timestamp if has_zone else timestamp.replace(tzinfo=None), self.column.data_type)


class EventTimeOrder:
    """The reading order of one stream's initial snapshot.

    Args:
        config: the configuration with which the stream reads.
        column: the name of the event time column.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``) if the column is not a timestamp of the table.
    """

    def __init__(self, config: TableConfig, column: str) -> None:
        field = config.schema.find(column)
        if field is None or field.data_type not in _TIMESTAMPS:
            problem = "not a column of the table" if field is None else f"of the type {field.data_type}"
            raise Unsupported(
                f"With 'withEventTimeOrder' the column of withWatermark must be a timestamp of table {config.table}, but "
                f"'{column}' is {problem}.",
                code="TAHOE_OPTION_NOT_SUPPORTED",
                option="withEventTimeOrder",
            )
        self._config = config
        self._column = field
        self._times: tuple[int, _FileTimes | None] | None = None

    def end_of_batch(self, where: Position, files: pa.Table, room: Room) -> tuple[Position | None, Room]:
        """Return the end of the batch that begins in the snapshot, None if it takes all remaining rows; and the remaining room.

        Args:
            files: the files of the snapshot.
        """
        if room == UNLIMITED.room:
            return None, room
        if self._times is None or self._times[0] != where.version:
            self._times = where.version, _FileTimes.of(files, self._column, self._config)
        times = self._times[1]
        if times is None:
            if files.num_rows:
                logger.warning(
                    "the whole initial snapshot of table %s, version %d, is read in one batch: withEventTimeOrder needs statistics to divide "
                    "it, and no file has any for column '%s' (create them with ANALYZE TABLE … COMPUTE DELTA STATISTICS)",
                    *(self._config.table, where.version, self._column.name),
                )
            return None, room
        stop, room = times.cut(None if where.event_time is None else where.event_time.micros, room)
        if stop is None:
            return None, room
        return replace(where, index=BASE_INDEX, event_time=EventTime(self._column.physical_name, stop)), room

    def bucket(self, start: Position, end: Position) -> Bucket:
        """Return the bucket between a position in the snapshot and a later one, inside or after it."""
        first, stop = (None if position.event_time is None else position.event_time.micros for position in (start, end))
        return Bucket(start.version, self._column, first, stop)

    def check(self, position: Position, table: str) -> None:
        """Raise `InvalidRequest` (``TAHOE_EVENT_TIME_ORDER_CHANGED``) if the stream reached a position in another order."""
        if position.event_time is None:
            if position.is_initial_snapshot and position.index >= 0:
                raise _changed(table, "by the modification times of their files, but 'withEventTimeOrder' is set now")
        elif position.event_time.column != self._column.physical_name:
            raise _changed(table, f"by another column than '{self._column.name}', which withWatermark uses now")


def check_no_order(position: Position, table: str) -> None:
    """Like `EventTimeOrder.check`, for a stream without event time order."""
    if position.event_time is not None:
        raise _changed(table, "by their event time, but 'withEventTimeOrder' is not set now")


def _changed(table: str, how: str) -> InvalidRequest:
    return InvalidRequest(
        f"The stream has read a part of the initial rows of table {table} {how}. Continuing would "
        "skip rows, and repeat others. Run it with the old options until it has read these rows, or start without the checkpoint.",
        code="TAHOE_EVENT_TIME_ORDER_CHANGED",
        table=table,
    )


@dataclass(frozen=True)
class _FileTimes:
    """The time ranges of files, as far as they are known, and their sizes. Rows are assumed to be spread evenly over the range."""

    first: Any  # pyarrow.Int64Array
    spans: Any  # pyarrow.DoubleArray of microseconds, 1 or more
    sizes: Any
    least: int
    greatest: int

    @classmethod
    def of(cls, files: pa.Table, column: StructField, config: TableConfig) -> _FileTimes | None:
        """Return None if no file has statistics. A file without them is assumed to span the time of all others."""
        first, last = (
            pc.cast(pc.cast(values, to_arrow_type(column.data_type)), pa.int64()) for values in _bounds(files, column, config)
        )
        least, greatest = pc.min(first).as_py(), pc.max(last).as_py()
        if least is None or greatest is None:
            return None
        # A partition without a time is only in the first bucket, with all rows that have none.
        unknown = least if column.name in config.partition_columns else greatest
        first, last = pc.fill_null(first, least), pc.fill_null(last, unknown)
        spans = pc.cast(pc.max_element_wise(pc.add(pc.subtract(last, first), 1), 1), pa.float64(), safe=False)
        return cls(first, spans, files.column("size"), max(least, _LEAST), min(greatest + 1, _GREATEST))

    def cut(self, after: int | None, room: Room) -> tuple[int | None, Room]:
        """Return the first time by which the rows after `after` fill the room, with at least one file, as for batches of files; None if
        fewer rows are left. Also return the remaining room."""
        before = (0.0, 0.0) if after is None else self._until(after)
        low, high = self.least if after is None else after, self.greatest
        while high - low > 1:
            middle = (low + high) // 2
            if self._fills(middle, before, room):
                high = middle
            else:
                low = middle
        if high >= self.greatest or not self._fills(high, before, room):
            return None, self._room(self.greatest, before, room)
        # A little later, so that files which end there need not be read for the next bucket.
        return min(high + _MILLISECOND + 1, _GREATEST), self._room(high, before, room)

    def _fills(self, time: int, before: tuple[float, float], room: Room) -> bool:
        return self._until(time)[0] - before[0] >= 1 and self._room(time, before, room).is_full

    def _room(self, time: int, before: tuple[float, float], room: Room) -> Room:
        """Return the remaining room; a file that is only partly included takes no room yet."""
        files, size = self._until(time)
        return replace(
            room,
            files=None if room.files is None else room.files - math.floor(files - before[0]),
            bytes=None if room.bytes is None else room.bytes - math.floor(size - before[1]),
            is_untouched=False,
        )

    def _until(self, time: int) -> tuple[float, float]:
        """Return how many files, and bytes of them, come before a time."""
        done = pc.divide(pc.cast(pc.subtract(time, self.first), pa.float64(), safe=False), self.spans)
        done = pc.min_element_wise(pc.max_element_wise(done, 0.0), 1.0)
        return pc.sum(done).as_py(), pc.sum(pc.multiply(done, self.sizes)).as_py()


def _bounds(files: pa.Table, column: StructField, config: TableConfig) -> tuple[Any, Any]:
    """Return the minimum and maximum time of each file, null if unknown."""
    if column.name in config.partition_columns:
        values = partition_column(files, column)
        return values, values
    member = pa.field(column.physical_name, to_arrow_type(column.data_type))
    bounds_type = pa.struct([pa.field(name, pa.struct([member])) for name in ("minValues", "maxValues")])
    statistics = statistics_of(files, bounds_type)
    return tuple(pc.struct_field(statistics, [name, column.physical_name]) for name in ("minValues", "maxValues"))
