"""Whether the metrics and partition values of a manifest agree with the footer of the data file. Pure.

Metrics are for planning: a reader that trusts wrong ones skips files with matching rows. Compared are columns outside structs, lists and
maps. Footers may truncate texts, so of their bounds only a certain contradiction counts.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.uniform.commits.client_manifests import ClientFile
from tahoe.uniform.commits.registration import FIELD_ID

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


@dataclass(frozen=True, slots=True)
class _Column:
    """A column in a footer.

    Args:
        physical: the physical type.
        values, nulls: numbers of values with and of NULL; None if the footer does not state it.
        bounds: the least and the greatest value as the physical type stores it; None if the footer does not state them.
        logical: the same as Python values, of a column of which they are needed.
    """

    kind: pa.DataType
    physical: str
    values: int
    nulls: int | None
    bounds: tuple[Any, Any] | None
    logical: tuple[Any, Any] | None


def contradiction(file: ClientFile, footer: FileMetaData, partition: Mapping[int, Any]) -> str | None:
    """Return the first contradiction between a manifest and a footer; None if there is none.

    Args:
        partition: the partition values of the manifest by the ids of the source columns, as Python values.
    """
    columns = dict(_columns(footer, partition))
    return next(
        (
            f"has in column {number} {problem}"
            for number, column in columns.items()
            for problem in (*_of_metrics(file, number, column), *_of_partition(partition, number, column))
        ),
        None,
    )


def wrong_row_ids(footer: FileMetaData, highest: Mapping[int, int]) -> str | None:
    """Return why the row ids or row commit versions in a file cannot be those of existing rows; None if they may be.

    Args:
        highest: by the reserved field ids of the two columns, the highest number that the table has; empty if it tracks no rows.
    """
    for number, column in _columns(footer, highest) if highest else ():
        if number in highest and column.nulls != column.values:
            least, greatest = column.logical or (-1, -1)
            if type(least) is not int or least < 0 or greatest > highest[number]:
                return f"has in column {number} other values than 0 to {highest[number]}, as far as its footer proves"
    return None


def _of_metrics(file: ClientFile, number: int, column: _Column) -> Iterator[str]:
    for word, stated, measured in (
        ("values", file.value_counts.get(number), column.values),
        ("NULLs", file.null_counts.get(number), column.nulls),
    ):
        if stated is not None and measured is not None and stated != measured:
            yield f"{measured} {word}, and {stated} by its manifest"
    if column.bounds is None:
        return
    least, greatest = column.bounds
    lower, upper = (_bound(each.get(number), column) for each in (file.lower_bounds, file.upper_bounds))
    is_text = column.physical == "BYTE_ARRAY"
    if lower is not None and (lower is _INVALID or lower > (greatest if is_text else least)):
        yield f"values below the lower bound by its manifest, {file.lower_bounds[number].hex():.40}"
    if upper is not None and (upper is _INVALID or upper < (least if is_text else greatest)):
        yield f"values above the upper bound by its manifest, {file.upper_bounds[number].hex():.40}"


def _of_partition(partition: Mapping[int, Any], number: int, column: _Column) -> Iterator[str]:
    if number not in partition or not column.values:
        return
    value = partition[number]
    if value is None and column.nulls == 0:
        yield "no NULL, and the partition value NULL by its manifest"
    elif value is not None and column.nulls == column.values:
        yield "only NULL, and another partition value by its manifest"
    elif value is not None and column.logical is not None:
        least, greatest = column.logical
        if type(value) is type(least) and (value < least or value > greatest):
            yield "other values than the partition value by its manifest"


def _columns(footer: FileMetaData, with_values: Collection[int]) -> Iterator[tuple[int, _Column]]:
    """Yield the id and the statistics of each column that has an id and no parts."""
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    leaves = {(leaf := footer.schema.column(position)).path: (position, leaf) for position in range(footer.num_columns)}
    for field in footer.schema.to_arrow_schema():
        number = (field.metadata or {}).get(FIELD_ID)
        if number is None or pa.types.is_nested(field.type) or field.name not in leaves:
            continue
        position, leaf = leaves[field.name]
        chunks = [group.column(position) for group in groups]
        statistics = [chunk.statistics for chunk in chunks]
        has_nulls = all(each is not None and each.has_null_count for each in statistics)
        bounded = [each for each in statistics if each is not None and each.has_min_max]
        # A row group of NULL alone has no bounds.
        is_bounded = has_nulls and len(bounded) == sum(each.num_values > 0 for each in statistics) and bool(bounded)
        yield (
            int(number),
            _Column(
                field.type,
                leaf.physical_type,
                sum(chunk.num_values for chunk in chunks),
                sum(each.null_count for each in statistics) if has_nulls else None,
                _extremes((each.min_raw, each.max_raw) for each in bounded) if is_bounded else None,
                _extremes((each.min, each.max) for each in bounded) if is_bounded and int(number) in with_values else None,
            ),
        )


def _extremes(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    both = list(pairs)
    return min(least for least, _ in both), max(greatest for _, greatest in both)


_INVALID = object()


def _bound(stored: bytes | None, column: _Column) -> Any:
    """Return a bound of a manifest as the physical type has it (format/spec.md, appendix D); None if it cannot be compared."""
    if stored is None or (pa.types.is_timestamp(column.kind) and column.kind.unit != "us"):
        return None
    if column.physical == "BYTE_ARRAY":
        return stored
    if pa.types.is_decimal(column.kind):
        return int.from_bytes(stored, "big", signed=True) if column.physical in ("INT32", "INT64") else None
    form = _FORMS.get((column.physical, len(stored)))
    if form is None:
        return _INVALID if column.physical in _PHYSICAL else None
    (value,) = struct.unpack(form, stored)
    return None if isinstance(value, float) and math.isnan(value) else value


_FORMS = {
    ("BOOLEAN", 1): "?",
    **{(kind, size): form for kind in ("INT32", "INT64") for size, form in ((4, "<i"), (8, "<q"))},
    **{(kind, size): form for kind in ("FLOAT", "DOUBLE") for size, form in ((4, "<f"), (8, "<d"))},
}
_PHYSICAL = {kind for kind, _ in _FORMS}
