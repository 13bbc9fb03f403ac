"""Iceberg metadata of tables without UniForm, in a folder of the server's own: nothing is written below the tables.

Each table has a folder there, whose name follows from the table's URL and id, and from whether column mapping is in force: a table that was
deleted and created again, or whose columns get other ids, is converted from the beginning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from hashlib import sha256

from tahoe.base.clock import Clock
from tahoe.base.exceptions import InvalidRequest
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import Action
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import local_path, table_url
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.without_uniform import actions_with_uniform, is_mapped, with_uniform


class MetadataFolder:
    """The folder for the metadata of all tables that are converted beside themselves.

    Args:
        path: a folder or URL outside of the warehouse; Iceberg clients must be able to read it.
        warehouse_url: the URL of the folder above the tables.
        storage_options: options for the object store.

    Raises:
        InvalidRequest: the folder is in the warehouse.
    """

    def __init__(
        self, path: str | os.PathLike[str], warehouse_url: str, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self.url = table_url(path)
        self._options = storage_options
        if f"{_resolved(self.url)}/".startswith(f"{_resolved(warehouse_url)}/"):
            raise InvalidRequest(
                f"The folder for converted metadata, {self.url}, is in the warehouse {warehouse_url}, which the server does not change. "
                "Choose a folder outside of it.",
                code="TAHOE_CACHE_IN_WAREHOUSE",
                path=self.url,
            )

    def delta_side(self, store: LogStore, snapshot: Snapshot, read: Callable[[int | None], Snapshot], clock: Clock) -> DeltaSide:
        """Return the Delta side of a table without UniForm, for conversions to this folder.

        Args:
            store: the table's store.
            snapshot: a version of the table.
            read: returns a version; None is the newest.
        """
        mapped = is_mapped(snapshot)
        identity = json.dumps([store.url, snapshot.metadata.id, mapped])
        name = sha256(identity.encode()).hexdigest()[:32]

        def snapshot_at(version: int | None = None) -> Snapshot:
            return with_uniform(read(version))

        def actions(version: int) -> list[Action]:
            return actions_with_uniform(read_commit(store, version), mapped)

        metadata_store = open_store(f"{self.url}/{name}", self._options)
        return DeltaSide(store, snapshot_at, actions, clock, metadata_store)


def _resolved(url: str) -> str:
    """Return a URL without symbolic links, if it is local."""
    path = local_path(url)
    return url if path is None else os.path.realpath(path)
