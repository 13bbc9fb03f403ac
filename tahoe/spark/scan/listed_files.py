"""The files of a scan, as Spark expects them: their URLs, after checking that they may belong to the table, and their groups by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.bulk_objects import LoggedValues, directories, rows_matching
from tahoe.spark.jvm.storage import refuse_links_out
from tahoe.store.location import absolute_url, decode_path, is_outside, local_path
from tahoe.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class Listing:
    """Files to scan, one row each, in any order.

    Args:
        files: the percent-encoded absolute ``url``, the ``size`` in bytes and the ``modificationTime`` in milliseconds.
        partition_values: of the files.
    """

    files: pa.Table
    partition_values: LoggedValues


def list_files(jvm: Jvm, listing: Listing) -> JavaObject:
    """Return the result of ``FileIndex.listFiles``: a Scala `Seq` with a `PartitionDirectory` for each partition."""
    count, values = len(listing.files), listing.partition_values
    if not count:
        return jvm.seq()
    groups = _grouped(values.columns) if values.columns else _Groups.whole(count)
    return directories(jvm, listing.files.take(groups.order), groups.stops, replace(values, columns=groups.values))


def files_where(jvm: Jvm, expression: JavaObject, attributes: Sequence[JavaObject], values: LoggedValues) -> pa.Array:
    """Return the row numbers of the files for whose partition values Catalyst evaluates a filter to true.

    Args:
        attributes: the partition columns in the filter.
        values: of these columns.
    """
    inputs = jvm.java_class("org.apache.spark.sql.catalyst.expressions.package$AttributeSeq")(jvm.seq(*attributes))
    predicate = jvm.catalyst("expressions.InterpretedPredicate")(
        jvm.catalyst("expressions.BindReferences").bindReference(expression, inputs, False)
    )
    predicate.initialize(0)
    groups = _grouped(values.columns)
    return groups.members_where(rows_matching(jvm, predicate, replace(values, columns=groups.values)))


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


def _grouped(columns: Sequence[pa.Array | pa.ChunkedArray]) -> _Groups:
    names = [str(position) for position in range(len(columns))]
    table = pa.table([*columns, pa.array(range(len(columns[0])), pa.int64())], [*names, "row"])
    grouped = table.group_by(names, use_threads=False).aggregate([("row", "list")])
    lists = grouped["row_list"].combine_chunks()
    offsets = lists.offsets
    values = [grouped[name].combine_chunks() for name in names]
    return _Groups(lists.values, offsets.slice(0, len(lists)), offsets.slice(1), values)


# -- URLs --------------------------------------------------------------------------------------------------------------

_PLAIN_PATH = r"^([A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*/)*[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*$"
"""The pattern of nearly every path in a log: relative, no escapes, no part that begins with a dot, no doubled slash."""


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Data files by their names in the store and by their absolute percent-encoded URLs."""

    names: list[str]
    urls: pa.Array

    @classmethod
    def of(cls, paths: pa.ChunkedArray, store: LogStore) -> NamedFiles:
        """Resolve the log's paths, each below the root of the table or of a table that it is a clone of."""
        paths, root_url = paths.combine_chunks(), store.url
        if pc.all(pc.match_substring_regex(paths, _PLAIN_PATH), min_count=0).as_py():
            urls = pc.binary_join_element_wise(absolute_url(root_url, "x").removesuffix("/x"), paths, "/")
            return cls(paths.to_pylist(), urls)
        names = [decode_path(path, root_url, outside=True) for path in paths.to_pylist()]
        return cls(names, pa.array([absolute_url(root_url, name) for name in names], pa.string()))


def refuse_links(store: LogStore, names: Sequence[str], sizes: Sequence[int]) -> None:
    """Call `refuse_links_out` for the table's folder and for the folders that it is a clone of."""
    size_of = dict(zip(names, sizes, strict=True))
    by_root: dict[str, dict[str, int | None]] = {store.url: {}}
    for name in names:
        root, inside = (store.url, name) if not is_outside(name) else _root_of(store, name)
        by_root.setdefault(root, {})[inside] = size_of[name]
    for root, files in by_root.items():
        folder = local_path(root)
        if folder is not None:
            logged = [size for size in files.values() if size is not None]
            refuse_links_out(folder, list(files), logged if len(logged) == len(files) else [])


def _root_of(store: LogStore, name: str) -> tuple[str, str]:
    root, inside = store.outside.at(name)
    return root.url, inside
