"""The allowed nesting depth of columns. Arrow reads 100 levels of a Parquet schema; deeper columns could be written but never read."""

from __future__ import annotations

import pyarrow as pa

from tahoe.base.exceptions import Unsupported
from tahoe.schema.types import ArrayType, DataType, MapType, StructType

MOST_LEVELS = 100
"""Of a Parquet schema, with its root: a struct is one level, an array or a map is two, and a leaf is one."""

_OF_CHECKPOINT = 3
"""Levels around the bounds of a column in a checkpoint: ``add.stats_parsed.minValues``. Types inside arrays and maps have none."""


def check_depth(schema: StructType) -> None:
    """Raise `Unsupported` (``TAHOE_NESTED_TOO_DEEP``) for a column that is nested deeper than its files could be read."""
    for column in schema:
        waiting: list[tuple[DataType, int, bool]] = [(column.data_type, 2, True)]
        while waiting:
            data_type, level, has_bounds = waiting.pop()
            if level > MOST_LEVELS - (_OF_CHECKPOINT if has_bounds else 0):
                raise _too_deep(column.name)
            if isinstance(data_type, StructType):
                waiting += [(field.data_type, level + 1, has_bounds) for field in data_type]
            elif isinstance(data_type, ArrayType):
                waiting.append((data_type.element_type, level + 2, False))
            elif isinstance(data_type, MapType):
                waiting += [(data_type.key_type, level + 2, False), (data_type.value_type, level + 2, False)]


def check_arrow_depth(schema: pa.Schema) -> None:
    """As `check_depth`, of a schema that is not converted yet, which takes a call for each level."""
    for column in schema:
        waiting = [(column.type, 2)]
        while waiting:
            data_type, level = waiting.pop()
            if level > MOST_LEVELS:
                raise _too_deep(column.name)
            waiting += [(data_type.field(place).type, level + 1) for place in range(data_type.num_fields)]


def _too_deep(column: str) -> Unsupported:
    return Unsupported(
        f"Column '{column}' is nested too deep: a Parquet file that can be read has at most {MOST_LEVELS} levels, where a struct is one "
        "level, an array or a map is two, and the bounds of a column in a checkpoint are three more. Flatten the column, or store it as a "
        "text (JSON) or as a variant.",
        code="TAHOE_NESTED_TOO_DEEP",
        column=column,
    )
