"""Preserves row ids when Spark writes rows to other files (PROTOCOL.md, "Writer Requirements for Row Tracking").

`tahoe.spark.scan.row_id_columns.with_row_ids` adds the columns with the ids.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tahoe.base.clock import Clock
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
    """Write files like `write_files`, and keep existing row ids.

    The commit's transaction must declare it: ``transaction.row_ids_kept = True``.

    Args:
        data: rows fitted to the schema of ``config_with_row_ids(config)``: the table's columns and those of `with_row_ids`. `fitted` sets
            missing id columns to null, which is correct for new rows.
        config: of the coming commit, without these columns.
        completion: the argument of `write_files`.

    Returns:
        The result of `write_files`, with statistics only for the table's columns.
    """
    written = write_files(data, config_with_row_ids(config), store, clock, options, completion=completion)
    return [without_id_statistics(config, add) for add in written]
