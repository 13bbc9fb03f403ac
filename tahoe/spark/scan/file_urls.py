"""The URLs by which Spark opens a table's data files, after checking that they may belong to the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.spark.jvm.storage import refuse_links_out
from tahoe.store.location import absolute_url, decode_path, is_outside, local_path
from tahoe.store.log_store import LogStore

__all__ = ["PLAIN_PATH", "file_urls"]

PLAIN_PATH = r"^([A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*/)*[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*$"
"""The pattern of nearly every path in a log: relative, no escapes, no part that begins with a dot, no doubled slash."""


def file_urls(paths: pa.ChunkedArray, store: LogStore, sizes: pa.ChunkedArray | None = None) -> pa.Array:
    """Return absolute percent-encoded URLs of the log's paths, each below the root of the table or of a table that it is a clone of."""
    paths, root_url = paths.combine_chunks(), store.url
    plain = bool(pc.all(pc.match_substring_regex(paths, PLAIN_PATH), min_count=0).as_py())
    names = paths.to_pylist() if plain else [decode_path(path, root_url, outside=True) for path in paths.to_pylist()]
    _refuse_links(store, names, [] if sizes is None else sizes.to_pylist())
    if plain:
        return pc.binary_join_element_wise(absolute_url(root_url, "x").removesuffix("/x"), paths, "/")
    return pa.array([absolute_url(root_url, name) for name in names], pa.string())


def _refuse_links(store: LogStore, names: Sequence[str], sizes: Sequence[int]) -> None:
    """Call `refuse_links_out` for the table's folder and for the folders that it is a clone of."""
    size_of = dict(zip(names, sizes, strict=False))
    by_root: dict[str, dict[str, int | None]] = {store.url: {}}
    for name in names:
        root, inside = (store.url, name) if not is_outside(name) else _root_of(store, name)
        by_root.setdefault(root, {})[inside] = size_of.get(name)
    for root, files in by_root.items():
        folder = local_path(root)
        if folder is not None:
            logged = [size for size in files.values() if size is not None]
            refuse_links_out(folder, list(files), logged if len(logged) == len(files) else [])


def _root_of(store: LogStore, name: str) -> tuple[str, str]:
    root, inside = store.outside.at(name)
    return root.url, inside
