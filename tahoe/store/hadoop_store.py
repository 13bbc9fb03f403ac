"""The store over file systems of Hadoop (HDFS, ViewFs) through the JVM of a Spark session.

* **Atomic in content and name.** `put_if_absent` writes a temporary file beside the target and renames it without overwriting, as
  delta-spark's `HDFSLogStore` does: HDFS lets one of many callers win. `put` renames with overwriting.
* **One way to the JVM.** A Spark session passes its `HadoopFiles` to `use_file_systems`. Without a session each call raises an error.

Temporary files are named ``.tahoe-….tmp`` and are never listed. Listings of their folder delete them once they are a day old, since their
writer must have died.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store.location import is_outside, refuse_outside_name
from tahoe.store.log_store import Created, Entry, Exists, LogStore, PutOutcome, Refused, Unanswered
from tahoe.store.outside import OutsideFiles
from tahoe.store.ranged_file import RangedFile, reopened

Options = Mapping[str, str]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class HadoopStatus:
    """A file or folder: its size in bytes, and the time of its last change."""

    is_folder: bool
    size: int
    modified_ms: int


class HadoopFiles(Protocol):
    """Calls to Hadoop's file systems, with URLs that are not percent-encoded.

    A failed call raises `OSError`: `FileNotFoundError` for a missing file, `PermissionError` if access is denied.
    """

    def list(self, folder: str) -> list[tuple[str, HadoopStatus]]:
        """Return the names in a folder; none if there is no such folder."""

    def status(self, file: str) -> HadoopStatus | None:
        """Return the status of a file or folder; None if it is missing."""

    def read(self, file: str, start: int, length: int) -> bytes:
        """Return `length` bytes from the offset `start`."""

    def write(self, file: str, data: bytes) -> None:
        """Create a file, and its folder if necessary."""

    def upload(self, local: str, file: str) -> None:
        """Copy a local file to a new one."""

    def rename(self, source: str, target: str, *, overwrite: bool) -> bool:
        """Rename a file; return False, and rename nothing, if the target exists and must not be overwritten."""

    def delete(self, file: str) -> None:
        """Delete a file; a missing one is not an error."""


Opener: TypeAlias = Callable[[Options], HadoopFiles]
"""Returns the file systems, with the given settings of Hadoop (``fs.…``, ``dfs.…``, ``hadoop.…``) in addition to those of a session."""


class _FileSystems:
    """The access to Hadoop's file systems in this process; the session enabled last defines it."""

    opener: Opener | None = None


def use_file_systems(opener: Opener) -> None:
    """Make all stores use these file systems from their next call on."""
    _FileSystems.opener = opener


HADOOP_PREFIXES = ("fs.", "dfs.", "hadoop.")


class HadoopLogStore:
    """`tahoe.store.log_store.LogStore` over `HadoopFiles`.

    Args:
        url: the table's URL.
        options: settings of Hadoop that override the session's.

    Raises:
        InvalidRequest: an option that is no setting of Hadoop.
        Unsupported: ``TAHOE_NO_HADOOP``, from every call in a process without a Spark session that has a JVM.
    """

    asks_cheaply = False
    """See `LogStore.asks_cheaply`: each call is a request to the name node."""

    def __init__(self, url: str, options: Options) -> None:
        if unknown := [name for name in options if not name.startswith(HADOOP_PREFIXES)]:
            raise InvalidRequest(
                f"Table {url}: '{unknown[0]}' is no setting of Hadoop, whose names begin with {', '.join(HADOOP_PREFIXES)}.",
                code="TAHOE_STORAGE_OPTION",
                table=url,
                option=unknown[0],
            )
        self.url = url
        self.outside = OutsideFiles(url, lambda root: HadoopLogStore(root, options))
        self.coordination: Literal["none"] = "none"
        self._options = dict(options)
        self._opened: tuple[Opener, HadoopFiles] | None = None

    def __repr__(self) -> str:
        return f"HadoopLogStore({self.url!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[str, dict[str, str]]]:
        return reopened, (self.url, self._options)

    # -- reading -----------------------------------------------------------------------------------------------------------

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`."""
        entries = [
            Entry(name, status.size, status.modified_ms)
            for name, status in self._listed(folder)
            if not status.is_folder and name.rpartition("/")[2] >= start
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`: costs as much as `list_from`."""
        return [entry.name for entry in self.list_from(folder, start)]

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`: one request for each folder."""
        pending = [folder]
        while pending:
            for name, status in self._listed(pending.pop()):
                if status.is_folder:
                    pending.append(name)
                else:
                    yield Entry(name, status.size, status.modified_ms)

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`."""
        return sorted(name.rpartition("/")[2] for name, status in self._listed(folder) if status.is_folder)

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`."""
        status = self._call("look at", folder, lambda: self._files.status(self._path(folder)))
        return status is not None and status.is_folder

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        if is_outside(name):
            return self.outside.get(name)
        return self._call("read", name, lambda: self._files.read(self._path(name), 0, self._size(name)))

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`: concurrently."""
        if len(names) < 2:
            return [self.get(name) for name in names]
        with ThreadPoolExecutor(min(len(names), _SIDE_BY_SIDE), thread_name_prefix="tahoe-get") as pool:
            return list(pool.map(self.get, names))

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        if is_outside(name):
            return self.outside.head(name)
        status = self._call("look at", name, lambda: self._files.status(self._path(name)))
        return None if status is None or status.is_folder else Entry(name, status.size, status.modified_ms)

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`: reads ranges on demand. Raises `NotFound` if there is no such file."""
        if is_outside(name):
            return self.outside.open_input(name)
        path, size = self._path(name), self._call("open", name, lambda: self._size(name))

        def read(start: int, stop: int) -> bytes:
            return self._call("read", name, lambda: self._files.read(path, start, stop - start))

        length = min(size, _TAIL)
        return pa.PythonFile(RangedFile(size, read(size - length, size), read), mode="r")

    # -- writing -----------------------------------------------------------------------------------------------------------

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`."""
        self._replace(name, lambda temporary: self._files.write(temporary, data))

    @contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """See `LogStore.open_output`: buffers on local disk, from which the JVM copies the file."""
        from tempfile import NamedTemporaryFile  # 3 ms, for writes of large files alone

        with NamedTemporaryFile() as file:
            yield file  # type: ignore[misc]
            file.flush()
            self._replace(name, partial(self._files.upload, file.name))

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`: by a rename that does not overwrite."""
        target = self._path(name)
        temporary = _temporary_beside(target)
        try:
            self._files.write(temporary, data)
        except OSError as error:
            self._delete_quietly(temporary)
            return Refused(f"could not write '{name}': {error}")
        try:
            if self._files.rename(temporary, target, overwrite=False):
                return Created()
            # A client below that repeats a lost request is answered by the name that its first attempt took.
            return Created() if self._files.status(temporary) is None else Exists()
        except OSError as error:
            return Unanswered(f"could not rename to '{name}': {error}")
        finally:
            self._delete_quietly(temporary)

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        self._call("delete", name, lambda: self._files.delete(self._path(name)))

    # -- names and errors --------------------------------------------------------------------------------------------------

    @property
    def _files(self) -> HadoopFiles:
        opener = _FileSystems.opener
        if opener is None:
            raise Unsupported(
                f"Tahoe reaches {self.url} through the JVM of a Spark session, and this process has none. Call tahoe.enable(spark) with a "
                "classic session first; Spark Connect and processes without Spark cannot open such tables.",
                code="TAHOE_NO_HADOOP",
                table=self.url,
            )
        if self._opened is None or self._opened[0] is not opener:
            self._opened = opener, opener(self._options)
        return self._opened[1]

    def _path(self, name: str) -> str:
        refuse_outside_name(name, self.url)
        return f"{self.url}/{name}"

    def _listed(self, folder: str) -> Iterator[tuple[str, HadoopStatus]]:
        """Yield the names from the root, and delete the temporary files of dead writers."""
        path = self._path(folder) if folder else self.url
        for file, status in self._call("list", folder or ".", lambda: self._files.list(path)):
            if not (file.startswith(_PREFIX) and file.endswith(_SUFFIX)):
                yield f"{folder}/{file}" if folder else file, status
            elif status.modified_ms < SYSTEM_CLOCK.now_ms() - _STALE_MS:
                self._delete_quietly(f"{path}/{file}")

    def _size(self, name: str) -> int:
        status = self._files.status(self._path(name))
        if status is None or status.is_folder:
            raise FileNotFoundError(name)
        return status.size

    def _replace(self, name: str, write: Callable[[str], None]) -> None:
        target = self._path(name)
        temporary = _temporary_beside(target)

        def replace() -> None:
            try:
                write(temporary)
                self._files.rename(temporary, target, overwrite=True)
            except BaseException:
                self._delete_quietly(temporary)
                raise

        self._call("write", name, replace)

    def _delete_quietly(self, path: str) -> None:
        with suppress(OSError):  # a later listing tries again
            self._files.delete(path)

    def _call(self, verb: str, name: str, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except FileNotFoundError:
            raise NotFound(
                f"There is no file '{name}' in '{self.url}'. If the table's log names it, it was removed by a VACUUM or by hand: "
                "read a newer version of the table.",
                code="DELTA_FILE_NOT_FOUND",
                table=self.url,
                file=name,
            ) from None
        except (StorageFailure, NotFound):
            raise
        except OSError as error:
            is_denied = isinstance(error, PermissionError)
            remedy = "Check the permissions of the folder and the user of the Spark session." if is_denied else "Try again."
            raise StorageFailure(
                f"Table '{self.url}': could not {verb} '{name}': {error}. {remedy}", table=self.url, file=name
            ) from None


def _temporary_beside(target: str) -> str:
    return f"{target.rpartition('/')[0]}/{_PREFIX}{SYSTEM_CLOCK.uuid()}{_SUFFIX}"


_PREFIX, _SUFFIX = ".tahoe-", ".tmp"
_STALE_MS = 24 * 3600 * 1000
_SIDE_BY_SIDE = min(16, 4 * (os.cpu_count() or 1))
_TAIL = 64 * 1024
