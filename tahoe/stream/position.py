"""`Position`: how far a reader of a table is, in the JSON by which delta-spark's streams note it in their checkpoints.

Index of a file inside its version:  BASE_INDEX ──► METADATA_CHANGE_INDEX ──► POST_METADATA_CHANGE_INDEX ──► 0, 1, 2, …
(before all)                                  (delta-spark's schema tracking alone)                (the file at this place is done)

An initial snapshot that is read by the time of its events has places that are moments; they are written in a format of Tahoe's own, at which
every other reader of positions stops.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tahoe.exceptions import InvalidRequest

__all__ = [
    "BASE_INDEX",
    "METADATA_CHANGE_INDEX",
    "POST_METADATA_CHANGE_INDEX",
    "EventTime",
    "Position",
    "check_moves_on",
    "check_same_table",
]

BASE_INDEX = -100
"""Before everything in a version. Written as -1 in version 1 of the JSON, and in memory never so."""
METADATA_CHANGE_INDEX = -20
"""At a change of metadata or protocol; from version 3 of the JSON."""
POST_METADATA_CHANGE_INDEX = -19
"""Right after it; from version 3 of the JSON."""

_BASE_INDEX_OF_VERSION_1 = -1
_RESERVED_VERSION, _NEWEST_VERSION = 2, 3
_EVENT_TIME_VERSION = 1000
"""Of the format with `EventTime`. delta-spark reads no position of a version that it does not know, and is far from counting up to this."""
_LARGEST = 2**63 - 1
_END_INDEX = _LARGEST - 100
_TEXTS = {"reservoirId": str, "reservoirVersion": int, "index": int, "isStartingVersion": bool}


@dataclass(frozen=True, slots=True)
class EventTime:
    """Of an initial snapshot all rows are done whose value of a column is NULL or less.

    Args:
        column: its physical name.
        micros: since the epoch.
    """

    column: str
    micros: int


@dataclass(frozen=True, slots=True)
class Position:
    """What comes next is the file after this one. `str()` gives the JSON, and `Position.parse` takes it back.

    Args:
        table_id: ``metaData.id`` of the table, by which another table in its place is noticed.
        version: of the commit, or of the snapshot that a stream begins with.
        index: of the last file done, from 0, in the order of the commit's actions, or of the snapshot's files by modification time and
            path; `BASE_INDEX` before all of them.
        is_initial_snapshot: whether it points into the snapshot that a stream begins with, and not into a commit.
        event_time: how far that snapshot is done, where it is read by the time of its events; the index is `BASE_INDEX` then.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial_snapshot: bool = False
    event_time: EventTime | None = None

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position of a text that `str()` or delta-spark made.

        Raises:
            InvalidRequest: ``DELTA_INVALID_SOURCE_OFFSET_FORMAT`` for what is no position, ``DELTA_INVALID_SOURCE_VERSION`` and
                ``DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION`` for a version of the format that is none, or newer than those known.
        """
        try:
            value = json.loads(text)
        except ValueError as error:
            raise _no_position(text, "it is no JSON") from error
        if not isinstance(value, dict):
            raise _no_position(text, "it is no JSON object")
        format_version = _member(text, value, "sourceVersion", int)
        _check_format(format_version)
        table_id, version, index, initial = (_member(text, value, name, kind) for name, kind in _TEXTS.items())
        if format_version != _NEWEST_VERSION and index == _BASE_INDEX_OF_VERSION_1:
            index = BASE_INDEX
        if version < 0 or not (index >= 0 or index in _BEFORE_FILES) or index >= _END_INDEX:
            raise _no_position(text, f"version {version} with index {index} is no place in a table")
        if format_version != _EVENT_TIME_VERSION:
            return cls(table_id, version, index, initial)
        column, micros = _member(text, value, "eventTimeColumn", str), _member(text, value, "eventTimeMicros", int)
        if index != BASE_INDEX or not initial:
            raise _no_position(text, "the time of an event is a place in an initial snapshot alone")
        return cls(table_id, version, index, initial, EventTime(column, micros))

    def __str__(self) -> str:
        told: dict[str, Any] = {
            # Older readers of the format know version 1 alone, so 3 is written only where it says what 1 cannot.
            "sourceVersion": self._format_version,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _BASE_INDEX_OF_VERSION_1 if self.index == BASE_INDEX else self.index,
            "isStartingVersion": self.is_initial_snapshot,
        }
        if self.event_time is not None:
            told |= {"eventTimeColumn": self.event_time.column, "eventTimeMicros": self.event_time.micros}
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False)

    def __lt__(self, other: Position) -> bool:
        """Whether it comes before another position in the same table."""
        self.check_table(other.table_id)
        return self._order < other._order

    def __le__(self, other: Position) -> bool:
        """Whether it comes before another position in the same table, or is at the same place."""
        self.check_table(other.table_id)
        return self._order <= other._order

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, by which positions in one table are ordered."""
        return self.version, self.index

    @property
    def _order(self) -> tuple[int, int, float]:
        return *self.place, -math.inf if self.event_time is None else self.event_time.micros

    @property
    def _format_version(self) -> int:
        if self.event_time is not None:
            return _EVENT_TIME_VERSION
        return _NEWEST_VERSION if self.index in _OF_METADATA else 1

    def check_table(self, table_id: str, table: str | None = None) -> None:
        """Raise `InvalidRequest` (``DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE``) where the position is in another table.

        Args:
            table_id: ``metaData.id`` of the table that is read.
            table: its URL, for the message.
        """
        check_same_table(self.table_id, table_id, table)


def check_same_table(known_id: str, found_id: str, table: str | None = None) -> None:
    """Raise `InvalidRequest` (``DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE``) where a table has another id than it had."""
    if found_id != known_id:
        raise InvalidRequest(
            f"The stream reads the table with the id {known_id}, and the table read now{f' at {table}' if table else ''} has the id "
            f"{found_id}: the stream was pointed at another table, or the table was deleted and made anew. Point it back, or begin anew "
            "without the old position, or the old checkpoint.",
            code="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=table,
            expected=known_id,
            found=found_id,
        )


def check_moves_on(previous: Position, following: Position) -> None:
    """Raise `InvalidRequest` where a stream would go back, and so read rows twice."""
    previous.check_table(following.table_id)
    back_into_snapshot = following.is_initial_snapshot and not previous.is_initial_snapshot
    if back_into_snapshot or following < previous:
        raise InvalidRequest(
            f"A stream cannot go from position {previous} back to {following}: rows would come twice. Begin anew without a position, or "
            "without the checkpoint.",
            code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        )


_OF_METADATA = frozenset({METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX})
_BEFORE_FILES = _OF_METADATA | {BASE_INDEX}


def _check_format(version: int) -> None:
    if version > _NEWEST_VERSION and version != _EVENT_TIME_VERSION:
        raise InvalidRequest(
            f"The stored position has the format version {version}; those up to {_NEWEST_VERSION} are known. Go on with the program that "
            "wrote it, or with a newer version of Tahoe.",
            code="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
            found=version,
        )
    if version < 1 or version == _RESERVED_VERSION:
        raise InvalidRequest(
            f"The stored position has the format version {version}, which no writer uses: versions are 1 and 3. Restore the position, or "
            "the checkpoint that holds it, from a copy.",
            code="DELTA_INVALID_SOURCE_VERSION",
            found=version,
        )


def _member(text: str, value: dict[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    # In Python a truth value is a number too.
    if (
        not isinstance(found, kind)
        or (kind is int and isinstance(found, bool))
        or (isinstance(found, int) and abs(found) > _LARGEST)
    ):
        what = "is missing" if found is None else f"is {found!r}"
        raise _no_position(text, f"its member '{name}' {what} where {_KINDS[kind]} must stand")
    return found


_KINDS = {int: "a whole number", str: "a text", bool: "true or false"}


def _no_position(text: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"The text {text[:200]!r} is no position in a table: {what}. Give a position as it was stored.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    )
