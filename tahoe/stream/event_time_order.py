"""The initial snapshot of a stream by the time of its events (`withEventTimeOrder`): its rows come in buckets of time, one a batch.

    … ──[ NULL, and before 10:00 )──[ 10:00, 10:30 )──[ 10:30, … ]──► the commits

A bucket is wherever the stream's limits end it. Files are read for each bucket that their statistics do not keep them out of, and of
their rows those that lie in it are taken: each row lies in one bucket, whatever is known of its file.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.predicate import TRUE, Column, Comparison, IsNull, Literal, Predicate, all_of, any_of
from tahoe.lazy import pc
from tahoe.protocol.config import TableConfig
from tahoe.protocol.skipping import keep, partition_column, statistics_of
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.stream.admission import UNLIMITED, Room
from tahoe.stream.position import BASE_INDEX, EventTime, Position

__all__ = ["Bucket", "EventTimeOrder", "check_no_order"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LEAST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_GREATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MILLISECOND = 1000
"""Statistics have no microseconds: a file's last event may be up to so many later than they say."""
_MOMENTS = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A part of the initial snapshot by the time of its rows.

    Args:
        version: of the snapshot.
        column: of the time.
        first: microseconds since the epoch; None from the beginning, with the rows that have no time.
        stop: as `first`, itself not in the bucket; None for all that is left.
    """

    version: int
    column: StructField
    first: int | None
    stop: int | None

    @property
    def predicate(self) -> Predicate:
        """What is true of its rows, and of no others."""
        column = Column((self.column.name,))
        parts: list[Predicate] = []
        if self.first is not None:
            parts.append(Comparison(">=", column, self._literal(self.first)))
        if self.stop is not None:
            before = Comparison("<", column, self._literal(self.stop))
            parts.append(before if parts else any_of((IsNull(column), before)))
        return all_of(parts) if parts else TRUE

    def may_be_in(self, files: pa.Table, config: TableConfig) -> pa.BooleanArray:
        """For each file whether it may hold rows of the bucket."""
        return keep(self.predicate, files, config.schema, config.partition_columns)

    def _literal(self, micros: int) -> Literal:
        moment = _EPOCH + timedelta(microseconds=micros)
        has_zone = self.column.data_type == PrimitiveType("timestamp")
        return Literal(moment if has_zone else moment.replace(tzinfo=None), self.column.data_type)


class EventTimeOrder:
    """How one stream reads its initial snapshot.

    Args:
        config: what the stream reads with.
        column: the name of a column of the table, by whose values rows are late or not.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``) for a column that is no timestamp of the table.
    """

    def __init__(self, config: TableConfig, column: str) -> None:
        found = config.schema.find(column)
        if found is None or found.data_type not in _MOMENTS:
            what = "not one of the table's" if found is None else f"of the type {found.data_type}"
            raise Unsupported(
                f"With 'withEventTimeOrder' the column of withWatermark must be a timestamp of table {config.table}, and "
                f"'{column}' is {what}.",
                code="TAHOE_OPTION_NOT_SUPPORTED",
                option="withEventTimeOrder",
            )
        self._config = config
        self._column = found
        self._times: tuple[int, _FileTimes | None] | None = None

    def end_of_batch(self, where: Position, files: pa.Table, room: Room) -> tuple[Position | None, Room]:
        """Where the batch ends that begins in the snapshot, None for behind all of its rows; and the room that is left.

        Args:
            files: of the snapshot.
        """
        if room == UNLIMITED.room:
            return None, room
        if self._times is None or self._times[0] != where.version:
            self._times = where.version, _FileTimes.of(files, self._column, self._config)
        times = self._times[1]
        if times is None:
            if files.num_rows:
                logger.warning(
                    "the whole initial snapshot of table %s, version %d, comes in one batch: with withEventTimeOrder the statistics of its "
                    "files decide where batches end, and none has some of column '%s' (ANALYZE TABLE … COMPUTE DELTA STATISTICS makes them)",
                    *(self._config.table, where.version, self._column.name),
                )
            return None, room
        stop, room = times.cut(None if where.event_time is None else where.event_time.micros, room)
        if stop is None:
            return None, room
        return replace(where, index=BASE_INDEX, event_time=EventTime(self._column.physical_name, stop)), room

    def bucket(self, start: Position, end: Position) -> Bucket:
        """What lies between a position in the snapshot and a later one, in it or behind it."""
        first, stop = (None if place.event_time is None else place.event_time.micros for place in (start, end))
        return Bucket(start.version, self._column, first, stop)

    def check(self, position: Position, table: str) -> None:
        """Raise `InvalidRequest` (``TAHOE_EVENT_TIME_ORDER_CHANGED``) where the stream has come to a position in another order."""
        if position.event_time is None:
            if position.is_initial_snapshot and position.index >= 0:
                raise _changed(table, "by the times at which their files were written, and 'withEventTimeOrder' is set now")
        elif position.event_time.column != self._column.physical_name:
            raise _changed(table, f"by another column than '{self._column.name}', of which withWatermark is now")


def check_no_order(position: Position, table: str) -> None:
    """As `EventTimeOrder.check`, for a stream that has none."""
    if position.event_time is not None:
        raise _changed(table, "by the time of their events, and 'withEventTimeOrder' is not set now")


def _changed(table: str, how: str) -> InvalidRequest:
    return InvalidRequest(
        f"The stream is in the midst of the rows that table {table} had when it began, and has read a part of them {how}. Going on would "
        "leave out rows, and give others twice. Start it as it was until it has read these rows; or begin anew without the checkpoint.",
        code="TAHOE_EVENT_TIME_ORDER_CHANGED",
        table=table,
    )


@dataclass(frozen=True)
class _FileTimes:
    """From when to when files have events, as far as it is known, and how large they are. Rows are taken to be spread evenly in between."""

    first: Any  # pyarrow.Int64Array
    spans: Any  # pyarrow.DoubleArray of microseconds, 1 or more
    sizes: Any
    least: int
    greatest: int

    @classmethod
    def of(cls, files: pa.Table, column: StructField, config: TableConfig) -> _FileTimes | None:
        """None where nothing is known of any file. A file of which nothing is known counts as spread over all the time of the others."""
        first, last = (
            pc.cast(pc.cast(values, to_arrow_type(column.data_type)), pa.int64()) for values in _bounds(files, column, config)
        )
        least, greatest = pc.min(first).as_py(), pc.max(last).as_py()
        if least is None or greatest is None:
            return None
        # A partition without a time is in the first bucket alone, with all rows that have none.
        unknown = least if column.name in config.partition_columns else greatest
        first, last = pc.fill_null(first, least), pc.fill_null(last, unknown)
        spans = pc.cast(pc.max_element_wise(pc.add(pc.subtract(last, first), 1), 1), pa.float64(), safe=False)
        return cls(first, spans, files.column("size"), max(least, _LEAST), min(greatest + 1, _GREATEST))

    def cut(self, after: int | None, room: Room) -> tuple[int | None, Room]:
        """The first moment at which as much lies after `after` as there is room for, and a file at least, as batches of files have it; None
        where no more than that is left. And the room then."""
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
        # A little later, so that files which end there need not be looked into for the next bucket.
        return min(high + _MILLISECOND + 1, _GREATEST), self._room(high, before, room)

    def _fills(self, moment: int, before: tuple[float, float], room: Room) -> bool:
        return self._until(moment)[0] - before[0] >= 1 and self._room(moment, before, room).is_full

    def _room(self, moment: int, before: tuple[float, float], room: Room) -> Room:
        """What is left; a file that has come in part takes no room yet."""
        files, size = self._until(moment)
        return replace(
            room,
            files=None if room.files is None else room.files - math.floor(files - before[0]),
            bytes=None if room.bytes is None else room.bytes - math.floor(size - before[1]),
            is_untouched=False,
        )

    def _until(self, moment: int) -> tuple[float, float]:
        """How many files, and bytes of them, have come before a moment."""
        done = pc.divide(pc.cast(pc.subtract(moment, self.first), pa.float64(), safe=False), self.spans)
        done = pc.min_element_wise(pc.max_element_wise(done, 0.0), 1.0)
        return pc.sum(done).as_py(), pc.sum(pc.multiply(done, self.sizes)).as_py()


def _bounds(files: pa.Table, column: StructField, config: TableConfig) -> tuple[Any, Any]:
    """The least and the greatest time of each file, null where it is not known."""
    if column.name in config.partition_columns:
        values = partition_column(files, column)
        return values, values
    member = pa.field(column.physical_name, to_arrow_type(column.data_type))
    wanted = pa.struct([pa.field(name, pa.struct([member])) for name in ("minValues", "maxValues")])
    found = statistics_of(files, wanted)
    return tuple(pc.struct_field(found, [name, column.physical_name]) for name in ("minValues", "maxValues"))
