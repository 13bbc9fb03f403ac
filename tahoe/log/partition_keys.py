"""Checks that the files of a checkpoint, or of commits, name every partition column; a missing name is not NULL (PROTOCOL.md, "Add File")."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint, RowGroup
from tahoe.log.files.listing import Checkpoint
from tahoe.protocol.action_members import check_partition_keys
from tahoe.protocol.actions import Metadata
from tahoe.schema.types import StructType


def check_keys(
    url: str, files: pa.Table, schema: StructType, partition_columns: Sequence[str], checkpoint: Checkpoint | None = None
) -> pa.Table:
    """Return the files if their partition values name every partition column.

    Raises:
        DamagedCheckpoint: files of a checkpoint lack one, so that another checkpoint or the commits can replace it.
        CorruptTable: files of commits lack one.
    """
    try:
        check_partition_keys(files, schema, partition_columns, url if checkpoint is None else "")
    except CorruptTable as error:
        if checkpoint is None:
            raise
        raise DamagedCheckpoint(url, checkpoint, checkpoint.names[0], error.message) from error
    return files


def check_keys_for(url: str, files: pa.Table, metadata: Metadata | None, checkpoint: Checkpoint | None = None) -> pa.Table:
    """Run `check_keys` with the table's metadata; if the metadata is missing, its readers raise the error."""
    if metadata is None or not metadata.partition_columns:
        return files
    schema = metadata.schema
    names = [name for name in metadata.partition_columns if schema.find(name) is not None]
    return check_keys(url, files, schema, names, checkpoint)


def has_all_keys(group: RowGroup, columns: int) -> bool:
    """Whether each `add` action has so many partition values, by the footer of the checkpoint; False if the footer does not state it."""
    leaf = next((path for path in group.file.leaves if path.startswith("add.partitionValues.") and path.endswith("key")), None)
    adds, keys = group.non_null("add.path"), None if leaf is None else group.non_null(leaf)
    return adds is not None and keys == adds * columns
