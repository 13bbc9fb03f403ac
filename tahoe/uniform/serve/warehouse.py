"""The Delta tables below one folder as an Iceberg catalog: a folder is a namespace, a folder with a log is a table.

Names are untrusted. Each part is looked up as a name and never read as a path: a name with a slash, a leading dot, or a
control character matches nothing. Symbolic links that lead out of the warehouse are ignored.
"""

from __future__ import annotations

import logging
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from threading import Lock

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import Coordinator
from tahoe.log.files.commits import read_commit
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import LostVersions, Snapshot
from tahoe.store.location import local_path
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.without_uniform import MetadataFolder, with_uniform
from tahoe.uniform.external.metadata_listing import CurrentMetadata, newest_metadata, newest_number
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name
from tahoe.uniform.handle import UniformHandle
from tahoe.uniform.runtime import UniformRuntime
from tahoe.uniform.serve.folder_changes import (
    is_made,
    make_namespace,
    make_table_folders,
    move_table,
    namespace_properties,
    remove_namespace,
    remove_table,
    set_namespace_properties,
)

logger = logging.getLogger(__name__)


Namespace = tuple[str, ...]

DEFAULT = "default"
"""The namespace of the tables directly in the warehouse's folder: every Iceberg table needs a namespace."""

NAMESPACE_NOT_FOUND = "TAHOE_NAMESPACE_NOT_FOUND"
NAMESPACE_EXISTS = "TAHOE_NAMESPACE_EXISTS"
TABLE_NOT_FOUND = "DELTA_TABLE_NOT_FOUND"

_LOG_FOLDER = "_delta_log"
_DROPPED = ".dropped"
"""The hidden folder of dropped tables: in the warehouse's own, so that their namespaces can be dropped, too."""
_UUID = "[0-9a-f-]{36}"
_TABLES_KEPT = 64
_MOST_LEVELS = 32
_LONGEST_NAME = 255
_THREADS = 16


class Warehouse:
    """The tables below a folder or URL.

    Args:
        path: the folder above the tables, or its URL.
        storage_options: options for the object store; never exposed.
        runtime: the state that conversions of the tables share.
        wait_seconds: how long `load` waits for a conversion.
        coordinator: the commit coordinator of catalog-managed tables; without it these raise an error.
        metadata_path: the folder or URL for the metadata of tables without UniForm, which are served too; None does not serve them.

    Raises:
        InvalidRequest: the folder is a table itself, or `metadata_path` is in it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        runtime: UniformRuntime,
        clock: Clock = SYSTEM_CLOCK,
        wait_seconds: float = 30.0,
        coordinator: Coordinator | None = None,
        metadata_path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._store = open_store(path, storage_options)
        self._options = storage_options
        self._runtime = runtime
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._coordinator = coordinator
        self._tables: OrderedDict[str, _Table] = OrderedDict()
        self._lock = Lock()
        self._beside = None if metadata_path is None else MetadataFolder(metadata_path, self.url, storage_options)
        if self._store.has_folder(_LOG_FOLDER):
            raise InvalidRequest(
                f"'{self.url}' is a Delta table itself: pass the folder above it.",
                code="TAHOE_WAREHOUSE_IS_A_TABLE",
                path=self.url,
            )

    @property
    def url(self) -> str:
        """The URL of the folder above the tables."""
        return self._store.url

    def refuse_if_absent(self) -> None:
        """Check that the folder exists: a mistyped folder would be served as a warehouse without tables.

        Object stores have no folders, so a missing prefix there is an empty warehouse.

        Raises:
            NotFound: there is no such folder, or it is a file.
            StorageFailure: it cannot be listed.
        """
        path = local_path(self.url)
        if path is not None and not os.path.isdir(path):
            problem = "is not a folder" if os.path.lexists(path) else "does not exist"
            raise NotFound(
                f"'{self.url}' {problem}: pass the folder above the tables, or create it first.",
                code="TAHOE_WAREHOUSE_NOT_FOUND",
                path=self.url,
            )
        self._store.folders()

    def namespaces(self, parent: Namespace = ()) -> Iterator[Namespace]:
        """Yield the namespaces directly in `parent`, sorted. Raises `NotFound` if there is no such namespace."""
        if not parent:
            yield from sorted({(DEFAULT,)} | {(name,) for name in self._folders("") if self._has_tables(name)})
            return
        folder = self._existing(parent)[-1]
        if folder:
            for name in self._folders(folder):
                if self._has_tables(f"{folder}/{name}"):
                    yield (*parent, name)

    def has_namespace(self, namespace: Namespace) -> bool:
        """Whether there is such a namespace; False for an invalid name."""
        return bool(self._folders_of(namespace))

    def tables(self, namespace: Namespace) -> Iterator[str]:
        """Yield the names of the tables directly in a namespace, sorted, whether or not UniForm is enabled on them.

        Raises:
            NotFound: there is no such namespace.
        """
        yield from (name for name, _ in self._tables_in(namespace))

    def _tables_in(self, namespace: Namespace) -> Iterator[tuple[str, str]]:
        """Yield the names of `tables` with their folders."""
        candidates = ((name, folder) for folder in self._existing(namespace) for name in self._folders(folder))
        last = None
        for name, folder in sorted(candidates):
            if name != last and self._is_table(path := _join(folder, name)):
                last = name
                yield name, path

    def iceberg_tables(self, namespace: Namespace) -> Iterator[str]:
        """Yield the names of `tables` that have UniForm enabled, or of all of them if tables without it are served too. A table that cannot
        be read is one of them: loading it gives the reason.

        The first use of a table reads its log; later ones read only what is new.
        """
        tables = self._tables_in(namespace)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-warehouse") as pool:
            while some := list(islice(tables, 4 * _THREADS)):
                served = pool.map(lambda table: self._table(table[1]).is_served(), some)
                yield from (name for (name, _), is_served in zip(some, served, strict=True) if is_served)

    def has_table(self, namespace: Namespace, name: str) -> bool:
        """Whether there is a table with that name, whether or not UniForm is enabled on it."""
        return bool(self._folders_of_table(namespace, name))

    def load(self, namespace: Namespace, name: str) -> CurrentMetadata:
        """Return the Iceberg metadata of a table's newest version; an outdated table is converted first.

        Raises:
            NotFound: there is no such namespace or table.
            InvalidRequest: UniForm is not enabled on the table, and tables without it are not served or Iceberg cannot show this one; or two
                tables have the name.
            StorageFailure: the newest version was not converted within `wait_seconds`, or the conversion failed.
            ForeignWriter: another writer has committed to the table's Iceberg side.
        """
        return self._table(self._folder_of(namespace, name)).current(self._wait_seconds)

    def load_with_version(self, namespace: Namespace, name: str) -> tuple[CurrentMetadata, Snapshot]:
        """Return the Iceberg metadata of a table's newest version as `load` does, and the Delta version that it shows."""
        table = self._table(self._folder_of(namespace, name))
        current = table.current(self._wait_seconds)
        return current, table.snapshot_read(current.version)

    def snapshot(self, namespace: Namespace, name: str) -> Snapshot:
        """Return the newest version of a table. Raises `NotFound` and `InvalidRequest` as `load` does."""
        return self._table(self._folder_of(namespace, name)).snapshot()

    def load_committed(self, namespace: Namespace, name: str, snapshot: Snapshot) -> CurrentMetadata:
        """Return Iceberg metadata that shows a version which this process has committed, or a later one. Raises as `load` does."""
        return self._table(self._folder_of(namespace, name)).current(self._wait_seconds, snapshot)

    def iceberg_note(self, namespace: Namespace, name: str) -> str:
        """Return whether and how the table is served as Iceberg, in a few words or with the reason why it is not.

        Does not convert the table, so a file that Iceberg cannot show becomes known when a client loads it.
        """
        return self._table(self._folder_of(namespace, name)).note()

    def url_of(self, namespace: Namespace, name: str) -> str:
        """Return the URL of a table. Raises `NotFound` and `InvalidRequest` as `load` does."""
        return f"{self.url}/{self._folder_of(namespace, name)}"

    def properties_of(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace. Raises `NotFound` if there is no such namespace."""
        return namespace_properties(self._store, self._existing(namespace)[0])

    def prepare_folder(self, namespace: Namespace, name: str) -> None:
        """Make the folders in which a client writes the first files of a staged table. In object stores there is nothing to make."""
        make_table_folders(self._store, self.new_url(namespace, name).removeprefix(f"{self.url}/"))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace, a folder. Raises `InvalidRequest`: it exists, a table has the name, or no folder can have it."""
        folder = "/".join(namespace)
        if not namespace or len(namespace) > _MOST_LEVELS or not all(map(_can_be_named, namespace)):
            raise InvalidRequest(
                f"A namespace cannot be named {folder[:_LONGEST_NAME]!r}: its folder would be hidden, or have an invalid name.",
                code="TAHOE_TABLE_NAME",
            )
        above = ("/".join(namespace[:level]) for level in range(1, len(namespace) + 1))
        if namespace == (DEFAULT,) or self._is_namespace(namespace) or any(map(self._is_table, above)):
            raise InvalidRequest(f"There is a namespace or table '{'.'.join(namespace)}' already.", code=NAMESPACE_EXISTS)
        make_namespace(self._store, folder, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an empty namespace. Raises `NotFound`, and `InvalidRequest` if it has tables or other files."""
        folder = self._existing(namespace)[-1]
        if not folder:
            raise InvalidRequest(
                f"The namespace '{DEFAULT}' is the warehouse's folder and stays.", code="TAHOE_NAMESPACE_NOT_EMPTY"
            )
        remove_namespace(self._store, folder)

    def set_properties(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Replace the properties of a namespace. Raises `NotFound`."""
        set_namespace_properties(self._store, self._existing(namespace)[0], properties)

    def drop_table(self, namespace: Namespace, name: str, *, purges: bool) -> None:
        """Remove a table; without `purges` its files stay in a hidden folder of the warehouse. Raises `NotFound` and `Unsupported`."""
        folder = self._folder_of(namespace, name)
        self._finish_conversions(folder)
        hidden = f".purged-{self._clock.uuid()}" if purges else f"{_DROPPED}/{folder}-{self._clock.uuid()}"
        remove_table(self._store, folder, hidden, purges=purges)
        self._forget(folder)

    def restore_dropped(self, namespace: Namespace, name: str, metadata_file: str) -> bool:
        """Move a dropped table back to its name; return whether there is one.

        Args:
            metadata_file: the name of its newest metadata file.

        Raises `InvalidRequest` if several dropped tables had the name, and this is the newest metadata file of each.
        """
        folder = self.folder_url(namespace, name).removeprefix(f"{self.url}/")
        above, _, last = f"{_DROPPED}/{folder}".rpartition("/")
        if self._store.has_folder(folder) or not self._store.has_folder(above):
            return False
        dropped = [f"{above}/{each}" for each in self._store.folders(above) if re.fullmatch(f"{re.escape(last)}-{_UUID}", each)]
        ended = [each for each in dropped if self._newest_metadata_file(each) == metadata_file]
        if len(ended) > 1:
            raise InvalidRequest(
                f"{len(ended)} dropped tables named '{name}' have the newest metadata file {metadata_file}. Move one of these folders to "
                f"{self.url}/{folder}: {', '.join(sorted(ended))}.",
                code="TAHOE_AMBIGUOUS_TABLE",
                name=name,
            )
        for each in ended:
            move_table(self._store, each, folder)
        return bool(ended)

    def _newest_metadata_file(self, folder: str) -> str | None:
        number = newest_number(self._store_of(folder))
        return None if number is None else metadata_name(number)

    def rename_table(self, source: tuple[Namespace, str], target: tuple[Namespace, str]) -> None:
        """Move a table to another name; the next load converts it again, since Iceberg metadata contains the location of each file.

        Raises:
            NotFound: there is no such table, or no such target namespace.
            InvalidRequest: there is a table or a namespace with the new name.
            Unsupported: in an object store.
        """
        folder = self._folder_of(*source)
        destination = self.new_url(*target).removeprefix(f"{self.url}/")
        if self._store.has_folder(destination):
            raise InvalidRequest(
                f"The table cannot be renamed to '{target[1]}': there is a folder {self.url}/{destination}. Choose another name.",
                code="DELTA_TABLE_ALREADY_EXISTS",
                name=target[1],
            )
        self._finish_conversions(folder)
        move_table(self._store, folder, destination)
        self._forget(folder)

    def _finish_conversions(self, folder: str) -> None:
        """Wait for conversions of this process, which would write to the folder after it is gone."""
        self._runtime.queue.drain(self._wait_seconds, f"{self.url}/{folder}")

    def _forget(self, folder: str) -> None:
        with self._lock:
            self._tables.pop(folder, None)

    def folder_url(self, namespace: Namespace, name: str) -> str:
        """Return the URL of the folder of a name, whether or not there is a table.

        Raises:
            NotFound: there is no such namespace.
            InvalidRequest: no folder can have the name.
        """
        folder = self._existing(namespace)[-1]
        if not _can_be_named(name):
            raise InvalidRequest(
                f"A table cannot be named {name[:_LONGEST_NAME]!r}: its folder would be hidden, or have an invalid name.",
                code="TAHOE_TABLE_NAME",
            )
        return f"{self.url}/{_join(folder, name)}"

    def new_url(self, namespace: Namespace, name: str) -> str:
        """Return the URL for a new table. Raises as `folder_url`, and `InvalidRequest` if there is a table of that name."""
        url = self.folder_url(namespace, name)
        existing = self._folders_of_table(namespace, name)
        if existing:
            raise InvalidRequest(
                f"There is a table '{name}' in namespace '{'.'.join(namespace)}' already: {self.url}/{existing[0]}.",
                code="DELTA_TABLE_ALREADY_EXISTS",
                name=name,
            )
        return url

    def _folder_of(self, namespace: Namespace, name: str) -> str:
        self._existing(namespace)
        folders = self._folders_of_table(namespace, name)
        if not folders:
            raise NotFound(
                f"There is no table '{name}' in namespace '{'.'.join(namespace)}' of {self.url}. A table is a folder that contains "
                f"{_LOG_FOLDER}.",
                code=TABLE_NOT_FOUND,
                name=name,
            )
        if len(folders) > 1:
            raise InvalidRequest(
                f"Two tables are named {DEFAULT}.{name}: {self.url}/{folders[0]} and {self.url}/{folders[1]}. Rename one folder.",
                code="TAHOE_AMBIGUOUS_TABLE",
                name=name,
            )
        return folders[0]

    def _table(self, folder: str) -> _Table:
        with self._lock:
            table = self._tables.pop(folder, None) or _Table(self._store_of(folder), self._runtime, self._clock, self._beside)
            self._tables[folder] = table
            if len(self._tables) > _TABLES_KEPT:
                self._tables.popitem(last=False)
            return table

    def _store_of(self, folder: str) -> LogStore:
        store = open_store(f"{self.url}/{folder}", self._options)
        return store if self._coordinator is None else CoordinatedStore(store, self._coordinator, self._clock)

    def _existing(self, namespace: Namespace) -> list[str]:
        folders = self._folders_of(namespace)
        if not folders:
            raise NotFound(
                f"There is no namespace '{'.'.join(namespace)}' in {self.url}: no folder has that name, or it is a table.",
                code=NAMESPACE_NOT_FOUND,
                namespace=".".join(namespace),
            )
        return folders

    def _folders_of(self, namespace: Namespace) -> list[str]:
        """Return the store names of the folders that make up a namespace; '' is the warehouse's own."""
        root = [""] if namespace == (DEFAULT,) else []
        return root + (["/".join(namespace)] if self._is_namespace(namespace) else [])

    def _folders_of_table(self, namespace: Namespace, name: str) -> list[str]:
        if not _can_be_named(name):
            return []
        return [path for folder in self._folders_of(namespace) if self._is_table(path := _join(folder, name))]

    def _is_namespace(self, namespace: Namespace) -> bool:
        if not namespace or len(namespace) > _MOST_LEVELS or not all(map(_can_be_named, namespace)):
            return False
        folders = ["/".join(namespace[: level + 1]) for level in range(len(namespace))]
        return self._store.has_folder(folders[-1]) and not any(self._is_table(folder) for folder in folders)

    def _is_table(self, folder: str) -> bool:
        return self._store.has_folder(f"{folder}/{_LOG_FOLDER}")

    def _has_tables(self, folder: str) -> bool:
        """Whether a folder is of tables: neither of a Delta table, nor of a table of Iceberg that is only staged, or not registered."""
        if self._is_table(folder):
            return False
        below = self._store.folders(folder)
        is_of_iceberg = "data" in below and FOLDER in below and not self._store.folders(f"{folder}/{FOLDER}")
        return not is_of_iceberg or is_made(self._store, folder)

    def _folders(self, folder: str) -> Sequence[str]:
        return [name for name in self._store.folders(folder) if _can_be_named(name)]


class _Table:
    """One table, with the snapshot read last."""

    def __init__(self, store: LogStore, runtime: UniformRuntime, clock: Clock, beside: MetadataFolder | None) -> None:
        self._store = store
        self._latest: Snapshot | None = None
        self._runtime = runtime
        self._clock = clock
        self._beside = beside

    def is_served(self) -> bool:
        """Whether the table is served as Iceberg, or cannot be read."""
        if self._beside is not None:
            return True
        try:
            return uniform_is_enabled(self.snapshot().config.properties)
        except TahoeError:
            return True

    def note(self) -> str:
        """Return whether and how the table is served as Iceberg."""
        newest = self.snapshot()
        last_error = self._runtime.errors.get(self._store.url)
        if last_error is not None:
            return f"no: {last_error.message}"
        if uniform_is_enabled(newest.config.properties):
            return "yes"
        if self._beside is None:
            return "no"
        try:
            with_uniform(newest)
        except TahoeError as error:
            return f"no: {error.message}"
        return "yes, converted by this server"

    def current(self, wait_seconds: float, committed: Snapshot | None = None) -> CurrentMetadata:
        """Return the metadata of the newest version, or of a committed one or a later one."""
        target = self.snapshot() if committed is None else committed
        self._latest = target
        if uniform_is_enabled(target.config.properties):
            delta = DeltaSide(self._store, self.snapshot, partial(read_commit, self._store), self._clock)
        elif self._beside is not None:
            with_uniform(target)  # raises at once if Iceberg lacks the type of a column
            delta = self._beside.delta_side(self._store, target, self.snapshot, self._clock)
        else:
            raise InvalidRequest(
                f"UniForm is not enabled on the Delta table {self._store.url}, so Iceberg cannot read it. Enable it: ALTER TABLE "
                f"delta.`{self._store.url}` SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'iceberg', "
                "'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'). Or start the server with --all.",
                code="TAHOE_UNIFORM_NOT_ENABLED",
                table=self._store.url,
            )
        handle = UniformHandle(delta, self._runtime)
        if committed is not None:
            return handle.metadata_of(handle.start(committed), wait_seconds)
        current = newest_metadata(delta.iceberg_store)
        if current is not None and current.document["location"] != delta.iceberg_store.url:
            handle.sync(rebuild=True)  # the folder was renamed: the metadata has the locations of before
        elif current is not None and current.version >= target.version:
            return current
        else:
            handle.start()
            return handle.metadata_of(target.version, wait_seconds)
        current = newest_metadata(delta.iceberg_store)
        if current is None:
            raise StorageFailure(
                f"The Iceberg metadata of {self._store.url} has vanished. Try again.",
                code="TAHOE_ICEBERG_METADATA_VANISHED",
                table=self._store.url,
            )
        return current

    def snapshot_read(self, version: int) -> Snapshot:
        """Return a version, which is not read again if it is the one that was read last."""
        latest = self._latest
        return latest if latest is not None and latest.version == version else Snapshot.at(self._store, version)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return a version of the table; None is the newest."""
        if version is not None:
            return Snapshot.at(self._store, version)
        latest = self._latest
        try:
            newest = Snapshot.at(self._store) if latest is None else latest.refreshed()
        except LostVersions as lost:  # each request is a new reader
            newest = Snapshot.at(self._store)
            logger.warning("%s It is served as it is now, with version %d.", lost, newest.version)
        self._latest = newest
        return newest


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _can_be_named(name: str) -> bool:
    """Whether a part of a name can be a folder's; names that Spark treats as hidden (``_temporary``, ``.staging``) cannot."""
    if not name or name[0] in "._" or "/" in name or "\\" in name or not name.isprintable():
        return False
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False
