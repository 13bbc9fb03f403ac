"""What a VACUUM is asked for, and which files it may delete. Pure: what is listed and what is needed come as values.

A file goes where all of this holds: its name is not hidden, no version that may still be read needs it, and storage has had it for longer
than the retention. Everything else stays, and so does what is not understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from tahoe.exceptions import CorruptTable, InvalidRequest
from tahoe.protocol.config import TableConfig
from tahoe.store.location import check_name
from tahoe.store.log_store import Entry
from tahoe.store.stream_records import StreamRecord

__all__ = ["HOUR_MS", "VacuumPlan", "VacuumRequest", "deletable", "is_hidden", "partition_prefixes", "retention_of"]

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """What the user asks for.

    Args:
        retention_hours: files that went so long ago stay; None for the table's ``delta.deletedFileRetentionDuration``.
        retention_check: refuse a retention that is shorter than the table's.
        lite: look for files in the log, not in storage; files that no commit names stay.
        inventory: rows ``path``, ``length``, ``isDir`` and ``modificationTime`` in the place of a listing.
        logs: whether ``VACUUM START`` and ``VACUUM END`` are committed; None for the reference's rule (`tahoe.ops.upkeep.vacuum`).
        threads: so many folders are listed, and files deleted, side by side.
        dry_run: tell what would be deleted, and delete nothing.
    """

    retention_hours: float | None = None
    retention_check: bool = True
    lite: bool = False
    inventory: pa.Table | None = field(default=None, repr=False)
    logs: bool | None = None
    threads: int = 16
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.lite and self.inventory is not None:
            raise InvalidRequest(
                "VACUUM LITE looks into the log, and an inventory takes the place of a listing: give one of the two.",
                code="TAHOE_INVALID_REQUEST",
            )


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """What a VACUUM deletes.

    Args:
        table: its URL.
        version: that was looked at.
        files: by their names below the table's root, sorted.
        folders: how many were looked at, the table's own among them.
        retention_ms: the one that holds.
        cut_off_ms: by the clock of the storage; what is younger stays.
        vacuumed_version: every file that a commit up to this one removed is gone afterwards; None where no commit is old enough.
        lost_versions: that can be read now and cannot be read afterwards, where this was asked for.
        late_streams: that may not have read yet what goes, of those that the table knows of.
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
        """How many bytes the files have."""
        return sum(entry.size for entry in self.files)


def retention_of(request: VacuumRequest, config: TableConfig) -> int:
    """How long files stay after they went, in milliseconds.

    Raises `InvalidRequest`: ``DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE``; ``DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT`` for less than the
    table's own, unless the request leaves that check out.
    """
    own = config.properties.deleted_file_retention_ms
    if request.retention_hours is None:
        return own
    asked = round(request.retention_hours * HOUR_MS)
    if asked < 0:
        raise InvalidRequest(
            f"Retention period for Vacuum can't be less than 0 hours, found {request.retention_hours}.",
            code="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
            table=config.table,
        )
    if request.retention_check and asked < own:
        hours = -(-own // HOUR_MS)
        raise InvalidRequest(
            f"Table {config.table}: a VACUUM that retains {request.retention_hours:g} hours may take files from readers of older versions "
            f"and from writers that are still at work. Use a retention period of at least {hours} hours, the table's own "
            "(delta.deletedFileRetentionDuration). If no such operations are running, switch the check off: retention_check=False, or "
            "spark.databricks.delta.retentionDurationCheck.enabled = false.",
            code="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            table=config.table,
            hours=hours,
        )
    return asked


def partition_prefixes(config: TableConfig) -> tuple[str, ...]:
    """How the names of folders of partitions begin: by the columns' logical names, and by their physical ones."""
    columns = config.partition_schema
    return tuple({f"{name}=" for column in columns for name in (column.name, column.physical_name)})


def is_hidden(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a file is none that VACUUM looks at: below a folder, or of a name, that begins with ``_`` or ``.``.

    Change data, data skipping's indexes and partitions of columns like ``_day`` are no hidden folders; the folder ``metadata`` in the
    table's root is one, for there Iceberg's side lies.

    Args:
        name: a store name; of a folder, with a slash at the end.
        prefixes: see `partition_prefixes`.
    """
    if name.startswith("metadata/"):
        return True
    return any(part[0] in "._" and not part.startswith((*_SEEN, *prefixes)) for part in name.split("/") if part)


_SEEN = ("_change_data", "_delta_index")


def deletable(
    entries: Iterable[Entry], needed: Collection[str], cut_off_ms: int, prefixes: tuple[str, ...], root_url: str
) -> list[Entry]:
    """The files that may go, sorted by name.

    Args:
        entries: what storage holds.
        needed: names of files that stay.
        cut_off_ms: files that storage has since then, or later, stay.
    """
    gone = [
        entry
        for entry in entries
        if entry.modified_ms < cut_off_ms
        and entry.name not in needed
        and not is_hidden(entry.name, prefixes)
        and _is_understood(entry.name, root_url)
    ]
    return sorted(gone, key=lambda entry: entry.name)


def _is_understood(name: str, root_url: str) -> bool:
    """Whether a log could name the file at all. No log can need it where not, but nobody knows what it is."""
    try:
        return check_name(name, name, root_url) == name
    except CorruptTable:
        return False
