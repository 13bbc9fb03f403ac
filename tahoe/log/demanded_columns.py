"""Whether what the specification demands is there when the log is read as columns; what is wrong is then said by the exact readers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.exceptions import CorruptTable
from tahoe.log.listing import Checkpoint
from tahoe.log.parquet_source import DamagedCheckpoint, RowGroup
from tahoe.protocol.actions import Metadata
from tahoe.protocol.demanded import check_partition_keys, is_misspelt
from tahoe.schema.types import StructType, schema_from_json

__all__ = ["check_keys", "check_keys_for", "has_all_keys", "has_misspelt_names", "nulls_are_written"]


def has_misspelt_names(lines: pa.Schema) -> bool:
    """Whether an action or a member of one differs in case only from one that the specification knows.

    Args:
        lines: of commits read as columns: a column an action, a struct.
    """
    for action in lines:
        if is_misspelt(action.name):
            return True
        if action.name in _FILE_ACTIONS and any(is_misspelt(member.name, action.name) for member in action.type):
            return True
        if action.name in _FILE_ACTIONS:
            vector = action.type.field("deletionVector").type
            if any(is_misspelt(member.name, "deletionVector") for member in vector):
                return True
    return False


def nulls_are_written(lines: pa.Table, joined: bytes) -> bool:
    """Whether every partition value of an `add` that is null as a column is one that its line gives as null, and none that it lacks.

    Args:
        lines: as of `has_misspelt_names`; one row a line.
        joined: the lines.
    """
    adds = lines.column("add")
    kind = adds.type.field("partitionValues").type
    split: list[bytes] = []
    for key in (field.name for field in kind):
        null = pc.and_(adds.is_valid(), pc.struct_field(adds, ["partitionValues", key]).is_null())
        rows = pc.indices_nonzero(null).to_pylist()
        split = split or (joined.split(b"\n") if rows else [])
        if any(not _is_written_as_null(split[row], key) for row in rows):
            return False
    return True


def check_keys(
    url: str, files: pa.Table, schema: StructType, partition_columns: Sequence[str], checkpoint: Checkpoint | None = None
) -> pa.Table:
    """The files, if their partition values name every partition column.

    Raises:
        DamagedCheckpoint: they do not, and come from a checkpoint, so that another one or the commits can take its place.
        CorruptTable: they do not, and come from commits.
    """
    try:
        check_partition_keys(files, schema, partition_columns, url)
    except CorruptTable as error:
        if checkpoint is None:
            raise
        raise DamagedCheckpoint(url, checkpoint, checkpoint.names[0], error.message, error.message) from error
    return files


def check_keys_for(url: str, files: pa.Table, metadata: Metadata | None, checkpoint: Checkpoint | None = None) -> pa.Table:
    """As `check_keys`, by the table's metadata; without any, that is told by whoever needs it."""
    if metadata is None or not metadata.partition_columns:
        return files
    schema = schema_from_json(metadata.schema_string)
    known = [name for name in metadata.partition_columns if schema.find(name) is not None]
    return check_keys(url, files, schema, known, checkpoint)


def has_all_keys(group: RowGroup, columns: int) -> bool:
    """Whether the footer of a checkpoint says that its `add` actions have so many partition values each; False where it does not tell."""
    leaf = next((path for path in group.file.leaves if path.startswith("add.partitionValues.") and path.endswith("key")), None)
    adds, keys = group.non_null("add.path"), None if leaf is None else group.non_null(leaf)
    return adds is not None and keys == adds * columns


_FILE_ACTIONS = ("add", "remove")


def _is_written_as_null(line: bytes, key: str) -> bool:
    """Whether the line says so in the one way that writers have; another way is left to the exact reader."""
    before, found, values = line.partition(b'"partitionValues":{')
    return (
        bool(found) and b'"partitionValues"' not in before + values and b'"%s":null' % key.encode() in values.partition(b"}")[0]
    )
