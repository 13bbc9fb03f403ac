"""The options of the operations of `Table`, each defined once: for `Table`, for Spark's commands and for the command line.

The module imports nothing that costs time, since `Table` and `tahoe --help` need it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import ChangeOptions, option

if TYPE_CHECKING:
    from datetime import date, datetime

    import pyarrow as pa

    from tahoe.base.clock import Clock
    from tahoe.expr.condition_forms import Condition
    from tahoe.schema.types import StructType
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.log_store import LogStore
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction


class WritableTable(Protocol):
    """A table in which a transaction can be committed, such as `Table`."""

    def begin(self) -> Transaction:
        """Return a transaction on the newest version."""

    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit a transaction."""


class OpenTable(WritableTable, Protocol):
    """A table that can be read at any version too, such as `Table`."""

    store: LogStore
    clock: Clock
    time_zone: str

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the newest version, or an older one by number or by time."""


@dataclass(frozen=True, slots=True)
class AnalyzeOptions(ChangeOptions):
    """The options of `Table.compute_statistics`.

    Args:
        where: on partition columns; only these partitions.
    """

    where: Condition | None = option(None, "--where", "-w", help="Only these partitions: \"month = '2026-03'\".")


@dataclass(frozen=True, slots=True)
class OptimizeOptions(ChangeOptions):
    """The options of `Table.optimize`.

    Args:
        where: SQL text or a predicate on partition columns; only these partitions.
        zorder_by: columns to cluster the rows by, nested ones as ``a.b``, so that conditions on any of them skip files; every file is
            rewritten then.
        curve: the clustering method, a key of `tahoe.ops.layout.curves.CURVES`.
        target_file_size: the size of a new file in bytes; None for the table's ``delta.targetFileSize``, or 1 GB, or less if the table has
            ``delta.tuneFileSizesForRewrites`` (`tahoe.ops.layout.bins.target_for_rewrites`).
        min_file_size: files with fewer bytes are rewritten; None for the target.
        max_deleted_rows_ratio: files with a larger ratio of deleted rows are rewritten.
        full: for a clustered table: also rewrite files that are clustered by other columns than the current ones.
        min_cube_size: in a clustered table, cubes with this many bytes or more stay unchanged; None for
            `tahoe.ops.layout.cubes.LEAST_BYTES`.
        target_cube_size: in a clustered table, the greatest number of bytes that are clustered together; None for
            `tahoe.ops.layout.cubes.TARGET_BYTES`.
    """

    where: Condition | None = option(None, "--where", "-w", help="Only these partitions: \"month = '2026-03'\".")
    _: KW_ONLY
    zorder_by: Sequence[str] = option(
        (), "--zorder-by", "-z", metavar="COLUMN", help="Cluster the rows by this column; repeatable."
    )
    curve: str = option("kd", "--curve", help="How rows are clustered: kd, hilbert or z.")
    target_file_size: int | None = option(
        None, "--target-size", metavar="SIZE", help="The size of new files: 128mb; default: delta.targetFileSize, or 1gb."
    )
    min_file_size: int | None = None
    max_deleted_rows_ratio: float = 0.05
    full: bool = option(False, "--full", help="For a clustered table: also recluster files that are clustered by former columns.")
    min_cube_size: int | None = None
    target_cube_size: int | None = None


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """The options of `Table.vacuum`.

    Args:
        retention_hours: files removed within this time stay; None for the table's ``delta.deletedFileRetentionDuration``, 7 days by default.
        dry_run: report which files would be deleted, and which versions would become unreadable; delete nothing.
        retention_check: refuse less than the table's own retention.
        lite: find the files in the log, without listing the table; leftovers of crashed writers stay.
        inventory: rows ``path``, ``length``, ``isDir`` and ``modificationTime`` instead of a listing.
        logs: whether to commit ``VACUUM START`` and ``VACUUM END``, which record it in the history and warn slow writers;
            None: yes, except for long retentions on S3.
    """

    retention_hours: float | None = option(
        None, "--retain-hours", metavar="HOURS", help="Keep files removed more recently; default: the table's retention, or 168."
    )
    _: KW_ONLY
    dry_run: bool = option(False, "--dry-run", help="Report the changes without making them.")
    lite: bool = option(False, "--lite", help="Find the files in the log; files left by crashed writers stay.")
    retention_check: bool = option(True, "--no-retention-check", help="Allow less than the table's retention.")
    inventory: pa.Table | None = field(default=None, repr=False)
    logs: bool | None = None

    def __post_init__(self) -> None:
        if self.lite and self.inventory is not None:
            raise InvalidRequest(
                "VACUUM LITE looks into the log, and an inventory takes the place of a listing: give one of the two.",
                code="TAHOE_INVALID_REQUEST",
            )


@dataclass(frozen=True, slots=True)
class RestoreOptions(ChangeOptions):
    """The options of `Table.restore`.

    Args:
        version, timestamp: the version to restore, by its number or as of a time.
        ignore_missing_files: restore although files of that version are missing; reads of their rows fail then.
    """

    version: int | None = option(None, "--version", "-v", metavar="N", help="Restore this version.")
    timestamp: str | date | datetime | None = option(
        None, "--timestamp", "-t", metavar="TIME", help="Restore the version at this time, in UTC."
    )
    _: KW_ONLY
    ignore_missing_files: bool = option(
        False, "--ignore-missing-files", help="Restore even if files of that version are missing."
    )

    def __post_init__(self) -> None:
        if (self.version is None) == (self.timestamp is None):
            raise InvalidRequest(
                "Say to which version to restore the table, or to which time: one of the two.",
                code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            )


@dataclass(frozen=True, slots=True)
class DropRequest(ChangeOptions):
    """The options of `Table.drop_feature`.

    Args:
        name: of the feature, as `Table.detail` lists it; case-insensitive.
        truncate_history: remove older versions that use the feature from the log first (the first call ends with an error that says
            when to call again); else checkpoints hide them, and the feature ``checkpointProtection`` keeps these.
        is_fast: False: hide nothing, and wait until these versions expire from the log.
    """

    name: str
    _: KW_ONLY
    truncate_history: bool = option(
        False, "--truncate-history", help="First remove older versions from the log, instead of hiding them behind checkpoints."
    )
    is_fast: bool = True


@dataclass(frozen=True, slots=True)
class ConvertOptions(ChangeOptions):
    """The options of `Table.convert_to_delta`.

    Args:
        partition_by: the partition columns in the folder names (``day=2026-03-01/``), in their order, each with its type: ``date``,
            ``integer``, ``string``, ``decimal(10,2)``, …
        statistics: add statistics of each file, from its footer, to the log, so that queries skip files.
        properties: table properties of the new table.
        use_stream_log: for the output of Structured Streaming, take exactly the files in its log.
        source: the source format; by default Iceberg if there is Iceberg metadata, else Parquet. An Iceberg table defines its own
            partitions.
    """

    partition_by: Mapping[str, str] | StructType | None = option(
        None,
        "--partition-by",
        "-p",
        metavar="COLUMN:TYPE",
        help="A partition column of the folders, such as day:date; repeatable.",
    )
    _: KW_ONLY
    statistics: bool = option(True, "--no-statistics", help="Do not collect statistics for data skipping.")
    properties: Mapping[str, str] | None = None
    use_stream_log: bool = option(
        True, "--no-stream-log", help="Take every file of the folder, not only those in the log of the stream that wrote it."
    )
    source: Literal["parquet", "iceberg"] | None = None


@dataclass(frozen=True, slots=True)
class CloneOptions(ChangeOptions):
    """The options of `Table.clone`.

    Args:
        target: the location of the clone, or the table to be.
        shallow: refer to this table's files; else copy them.
        version, timestamp: of this table; the newest by default.
        replace: replace an existing table: any table for a deep clone, one without files for a shallow clone.
        properties: of the clone, over those of this table.
        storage_options: of the target, if it is a path.
    """

    target: str | os.PathLike[str] | WritableTable
    _: KW_ONLY
    shallow: bool = option(False, "--shallow", help="Refer to the files of PATH instead of copying them.")
    replace: bool = option(False, "--replace", help="Replace an existing table; a deep clone copies only new files.")
    version: int | None = option(None, "--version", "-v", metavar="N", help="The version of PATH; default: the newest.")
    timestamp: str | date | datetime | None = option(
        None, "--timestamp", "-t", metavar="TIME", help="The version of PATH at this time, in UTC."
    )
    properties: Mapping[str, str] | None = None
    storage_options: Mapping[str, str] | None = None
