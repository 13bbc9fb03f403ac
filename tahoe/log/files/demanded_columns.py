"""Checks that required members are present when the log is read as columns; the exact readers then raise the error for a missing one."""

from __future__ import annotations

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.protocol.action_members import is_misspelt

__all__ = ["has_misspelt_names", "nulls_are_written"]


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


_FILE_ACTIONS = ("add", "remove")


def _is_written_as_null(line: bytes, key: str) -> bool:
    """Whether the line says so in the one way that writers have; another way is left to the exact reader."""
    before, separator, values = line.partition(b'"partitionValues":{')
    return (
        bool(separator)
        and b'"partitionValues"' not in before + values
        and b'"%s":null' % key.encode() in values.partition(b"}")[0]
    )
