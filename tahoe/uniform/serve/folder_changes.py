"""Changes of the folders of a warehouse: namespaces with their properties, tables dropped and moved.

A dropped table vanishes at once: locally by renaming its folder to a hidden one, in an object store by deleting its log first. All names are
names in the warehouse's store, checked by `Warehouse`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial

from tahoe.base.exceptions import InvalidRequest, StorageFailure, Unsupported
from tahoe.base.json_values import compact_json
from tahoe.store.location import local_path
from tahoe.store.log_store import Exists, FolderStore
from tahoe.uniform.formats.metadata_files import FOLDER

_MARKER = ".namespace.json"
"""The file with the properties of a namespace; in an object store it is what makes an empty namespace exist."""
_LOG = "_delta_log/"


def namespace_properties(store: FolderStore, folder: str) -> dict[str, str]:
    """Return the properties of a namespace; empty if none were set."""
    name = _marker(folder)
    if store.head(name) is None:
        return {}
    try:
        value = json.loads(store.get(name))
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise StorageFailure(
            f"{store.url}/{name}, the properties of the namespace, is no JSON object of texts. Correct or delete it.",
            code="TAHOE_NAMESPACE_PROPERTIES",
        )
    return value


def make_namespace(store: FolderStore, folder: str, properties: Mapping[str, str]) -> None:
    """Make an empty namespace. Raises `InvalidRequest` (``TAHOE_NAMESPACE_EXISTS``) if another client was faster."""
    if isinstance(store.put_if_absent(_marker(folder), _content(properties)), Exists):
        raise InvalidRequest(f"There is a folder {store.url}/{folder} already.", code="TAHOE_NAMESPACE_EXISTS")


def is_made(store: FolderStore, folder: str) -> bool:
    """Whether a client made the folder as a namespace."""
    return store.head(_marker(folder)) is not None


def set_namespace_properties(store: FolderStore, folder: str, properties: Mapping[str, str]) -> None:
    """Replace all properties of a namespace."""
    store.put(_marker(folder), _content(properties))


def remove_namespace(store: FolderStore, folder: str) -> None:
    """Remove a namespace without tables. Raises `InvalidRequest` (``TAHOE_NAMESPACE_NOT_EMPTY``) if its folder has anything else."""
    other = next((entry.name for entry in store.walk(folder) if entry.name != _marker(folder)), None)
    if other is not None or store.folders(folder):
        content = other or f"{folder}/{store.folders(folder)[0]}"
        raise InvalidRequest(
            f"The namespace is not empty: its folder has {content}. Drop its tables and namespaces first.",
            code="TAHOE_NAMESPACE_NOT_EMPTY",
        )
    store.delete(_marker(folder))
    root = local_path(store.url)
    if root is not None:
        _locally(store, folder, lambda: os.rmdir(os.path.join(root, folder)))


def make_table_folders(store: FolderStore, folder: str) -> None:
    """Make the folders of the first files of a table; clients expect them on a local disk. An object store has no folders to make."""
    root = local_path(store.url)
    if root is not None:
        for name in ("data", FOLDER):
            path = os.path.join(root, folder, name)
            _locally(store, folder, partial(os.makedirs, path, exist_ok=True))


def remove_table(store: FolderStore, folder: str, hidden: str, *, purges: bool) -> None:
    """Remove a table.

    Args:
        hidden: the name of the hidden folder that it becomes, at once.
        purges: delete the files in it; otherwise they stay.

    Raises `Unsupported`: without `purges`, in an object store, which cannot rename a folder.
    """
    root = local_path(store.url)
    if root is not None:
        move_table(store, folder, hidden)
        if purges:
            _locally(store, hidden, lambda: shutil.rmtree(os.path.join(root, hidden)))
        return
    if not purges:
        raise Unsupported(
            f"The table {store.url}/{folder} can only be dropped with its files (purge): in an object store its files cannot be set aside.",
            code="TAHOE_ICEBERG_DROP",
        )
    names = [entry.name for entry in store.walk(folder)]
    log = [name for name in names if name.startswith(f"{folder}/{_LOG}")]
    for name in (*sorted(log, reverse=True), *sorted(set(names) - set(log))):
        store.delete(name)


def move_table(store: FolderStore, folder: str, target: str) -> None:
    """Rename the folder of a table. Raises `Unsupported` in an object store."""
    root = local_path(store.url)
    if root is None:
        raise Unsupported(
            f"The table {store.url}/{folder} cannot be renamed: in an object store each file would have to be copied. Clone it.",
            code="TAHOE_ICEBERG_RENAME",
        )
    source, destination = os.path.join(root, folder), os.path.join(root, target)
    if os.path.islink(source):
        raise Unsupported(f"The table {store.url}/{folder} is a symbolic link, which stays.", code="TAHOE_ICEBERG_RENAME")

    def move() -> None:
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        os.rename(source, destination)

    _locally(store, folder, move)


def _locally(store: FolderStore, folder: str, run: Callable[[], object]) -> None:
    try:
        run()
    except OSError as error:
        raise StorageFailure(
            f"The folder {store.url}/{folder} cannot be changed: {error.strerror}.", code="TAHOE_STORAGE"
        ) from error


def _marker(folder: str) -> str:
    return f"{folder}/{_MARKER}" if folder else _MARKER


def _content(properties: Mapping[str, str]) -> bytes:
    return compact_json(dict(properties)).encode("utf-8", "surrogatepass")
