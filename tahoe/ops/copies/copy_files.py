"""Copy files from one store to another, each atomically. A file that exists in the target with the expected size is skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tahoe.base.exceptions import StorageFailure
from tahoe.base.progress import Progress
from tahoe.ops.copies.clone_source import FileCopy
from tahoe.store.log_store import LogStore

__all__ = ["copied_here", "copy_file"]

_THREADS = 16
_PIECE = 8 << 20
_MOST_BYTES_AT_ONCE = 16 << 20


def copied_here(source: LogStore, target: LogStore, copies: Sequence[FileCopy], progress: Progress) -> int:
    """A `tahoe.ops.copies.clone.Copier` that uses threads of this process. Raises `NotFound`, `StorageFailure`."""
    there = 0
    for done, was_there in enumerate(_side_by_side(source, target, copies), start=1):
        there += was_there
        progress("files copied", done, len(copies))
    return there


def _side_by_side(source: LogStore, target: LogStore, copies: Sequence[FileCopy]) -> Iterable[bool]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-clone") as pool:
        try:
            yield from pool.map(lambda one: copy_file(source, target, one), copies)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def copy_file(source: LogStore, target: LogStore, one: FileCopy) -> bool:
    """Copy a file; return whether it existed in the target already with the expected size.

    Stores write files atomically, so a file of the expected size is complete.

    Raises:
        NotFound: the source has no such file.
        StorageFailure: ``TAHOE_COPY_INCOMPLETE``: the file's size differs from the size in the log.
    """
    there = target.head(one.target)
    size = one.size
    if there is not None and size is None:
        found = source.head(one.source)
        size = None if found is None else found.size
    if there is not None and there.size == size:
        return True
    if one.size is None or one.size <= _MOST_BYTES_AT_ONCE:
        content = source.get(one.source)
        _check(target, one, len(content))
        target.put(one.target, content)
        return False
    with source.open_input(one.source) as read, target.open_output(one.target) as written:
        copied = 0
        while piece := read.read(_PIECE):
            written.write(piece)
            copied += len(piece)
        _check(target, one, copied)
    return False


def _check(target: LogStore, one: FileCopy, size: int) -> None:
    if one.size is not None and size != one.size:
        raise StorageFailure(
            f"File {one.source} has {size} bytes where the log of the source says {one.size}; it was not copied to {target.url}. Look at the "
            "source with `tahoe check`.",
            code="TAHOE_COPY_INCOMPLETE",
            table=target.url,
            file=one.source,
        )
