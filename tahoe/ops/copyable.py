"""What makes a table of files that are there, and copies of a table, without Spark: what `tahoe.table.Table` has of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from tahoe.progress import Progress, shown

if TYPE_CHECKING:
    from tahoe.clock import Clock
    from tahoe.ops.copies.convert import Converted
    from tahoe.ops.copies.parquet_folder import FoundTable
    from tahoe.schema.types import StructType
    from tahoe.store.log_store import LogStore
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Copyable"]


class Copyable(ABC):
    """Tables that are made of others, or of files."""

    store: LogStore
    clock: Clock

    @abstractmethod
    def begin(self) -> Transaction:
        """A transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit it."""

    def convert_to_delta(
        self,
        partition_by: Mapping[str, str] | StructType | None = None,
        *,
        statistics: bool = True,
        properties: Mapping[str, str] | None = None,
        use_stream_log: bool = True,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Converted:
        """Make a table of the Parquet files that are here, where they are; one that is a Delta table already stays as it is.

        ``tahoe.Table("/data/events").convert_to_delta({"day": "date"})``

        Args:
            partition_by: the columns that the folders tell (``day=2026-03-01/``), in their order, each with its type: ``date``,
                ``integer``, ``string``, ``decimal(10,2)``, …
            statistics: let the log have statistics of each file, by its footer, so that queries skip files.
            use_stream_log: of a folder that Structured Streaming wrote, take the files that its log has, and no others.
            dry_run: tell what would be done, and do nothing.

        Returns: what was done; errors are those of `tahoe.ops.copies.convert.convert` and `tahoe.ops.copies.parquet_folder.parquet_table`.
        """
        from tahoe.ops.copies.convert import ConvertRequest, convert
        from tahoe.ops.copies.parquet_folder import FolderRequest, parquet_table
        from tahoe.ops.copies.partition_schema import partition_schema

        request = ConvertRequest(statistics, properties or {}, dry_run=dry_run)
        columns = partition_schema(partition_by)
        folder = FolderRequest(columns, statistics, use_stream_log=use_stream_log, configuration=request.properties)

        def look(progress: Progress) -> FoundTable:
            return parquet_table(self.store, folder, progress)

        with shown(self.clock) as progress:
            return convert(self.begin, partial(self.commit, user_metadata=user_metadata), look, request, progress)
