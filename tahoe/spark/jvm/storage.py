"""Converts Spark's storage settings to the store that reads the log: Hadoop settings to object store options."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from tahoe.api.table import Table, another_handle
from tahoe.base.cache import keep
from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.snapshot.arrow_reader import wrong_size
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.store.hadoop_settings import KEY_STORE, hadoop_prefixes, storage_options
from tahoe.store.location import table_url
from tahoe.store.log_store import LogStore
from tahoe.txn.commit import Committed
from tahoe.txn.hooks import Hook

if TYPE_CHECKING:
    from tahoe.coordinator.sql_coordinator import SqlCoordinator


COORDINATOR = "spark.tahoe.coordinator"
"""The session setting that names the coordinator of catalog-managed tables, as a URL for `SqlCoordinator`."""

Compactor: TypeAlias = Callable[[Table, Committed], None]
RemoteCompactor: TypeAlias = Callable[[SparkSession, Table, Committed], None]

# If there are this many files, their folder is listed instead of checking each file.
_MANY = 100
_MOST_SIZES = 10_000
"""The sizes of up to this many files per folder are checked, at some 10 microseconds each on a local disk."""


def hadoop_url(url: str) -> str:
    """Return a table's URL with the scheme that Hadoop supports."""
    return "s3a" + url[2:] if url.startswith("s3://") else url


def hadoop_path(url: str) -> str:
    """Return a table's URL as a Hadoop path, which delta-spark uses in results: ``file:/data/t``."""
    return f"file:{url[7:]}" if url.startswith("file:///") else hadoop_url(url)


def table_at(spark: SparkSession, path: str, options: Mapping[str, str]) -> Table:
    """Return a new handle of the table at a path. All handles share the newest snapshot, so that only new commits are read.

    Args:
        options: of the reader or writer; its ``fs.…`` settings override the session's.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``) for the coordinator option, which is for the portable data source.
    """
    if any(name.lower() == "coordinator" for name in options):
        raise Unsupported(
            f"The option 'coordinator' for table {path} is for the portable data source (Spark Connect). Here leave it out, and name "
            f"the coordinator for all tables: tahoe.enable(spark, coordinator=…), or the setting {COORDINATOR}.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option="coordinator",
        )
    url, coordinator = table_url(_qualified(spark, path)), _coordinator_of(spark)
    remote = _REMOTE_STORES.get(spark)
    # The variables of this process are not those of the server.
    translated = storage_options(url, _hadoop(spark, url, options), os.environ if remote is None else {})
    place = _Place(
        url, tuple(sorted(translated.items())), coordinator, "" if remote is None else str(cast(Any, spark).session_id)
    )
    table = _kept(place, None if remote is None else lambda: remote(path, url, translated))
    compactor = None if is_classic(spark) else _COMMIT_HOOKS.remote_compactor
    return another_handle(table, None if compactor is None else partial(compactor, spark), partial(_COMMIT_HOOKS.metadata, spark))


def _coordinator_of(spark: SparkSession) -> str:
    """Return the URL of the coordinator that the session names; a session of Spark Connect has none."""
    return str(spark.conf.get(COORDINATOR, "")) if is_classic(spark) else ""


def reaches_storage_by_server(spark: SparkSession) -> bool:
    """Whether the server of a Spark Connect session reads and writes the tables' logs."""
    return spark in _REMOTE_STORES


RemoteStores: TypeAlias = Callable[[str, str, dict[str, str]], LogStore]
"""Returns the store for a path as the user wrote it, its URL, and its options."""


def reach_storage_by(spark: SparkSession, stores: RemoteStores) -> None:
    """Open the tables of a Spark Connect session with stores that access the storage through its server."""
    _REMOTE_STORES[spark] = stores


_REMOTE_STORES: WeakKeyDictionary[SparkSession, RemoteStores] = WeakKeyDictionary()


def _qualified(spark: SparkSession, path: str) -> str:
    """Return a path without a scheme as a URL of Hadoop's default file system, as Spark reads it; a local path unchanged."""
    if ":/" in path or not is_classic(spark):
        return path
    jvm = Jvm.of(spark)
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    if str(jvm.cached("fs.defaultFS", lambda: configuration.get("fs.defaultFS", "file:///"))).startswith("file:"):
        return path
    hadoop_path = jvm.java_class("org.apache.hadoop.fs.Path")(path)
    return str(hadoop_path.getFileSystem(configuration).makeQualified(hadoop_path).toString())


def refuse_links_out(root: str, names: Sequence[str], sizes: Sequence[int] = ()) -> None:
    """Reject data files that symbolic links place outside a local table's folder, because Spark would follow them, and files whose size
    differs from the log's: Spark ignores row groups beyond the logged size.

    If more than `_MOST_SIZES` files of one folder are read, their sizes are not checked, because each check is a file system call.

    Args:
        root: the table's folder.
        names: store names of the files to read.
        sizes: their sizes in bytes, from the log.

    Raises `CorruptTable` (`TAHOE_PATH_OUTSIDE_TABLE`, `TAHOE_DATA_FILE_SIZE`) with the file's name.
    """
    real_root = os.path.realpath(root)
    expected = dict(zip(names, sizes, strict=False))
    for folder, files in _by_folder(names).items():
        path = os.path.join(root, folder)
        links = [folder] if folder and os.path.realpath(path) != os.path.join(real_root, folder) else []
        linked = _links(path, files, {file: expected.get(os.path.join(folder, file)) for file in files})
        for name in [*links, *(os.path.join(folder, file) for file in linked)]:
            if not f"{os.path.realpath(os.path.join(root, name))}/".startswith(f"{real_root}/"):
                raise CorruptTable(
                    f"'{name}' of table '{root}' is a symbolic link that leads out of the table; it is not followed, because it could name "
                    "any file of this machine. Put the file itself in its place.",
                    code="TAHOE_PATH_OUTSIDE_TABLE",
                    table=root,
                    path=name,
                )


def _by_folder(names: Sequence[str]) -> dict[str, list[str]]:
    by_folder: dict[str, list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        by_folder.setdefault(folder, []).append(file)
    return by_folder


def _links(folder: str, files: list[str], sizes: Mapping[str, int | None]) -> list[str]:
    """Return the files that are symbolic links. The call that detects a link also returns the size, which is checked too."""
    if len(files) < _MANY:
        return [file for file in files if _is_link(folder, file, sizes[file])]
    names = set(files)
    try:
        with os.scandir(folder) as entries:
            links = {entry.name for entry in entries if entry.is_symlink() and entry.name in names}
    except FileNotFoundError:
        return []
    if len(files) <= _MOST_SIZES:
        links.update(file for file in files if _is_link(folder, file, sizes[file]))
    return [file for file in files if file in links] if links else []


def _is_link(folder: str, file: str, size: int | None) -> bool:
    try:
        status = os.lstat(os.path.join(folder, file))
    except OSError:  # opening the file raises the same error
        return False
    if stat.S_ISREG(status.st_mode) and size is not None and status.st_size != size:
        raise wrong_size(os.path.join(folder, file), status.st_size, size)
    return stat.S_ISLNK(status.st_mode)


@dataclass(frozen=True, slots=True)
class _Place:
    """The arguments of `Table` for the tables of a session.

    Args:
        session: the id of the session that reaches the storage; empty if this process does.
    """

    url: str
    options: tuple[tuple[str, str], ...]
    coordinator: str
    session: str


def _kept(place: _Place, open_remote: Callable[[], LogStore] | None) -> Table:
    def opened() -> Table:
        return Table(
            place.url,
            storage_options=dict(place.options),
            store=None if open_remote is None else open_remote(),
            hooks=(_COMMIT_HOOKS.follow,),
            compactor=_COMMIT_HOOKS.compact,
            coordinator=_coordinator(place.coordinator) if place.coordinator else None,
        )

    return keep("tables", place, opened, Table.bytes_in_memory, grows=True)


def name_coordinator(spark: SparkSession, coordinator: SqlCoordinator) -> None:
    """Make the session's tables use this coordinator. The session's setting contains its URL without a password; the rest stays here."""
    _COORDINATORS[coordinator.shown_url] = coordinator
    spark.conf.set(COORDINATOR, coordinator.shown_url)


def _coordinator(url: str) -> SqlCoordinator:
    if url not in _COORDINATORS:
        from tahoe.coordinator.sql_coordinator import SqlCoordinator

        _COORDINATORS[url] = SqlCoordinator(url)
    return _COORDINATORS[url]


_COORDINATORS: dict[str, SqlCoordinator] = {}
"""The coordinators by the text of the setting."""


class _CommitHooks:
    """The hooks that run after commits through these tables; the session enabled last defines them."""

    after: Hook | None = None
    compactor: Compactor | None = None
    remote_after: Hook | None = None
    remote_compactor: RemoteCompactor | None = None
    user_metadata: Callable[[SparkSession], str | None] | None = None

    def __reduce__(self) -> str:
        """Pickle a reference: a table that a function takes to another process has the hooks of that process."""
        return "_COMMIT_HOOKS"

    def compact(self, table: Table, committed: Committed) -> None:
        if self.compactor is not None:
            self.compactor(table, committed)

    def follow(self, committed: Committed) -> None:
        for hook in (self.after, self.remote_after):
            if hook is not None:
                hook(committed)

    def metadata(self, spark: SparkSession) -> str | None:
        return None if self.user_metadata is None else self.user_metadata(spark)


_COMMIT_HOOKS = _CommitHooks()


def after_commits(hook: Hook, compactor: Compactor) -> None:
    """Run a hook after each commit through `table_at`, then a compaction of small files; both replace earlier hooks."""
    _COMMIT_HOOKS.after, _COMMIT_HOOKS.compactor = hook, compactor


def after_remote_commits(hook: Hook, compactor: RemoteCompactor) -> None:
    """Run a hook after each commit through `table_at`, then a compaction of small files if the session is one of Spark Connect."""
    _COMMIT_HOOKS.remote_after, _COMMIT_HOOKS.remote_compactor = hook, compactor


def describe_commits(user_metadata: Callable[[SparkSession], str | None]) -> None:
    """Give each commit through `table_at` the user metadata of its session, unless it has its own."""
    _COMMIT_HOOKS.user_metadata = user_metadata


def _hadoop(spark: SparkSession, url: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for the store of a URL: the session's, overridden by the options."""
    prefixes = hadoop_prefixes(url)
    settings: dict[str, str] = {}
    if prefixes and is_classic(spark):
        jvm = spark.sparkContext._jvm
        assert jvm is not None, "a classic session has a JVM"
        configuration, join = spark._jsparkSession.sessionState().newHadoopConf(), jvm.java.lang.String.join
        if key_store := configuration.get(KEY_STORE):
            settings[KEY_STORE] = str(key_store)
        for prefix in prefixes:
            properties = configuration.getPropsWithPrefix(prefix)
            # Two texts, because each entry of a Java map costs two round trips. A map has its keys and values in one order.
            names, values = join("\0", properties.keySet()).split("\0"), join("\0", properties.values()).split("\0")
            settings |= {f"{prefix}{name}": value for name, value in zip(names, values, strict=True) if name}
    return {**settings, **options}
