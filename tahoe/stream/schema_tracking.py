"""`SchemaTracking`: a stream that records its table's metadata in a `SchemaLog`, and stops when the metadata changes.

    commit that changes metadata ──► a batch ends before it, the next right after it ──► everything before it is done: the next log file
    is written, and the stream stops ──► restarted, it reads with the newer metadata if the changes are allowed
    (`tahoe.stream.tracked_changes`)

Batches end both before the commit's files (`METADATA_CHANGE_INDEX`) and right after, because Spark notifies a source that a batch is done
only when it has planned the next one.
"""

from __future__ import annotations

from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.consistency import read_verified_commit
from tahoe.protocol.actions import AddCDCFile, AddFile, Metadata, Protocol, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.stream.position import METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX, Position
from tahoe.stream.schema_log import SchemaLog, TrackedMetadata
from tahoe.stream.streamed_commit import StreamedCommit
from tahoe.stream.tracked_changes import AllowedChanges, check_goes_on, differ


class SchemaTracking:
    """The schema log of one source of a query.

    Args:
        log: a log that passed `check_log`.
        source_path: the folder of the source in the query's checkpoint.
    """

    def __init__(self, log: SchemaLog, source_path: str) -> None:
        self._log = log
        self._source_path = source_path
        self._reads_to = None if log.current is None else log.current.version

    @property
    def has_begun(self) -> bool:
        """Whether the log has a file."""
        return self._log.current is not None

    def read_with(self, snapshot: Snapshot) -> Snapshot:
        """Return the table as the stream reads it while it runs."""
        return read_with(snapshot, self._log.current)

    def begin(self, config: TableConfig, version: int, read: TableConfig) -> None:
        """Write the first file.

        Args:
            config: the configuration where the stream begins.
            read: the configuration with which the stream reads.

        Raises `InvalidRequest` (``DELTA_STREAMING_METADATA_EVOLUTION``) if they differ.
        """
        self._log.add(TrackedMetadata.of(config, version, self._source_path))
        if differ(read, config):
            raise self._evolved(config, version)

    def stops_at(self, commit: StreamedCommit, read: TableConfig) -> bool:
        """Whether a commit changes the metadata for reading."""
        if self._reads_to is not None and self._reads_to >= commit.version:
            return False  # it is one of several consecutive changes that were combined
        return (commit.metadata is not None or commit.protocol is not None) and differ(read, _changed(read, commit))

    def evolve(self, commit: StreamedCommit, read: TableConfig) -> None:
        """Write the change of a commit, if any, once everything before the commit is done.

        Raises `InvalidRequest` (``DELTA_STREAMING_METADATA_EVOLUTION``) if there is one.
        """
        if self.stops_at(commit, read):
            config = _changed(read, commit)
            self._log.add(TrackedMetadata.of(config, commit.version, self._source_path))
            raise self._evolved(config, commit.version)

    def check_initial(self, snapshot: TableConfig, version: int, read: TableConfig) -> None:
        """Check the initial snapshot, which may be newer than the start of the log: none of its rows may be read with other metadata.

        Raises `InvalidRequest` (``DELTA_STREAMING_METADATA_EVOLUTION``) if the log had to be updated.
        """
        if self._reads_to is not None and version > self._reads_to and differ(read, snapshot):
            self._log.add(TrackedMetadata.of(snapshot, version, self._source_path), replaces=True)
            raise self._evolved(snapshot, version)

    def _evolved(self, config: TableConfig, version: int) -> InvalidRequest:
        properties = ", ".join(f"{name}={value}" for name, value in sorted(config.metadata.configuration.items()))
        return InvalidRequest(
            f"The metadata of table {config.table} changed in version {version}, and the stream's schema log {self._log.url} has recorded "
            "it. Start the stream again, with a new DataFrame of spark.readStream: it continues from its checkpoint with the newer "
            f"metadata. The schema is {config.schema}; the properties are {properties or 'none'}; the protocol is "
            f"{config.protocol.to_json_value()}.",
            code="DELTA_STREAMING_METADATA_EVOLUTION",
            table=config.table,
            version=version,
        )


def _changed(read: TableConfig, commit: StreamedCommit) -> TableConfig:
    return TableConfig(commit.protocol or read.protocol, commit.metadata or read.metadata, read.table)


def barrier_before(position: Position, version: int) -> Position:
    """Return the end of the batch that stops before a metadata change."""
    return replace(position, version=version, index=METADATA_CHANGE_INDEX, is_initial_snapshot=False)


def barrier_after(position: Position) -> Position | None:
    """Return the end of the batch right after that one; None for every other position."""
    return replace(position, index=POST_METADATA_CHANGE_INDEX) if position.index == METADATA_CHANGE_INDEX else None


def read_with(snapshot: Snapshot, tracked: TrackedMetadata | None) -> Snapshot:
    """Return a version of the table with the tracked metadata; its files are those of the version.

    Raises: like `tahoe.protocol.config.TableConfig.ensure_readable`, for the tracked protocol.
    """
    if tracked is None:
        return snapshot
    config = tracked.config(snapshot.config)
    config.ensure_readable()
    return replace(snapshot, state=replace(snapshot.state, protocol=config.protocol, metadata=config.metadata))


def check_log(
    log: SchemaLog, config: TableConfig, source_path: str, allowed: AllowedChanges, *, checks_path: bool = True
) -> None:
    """Check that a log belongs to this stream, and that its last change is allowed.

    Args:
        config: the table's current configuration.
        source_path: the folder of the source in the query's checkpoint.
        checks_path: whether the log must have been written for that source.

    Raises `InvalidRequest`: ``DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID``, ``DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT``, and
    the errors of `tahoe.stream.tracked_changes.check_goes_on`.
    """
    current = log.current
    if current is None:
        return
    check_log_table(log, config)
    if checks_path and current.source_path != source_path:
        raise InvalidRequest(
            f"The schema log {log.url} was written for the source {current.source_path} of a query, but the source of table {config.table} "
            f"is now {source_path}. Give each stream a 'schemaTrackingLocation' of its own, and each source of one query a "
            "'streamingSourceTrackingId'.",
            code="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            table=config.table,
        )
    previous = log.previous
    if previous is not None:
        versions = previous.version, current.version
        check_goes_on(previous.config(config), current.config(config), versions, allowed, source_path)


def check_log_table(log: SchemaLog, config: TableConfig) -> None:
    """Raise `InvalidRequest` (``DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID``) for the log of another table."""
    if log.current is not None and log.current.table_id != config.metadata.id:
        raise InvalidRequest(
            f"The schema log {log.url} belongs to the table with the id {log.current.table_id}, but table {config.table} has the id "
            f"{config.metadata.id}. Choose another 'schemaTrackingLocation'.",
            code="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
            table=config.table,
        )


def combine_upcoming_changes(store: LogStore, current: TrackedMetadata) -> TrackedMetadata | None:
    """Combine the metadata changes of consecutive commits without files, from there on, into one.

    Returns:
        None if there is nothing to combine.
    """
    combined, version = current, current.version
    while (changes := _metadata_alone(store, version)) is not None:
        combined = combined.with_changes(*changes, version, store.url)
        version += 1
    return None if combined.version == current.version else combined


def _metadata_alone(store: LogStore, version: int) -> tuple[Metadata | None, Protocol | None] | None:
    """Return a commit's metadata and protocol; None if it changes neither, has files, or is missing."""
    try:
        actions = read_verified_commit(store, version)
    except NotFound:
        return None
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    protocol = next((action for action in actions if isinstance(action, Protocol)), None)
    has_files = any(isinstance(action, AddFile | RemoveFile | AddCDCFile) for action in actions)
    return None if has_files or (metadata is None and protocol is None) else (metadata, protocol)
