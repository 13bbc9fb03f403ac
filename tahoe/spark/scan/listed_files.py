"""Groups the files of a scan by partition, as Spark expects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.bulk_objects import directories, rows_matching

__all__ = ["Listing", "files_where", "list_files"]


@dataclass(frozen=True)
class Listing:
    """Files to scan, one row each, in any order.

    Args:
        urls: percent-encoded absolute URLs.
        sizes, modification_times: bytes; milliseconds.
        partition_values: a column of the log's strings for each partition column.
        partition_types: the JSON of each partition column's Spark type.
        time_zone: of timestamps without a zone.
    """

    urls: pa.Array
    sizes: pa.ChunkedArray
    modification_times: pa.ChunkedArray
    partition_values: list[pa.Array]
    partition_types: list[object]
    time_zone: str


def list_files(jvm: Jvm, listing: Listing) -> JavaObject:
    """Return the result of ``FileIndex.listFiles``: a Scala `Seq` with a `PartitionDirectory` for each partition."""
    if not len(listing.urls):
        return jvm.seq()
    groups = _grouped(listing.partition_values) if listing.partition_values else _Groups.whole(len(listing.urls))
    order = groups.order
    return directories(
        jvm,
        listing.urls.take(order),
        listing.sizes.take(order),
        listing.modification_times.take(order),
        groups.stops,
        groups.values,
        listing.partition_types,
        listing.time_zone,
    )


def files_where(
    jvm: Jvm,
    expression: JavaObject,
    attributes: Sequence[JavaObject],
    values: Sequence[pa.Array],
    types: Sequence[object],
    zone: str,
) -> pa.Array:
    """Return the row numbers of the files for whose partition values Catalyst evaluates a filter to true.

    Args:
        attributes: the partition columns in the filter.
        values, types: of these columns, as in `Listing`.
        zone: of timestamps without a zone.
    """
    inputs = jvm.java_class("org.apache.spark.sql.catalyst.expressions.package$AttributeSeq")(jvm.seq(*attributes))
    predicate = jvm.catalyst("expressions.InterpretedPredicate")(
        jvm.catalyst("expressions.BindReferences").bindReference(expression, inputs, False)
    )
    predicate.initialize(0)
    groups = _grouped(values)
    return groups.members_where(rows_matching(jvm, predicate, groups.values, types, zone))


@dataclass(frozen=True)
class _Groups:
    """Rows grouped by equal values.

    Args:
        order: row numbers, group by group.
        starts, stops: the range of each group in `order`.
        values: for each grouping column the value of each group.
    """

    order: pa.Array
    starts: pa.Array
    stops: pa.Array
    values: list[pa.Array]

    @classmethod
    def whole(cls, count: int) -> _Groups:
        return cls(pa.array(range(count), pa.int64()), pa.array([0], pa.int32()), pa.array([count], pa.int32()), [])

    def members_where(self, selected: Sequence[bool]) -> pa.Array:
        """Return the row numbers of the selected groups."""
        parts = [
            self.order[start:stop]
            for start, stop, keep in zip(self.starts.to_pylist(), self.stops.to_pylist(), selected, strict=True)
            if keep
        ]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.int64())


def _grouped(columns: Sequence[pa.Array]) -> _Groups:
    names = [str(position) for position in range(len(columns))]
    table = pa.table([*columns, pa.array(range(len(columns[0])), pa.int64())], [*names, "row"])
    grouped = table.group_by(names, use_threads=False).aggregate([("row", "list")])
    lists = grouped["row_list"].combine_chunks()
    offsets = lists.offsets
    values = [grouped[name].combine_chunks() for name in names]
    return _Groups(lists.values, offsets.slice(0, len(lists)), offsets.slice(1), values)
