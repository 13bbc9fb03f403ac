"""`Position`: a reader's progress in a table, in the JSON that delta-spark's streams store in their checkpoints.

Index of a file inside its version:  BASE_INDEX ──► METADATA_CHANGE_INDEX ──► POST_METADATA_CHANGE_INDEX ──► 0, 1, 2, …
(before everything)                           (delta-spark's schema tracking only)                  (the file with this index is done)

In an initial snapshot that is read in event time order, positions are timestamps; they are written in Tahoe's own format, which all other
readers of positions refuse.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json

BASE_INDEX = -100
"""Before everything in a version. Written as -1 in version 1 of the JSON, but never so in memory."""
METADATA_CHANGE_INDEX = -20
"""At a metadata or protocol change; from version 3 of the JSON."""
POST_METADATA_CHANGE_INDEX = -19
"""Right after it; from version 3 of the JSON."""

_BASE_INDEX_OF_VERSION_1 = -1
_RESERVED_VERSION, _NEWEST_VERSION = 2, 3
_EVENT_TIME_VERSION = 1000
"""The version of the format with `EventTime`. delta-spark refuses unknown versions, and its own are far below this one."""
_LARGEST = 2**63 - 1
_END_INDEX = _LARGEST - 100
_TEXTS = {"reservoirId": str, "reservoirVersion": int, "index": int, "isStartingVersion": bool}


@dataclass(frozen=True, slots=True)
class EventTime:
    """All rows of an initial snapshot whose value of a column is NULL or less are done.

    Args:
        column: its physical name.
        micros: microseconds since the epoch.
    """

    column: str
    micros: int


@dataclass(frozen=True, slots=True)
class Position:
    """The last file that is done. `str()` returns the JSON, which `Position.parse` reads back.

    Args:
        table_id: ``metaData.id`` of the table, which detects another table in its place.
        version: the version of the commit, or of the initial snapshot.
        index: the index of the last file done, from 0, in the order of the commit's actions, or of the snapshot's files by modification
            time and path; `BASE_INDEX` before all of them.
        is_initial_snapshot: whether it points into the initial snapshot instead of a commit.
        event_time: the progress in that snapshot, if it is read in event time order; the index is then `BASE_INDEX`.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial_snapshot: bool = False
    event_time: EventTime | None = None

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse the text from `str()` or delta-spark.

        Raises:
            InvalidRequest: ``DELTA_INVALID_SOURCE_OFFSET_FORMAT`` if it is not a position, ``DELTA_INVALID_SOURCE_VERSION`` and
                ``DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION`` if the version of the format is invalid, or newer than the supported ones.
        """
        try:
            value = json.loads(text)
        except ValueError as error:
            raise _no_position(text, "it is not JSON") from error
        if not isinstance(value, dict):
            raise _no_position(text, "it is not a JSON object")
        format_version = _member(text, value, "sourceVersion", int)
        _check_format(format_version)
        table_id, version, index, initial = (_member(text, value, name, kind) for name, kind in _TEXTS.items())
        if format_version != _NEWEST_VERSION and index == _BASE_INDEX_OF_VERSION_1:
            index = BASE_INDEX
        if version < 0 or not (index >= 0 or index in _BEFORE_FILES) or index >= _END_INDEX:
            raise _no_position(text, f"version {version} with index {index} is not a valid position")
        if format_version != _EVENT_TIME_VERSION:
            return cls(table_id, version, index, initial)
        column, micros = _member(text, value, "eventTimeColumn", str), _member(text, value, "eventTimeMicros", int)
        if index != BASE_INDEX or not initial:
            raise _no_position(text, "an event time is valid in an initial snapshot only")
        return cls(table_id, version, index, initial, EventTime(column, micros))

    def __str__(self) -> str:
        members: dict[str, Any] = {
            # Older readers support only version 1, so 3 is written only for positions that 1 cannot express.
            "sourceVersion": self._format_version,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _BASE_INDEX_OF_VERSION_1 if self.index == BASE_INDEX else self.index,
            "isStartingVersion": self.is_initial_snapshot,
        }
        if self.event_time is not None:
            members |= {"eventTimeColumn": self.event_time.column, "eventTimeMicros": self.event_time.micros}
        return compact_json(members)

    def __lt__(self, other: Position) -> bool:
        """Whether it is before another position in the same table."""
        self.check_table(other.table_id)
        return self._order < other._order

    def __le__(self, other: Position) -> bool:
        """Whether it is before another position in the same table, or equal to it."""
        self.check_table(other.table_id)
        return self._order <= other._order

    @property
    def key(self) -> tuple[int, int]:
        """Version and index, which order the positions in a table."""
        return self.version, self.index

    @property
    def _order(self) -> tuple[int, int, float]:
        return *self.key, -math.inf if self.event_time is None else self.event_time.micros

    @property
    def _format_version(self) -> int:
        if self.event_time is not None:
            return _EVENT_TIME_VERSION
        return _NEWEST_VERSION if self.index in _OF_METADATA else 1

    def check_table(self, table_id: str, table: str | None = None) -> None:
        """Raise `InvalidRequest` (``DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE``) if the position belongs to another table.

        Args:
            table_id: ``metaData.id`` of the table that is read.
            table: its URL, for the message.
        """
        check_same_table(self.table_id, table_id, table)


def check_same_table(expected_id: str, actual_id: str, table: str | None = None) -> None:
    """Raise `InvalidRequest` (``DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE``) if the table's id has changed."""
    if actual_id != expected_id:
        raise InvalidRequest(
            f"The stream reads the table with the id {expected_id}, and the table read now{f' at {table}' if table else ''} has the id "
            f"{actual_id}: the stream was pointed at another table, or the table was deleted and recreated. Point it back, or start a "
            "new stream without the old position, or the old checkpoint.",
            code="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=table,
            expected=expected_id,
            found=actual_id,
        )


def check_moves_on(previous: Position, following: Position) -> None:
    """Raise `InvalidRequest` if a stream would go back, and read rows twice."""
    previous.check_table(following.table_id)
    back_into_snapshot = following.is_initial_snapshot and not previous.is_initial_snapshot
    if back_into_snapshot or following < previous:
        raise InvalidRequest(
            f"A stream cannot go from position {previous} back to {following}: rows would come twice. Start a new stream without a position, "
            "or without the checkpoint.",
            code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        )


_OF_METADATA = frozenset({METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX})
_BEFORE_FILES = _OF_METADATA | {BASE_INDEX}


def _check_format(version: int) -> None:
    if version > _NEWEST_VERSION and version != _EVENT_TIME_VERSION:
        raise InvalidRequest(
            f"The stored position has the format version {version}; versions up to {_NEWEST_VERSION} are supported. Continue with the "
            "program that wrote it, or with a newer version of Tahoe.",
            code="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
            found=version,
        )
    if version < 1 or version == _RESERVED_VERSION:
        raise InvalidRequest(
            f"The stored position has the format version {version}, which no writer uses: versions are 1 and 3. Restore the position, or "
            "the checkpoint that contains it, from a copy.",
            code="DELTA_INVALID_SOURCE_VERSION",
            found=version,
        )


def _member(text: str, value: dict[str, Any], name: str, kind: type) -> Any:
    member = value.get(name)
    # In Python, a bool is an int.
    if (
        not isinstance(member, kind)
        or (kind is int and isinstance(member, bool))
        or (isinstance(member, int) and abs(member) > _LARGEST)
    ):
        problem = "is missing" if member is None else f"is {member!r}"
        raise _no_position(text, f"its member '{name}' {problem} instead of {_KINDS[kind]}")
    return member


_KINDS = {int: "a whole number", str: "a text", bool: "true or false"}


def _no_position(text: str, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The text {text[:200]!r} is not a position in a table: {problem}. Pass a position exactly as it was stored.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    )
