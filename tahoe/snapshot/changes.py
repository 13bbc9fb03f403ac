"""The change data feed: which rows came and went with each commit (PROTOCOL.md, "Change Data Files").

commit ─┬─ has cdc actions ──► their files, and nothing else
        └─ has none ─────────► add ─► insert, remove ─► delete,
                               remove + add of one path ─► the difference of their deletion vectors
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.log.files import canonical_path
from tahoe.log.history import commit_times, version_at
from tahoe.log.reader import read_commit
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, DeletionVectorDescriptor, Metadata, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import decode
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.evolve import is_widening
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot.arrow_reader import ReadTask, read_file
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["CHANGE_TYPE", "COMMIT_TIMESTAMP", "COMMIT_VERSION", "Bounds", "Feed", "feed", "with_change_type"]

CHANGE_TYPE = StructField("_change_type", PrimitiveType("string"), True)
COMMIT_VERSION = StructField("_commit_version", PrimitiveType("long"), True)
COMMIT_TIMESTAMP = StructField("_commit_timestamp", PrimitiveType("timestamp"), True)
"""The columns that the feed has beside the table's."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which commits are asked for, both ends included.

    Args:
        start_version, start_timestamp_ms: one of the two; a timestamp means the first commit at that time or after it.
        end_version, end_timestamp_ms: at most one; none for the newest version. A timestamp means the last commit at that time or
            before it.
    """

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if self.start_version is None and self.start_timestamp_ms is None:
            raise InvalidRequest(
                "Reading the change data feed needs a start: give a starting version or a starting timestamp.",
                code="DELTA_NO_START_FOR_CDC_READ",
            )
        for name in ("start", "end"):
            if getattr(self, f"{name}_version") is not None and getattr(self, f"{name}_timestamp_ms") is not None:
                raise InvalidRequest(
                    f"Give a version or a timestamp for the {name} of the change data feed, not both.",
                    code="DELTA_MULTIPLE_CDC_BOUNDARY",
                )


@dataclass(frozen=True)
class Feed:
    """The changes of the commits `start` to `end`, both included.

    Args:
        config: of the version `end`, whose schema the rows have.
        times: milliseconds since the epoch of each version.
    """

    store: LogStore
    config: TableConfig
    start: int
    end: int
    times: Mapping[int, int] = field(repr=False)

    @property
    def schema(self) -> StructType:
        """The table's columns and the three of the feed."""
        return StructType((*self.config.schema.fields, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP))

    def to_arrow(self) -> pa.Table:
        """All changed rows, commit by commit."""
        return pa.Table.from_batches(self.to_batches(), to_arrow_schema(self.schema))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows, commit by commit, in the schema of `schema`.

        Raises:
            NotFound: a file that is needed was vacuumed away.
            CorruptTable: a file cannot be read.
        """
        schema = to_arrow_schema(self.schema)
        reader = _Reader(self.store, self.config)
        for version in range(self.start, self.end + 1):
            time = datetime.fromtimestamp(self.times[version] / 1000, UTC)
            for batch in reader.changes(read_commit(self.store, version), version):
                added = [pa.repeat(pa.scalar(value, kind), batch.num_rows) for value, kind in ((version, _LONG), (time, _TIME))]
                yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


def feed(store: LogStore, latest: Snapshot, bounds: Bounds) -> Feed:
    """The feed of a range of versions, its bounds resolved and checked.

    Raises:
        InvalidRequest: `DELTA_CDC_START_VERSION_AFTER_LATEST`, `DELTA_INVALID_CDC_RANGE`, or `DELTA_MISSING_CHANGE_DATA` where the
            feed was not on at some version of the range.
        NotFound: commits of the range are not in the log any more.
        Unsupported: `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE`.
    """
    times = {time.version: time.timestamp_ms for time in commit_times(store, latest.config)}
    start, end = _start(store, latest, bounds, times), _end(store, latest, bounds)
    if start > latest.version:
        raise InvalidRequest(
            f"The change data feed of table {store.url} is asked for from version {start}, but its latest version is "
            f"{latest.version}. Ask for an earlier start.",
            code="DELTA_CDC_START_VERSION_AFTER_LATEST",
            table=store.url,
        )
    if start > end:
        raise InvalidRequest(
            f"The change data feed of table {store.url} is asked for from version {start} to version {end}. "
            "The start may not be after the end.",
            code="DELTA_INVALID_CDC_RANGE",
            table=store.url,
        )
    if start < 0 or start not in times:
        raise NotFound(
            f"The commit of version {start} is not in the log of table {store.url}; the earliest is {min(times, default='none')}. "
            "Ask for a later start.",
            code="DELTA_VERSION_NOT_FOUND",
            table=store.url,
            version=start,
        )
    return Feed(store, _checked(store, start, end), start, end, times)


def with_change_type(rows: pa.Table, kind: str) -> pa.Table:
    """The rows with ``insert``, ``delete``, ``update_preimage`` or ``update_postimage`` as their last column."""
    return rows.append_column(CHANGE_TYPE.name, pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows))


_LONG = pa.int64()
_TIME = pa.timestamp("us", "UTC")


def _start(store: LogStore, latest: Snapshot, bounds: Bounds, times: Mapping[int, int]) -> int:
    if bounds.start_version is not None:
        return bounds.start_version
    asked = bounds.start_timestamp_ms
    assert asked is not None
    following = [version for version, time in times.items() if time >= asked]
    # Later than everything: the error that time travel gives, which names the latest time there is.
    return min(following) if following else version_at(store, latest.config, asked)


def _end(store: LogStore, latest: Snapshot, bounds: Bounds) -> int:
    if bounds.end_timestamp_ms is not None:
        return version_at(store, latest.config, bounds.end_timestamp_ms)
    return latest.version if bounds.end_version is None else min(bounds.end_version, latest.version)


def _checked(store: LogStore, start: int, end: int) -> TableConfig:
    """The table as of `end`; raises where a version of the range has no feed, or a schema that `end` cannot be read as."""
    first = Snapshot.at(store, start)
    last = first if start == end else Snapshot.at(store, end)
    versions = [(start, first.metadata)]
    for version in range(start + 1, end + 1):
        versions += [(version, action) for action in read_commit(store, version) if isinstance(action, Metadata)]
    for version, metadata in versions:
        _check_version(version, TableConfig(first.protocol, metadata, store.url), last)
    return last.config


def _check_version(version: int, config: TableConfig, last: Snapshot) -> None:
    if not config.properties.enable_change_data_feed:
        raise InvalidRequest(
            f"The change data feed of table {config.table} was not on at version {version}. Ask for versions after "
            "delta.enableChangeDataFeed was set to true.",
            code="DELTA_MISSING_CHANGE_DATA",
            table=config.table,
            version=version,
        )
    if not _reads_as(config.schema, last.schema) or config.partition_columns != last.partition_columns:
        raise Unsupported(
            f"The schema of table {config.table} at version {version} cannot be read as that of version {last.version}: columns "
            "were dropped, renamed or given another type between them. Read the change data feed of the versions before and after "
            "the change apart.",
            code="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
            table=config.table,
            version=version,
        )


def _reads_as(earlier: DataType, later: DataType) -> bool:
    """Whether data of the type `earlier` can be read as `later`: the same, a wider one, or a struct with more fields."""
    match earlier, later:
        case StructType(fields), StructType():
            found = [(column, later.find(column.name)) for column in fields]
            return all(
                new is not None and new.physical_name == old.physical_name and _reads_as(old.data_type, new.data_type)
                for old, new in found
            )
        case ArrayType(), ArrayType():
            return _reads_as(earlier.element_type, later.element_type)
        case MapType(), MapType():
            return _reads_as(earlier.key_type, later.key_type) and _reads_as(earlier.value_type, later.value_type)
    return earlier in (later, PrimitiveType("void")) or is_widening(earlier, later)


class _Reader:
    """Reads the changes of commits under one schema."""

    def __init__(self, store: LogStore, config: TableConfig) -> None:
        self._store = store
        self._config = config
        self._schema = config.schema
        self._position = "_row_position"
        while self._schema.find(self._position) is not None:
            self._position += "_"
        self._fetch = lru_cache(maxsize=16)(store.get)

    def changes(self, actions: tuple[Action, ...], version: int) -> Iterator[pa.RecordBatch]:
        """The changed rows of one commit, with their kind as the last column."""
        cdc = [action for action in actions if isinstance(action, AddCDCFile)]
        if cdc:
            schema = StructType((*self._schema.fields, CHANGE_TYPE))
            for file in cdc:
                task = ReadTask(decode_path(file.path, self._store.url), file.size, file.partition_values)
                yield from self._read(task, schema)
            return
        removes = {self._path(a): a for a in actions if isinstance(a, RemoveFile) and a.data_change}
        adds = {self._path(a): a for a in actions if isinstance(a, AddFile) and a.data_change}
        for path, remove in removes.items():
            if path in adds:
                yield from self._difference(remove, adds[path], version)
            else:
                yield from self._whole(remove, version, "delete")
        for path, add in adds.items():
            if path not in removes:
                yield from self._whole(add, version, "insert")

    def _path(self, action: AddFile | RemoveFile) -> str:
        return canonical_path(action.path, self._store.url)

    def _whole(self, action: AddFile | RemoveFile, version: int, kind: str) -> Iterator[pa.RecordBatch]:
        for batch in self._read(self._task(action, version, action.deletion_vector), self._schema):
            yield _with_kind(batch, kind)

    def _difference(self, remove: RemoveFile, add: AddFile, version: int) -> Iterator[pa.RecordBatch]:
        """Rows that the new vector has and the old one has not are deleted; the other way round, they are back."""
        before, after = self._dead(remove.deletion_vector), self._dead(add.deletion_vector)
        for rows, kind in ((after - before, "delete"), (before - after, "insert")):
            if not len(rows):
                continue
            for batch in self._read(self._task(add, version, None), self._schema, self._position):
                found = pc.is_in(batch.column(batch.num_columns - 1), value_set=pa.array(rows.to_array(), _LONG))
                kept = batch.filter(found)
                if kept.num_rows:
                    yield _with_kind(kept.select(range(batch.num_columns - 1)), kind)

    def _vector(self, descriptor: DeletionVectorDescriptor) -> BitMap64:
        return decode(descriptor, self._fetch, self._store.url)

    def _dead(self, descriptor: DeletionVectorDescriptor | None) -> BitMap64:
        from pyroaring import BitMap64

        return BitMap64() if descriptor is None else self._vector(descriptor)

    def _task(self, action: AddFile | RemoveFile, version: int, vector: DeletionVectorDescriptor | None) -> ReadTask:
        values = action.partition_values
        if values is None and self._config.partition_columns:
            raise Unsupported(
                f"Version {version} of table {self._store.url} removes file {action.path} without telling its partition, so the rows "
                "that it deletes cannot be shown. Ask for a range that leaves this version out.",
                table=self._store.url,
                version=version,
                file=action.path,
            )
        return ReadTask(decode_path(action.path, self._store.url), action.size or 0, values or {}, vector)

    def _read(self, task: ReadTask, schema: StructType, position: str | None = None) -> Iterator[pa.RecordBatch]:
        mode, partitions = self._config.column_mapping_mode, self._config.partition_columns
        return read_file(task, schema, mode, partitions, self._store.open_input, self._vector, row_index_column=position)


def _with_kind(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    values = pa.repeat(pa.scalar(kind, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays(
        [*batch.columns, values], schema=batch.schema.append(pa.field(CHANGE_TYPE.name, pa.string()))
    )
