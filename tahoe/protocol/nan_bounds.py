"""The files whose greatest floats take NaN into account.

To Spark, NaN is greater than every other number. Tahoe and delta-spark follow that order: a number as the greatest value of a column
means that the column has no NaN. Other writers leave NaN out. delta-rs records 1.0 as the greatest of 1.0 and NaN, and a reader that
trusts it skips the file for ``f > 5``.

The log does not permanently record the writer of a file: `commitInfo` is lost with its commit. So Tahoe adds a tag to each file whose
statistics have a greatest float, and tags stay in checkpoints. The greatest floats of other files are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.protocol.actions import AddFile
from tahoe.protocol.statistics.bounds import NAN_COUNTED, Leaf
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.arrow_values import combined, scalar
from tahoe.schema.types import DataType, PrimitiveType


def is_float(data_type: DataType) -> bool:
    """Whether columns of the type can have NaN."""
    return data_type in _FLOATS


def with_statistics(add: AddFile, statistics: FileStatistics, leaves: Sequence[Leaf]) -> AddFile:
    """Return the file with statistics collected by Tahoe, tagged if they have a greatest float.

    Args:
        leaves: the columns of the statistics.
    """
    return with_stats_text(add, statistics.to_json(), nan_counted=has_greatest_float(statistics, leaves))


def with_stats_text(add: AddFile, text: str, *, nan_counted: bool) -> AddFile:
    """Return the file with the JSON of statistics collected by Tahoe.

    Args:
        nan_counted: from `has_greatest_float`.
    """
    tags = {name: value for name, value in (add.tags or {}).items() if name != NAN_COUNTED}
    if nan_counted:
        tags[NAN_COUNTED] = _YES
    return replace(add, stats=text, tags=tags or None)


def has_greatest_float(statistics: FileStatistics, leaves: Sequence[Leaf]) -> bool:
    """Whether the statistics contain the greatest value of a column that can have NaN."""
    return any(is_float(leaf[-1].data_type) and is_stated(statistics.max_values, leaf) for leaf in leaves)


def is_stated(values: object, leaf: Leaf) -> bool:
    """Whether one part of the statistics of a file, nested by physical names, has a value of a column."""
    for column in leaf:
        values = values.get(column.physical_name) if isinstance(values, Mapping) else None
    return values is not None


def is_nan_counted(tags: Mapping[str, str | None] | None) -> bool:
    """Whether the greatest floats of a file with these tags take NaN into account."""
    return tags is not None and tags.get(NAN_COUNTED) == _YES


def are_nan_counted(files: pa.Table) -> pa.BooleanArray:
    """Return True for each file with the tag, null for other files.

    Args:
        files: with the column ``tags`` of `tahoe.log.replay.FILES_SCHEMA`; without it the result is null for every file.
    """
    if "tags" not in files.column_names:
        return pa.nulls(files.num_rows, pa.bool_())
    tags = combined(files.column("tags"))
    if tags.null_count == len(tags):
        return pa.nulls(files.num_rows, pa.bool_())
    has_tag = pc.equal(pc.map_lookup(tags, scalar(NAN_COUNTED, tags.type.key_type), "first"), scalar(_YES, tags.type.item_type))
    return pc.if_else(has_tag, scalar(True), scalar(None, pa.bool_()))


_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_YES = "true"
