"""Per-file statistics: the columns that have them, and their collection from rows or a footer (PROTOCOL.md, "Per-file Statistics")."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc, pq
from tahoe.protocol.statistics.bounds import DEFAULT_PREFIX_LENGTH, Leaf, bound_of, has_bounds
from tahoe.protocol.statistics.file_statistics import FileStatistics, StatisticsBuilder
from tahoe.protocol.statistics.footer import footer_statistics
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructType, leaves
from tahoe.settings.property_settings import property_text

__all__ = [
    "DEFAULT_INDEXED_COLUMNS",
    "FileStatistics",
    "StatisticsCollector",
    "check_statistics_columns",
    "indexed_columns",
    "multipart_names",
    "statistics_of_footer",
    "statistics_of_table",
    "stats_arrow_type",
    "string_prefix_length",
]

DEFAULT_INDEXED_COLUMNS = 32


def indexed_columns(schema: StructType, partition_columns: Sequence[str], configuration: Mapping[str, str]) -> list[Leaf]:
    """Return the leaf columns that have statistics, in schema order.

    The columns of ``delta.dataSkippingStatsColumns`` (a struct includes all its fields), else the first
    ``delta.dataSkippingNumIndexedCols`` leaves (32 by default, all if negative). Partition columns never do.
    """
    partitioned = {name.lower() for name in partition_columns}
    data_leaves = [leaf for leaf in leaves(schema) if leaf[0].name.lower() not in partitioned]
    named = property_text(configuration, "delta.dataSkippingStatsColumns")
    if named is not None:
        paths = [tuple(name.lower() for name in path) for path in multipart_names(named)]
        return [leaf for leaf in data_leaves if any(_begins_with(leaf, path) for path in paths)]
    count = _number(configuration, "delta.dataSkippingNumIndexedCols", DEFAULT_INDEXED_COLUMNS)
    return data_leaves if count < 0 else data_leaves[:count]


def check_statistics_columns(schema: StructType, partition_columns: Sequence[str], configuration: Mapping[str, str]) -> None:
    """Refuse ``delta.dataSkippingStatsColumns`` that names no column, a partition column, a column without bounds, or one column twice."""
    named = property_text(configuration, "delta.dataSkippingStatsColumns")
    if named is None:
        return
    paths = [tuple(name.lower() for name in path) for path in multipart_names(named)]
    leaf_paths = list(leaves(schema))
    partitioned = {name.lower() for name in partition_columns}
    for path in paths:
        dotted_name = ".".join(path)
        if path[0] in partitioned:
            rule, code = (
                "is a partition column, which has no statistics",
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
            )
        elif not any(_begins_with(leaf, path) for leaf in leaf_paths):
            rule, code = "is not there", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"
        elif any(
            _begins_with(leaf, path) and len(leaf) == len(path) and not has_bounds(leaf[-1].data_type) for leaf in leaf_paths
        ):
            rule, code = "is of a type without bounds", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"
        elif paths.count(path) > 1:
            rule, code = "is named twice", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"
        else:
            continue
        raise InvalidRequest(
            f"The column '{dotted_name}' of delta.dataSkippingStatsColumns = '{named}' {rule}; the columns are: "
            f"{', '.join(schema.names)}. Correct the property.",
            code=code,
            column=dotted_name,
            property="delta.dataSkippingStatsColumns",
        )


def string_prefix_length(configuration: Mapping[str, str]) -> int:
    """Return ``delta.dataSkippingStringPrefixLength``, the number of characters of a text in a bound."""
    return _number(configuration, "delta.dataSkippingStringPrefixLength", DEFAULT_PREFIX_LENGTH)


def stats_arrow_type(schema: StructType, indexed: Sequence[Leaf] | None = None) -> pa.StructType:
    """Return the Arrow type of the statistics: ``numRecords, minValues, maxValues, nullCount, tightBounds``, under physical names.

    Args:
        indexed: from `indexed_columns`; by default the first 32 leaves of the schema.
    """
    chosen = indexed_columns(schema, (), {}) if indexed is None else indexed
    bounds = _nested_type([(leaf, to_arrow_type(leaf[-1].data_type)) for leaf in chosen if has_bounds(leaf[-1].data_type)])
    counts = _nested_type([(leaf, pa.int64()) for leaf in chosen])
    members = [("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
    return pa.struct(
        [pa.field("numRecords", pa.int64())]
        + [pa.field(name, kind) for name, kind in members if kind.num_fields]
        + [pa.field("tightBounds", pa.bool_())]
    )


def statistics_of_footer(
    metadata: pq.FileMetaData,
    schema: StructType,
    indexed: Sequence[Leaf] | None = None,
    *,
    column_mapping_mode: str = "none",
    prefix_length: int = DEFAULT_PREFIX_LENGTH,
) -> FileStatistics:
    """Return the statistics of a Parquet file from its footer alone, without values that a footer may get wrong.

    Args:
        metadata: columns under their physical names; with field ids if `column_mapping_mode` is ``id``.
        schema: the table's logical schema.
        indexed: from `indexed_columns`.
        prefix_length: from `string_prefix_length`.
    """
    chosen = indexed_columns(schema, (), {}) if indexed is None else indexed
    return footer_statistics(metadata, chosen, by_id=column_mapping_mode == "id", prefix_length=prefix_length)


def statistics_of_table(
    data: pa.Table, schema: StructType, indexed: Sequence[Leaf] | None = None, *, prefix_length: int = DEFAULT_PREFIX_LENGTH
) -> FileStatistics:
    """Return the statistics of rows before they are written to a file.

    Args:
        data: columns under their physical names, as in the file; a missing column counts as all NULL.
        schema: the table's logical schema.
        indexed: from `indexed_columns`.
        prefix_length: from `string_prefix_length`.
    """
    collected = StatisticsCollector(indexed_columns(schema, (), {}) if indexed is None else indexed, prefix_length)
    collected.add(data)
    return collected.statistics()


class StatisticsCollector:
    """Collects the statistics of a file from batches of its rows.

    Args:
        indexed: from `indexed_columns`.
        prefix_length: from `string_prefix_length`.
        texts_by_footer: each batch becomes a row group that Arrow writes with statistics. The extremes of texts, which are the most
            expensive to compute, are taken from these instead of being computed twice; `statistics` then needs the footer.
    """

    def __init__(self, indexed: Sequence[Leaf], prefix_length: int, *, texts_by_footer: bool = False) -> None:
        self._prefix_length = prefix_length
        self._rows = 0
        self._parts = 0
        self._columns = [_Column(leaf, texts_by_footer and _is_text_at_the_top(leaf)) for leaf in indexed]

    def add(self, data: pa.Table) -> None:
        """Add some rows of the file: columns under their physical names; a missing column counts as all NULL."""
        self._rows += data.num_rows
        for column in self._columns:
            column.add(data, self._parts)
        self._parts += 1

    def statistics(self, footer: pq.FileMetaData | None = None) -> FileStatistics:
        """Return the statistics of all added rows.

        Args:
            footer: from Arrow's writer, if `texts_by_footer`.
        """
        builder = StatisticsBuilder(self._rows)
        for column in self._columns:
            column.add_from_footer(footer)
            leaf, data_type = column.leaf, column.leaf[-1].data_type
            builder.add(
                leaf,
                bound_of(column.least, data_type, greatest=False, prefix_length=self._prefix_length),
                bound_of(column.greatest, data_type, greatest=True, prefix_length=self._prefix_length),
                column.nulls,
            )
        return builder.statistics()


class _Column:
    """The statistics of one leaf column so far. Its extremes are None while there is no value, or once they are unknown."""

    def __init__(self, leaf: Leaf, by_footer: bool) -> None:
        self.leaf = leaf
        self.least: Any = None
        self.greatest: Any = None
        self.nulls = 0
        self._has_bounds = has_bounds(leaf[-1].data_type)
        self._by_footer = by_footer
        self._in_footer: list[int] = []

    def add(self, data: pa.Table, part: int) -> None:
        values = _leaf_values(data, self.leaf)
        if values is None:
            self.nulls += data.num_rows
            return
        self.nulls += values.null_count
        if not self._has_bounds or values.null_count == len(values):
            return
        if self._by_footer and _are_short(values):
            self._in_footer.append(part)
            return
        self._add_extremes(*_extremes(values))

    def add_from_footer(self, footer: pq.FileMetaData | None) -> None:
        """Add the extremes that were left to the writer."""
        if not self._in_footer:
            return
        assert footer is not None, "statistics of a file whose texts are left to its writer need its footer"
        paths = [footer.schema.column(index).path for index in range(footer.num_columns)]
        position = paths.index(self.leaf[0].physical_name)
        for part in self._in_footer:
            statistics = footer.row_group(part).column(position).statistics
            self._add_extremes(
                *((statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else (None, None))
            )

    def _add_extremes(self, least: object, greatest: object) -> None:
        if not self._has_bounds:
            return
        if greatest is None:  # there are values without bounds
            self.least = self.greatest = None
            self._has_bounds = False
            return
        if least is not None:  # a column of NaN only has no least value
            self.least = least if self.least is None else min(self.least, least, key=_order)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest, key=_order)


_LONGEST_IN_FOOTER = 4096
"""Arrow's writer omits the bounds of a row group if one of them would have more bytes."""


def _is_text_at_the_top(leaf: Leaf) -> bool:
    # Parquet's paths of nested columns have dots: a name without a dot is the path of exactly one top-level column.
    return len(leaf) == 1 and leaf[0].data_type == PrimitiveType("string") and "." not in leaf[0].physical_name


def _are_short(values: pa.ChunkedArray) -> bool:
    """Whether the values, some of which are not NULL, are all texts, short enough for their extremes to be in a footer."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return False
    return bool(pc.max(pc.binary_length(values)).as_py() <= _LONGEST_IN_FOOTER)


def _order(value: object) -> Any:
    """A sort key for Spark's order, where NaN is the greatest number; of two zeros the negative one is the least."""
    return (math.isnan(value), value, math.copysign(1.0, value)) if isinstance(value, float) else value


_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,\s]+))\s*([.,]|$)")


def _leaf_values(data: pa.Table, leaf: Leaf) -> pa.ChunkedArray | None:
    position = data.schema.get_field_index(leaf[0].physical_name)
    if position < 0:
        return None
    values = data.column(position)
    for column in leaf[1:]:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(column.physical_name) < 0:
            return None
        values = pc.struct_field(values, [column.physical_name])
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values


def _extremes(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the least and greatest value by Spark's order, where NaN is the greatest of all."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _float_extremes(values)
    if pa.types.is_string_view(kind):
        values = values.cast(pa.large_string())
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        values = values.cast(pa.timestamp("us", kind.tz), safe=False)
    extremes = pc.min_max(values)
    least, greatest = extremes["min"], extremes["max"]
    if pa.types.is_timestamp(kind):
        return least.value, greatest.value
    try:
        return least.as_py(), greatest.as_py()
    except (ValueError, OverflowError):  # a year outside the range of Python's dates
        return None, None


def _float_extremes(values: pa.ChunkedArray) -> tuple[Any, Any]:
    extremes = pc.min_max(values)
    least, greatest = extremes["min"].as_py(), extremes["max"].as_py()
    if pc.any(pc.is_nan(values)).as_py():
        greatest = math.nan
        least = pc.min(values.filter(pc.invert(pc.is_nan(values)), null_selection_behavior="drop")).as_py()
    if least == 0.0 and pc.any(pc.equal(pc.divide(1.0, values), -math.inf)).as_py():
        least = -0.0
    return least, greatest


def _nested_type(columns: Sequence[tuple[Leaf, pa.DataType]]) -> pa.StructType:
    """Build a struct of structs from leaves; leaves with a common prefix are adjacent."""
    tree: dict[str, Any] = {}
    for leaf, kind in columns:
        inner = tree
        for column in leaf[:-1]:
            inner = inner.setdefault(column.physical_name, {})
        inner[leaf[-1].physical_name] = kind

    def build(node: dict[str, Any]) -> pa.StructType:
        return pa.struct([pa.field(name, build(value) if isinstance(value, dict) else value) for name, value in node.items()])

    return build(tree)


def _begins_with(leaf: Leaf, path: tuple[str, ...]) -> bool:
    return len(path) <= len(leaf) and all(column.name.lower() == name for column, name in zip(leaf, path, strict=False))


def multipart_names(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the names in a comma-separated list, each of parts joined by dots, any part in back-ticks."""
    path: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if not match:
            raise InvalidRequest(
                f"delta.dataSkippingStatsColumns = '{text}' is no list of columns; write a, b.c, `odd name`.",
                code="TAHOE_TABLE_PROPERTY",
                value=text,
            )
        quoted, plain, separator = match.groups()
        path.append(quoted.replace("``", "`") if quoted else plain)
        position = match.end()
        if separator != ".":
            yield tuple(path)
            path = []


def _number(configuration: Mapping[str, str], key: str, default: int) -> int:
    text = property_text(configuration, key)
    try:
        return default if text is None else int(text)
    except ValueError as error:
        raise InvalidRequest(
            f"The table property {key} = '{text}' is no whole number; set it to one.", code="TAHOE_TABLE_PROPERTY", value=text
        ) from error
