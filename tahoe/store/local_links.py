"""Symbolic links in a table's folder on a local disk. Object stores have none."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tahoe.store.location import local_path
from tahoe.store.log_store import LogStore, at_storage


def links_among(store: LogStore, names: Sequence[str]) -> set[str]:
    """Return the names of files and folders that are symbolic links."""
    return set() if local_path(store.url) is None else at_storage(store, _links_among, names)


def real_names(store: LogStore, names: Sequence[str]) -> set[str]:
    """Return the names of files below the root, after following symbolic links; none in object stores."""
    return set() if local_path(store.url) is None else at_storage(store, _real_names, names)


def _links_among(store: LogStore, names: Sequence[str]) -> set[str]:
    root = local_path(store.url)
    return {name for name in names if os.path.islink(f"{root}/{name}")}


def _real_names(store: LogStore, names: Sequence[str]) -> set[str]:
    root = local_path(store.url) or ""
    real_root = os.path.realpath(root)
    real_paths = (os.path.realpath(f"{root}/{name}") for name in names if "\0" not in name)
    return {path[len(real_root) + 1 :] for path in real_paths if path.startswith(f"{real_root}/")}
