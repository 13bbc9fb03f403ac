"""The change data feed: the rows that each commit inserted, updated or deleted (PROTOCOL.md, "Change Data Files").

commit ─┬─ has cdc actions ──► their files, and nothing else
        └─ has none ─────────► add ─► insert, remove ─► delete,
                               remove + add of one path ─► the difference of their deletion vectors

The files to read are `ChangedFile` values; Arrow reads them here, and Spark in `tahoe.spark.scan.change_feed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.base.lazy import pc
from tahoe.log.commit_identity import no_in_commit_timestamp
from tahoe.log.commit_times import in_commit_timestamps_from, states_its_time
from tahoe.log.consistency import read_verified_commit
from tahoe.log.files.commits import commit_bodies, read_commits
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import commit_name
from tahoe.protocol.action_members import check_partition_values
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, DeletionVectorDescriptor, Metadata, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.arrow_values import array, scalar
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import is_widening
from tahoe.snapshot.arrow_reader import ExtraColumns, ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.read_errors import located_batches
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64


CHANGE_TYPE = StructField("_change_type", PrimitiveType("string"), True)
COMMIT_VERSION = StructField("_commit_version", PrimitiveType("long"), True)
COMMIT_TIMESTAMP = StructField("_commit_timestamp", PrimitiveType("timestamp"), True)
"""The columns of the feed that follow the table's."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of commits to read, both ends included.

    Args:
        start_version, start_timestamp_ms: one of the two; a timestamp means the first commit at that time or after it.
        end_version, end_timestamp_ms: at most one; none for the newest version. A timestamp means the last commit at that time or
            before it.
        may_be_late: whether a start after the newest commit means no changes, and an end after it the newest commit; both are errors
            otherwise, for an end only if it is a timestamp.
    """

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None
    may_be_late: bool = False

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

    @property
    def is_in_order(self) -> bool:
        """Whether both ends are timestamps, of which the second is not the earlier one."""
        start, end = self.start_timestamp_ms, self.end_timestamp_ms
        return start is not None and end is not None and start <= end


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that contains changed rows of one commit.

    Args:
        path: as in the log.
        size: in bytes; 0 if the log lacks it, since a `remove` need not have it.
        kind: the kind of change of all rows; None for a change data file, whose rows have theirs in ``_change_type``.
        within: only the rows that this vector marks changed; None for all.
        without: the rows that this vector marks did not change; None for no exception.
        stats: of all rows of the file, changed or not, as in the log.
    """

    version: int
    path: str
    size: int
    partition_values: Mapping[str, str | None]
    kind: str | None
    within: DeletionVectorDescriptor | None = None
    without: DeletionVectorDescriptor | None = None
    stats: str | None = None

    def rows(self, read_vector: Callable[[DeletionVectorDescriptor], BitMap64]) -> BitMap64 | None:
        """The positions of the changed rows if `within` is set; else None."""
        if self.within is None:
            return None
        marked = read_vector(self.within)
        return marked if self.without is None else marked - read_vector(self.without)


@dataclass(frozen=True)
class Feed:
    """The changes of the commits `start` to `end`, both included; of no commit if `start` follows `end`.

    Args:
        snapshot: of the version `end`, whose schema the rows have.
        times: milliseconds since the epoch of each version.
    """

    snapshot: Snapshot
    start: int
    end: int
    times: Mapping[int, int] = field(repr=False)

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self.snapshot.store

    @property
    def config(self) -> TableConfig:
        """Protocol and metadata of the version `end`."""
        return self.snapshot.config

    @property
    def schema(self) -> StructType:
        """The table's columns and the three of the feed."""
        return feed_schema(self.config.schema)

    def to_arrow(self) -> pa.Table:
        """Return all changed rows, commit by commit."""
        return pa.Table.from_batches(self.to_batches(), to_arrow_schema(self.schema))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the changed rows, commit by commit, in the schema of `schema`.

        Raises:
            NotFound: a file that is needed was vacuumed away.
            CorruptTable: a file cannot be read.
        """
        return changed_rows(self.store, self.config, self.times, self.files())

    def files(self) -> Iterator[ChangedFile]:
        """Yield the files to read, commit by commit.

        Raises:
            Unsupported: a `remove` action lacks its partition values.
            CorruptTable: a commit has lost lines, if the commit or its checksum shows it.
        """
        timed_from = in_commit_timestamps_from(self.config)
        for version, body in commit_bodies(self.store, range(self.start, self.end + 1)):
            actions = read_verified_commit(self.store, version, body)
            # The line that is lost most easily is the first, and with it a commit's embedded checksum.
            if timed_from is not None and version >= timed_from and not states_its_time(actions):
                raise no_in_commit_timestamp(self.store.url, version)
            yield from changed_files(actions, version, self.config)


def feed(store: LogStore, latest: Snapshot, bounds: Bounds) -> Feed:
    """Return the feed of a range of versions, after resolving and checking its bounds.

    Raises:
        InvalidRequest: `DELTA_CDC_START_VERSION_AFTER_LATEST`, `DELTA_INVALID_CDC_RANGE`, or `DELTA_MISSING_CHANGE_DATA` where the
            feed was not on at some version of the range.
        NotFound: commits of the range are no longer in the log.
        Unsupported: `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE` where a schema inside the range cannot be read as that of the
            end, `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA` where that of the start cannot.
    """
    start, end = _start(latest, bounds), _end(latest, bounds)
    if start > latest.version and bounds.may_be_late:
        return no_changes(latest)
    if start > latest.version:
        raise InvalidRequest(
            f"The change data feed of table {store.url} is requested from version {start}, but its latest version is "
            f"{latest.version}. Request an earlier start.",
            code="DELTA_CDC_START_VERSION_AFTER_LATEST",
            table=store.url,
        )
    if start > end and bounds.is_in_order:  # there is no commit between the two times
        return no_changes(latest)
    if start > end:
        raise InvalidRequest(
            f"The change data feed of table {store.url} is requested from version {start} to version {end}. "
            "The start may not be after the end.",
            code="DELTA_INVALID_CDC_RANGE",
            table=store.url,
        )
    if start < 0 or store.head(commit_name(start)) is None:
        earliest = latest.times.earliest()
        raise NotFound(
            f"The commit of version {start} is not in the log of table {store.url}; the earliest is "
            f"{'none' if earliest is None else earliest.version}. Request a later start.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=store.url,
            version=start,
        )
    return Feed(_checked(store, start, end), start, end, latest.times.between(start, end))


def no_changes(snapshot: Snapshot) -> Feed:
    """Return the feed of no commit, in the schema of a version."""
    return Feed(snapshot, snapshot.version + 1, snapshot.version, {})


def feed_schema(schema: StructType) -> StructType:
    """A table's columns and the three of the feed."""
    return StructType((*schema.fields, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP))


def changed_files(actions: Iterable[Action], version: int, config: TableConfig) -> list[ChangedFile]:
    """Return the files with the changed rows of one commit, from its actions."""
    actions = tuple(actions)
    cdc = [action for action in actions if isinstance(action, AddCDCFile)]
    if cdc:
        return [ChangedFile(version, file.path, file.size, _partition_values(file, version, config), None) for file in cdc]
    removes = {canonical_path(a.path, config.table): a for a in actions if isinstance(a, RemoveFile) and a.data_change}
    adds = {canonical_path(a.path, config.table): a for a in actions if isinstance(a, AddFile) and a.data_change}

    def of(action: AddFile | RemoveFile, kind: str, **rows: DeletionVectorDescriptor | None) -> ChangedFile:
        values = _partition_values(action, version, config)
        return ChangedFile(version, action.path, action.size or 0, values, kind, stats=action.stats, **rows)

    changed = []
    for path, remove in removes.items():
        add = adds.get(path)
        if add is None:
            changed.append(of(remove, "delete", without=remove.deletion_vector))
            continue
        # Rows that the new vector has and the old one has not are deleted; the other way round, they are back.
        if add.deletion_vector is not None:
            changed.append(of(add, "delete", within=add.deletion_vector, without=remove.deletion_vector))
        if remove.deletion_vector is not None:
            changed.append(of(add, "insert", within=remove.deletion_vector, without=add.deletion_vector))
    return changed + [of(add, "insert", without=add.deletion_vector) for path, add in adds.items() if path not in removes]


def changed_rows(
    store: LogStore, config: TableConfig, times: Mapping[int, int], files: Iterable[ChangedFile]
) -> Iterator[pa.RecordBatch]:
    """The changed rows of these files, in their order, as `Feed` has them; all arguments can be sent to another process.

    Args:
        config: of the version whose schema the rows shall have.
        times: milliseconds since the epoch of each version.
    """
    schema = to_arrow_schema(feed_schema(config.schema))
    reader = _Reader(store, config)
    for file in files:
        time = datetime.fromtimestamp(times[file.version] / 1000, UTC)
        for batch in reader.rows(file):
            added = [pa.repeat(scalar(value, kind), batch.num_rows) for value, kind in ((file.version, _LONG), (time, _TIME))]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


def with_change_type(rows: pa.Table, kind: str) -> pa.Table:
    """The rows with ``insert``, ``delete``, ``update_preimage`` or ``update_postimage`` as their last column."""
    return rows.append_column(CHANGE_TYPE.name, pa.repeat(scalar(kind, pa.string()), rows.num_rows))


_LONG = pa.int64()
_TIME = pa.timestamp("us", "UTC")


def _start(latest: Snapshot, bounds: Bounds) -> int:
    if bounds.start_version is not None:
        return bounds.start_version
    assert bounds.start_timestamp_ms is not None
    if _is_late(latest, bounds.start_timestamp_ms, bounds):
        return latest.version + 1
    return latest.times.first_version_from(bounds.start_timestamp_ms)


def _is_late(latest: Snapshot, timestamp_ms: int, bounds: Bounds) -> bool:
    """Return whether a time is after the newest commit, and may be."""
    newest = latest.times.latest if bounds.may_be_late else None
    return newest is not None and timestamp_ms > newest.timestamp_ms


def _end(latest: Snapshot, bounds: Bounds) -> int:
    if bounds.end_timestamp_ms is not None:
        is_late = _is_late(latest, bounds.end_timestamp_ms, bounds)
        return latest.version if is_late else latest.times.version_at(bounds.end_timestamp_ms)
    return latest.version if bounds.end_version is None else min(bounds.end_version, latest.version)


def _checked(store: LogStore, start: int, end: int) -> Snapshot:
    """Return the version `end`; raise if a version of the range has no feed, or a schema that cannot be read as that of `end`."""
    first = Snapshot.at(store, start)
    last = first if start == end else Snapshot.at(store, end)
    changed = [
        (version, action)
        for version, actions in read_commits(store, range(start + 1, end + 1))
        for action in actions
        if isinstance(action, Metadata)
    ]
    for version, metadata in [(start, first.metadata), *changed]:
        check_feed_is_on(version, TableConfig(first.protocol, metadata, store.url))
    for version, metadata in changed:
        config = TableConfig(first.protocol, metadata, store.url)
        _check_schema(version, config, last, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE")
    _check_schema(start, first.config, last, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")
    return last


def check_feed_is_on(version: int, config: TableConfig) -> None:
    """Raise `InvalidRequest` (`DELTA_MISSING_CHANGE_DATA`) where a version did not keep the change data feed."""
    if not config.properties.enable_change_data_feed:
        raise InvalidRequest(
            f"The change data feed of table {config.table} was not on at version {version}. Ask for versions after "
            "delta.enableChangeDataFeed was set to true.",
            code="DELTA_MISSING_CHANGE_DATA",
            table=config.table,
            version=version,
        )


def _check_schema(version: int, config: TableConfig, last: Snapshot, code: str) -> None:
    if not _reads_as(config.schema, last.schema) or config.partition_columns != last.partition_columns:
        raise Unsupported(
            f"The schema of table {config.table} at version {version} cannot be read as that of version {last.version}: columns "
            "were dropped, renamed or given another type between them. Read the change data feed of the versions before and after "
            "the change apart.",
            code=code,
            table=config.table,
            version=version,
        )


def _reads_as(earlier: DataType, later: DataType) -> bool:
    """Whether data of the type `earlier` can be read as `later`: the same, a wider one, or a struct with more fields."""
    match earlier, later:
        case StructType(fields), StructType():
            pairs = [(column, later.find(column.name)) for column in fields]
            return all(
                new is not None and new.physical_name == old.physical_name and _reads_as(old.data_type, new.data_type)
                for old, new in pairs
            )
        case ArrayType(), ArrayType():
            return _reads_as(earlier.element_type, later.element_type)
        case MapType(), MapType():
            return _reads_as(earlier.key_type, later.key_type) and _reads_as(earlier.value_type, later.value_type)
    return earlier in (later, PrimitiveType("void")) or is_widening(earlier, later)


def _partition_values(action: AddFile | RemoveFile | AddCDCFile, version: int, config: TableConfig) -> Mapping[str, str | None]:
    values = action.partition_values
    untold = not values if isinstance(action, RemoveFile) else values is None
    if untold and config.partition_columns:
        raise Unsupported(
            f"Version {version} of table {config.table} removes file {action.path} without its partition values, so the rows "
            "that it deletes cannot be shown. Request a range without this version.",
            code="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
            table=config.table,
            version=version,
            file=action.path,
        )
    try:
        check_partition_values(action.path, values, config.schema, config.partition_columns, config.table)
    except CorruptTable as error:
        error.located(version=version)
        raise
    return values or {}


class _Reader:
    """Reads changed files under one schema."""

    def __init__(self, store: LogStore, config: TableConfig) -> None:
        self._store = store
        self._schema = config.schema
        self._position = "_row_position"
        while self._schema.find(self._position) is not None:
            self._position += "_"
        self._files = DataFiles(store, config)

    def rows(self, file: ChangedFile) -> Iterator[pa.RecordBatch]:
        """The changed rows of one file, with their kind as the last column."""
        return located_batches(self._rows(file), self._store.url, file.version, file.path)

    def _rows(self, file: ChangedFile) -> Iterator[pa.RecordBatch]:
        name = decode_path(file.path, self._store.url, outside=True)
        if file.kind is None:
            schema = StructType((*self._schema.fields, CHANGE_TYPE))
            for batch in self._files.read(ReadTask(name, file.size or None, file.partition_values), schema):
                yield _checked_kinds(batch, name, file.version, self._store.url)
            return
        meant = file.rows(self._files.vectors.bitmap)
        if meant is None:
            task = ReadTask(name, file.size or None, file.partition_values, file.without, stats=file.stats)
            for batch in self._files.read(task):
                yield _with_kind(batch, file.kind)
        elif len(meant):
            positions = pa.array(meant.to_array(), _LONG)
            task = ReadTask(name, file.size or None, file.partition_values)
            for batch in self._files.read(task, extra=ExtraColumns(row_index_column=self._position)):
                rows = batch.filter(pc.is_in(batch.column(batch.num_columns - 1), value_set=positions))
                if rows.num_rows:
                    yield _with_kind(rows.select(range(batch.num_columns - 1)), file.kind)


def _with_kind(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    values = pa.repeat(scalar(kind, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays(
        [*batch.columns, values], schema=batch.schema.append(pa.field(CHANGE_TYPE.name, pa.string()))
    )


def _checked_kinds(batch: pa.RecordBatch, name: str, version: int, url: str) -> pa.RecordBatch:
    """Return the rows of a change data file; `CorruptTable` if one lacks a valid ``_change_type``."""
    kinds = batch.column(batch.num_columns - 1)
    if not pc.all(pc.is_in(kinds, value_set=array(list(_KINDS), pa.string())), min_count=0).as_py():
        raise CorruptTable(
            f"Table {url}: the change data file '{name}' of version {version} has rows whose {CHANGE_TYPE.name} is none of "
            f"{', '.join(_KINDS)}: it is damaged, or another file is in its place. Restore it from a copy, or ask for a "
            "range that leaves this version out.",
            code="TAHOE_CHANGE_DATA_FILE",
            table=url,
            version=version,
            file=name,
        )
    return batch


_KINDS = ("insert", "update_preimage", "update_postimage", "delete")
