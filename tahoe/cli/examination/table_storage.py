"""Examines the storage of a table: whether it answers, credentials, conditional writes, its clock, and the file system of a local folder.

Without `writes` nothing is written. With it, an existing table's log gets one hidden file, which a local folder loses again, and an object
store retains for its next writer (`tahoe.store.object_store`); the clock is read from another one, which is deleted at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from pathlib import Path
from threading import Thread
from typing import TypeVar

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeError
from tahoe.cli.examination.findings import Finding, State
from tahoe.ops.upkeep.vacuum_files import delete_clock, store_time_ms
from tahoe.store.location import local_path, split_url, table_url
from tahoe.store.log_store import Created, Exists, FolderStore, pages_from
from tahoe.store.object_store import open_store, store_environment
from tahoe.store.refusals import names_credentials, without_credentials
from tahoe.store.role_credentials import may_have_role

SECONDS = 20.0
"""The longest time that one request may take."""

_LOG = "_delta_log"
_PROBE = f"{_LOG}/.tahoe-probe"
_MOST_SKEW_MS = 60_000
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|virtiofs|vboxsf|fuse\.(sshfs|s3fs|rclone|gcsfuse|blobfuse2?|goofys|mount-s3)"
)
_WITHOUT_LINKS = re.compile(r"vfat|msdos|exfat")
_WRITING = "It needs a write: add --write, which writes hidden files to the log of the table."

Answer = TypeVar("Answer")


def of_storage(path: str, options: Mapping[str, str], *, writes: bool, seconds: float = SECONDS) -> Iterator[Finding]:
    """Yield the findings on the storage of the table at `path`.

    Args:
        options: its storage options.
        writes: also examine what needs a write.
        seconds: the longest time for one request.
    """
    try:
        url = table_url(path)
        store = open_store(path, options)
    except TahoeError as error:
        yield Finding("storage", State.PROBLEM, str(error), "Correct the path or its storage options.")
        yield from _without_writes("Solve that problem first.")
        return
    folder = local_path(url)
    if folder is None:
        yield of_credentials(split_url(url)[0], {**dict(store_environment()), **options})
    try:
        is_table = bool(in_time(lambda: next(iter(pages_from(store, _LOG)), []), seconds))
        yield Finding("storage", State.OK, f"{url} answers a listing.")
    except (TahoeError, OutOfTime) as error:
        yield _unanswered("storage", url, error, seconds)
        is_table = False
    if folder is not None:
        yield from _of_folder(Path(folder))
    if not writes or not is_table:
        yield from _without_writes("Name a table whose log can be listed." if writes else _WRITING)
        return
    yield _conditional_writes(store, url, folder is not None, seconds)
    yield _clock(store, url, seconds)


def of_credentials(scheme: str, settings: Mapping[str, str]) -> Finding:
    """Judge whether there are credentials for a store.

    Args:
        scheme: of the store's URL.
        settings: the storage options and environment variables that are set; only their names are used.
    """
    if scheme == "memory":
        return Finding("credentials", State.OK, "A store in this process needs none.")
    if names_credentials(scheme, [name for name, value in settings.items() if value]):
        return Finding(
            "credentials", State.OK, "Credentials are in the storage options or the environment, or declared unnecessary."
        )
    if may_have_role(scheme, settings):
        return Finding("credentials", State.OK, "This machine may have a role; neither options nor environment have credentials.")
    sentence, _, remedy = without_credentials(scheme).partition(". ")
    return Finding("credentials", State.PROBLEM, f"{sentence}.", remedy)


def of_skew(skew_ms: int, elapsed_ms: int) -> Finding:
    """Judge the difference of the storage's clock to this machine's.

    Args:
        skew_ms: positive if the storage's clock is ahead.
        elapsed_ms: the duration of the requests, by which it is uncertain.
    """
    uncertain = f"{skew_ms / 1000:+,.1f} seconds from this machine's, within {elapsed_ms / 1000:,.1f}"
    if abs(skew_ms) > _MOST_SKEW_MS + elapsed_ms:
        remedy = "Synchronize the clocks (NTP): VACUUM and time travel by timestamp compare times of both."
        return Finding("storage's clock", State.PROBLEM, f"It is {uncertain}.", remedy)
    return Finding("storage's clock", State.OK, f"It is {uncertain}.")


def of_folder(place: str, *, may_write: bool, is_read_only: bool) -> Finding:
    """Judge whether a local folder can be written.

    Args:
        may_write: by this user, by the permissions and the mount.
        is_read_only: whether its file system is mounted read-only.
    """
    if is_read_only:
        sentence = f"The file system of {place} is mounted read-only: the table can be read, and no command can write it."
        return Finding(
            "folder", State.NOTE, sentence, "Mount it for writing, or choose another folder, unless the table is only read."
        )
    if not may_write:
        remedy = "Change its permissions unless the table is only read."
        return Finding("folder", State.NOTE, f"This user may not write to {place}.", remedy)
    return Finding("folder", State.OK, f"This user may write to {place}.")


def of_file_system(kind: str | None) -> Finding:
    """Judge the type of a local folder's file system, as ``/proc/mounts`` names it; None if the system has no such file."""
    if kind is None:
        remedy = "Look it up with the system's own tools: hard links must work."
        return Finding("file system", State.NOT_EXAMINED, "This system has no /proc/mounts.", remedy)
    if _NETWORK.fullmatch(kind):
        sentence = f"The folder is on a network file system ({kind}): all clients must see a new name at once."
        return Finding(
            "file system",
            State.NOTE,
            sentence,
            "Mount it without caches of names (for NFS: lookupcache=none), or use an object store.",
        )
    if _WITHOUT_LINKS.fullmatch(kind):
        sentence = f"The folder is on {kind}, which has no hard links and ignores the case of letters: commits need hard links."
        return Finding(
            "file system", State.PROBLEM, sentence, "Use another file system, such as ext4 or XFS, or an object store."
        )
    return Finding("file system", State.OK, f"The folder is on {kind}.")


def in_time(run: Callable[[], Answer], seconds: float) -> Answer:
    """Return the result of `run`, which a thread executes that ends with the process. Raises its errors, and `TimeoutError`."""
    future: Future[Answer] = Future()

    def work() -> None:
        try:
            future.set_result(run())
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            future.set_exception(error)

    Thread(target=work, name="tahoe-doctor", daemon=True).start()
    return future.result(seconds)


def file_system_of(folder: Path, mounts: str | None) -> str | None:
    """Return the type of the file system of a folder, which need not exist.

    Args:
        mounts: the text of ``/proc/mounts``; None if there is none.
    """
    kinds = {}
    for line in (mounts or "").splitlines():
        _, place, kind, *_ = line.split(" ")
        kinds[Path(place.encode().decode("unicode_escape"))] = kind
    resolved = folder.resolve()
    return next((kinds[parent] for parent in (resolved, *resolved.parents) if parent in kinds), None)


# -- requests ---------------------------------------------------------------------------------------------------------------


def _without_writes(remedy: str) -> Iterator[Finding]:
    for subject in ("conditional writes", "storage's clock"):
        yield Finding(subject, State.NOT_EXAMINED, "No file was written.", remedy)


def _of_folder(folder: Path) -> Iterator[Finding]:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    yield of_folder(str(place), may_write=os.access(place, os.W_OK), is_read_only=bool(os.statvfs(place).f_flag & os.ST_RDONLY))
    yield of_file_system(file_system_of(folder, _mounts()))
    yield of_letter_case(_ignores_case(place))


def of_letter_case(ignores_case: bool | None) -> Finding:
    """Judge whether a file system ignores the case of letters; None if that cannot be seen without a write."""
    if ignores_case is None:
        return Finding("letter case", State.NOT_EXAMINED, "The folder's path has no letters.", "Use a path with letters.")
    if ignores_case:
        sentence = "The file system ignores the case of letters: partitions such as a=X and a=x share a folder."
        return Finding(
            "letter case", State.NOTE, sentence, "Use delta.columnMapping.mode = name, or a case-sensitive file system."
        )
    return Finding("letter case", State.OK, "The file system distinguishes the case of letters.")


def _ignores_case(place: Path) -> bool | None:
    """Return whether an existing folder is also found by its name in the other case of letters."""
    log = place / _LOG
    inside = log if log.is_dir() else place
    if inside.name == inside.name.swapcase():
        return None
    other = inside.with_name(inside.name.swapcase())
    return other.exists() and other.samefile(inside)


def _mounts() -> str | None:
    try:
        return Path("/proc/mounts").read_text(errors="replace")
    except OSError:
        return None


def _unanswered(subject: str, url: str, error: Exception, seconds: float) -> Finding:
    remedy = "Check the path, the credentials, the endpoint and the network."
    if isinstance(error, TahoeError):
        return Finding(subject, State.PROBLEM, str(error), remedy)
    return Finding(subject, State.PROBLEM, f"{url} did not answer within {seconds:g} seconds.", remedy)


def _conditional_writes(store: FolderStore, url: str, is_local: bool, seconds: float) -> Finding:
    # Object stores retain the probe: a store deletes no name that another process may be probing. Local names are unique, and not listed.
    name = f"{_LOG}/.tahoe-{SYSTEM_CLOCK.uuid()}.tmp" if is_local else _PROBE
    try:
        first, second = in_time(lambda: [store.put_if_absent(name, b"probe") for _ in range(2)], seconds)
        if is_local:
            store.delete(name)
    except (TahoeError, OutOfTime) as error:
        return _unanswered("conditional writes", url, error, seconds)
    if not isinstance(first, Created | Exists):
        sentence, remedy = f"{url} refused a write: {first}.", "Check the permission to write."
    elif not isinstance(second, Exists):
        sentence = f"{url} does not refuse a second conditional write of one name: {second}."
        remedy = "Use a store that honours If-None-Match on PUT, or a file system with hard links."
    else:
        return Finding("conditional writes", State.OK, f"{url} refuses the second of two conditional writes of one name.")
    return Finding("conditional writes", State.PROBLEM, sentence, remedy)


def _clock(store: FolderStore, url: str, seconds: float) -> Finding:
    started = SYSTEM_CLOCK.now_ms()
    try:
        stored = in_time(lambda: store_time_ms(store, 0), seconds)
        ended = SYSTEM_CLOCK.now_ms()
        in_time(lambda: delete_clock(store), seconds)
    except (TahoeError, OutOfTime) as error:
        return _unanswered("storage's clock", url, error, seconds)
    if stored == 0:
        return Finding("storage's clock", State.NOT_EXAMINED, f"{url} cannot be written.", "Give the permission to write.")
    return of_skew(stored - (started + ended) // 2, ended - started)
