"""Copy files from one store to another, each atomically. A file that exists in the target with the expected size is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tahoe.base.exceptions import StorageFailure
from tahoe.base.progress import Progress
from tahoe.ops.copies.clone_source import FileCopy
from tahoe.store.log_store import LogStore

_THREADS = 16
_PIECE = 8 << 20
_MOST_BYTES_AT_ONCE = 16 << 20


def copied_here(source: LogStore, target: LogStore, copies: Sequence[FileCopy], progress: Progress) -> int:
    """A `tahoe.ops.copies.clone.Copier`, with `progress` bound, that uses threads of this process. Raises `NotFound`, `StorageFailure`."""
    there = 0
    for done, was_there in enumerate(_side_by_side(source, target, copies), start=1):
        there += was_there
        progress("files copied", done, len(copies))
    return there


def _side_by_side(source: LogStore, target: LogStore, copies: Sequence[FileCopy]) -> Iterable[bool]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-clone") as pool:
        try:
            yield from pool.map(lambda copy: copy_file(source, target, copy), copies)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def copy_file(source: LogStore, target: LogStore, copy: FileCopy) -> bool:
    """Copy a file; return whether it existed in the target already with the expected size.

    Stores write files atomically, so a file of the expected size is complete.

    Raises:
        NotFound: the source has no such file.
        StorageFailure: ``TAHOE_COPY_INCOMPLETE``: the file's size differs from the size in the log.
    """
    there = target.head(copy.target)
    size = copy.size
    if there is not None and size is None:
        entry = source.head(copy.source)
        size = None if entry is None else entry.size
    if there is not None and there.size == size:
        return True
    if copy.size is None or copy.size <= _MOST_BYTES_AT_ONCE:
        content = source.get(copy.source)
        _check(target, copy, len(content))
        target.put(copy.target, content)
        return False
    with source.open_input(copy.source) as read, target.open_output(copy.target) as written:
        copied = 0
        while piece := read.read(_PIECE):
            written.write(piece)
            copied += len(piece)
        _check(target, copy, copied)
    return False


def _check(target: LogStore, copy: FileCopy, size: int) -> None:
    if copy.size is not None and size != copy.size:
        raise StorageFailure(
            f"File {copy.source} has {size} bytes where the log of the source says {copy.size}; it was not copied to {target.url}. Look at "
            "the source with `tahoe check`.",
            code="TAHOE_COPY_INCOMPLETE",
            table=target.url,
            file=copy.source,
        )
