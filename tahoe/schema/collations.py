"""String columns with a collation, which do not compare by their bytes (protocol_rfcs/collated-string-type.md, "Collations").

A collation can make ``'a'`` and ``'A'`` equal in a column. The stored strings do not change; only comparisons differ. Statistics,
partitions and Arrow compare bytes, so they allow no conclusions about such a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.schema.text_limits import has_char
from tahoe.schema.types import StructField, StructType
from tahoe.schema.walk import all_fields

COLLATIONS = "__COLLATIONS"
"""In a field's metadata: each text in it, by its path in lists and maps, with the collation's provider and name."""
_BY_BYTES = "UTF8_BINARY"


def is_collated(column: StructField) -> bool:
    """Whether a string in the column, or in a field inside it, does not compare by its bytes."""
    return bool(_inside(column))


def compares_by_bytes(column: StructField) -> bool:
    """Whether strings in the column, or in a field inside it, are equal exactly if their bytes are: it has no collation and no ``char(n)``,
    which compares as if it were padded with spaces."""
    return not any(_own(field) or has_char(field) for field in all_fields(StructType((column,))))


def physical_collations(column: StructField, metadata: Mapping[str, object]) -> dict[str, Any]:
    """The metadata of a field that goes by its physical name: its collations are kept by paths that begin with the name."""
    collations = metadata.get(COLLATIONS)
    if not isinstance(collations, dict):
        return dict(metadata)
    return {
        **metadata,
        COLLATIONS: {column.physical_name + path.removeprefix(column.name): collation for path, collation in collations.items()},
    }


def check_no_new_collations(schema: StructType, before: StructType | None = None) -> None:
    """Refuse a schema that adds a collation to a column.

    Args:
        before: the schema that the table has; None for a new table.

    Raises:
        Unsupported: ``DELTA_UNSUPPORTED_DATA_TYPES``. Tables with collations need the feature `collations`, which Tahoe does not write.
    """
    for column in schema:
        names, previous = _inside(column), None if before is None else before.find(column.name)
        if names and (previous is None or names != _inside(previous)):
            raise Unsupported(
                f"Column '{column.name}' has the collation {', '.join(sorted(set(names)))}. Collations are a proposed table feature, "
                "and delta-spark 4.4 writes none either: the statistics of files are bounds by bytes, by which readers would skip files with "
                f"equal texts. Leave the collation out (cast to STRING COLLATE {_BY_BYTES}) and give it in queries.",
                code="DELTA_UNSUPPORTED_DATA_TYPES",
                column=column.name,
            )


def collation_refused(column: str, use: str) -> InvalidRequest:
    """Return the error for a comparison without Spark that the bytes of strings cannot decide.

    Args:
        use: the filter or expression.
    """
    return InvalidRequest(
        f"Column '{column}' has a collation or is a CHAR, so that texts may be equal whose bytes are not; without Spark only IS NULL and "
        f"IS NOT NULL may be asked of it, found: {use[:200]}. Read the rows with Spark, or without the condition, and compare them there.",
        code="TAHOE_COLLATED_COLUMN",
        column=column,
    )


def _inside(column: StructField) -> list[str]:
    return [name for field in all_fields(StructType((column,))) for name in _own(field)]


def _own(column: StructField) -> list[str]:
    """The collations of the texts that belong to the field itself, but for the order of bytes."""
    collations = column.metadata.get(COLLATIONS)
    names = collations.values() if isinstance(collations, dict) else () if collations is None else (collations,)
    return [str(name) for name in names if str(name).rpartition(".")[2] != _BY_BYTES]
