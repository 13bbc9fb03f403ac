"""The portable source: batches of a stream, planned on the driver's side in one process for the life of a query, and read by Python
workers.

    latestOffset ─► partitions(start, end) ─► tasks, a few files each ─► Arrow batches

Offsets are positions of `tahoe.stream`, in delta-spark's JSON; ``{}`` is the position before the first batch. Batches have limits if
Spark requests any (`tahoe.spark.versions.read_limits`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.log.history import parse_timestamp
from tahoe.snapshot.changes import ChangedFile, feed_schema
from tahoe.snapshot.read_errors import no_columns_to_stream
from tahoe.snapshot.scan import BareVersion
from tahoe.spark.executors import worker
from tahoe.spark.executors.data_source_tasks import binned, rows_of_batch
from tahoe.spark.executors.shipped import sent_whole
from tahoe.spark.names.options import ReadRequest, boolean_option, travelling
from tahoe.spark.names.settings import LATE_RANGES
from tahoe.spark.portable.data_source_options import IS_STREAM, is_on_in, option_of
from tahoe.spark.portable.sent import Sent
from tahoe.spark.stream.stream_options import stream_options, time_travel_error, with_ignored_changes
from tahoe.spark.versions.read_limits import (
    HAS_READ_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from tahoe.stream.admission import UNLIMITED
from tahoe.stream.position import Position
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import IndexedFile
from tahoe.stream.tail_batch import changes_in

Offset = dict[str, Any]
"""A position as PySpark passes it: the fields of its JSON."""

_BEGIN: Offset = {}


def stream_reader(table: Table, version: int | None, schema: SparkStruct, options: Mapping[str, str]) -> DataSourceStreamReader:
    """Return Spark's reader of a table as a stream.

    Args:
        version: the version whose columns Spark got; None for the newest.
        schema: Spark's schema.

    Raises: the errors of `tahoe.spark.stream.stream_options.stream_options`; `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``) for schema
        tracking and event time order, and for batch limits on Spark versions without them; `InvalidRequest` (``DELTA_SCHEMA_NOT_SET``) for a
        table without columns.
    """
    path = option_of(options, "path", "")
    if "@" in path and not table.exists() and travelling(ReadRequest(path)) is not None:
        raise time_travel_error(f"the path '{path}'")
    lowered = {key.lower(): value for key, value in options.items()}
    requested = stream_options(
        options,
        lambda text: datetime.fromtimestamp(parse_timestamp(text) / 1000, UTC),
        may_start_late=is_on_in(options, LATE_RANGES),
    )
    requested = with_ignored_changes(requested, partial(is_on_in, options))
    if requested.schema_tracking_location is not None:
        raise _unsupported(
            "schemaTrackingLocation", "Spark does not pass the place of the query's checkpoint to a Python data source"
        )
    if requested.with_event_time_order:
        raise _unsupported("withEventTimeOrder", "Spark does not pass the watermark of the query to a Python data source")
    snapshot = table.snapshot(version)
    if not snapshot.schema.fields:
        raise no_columns_to_stream(table.url)
    columns = feed_schema(snapshot.schema) if requested.read_change_feed else snapshot.schema
    if schema.names != list(columns.names):
        raise InvalidRequest(
            f"Table {table.url} has its own schema ({', '.join(columns.names)}); leave schema(…) out and select columns instead.",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            table=table.url,
        )
    if not HAS_READ_LIMITS:
        for name in ("maxFilesPerTrigger", "maxBytesPerTrigger"):
            if name.lower() in lowered:
                raise _unsupported(name, "This version of Spark sets no limits to the batches of a Python data source")
    return _KIND(table, BareVersion(table.store, snapshot.version, snapshot.config), requested)


def streams_alone(options: Mapping[str, str]) -> bool:
    """Return whether a change data feed is read as a stream: if Tahoe's client says so, or the starting version of a batch is missing."""
    lowered = {key.lower(): value for key, value in options.items()}
    if not any(boolean_option(lowered, name, False) for name in ("readChangeFeed", "readChangeData")):
        return False
    if IS_STREAM.lower() in lowered:
        return True
    bounded = lowered.keys() & {"startingtimestamp", "endingversion", "endingtimestamp"}
    return lowered.get("startingversion", "latest").strip().lower() == "latest" and not bounded


def _unsupported(option: str, why: str) -> Unsupported:
    return Unsupported(
        f"The stream reader's option '{option}' is not supported here: {why}. Leave it out, or use a classic session with "
        "tahoe.enable(spark), or tahoe.Table.tail.",
        code="TAHOE_OPTION_NOT_SUPPORTED",
        option=option,
    )


@dataclass(frozen=True)
class _Files(Sent, InputPartition):
    """The files of one Spark task, each with the version that added it."""

    kind = "InputPartition"

    files: tuple[IndexedFile, ...]


@dataclass(frozen=True)
class _Changes(Sent, InputPartition):
    """The changed files of one Spark task, and the commit timestamps of their versions."""

    kind = "InputPartition"

    files: tuple[ChangedFile, ...]
    times: Mapping[int, int]


class _StreamReader(Sent, DataSourceStreamReader):
    """Reads one table; sent to the workers as a plain value, which can only read."""

    kind = "DataSourceStreamReader"

    def __init__(self, table: Table, read: BareVersion, options: SourceOptions) -> None:
        self._read = read
        self._source: Source | None = Source(table.snapshot(read.version), table.snapshot, options)
        self._end: Position | None = None
        self._is_started = False

    def __getstate__(self) -> dict[str, object]:
        return {"_read": self._read, "_source": None, "_end": None, "_is_started": True}

    def initialOffset(self) -> Offset:  # noqa: N802 - PySpark's name
        """Return the position before the first batch."""
        return _BEGIN

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 - PySpark's name
        """Return the position after the current end of the table."""
        assert self._source is not None
        return _offset(self._source.end_now())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the files between two positions."""
        assert self._source is not None
        files = self._source.files(self._position_of(start), Position.parse(json.dumps(end)))
        if self._source.options.read_change_feed:
            times = self._source.times(files)
            parts = binned(changes_in(self._source, tuple(files)))
            changed = [_Changes(part, {file.version: times[file.version] for file in part}) for part in parts]
            return changed or [_Changes((), {})]
        return [_Files(part) for part in binned(files)] or [_Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a task's files, or their changes."""
        assert isinstance(partition, _Files | _Changes)
        return rows_of_batch(self._read, partition.files, partition.times if isinstance(partition, _Changes) else None)

    def _position_of(self, offset: Offset) -> Position | None:
        """Return the position of an offset, None for the beginning. The first one is where an earlier run of the query ended."""
        position = None if offset == _BEGIN else Position.parse(json.dumps(offset))
        if position is not None and not self._is_started:
            assert self._source is not None
            self._source.resume(position)
        self._is_started = True
        return position

    def _task(self) -> object:
        return sent_whole(worker.part, rows_of_batch, self._read)


def _offset(position: Position) -> Offset:
    offset: Offset = json.loads(str(position))
    return offset


class _AdmittingReader(_StreamReader, SupportsTriggerAvailableNow):
    """Also limits each batch."""

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        assert self._source is not None
        self._end = self._source.end_now()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return any limit except all available: the options define the limits."""
        return ReadMaxFiles(1)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        assert self._source is not None
        everything = UNLIMITED if isinstance(limit, ReadAllAvailable) else None
        position = self._position_of(start)
        end = self._source.plan(position, everything, self._end)
        # Spark compares offsets as text, and another writer may format the same position differently.
        return start if end == position else _offset(end)


_KIND: type[_StreamReader] = _AdmittingReader if HAS_READ_LIMITS else _StreamReader
