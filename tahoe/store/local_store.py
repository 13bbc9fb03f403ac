"""The store over a local folder, with plain operating-system calls: a commit costs about ten microseconds.

* **Atomic in content and name.** `put_if_absent` writes a temporary file beside the target and gives it the target's name with
  ``link(2)``, which fails if the name is taken: a reader never sees a partial file, and one of many callers wins. `put` renames instead.
* **No silent fallback.** A file system without hard links cannot do that; it raises an error with the remedy.
* **Containment.** A name with ``..`` is refused by its text. Reads and writes of data resolve symbolic links first and refuse
  targets outside the table's folder (about 7 µs per call). The transaction log's folder is resolved once per store, and its files
  are opened without following links: no cost for the log, and the same guarantee. Another process of this machine that replaces
  folders by links *while* Tahoe runs can write to the table anyway and is not defended against.
* **Durability.** An acknowledged commit survives the death of the process. With the storage option ``fsync=true`` it also survives
  a power failure (file and folder are synced before the answer; about 0.2 ms per write).

Temporary files are named ``.tahoe-….tmp`` and are never listed. Listings of their folder remove them once they are a day old, since
their writer must have died.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store.location import is_outside, local_path, table_url
from tahoe.store.log_store import Coordination, Created, Entry, Exists, PutOutcome, Refused, Unanswered
from tahoe.store.outside import OutsideFiles


class LocalLogStore:
    """`tahoe.store.log_store.LogStore` over a local folder, which need not exist before the first write.

    Args:
        path: the table's folder, in any form that `tahoe.store.location.table_url` accepts.
        fsync: sync file and folder to the disk before acknowledging a write.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self._url = table_url(path)
        root = local_path(self._url)
        if root is None:
            raise InvalidRequest(
                f"'{self._url}' is not a local folder: use tahoe.store.object_store.open_store for it.",
                code="TAHOE_TABLE_LOCATION",
            )
        self._root = root
        self._fsync = fsync
        self._log_folder_is_inside = False
        self.outside = OutsideFiles(self._url, LocalLogStore)

    def __repr__(self) -> str:
        return f"LocalLogStore({self._url!r})"

    @property
    def url(self) -> str:
        """See `LogStore.url`: a ``file:`` URL."""
        return self._url

    @property
    def asks_cheaply(self) -> bool:
        """See `LogStore.asks_cheaply`: true, since a listing scans the folder."""
        return True

    coordination: Coordination = "none"
    """See `LogStore.coordination`."""

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`."""
        prefix = f"{folder}/" if folder else ""
        entries: list[Entry] = []
        try:
            with os.scandir(self._inside(f"{prefix}.")) as scanned:
                for item in scanned:
                    if item.name < start or item.is_dir(follow_symlinks=False) or _is_temporary(item):
                        continue
                    status = _status(item)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        entries.append(Entry(prefix + item.name, status.st_size, status.st_mtime_ns // 1_000_000))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", folder or ".", error) from error
        entries.sort(key=_name)
        return entries

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`: does not read sizes and times."""
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(self._inside(f"{prefix}.")) as scanned:
                names = [
                    prefix + item.name for item in scanned if item.name >= start and item.is_file() and not _is_temporary(item)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", folder or ".", error) from error
        return sorted(names)

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`; links that lead out of the root are not followed."""
        pending = [folder]
        while pending:
            current = pending.pop()
            prefix = f"{current}/" if current else ""
            entries: list[Entry] = []
            try:
                with os.scandir(self._inside(f"{prefix}.")) as scanned:
                    for item in scanned:  # an entry takes a third of the memory of an item with its status
                        if item.is_dir(follow_symlinks=False):
                            pending.append(prefix + item.name)
                        elif not _is_temporary(item) and (status := _status(item)) is not None and stat.S_ISREG(status.st_mode):
                            entries.append(Entry(prefix + item.name, status.st_size, status.st_mtime_ns // 1_000_000))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._failure("list", current or ".", error) from error
            yield from entries

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`."""
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(self._inside(f"{prefix}.")) as scanned:
                names = [item.name for item in scanned if self._is_folder(item)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", folder or ".", error) from error
        return sorted(names)

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`."""
        try:
            return os.path.isdir(self._inside(f"{folder}/."))
        except CorruptTable:
            return False

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        if is_outside(name):
            return self.outside.get(name)
        try:
            handle = self._open_to_read(name)
            try:
                return _read_all(handle)
            finally:
                os.close(handle)
        except (FileNotFoundError, NotADirectoryError):
            raise self._not_found(name) from None
        except OSError as error:
            raise self._failure("read", name, error) from error

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`: one after the other, as local disks gain nothing from concurrency."""
        return [self.get(name) for name in names]

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        if is_outside(name):
            return self.outside.head(name)
        try:
            status = os.stat(self._inside(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # no file has such a name
                return None
            raise self._failure("look at", name, error) from error
        if not stat.S_ISREG(status.st_mode):
            return None
        return Entry(name, status.st_size, status.st_mtime_ns // 1_000_000)

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`. Raises `NotFound` if there is no such file."""
        if is_outside(name):
            return self.outside.open_input(name)
        path = self._inside(name)
        try:
            handle = os.open(path, _READ)
            try:
                size = _size_of_regular(os.fstat(handle))
                if size <= _MOST_BYTES_READ_AT_ONCE:  # mapping is slower for small files and impossible for empty ones
                    return pa.BufferReader(_read_all(handle))
            finally:
                os.close(handle)
            # Pages read through a mapping count as this process's memory until it is closed.
            return pa.memory_map(path) if size <= _MOST_BYTES_MAPPED else pa.OSFile(path)
        except (FileNotFoundError, NotADirectoryError):
            raise self._not_found(name) from None
        except OSError as error:
            raise self._failure("open", name, error) from error

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`: writes a temporary file and renames it."""
        target = self._inside(name, follow=False)
        try:
            temporary = self._write_temporary(target, data)
            try:
                os.replace(temporary, target)
            except OSError:
                _unlink_quietly(temporary)
                raise
            self._sync_folder(target)
        except OSError as error:
            raise self._failure("write", name, error) from error

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """See `LogStore.open_output`: writes a temporary file and renames it."""
        target = self._inside(name, follow=False)
        temporary = ""
        try:
            handle, temporary = self._open_temporary(target)
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                if self._fsync:
                    os.fsync(handle)
            os.replace(temporary, target)
            self._sync_folder(target)
        except BaseException as error:
            _unlink_quietly(temporary)
            if isinstance(error, OSError) and not isinstance(error, StorageFailure):
                raise self._failure("write", name, error) from error
            raise

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`: by a hard link, which the file system creates for one caller only."""
        target = self._inside(name, follow=False)
        try:
            temporary = self._write_temporary(target, data)
        except OSError as error:
            return Refused(self._text("write", name, error))
        try:
            outcome = self._link(temporary, target, name)
            if isinstance(outcome, Created):
                self._sync_folder(target)
            return outcome
        except OSError as error:  # the name is ours, but may not survive a power failure
            return Unanswered(self._text("sync", name, error))
        finally:
            _unlink_quietly(temporary)

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        try:
            os.unlink(self._inside(name, follow=False))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._failure("delete", name, error) from error

    # -- names to paths --------------------------------------------------------------------------------------------------

    def _inside(self, name: str, *, follow: bool = True) -> str:
        """Return the path of `name`. Raises if it, or the target of its symbolic links, is outside of the table's folder.

        Args:
            name: a store name.
            follow: whether a link as the last part is followed (reading) or is itself the target (replacing, deleting).
        """
        if not name or name[0] == "/" or "\0" in name or is_outside(name) or (".." in name and ".." in name.split("/")):
            raise self._outside(name)
        path = f"{self._root}/{name}"
        folder, last = os.path.split(name)
        if folder == "_delta_log" and (last == "." or not follow):
            self._resolve_log_folder()
            return path
        if not folder and not follow:
            return path
        if self._has_link(name if follow else folder):
            resolved = os.path.realpath(path) if follow else os.path.realpath(os.path.dirname(path))
            if not _is_below(resolved, os.path.realpath(self._root)):
                raise self._outside(name)
        return path

    def _has_link(self, name: str) -> bool:
        """Whether a part of the name is a symbolic link. A missing file has none."""
        path = self._root
        for part in name.split("/"):
            path = f"{path}/{part}"
            try:
                if stat.S_ISLNK(os.lstat(path).st_mode):
                    return True
            except OSError:  # opening it raises the same error
                return False
        return False

    def _is_folder(self, item: os.DirEntry[str]) -> bool:
        """Whether the entry is a folder, or a link to one that is below the root."""
        if not item.is_symlink():
            return item.is_dir()
        return os.path.isdir(item.path) and _is_below(os.path.realpath(item.path), os.path.realpath(self._root))

    def _open_to_read(self, name: str) -> int:
        if name.startswith("_delta_log/") and name.count("/") == 1:
            try:
                return os.open(self._inside(name, follow=False), _READ | _NO_FOLLOW)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK):  # it is a link: one to a target inside is followed below
                    raise
        return os.open(self._inside(name), _READ)

    def _resolve_log_folder(self) -> None:
        if self._log_folder_is_inside:
            return
        log_folder = f"{self._root}/_delta_log"
        if not _is_below(os.path.realpath(log_folder), os.path.realpath(self._root)):
            raise self._outside("_delta_log")
        self._log_folder_is_inside = os.path.isdir(log_folder)

    # -- writing -----------------------------------------------------------------------------------------------------------

    def _write_temporary(self, target: str, data: bytes) -> str:
        """Write `data` to a new file beside `target`, and return its path."""
        handle, temporary = self._open_temporary(target)
        try:
            try:
                _write_all(handle, data)
                if self._fsync:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError:
            _unlink_quietly(temporary)
            raise
        return temporary

    @staticmethod
    def _open_temporary(target: str) -> tuple[int, str]:
        """Create and open a new file beside `target`, creating its folder if necessary."""
        folder = os.path.dirname(target)
        temporary = f"{folder}/{_PREFIX}{os.getpid()}-{_PROCESS_TOKEN}-{next(_counter)}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(temporary, flags, 0o666), temporary
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            return os.open(temporary, flags, 0o666), temporary

    def _link(self, temporary: str, target: str, name: str) -> PutOutcome:
        try:
            os.link(temporary, target)
        except FileExistsError:
            # A network file system can lose the first answer and repeat the call below us: a link count of two means that it was ours.
            return Created() if _links(temporary) == 2 else Exists()
        except OSError as error:
            if error.errno in _NO_LINKS and not self._can_link(temporary):
                raise Unsupported(
                    f"The file system of '{self._url}' does not support hard links ({os.strerror(error.errno or 0)}), without which "
                    "two writers could both believe that they won a commit. Put the table on a file system that does "
                    "(ext4, xfs, btrfs, apfs, ntfs, nfs), or on an object store.",
                    code="TAHOE_NO_CONDITIONAL_WRITES",
                    table=self._url,
                ) from error
            if _links(temporary) == 2:
                return Created()
            text = self._text("link", name, error)
            return Unanswered(text) if error.errno in _UNANSWERED else Refused(text)
        return Created()

    def _can_link(self, temporary: str) -> bool:
        """Whether an unused name can be linked: distinguishes a file system without links from a single failure."""
        probe = f"{temporary[: -len(_SUFFIX)]}-probe{_SUFFIX}"
        try:
            os.link(temporary, probe)
        except OSError:
            return False
        _unlink_quietly(probe)
        return True

    def _sync_folder(self, target: str) -> None:
        if not self._fsync:
            return
        handle = os.open(os.path.dirname(target), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    # -- errors ------------------------------------------------------------------------------------------------------------

    def _text(self, verb: str, name: str, error: OSError) -> str:
        return f"could not {verb} '{name}': {error.strerror or error}"

    def _failure(self, verb: str, name: str, error: OSError) -> StorageFailure:
        remedy = "Check the folder's permissions." if isinstance(error, PermissionError) else "Try again, or check the disk."
        return StorageFailure(f"Table '{self._url}': {self._text(verb, name, error)}. {remedy}", table=self._url, file=name)

    def _not_found(self, name: str) -> NotFound:
        return NotFound(
            f"There is no file '{name}' in '{self._url}'. If the table's log names it, it was removed by a VACUUM or by hand: "
            "read a newer version of the table.",
            code="DELTA_FILE_NOT_FOUND",
            table=self._url,
            file=name,
        )

    def _outside(self, name: str) -> CorruptTable:
        return CorruptTable(
            f"'{name}' is not below the folder of table '{self._url}', or a symbolic link leads out of it. Tahoe does not follow "
            "it, since a hostile table could name any file of this machine: move the file into the table's folder.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=self._url,
            path=name,
        )


_PREFIX, _SUFFIX = ".tahoe-", ".tmp"
_MOST_BYTES_READ_AT_ONCE = 64 * 1024
_MOST_BYTES_MAPPED = 4 * 1024 * 1024
_STALE_MS = 24 * 3600 * 1000
_PROCESS_TOKEN = os.urandom(6).hex()
_counter = itertools.count()
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a pipe in a hostile table must not block a reader forever
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV})
_UNANSWERED = frozenset({errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR, errno.ECONNRESET, errno.EHOSTDOWN})


def _name(entry: Entry) -> str:
    return entry.name


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


def _is_temporary(item: os.DirEntry[str]) -> bool:
    """Whether this is an unfinished file of a writer; removes those of dead writers."""
    if not (item.name.startswith(_PREFIX) and item.name.endswith(_SUFFIX)):
        return False
    with contextlib.suppress(OSError):  # it is already gone, or not ours to remove: irrelevant for readers
        if item.stat(follow_symlinks=False).st_mtime_ns // 1_000_000 < SYSTEM_CLOCK.now_ms() - _STALE_MS:
            os.unlink(item.path)
    return True


def _status(item: os.DirEntry[str]) -> os.stat_result | None:
    """Return the entry's status, following links; None if it was deleted since the listing, or is a dangling link."""
    try:
        return item.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            return None
        raise


def _size_of_regular(status: os.stat_result) -> int:
    """Return the file's size; folders, pipes and devices are not files of a table."""
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "it is not a regular file")
    return status.st_size


def _read_all(handle: int) -> bytes:
    size = _size_of_regular(os.fstat(handle))
    first = os.read(handle, size + 1)
    if len(first) == size:
        return first
    pieces = [first]
    while piece := os.read(handle, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _write_all(handle: int, data: bytes) -> None:
    written = os.write(handle, data)
    if written < len(data):
        rest = memoryview(data)
        while written < len(rest):
            written += os.write(handle, rest[written:])


def _links(path: str) -> int:
    try:
        return os.stat(path).st_nlink
    except OSError:
        return 0


def _unlink_quietly(path: str) -> None:
    with contextlib.suppress(OSError):  # it may be gone; if it cannot be removed, a later listing tries again
        os.unlink(path)
