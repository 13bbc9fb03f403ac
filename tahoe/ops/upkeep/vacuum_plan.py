"""The request of a VACUUM and the choice of the files it may delete. Pure: the listing and the needed files are arguments.

A file is deleted if its name is not hidden, no version that may still be read needs it, and it has been in storage for longer than the
retention. All other files stay, including those with names that a log cannot contain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.ops.tables.requests import VacuumRequest
from tahoe.protocol.config import TableConfig
from tahoe.store.location import check_name
from tahoe.store.log_store import Entry
from tahoe.store.stream_records import StreamRecord

HOUR_MS = 3_600_000
THREADS = 16
"""The number of folders listed, and of files read or deleted, in parallel."""


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The files that a VACUUM deletes.

    Args:
        table: its URL.
        version: the version that was read.
        files: by their names below the table's root, sorted.
        folders: the number of listed folders, including the table's own.
        retention_ms: the effective retention.
        cut_off_ms: by the clock of the storage; younger files stay.
        vacuumed_version: every file that a commit up to this one removed is deleted afterwards; None if no commit is old enough.
        lost_versions: the versions that become unreadable, if requested.
        late_streams: the known streams that may not have read the deleted files yet.
    """

    table: str
    version: int
    request: VacuumRequest = field(repr=False)
    files: tuple[Entry, ...] = field(repr=False)
    folders: int
    retention_ms: int
    cut_off_ms: int
    vacuumed_version: int | None = None
    lost_versions: tuple[int, ...] = ()
    late_streams: tuple[StreamRecord, ...] = ()

    @property
    def size(self) -> int:
        """The total size of the files in bytes."""
        return sum(entry.size for entry in self.files)


def retention_of(request: VacuumRequest, config: TableConfig) -> int:
    """Return how long files stay after their removal, in milliseconds.

    Raises `InvalidRequest`: ``DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE``; ``DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT`` for less than the
    table's own, unless the request disables that check.
    """
    own = config.properties.deleted_file_retention_ms
    if request.retention_hours is None:
        return own
    requested = round(request.retention_hours * HOUR_MS)
    if requested < 0:
        raise InvalidRequest(
            f"Retention period for Vacuum can't be less than 0 hours, found {request.retention_hours}.",
            code="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
            table=config.table,
        )
    if request.retention_check and requested < own:
        hours = -(-own // HOUR_MS)
        raise InvalidRequest(
            f"Table {config.table}: a VACUUM that retains {request.retention_hours:g} hours may delete files of readers of older versions "
            f"and of running writers. Use a retention period of at least {hours} hours, the table's own "
            "(delta.deletedFileRetentionDuration). If no such operations are running, disable the check: retention_check=False, or "
            "spark.databricks.delta.retentionDurationCheck.enabled = false.",
            code="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            table=config.table,
            hours=hours,
        )
    return requested


def partition_prefixes(config: TableConfig) -> tuple[str, ...]:
    """Return the prefixes of partition folders' names: by the columns' logical names, and by their physical ones."""
    columns = config.partition_schema
    return tuple({f"{name}=" for column in columns for name in (column.name, column.physical_name)})


def is_hidden(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether VACUUM ignores a file: its name, or a folder of it, begins with ``_`` or ``.``.

    Change data, indexes of data skipping and partitions of columns like ``_day`` are not hidden; the folder ``metadata`` in the table's
    root is, because it contains the Iceberg metadata.

    Args:
        name: a store name; of a folder, with a slash at the end.
        prefixes: see `partition_prefixes`.
    """
    if name.startswith("metadata/"):
        return True
    return any(part[0] in "._" and not part.startswith((*_VISIBLE_FOLDERS, *prefixes)) for part in name.split("/") if part)


_VISIBLE_FOLDERS = ("_change_data", "_delta_index")


def deletable(
    entries: Iterable[Entry], needed: Collection[str], cut_off_ms: int, prefixes: tuple[str, ...], root_url: str
) -> list[Entry]:
    """Return the deletable files, sorted by name.

    Args:
        entries: the files in storage.
        needed: names of files that stay.
        cut_off_ms: files stored at this time or later stay.
    """
    old = [
        entry
        for entry in entries
        if entry.modified_ms < cut_off_ms
        and entry.name not in needed
        and not is_hidden(entry.name, prefixes)
        and _is_valid_name(entry.name, root_url)
    ]
    return sorted(old, key=lambda entry: entry.name)


def _is_valid_name(name: str, root_url: str) -> bool:
    """Whether a log could name the file at all. If not, no version can need it, but its origin is unknown, so it stays."""
    try:
        return check_name(name, name, root_url) == name
    except CorruptTable:
        return False
