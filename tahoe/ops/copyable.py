"""`Copyable`, the methods of `tahoe.api.table.Table` that convert existing files and copy tables, without Spark."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import NotFound
from tahoe.base.progress import Progress, shown

if TYPE_CHECKING:
    from datetime import date, datetime

    from tahoe.base.clock import Clock
    from tahoe.ops.copies.clone import Cloned
    from tahoe.ops.copies.clone_source import CloneSource
    from tahoe.ops.copies.convert import Converted
    from tahoe.ops.copies.parquet_folder import FoundTable
    from tahoe.ops.copies.symlink_manifests import Generated
    from tahoe.schema.types import StructType
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.log_store import LogStore
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Copyable"]


@checked_arguments
class Copyable(ABC):
    """Tables that can be created from existing files or from other tables."""

    store: LogStore
    clock: Clock

    @abstractmethod
    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """A version."""

    @abstractmethod
    def begin(self) -> Transaction:
        """Return a transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit a transaction."""

    def convert_to_delta(
        self,
        partition_by: Mapping[str, str] | StructType | None = None,
        *,
        statistics: bool = True,
        properties: Mapping[str, str] | None = None,
        use_stream_log: bool = True,
        source: Literal["parquet", "iceberg"] | None = None,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Converted:
        """Convert the Parquet files or the Iceberg table at this path to a Delta table in place; a Delta table stays unchanged.

        ``tahoe.Table("/data/events").convert_to_delta({"day": "date"})``

        Args:
            partition_by: the partition columns in the folder names (``day=2026-03-01/``), in their order, each with its type: ``date``,
                ``integer``, ``string``, ``decimal(10,2)``, …
            statistics: add statistics of each file, from its footer, to the log, so that queries skip files.
            use_stream_log: for the output of Structured Streaming, take exactly the files in its log.
            source: the source format; by default Iceberg if there is Iceberg metadata, else Parquet. An Iceberg table defines its own
                partitions.
            dry_run: report the effect and commit nothing.

        Returns: the result; errors are those of `tahoe.ops.copies.convert.convert`, `tahoe.ops.copies.parquet_folder.parquet_table` and
            `tahoe.ops.copies.iceberg_table.iceberg_table`; ``DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES``.
        """
        from tahoe.ops.copies.convert import ConvertRequest, convert
        from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table, is_iceberg, refuse_partition_columns
        from tahoe.ops.copies.parquet_folder import FolderRequest, parquet_table
        from tahoe.ops.copies.partition_schema import partition_schema

        request = ConvertRequest(statistics, properties or {}, dry_run=dry_run)
        columns = partition_schema(partition_by)
        folder = FolderRequest(columns, statistics, use_stream_log=use_stream_log, configuration=request.properties)

        def look(progress: Progress) -> FoundTable:
            if source == "iceberg" or (source is None and is_iceberg(self.store)):
                refuse_partition_columns(self.store.url, columns)
                return iceberg_table(self.store, IcebergRequest(statistics, request.properties), progress)
            return parquet_table(self.store, folder, progress)

        with shown(self.clock) as progress:
            return convert(self.begin, partial(self.commit, user_metadata=user_metadata), look, request, progress)

    def clone(
        self,
        target: str | os.PathLike[str] | Copyable,
        *,
        shallow: bool = False,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Cloned:
        """Create an independent table with the rows of this one, or of the Iceberg table at this path.

        Repeating a deep clone, with `replace`, copies only new files. A shallow clone refers to the files of this table; a record of the
        clone here makes VACUUM keep them.

        Args:
            target: the location of the clone.
            shallow: refer to this table's files; else copy them.
            version, timestamp: of this table; the newest by default.
            replace: replace an existing table: any table for a deep clone, one without files for a shallow clone.
            properties: of the clone, over those of this table.
            storage_options: of the target, if it is a path.
            dry_run: report the effect and commit nothing.

        Returns: the result, with the metrics of the SQL statement; errors are those of `tahoe.ops.copies.clone.clone`.
        """
        from tahoe.ops.copies.clone import CloneRequest, clone
        from tahoe.ops.copies.copy_files import copied_here

        if isinstance(target, str | os.PathLike):
            other: Copyable = type(self)(target, storage_options=storage_options, clock=self.clock)  # type: ignore[call-arg]
        else:
            other = target
        request = CloneRequest(shallow, "createOrReplace" if replace else "create", properties or {}, dry_run)
        commit = partial(other.commit, user_metadata=user_metadata)
        with shown(self.clock) as progress:
            source = self._clone_source(version, timestamp, progress)
            return clone(source, other.begin(), commit, copied_here, request, progress)

    def _clone_source(self, version: int | None, timestamp: str | date | datetime | None, progress: Progress) -> CloneSource:
        """Return this table as the source; an Iceberg table if there is no Delta table."""
        from tahoe.ops.copies.clone_source import source_of_folder, source_of_snapshot

        try:
            newest = self.snapshot()
        except NotFound as error:
            from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table, is_iceberg

            is_newest = version is None and timestamp is None
            if error.code != "DELTA_TABLE_NOT_FOUND" or not is_newest or not is_iceberg(self.store):
                raise
            return source_of_folder(iceberg_table(self.store, IcebergRequest(), progress), self.store, self.clock)
        snapshot = newest if version is None and timestamp is None else self.snapshot(version, timestamp)
        return source_of_snapshot(snapshot, newest.version)

    def generate(self, mode: str = "symlink_format_manifest", *, dry_run: bool = False) -> Generated:
        """Write manifests of the live files for readers that do not read the log; see `tahoe.ops.copies.symlink_manifests`.

        With ``delta.compatibility.symlinkFormatManifest.enabled`` each commit updates them.
        """
        from tahoe.ops.copies.symlink_manifests import generate

        with shown(self.clock) as progress:
            return generate(self.snapshot(), mode, progress, dry_run=dry_run)

    def allow_shallow_clone(self, clone: str) -> None:
        """Register a shallow clone of this table that another writer made, so that it can read its files and VACUUM keeps them.

        Args:
            clone: the path or URL of the clone.
        """
        from tahoe.store.location import table_url
        from tahoe.store.outside import CloneRecord, record_clone

        record_clone(self.store, CloneRecord(table_url(clone), None))
