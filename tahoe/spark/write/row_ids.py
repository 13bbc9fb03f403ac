"""Rows that keep their ids when Spark writes them to other files (PROTOCOL.md, "Writer Requirements for Row Tracking").

The columns that hold the ids come from `tahoe.spark.scan.row_id_columns.with_row_ids`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tahoe.clock import Clock
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.spark.write.writer import FileOptions, write_files
from tahoe.store.log_store import LogStore

__all__ = ["write_files_with_row_ids"]

_NO_OPTIONS = FileOptions()


def write_files_with_row_ids(
    data: DataFrame,
    config: TableConfig,
    store: LogStore,
    clock: Clock,
    options: FileOptions = _NO_OPTIONS,
    completion: Completion | None = None,
) -> list[AddFile]:
    """`write_files`, keeping the ids of rows that have some.

    The commit's transaction must say so: ``transaction.row_ids_kept = True``.

    Args:
        data: rows fitted to the schema of ``config_with_row_ids(config)``: the table's columns and those of `with_row_ids`. `fitted` makes
            the latter null, which is right for new rows, where the data lacks them.
        config: of the commit to come, without these columns.
        completion: as for `write_files`.

    Returns:
        As `write_files`; statistics are of the table's columns alone.
    """
    written = write_files(data, config_with_row_ids(config), store, clock, options, completion=completion)
    return [without_id_statistics(config, add) for add in written]
