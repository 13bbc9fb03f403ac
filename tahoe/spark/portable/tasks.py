"""What travels between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.exceptions import StorageFailure
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import ChangedFile
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["WrittenFiles", "binned", "discard"]

_TASK_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """What one task has written.

    Args:
        asked: what of the table they were written for.
    """

    adds: tuple[AddFile, ...]
    asked: object = None


_Sized = TypeVar("_Sized", ReadTask, ChangedFile, IndexedFile)


def binned(files: Iterable[_Sized]) -> Iterator[tuple[_Sized, ...]]:
    """The files of each task, in their order."""
    files_of_bin: list[_Sized] = []
    size = 0
    for file in files:
        more = file.size or 0
        if files_of_bin and size + more > _TASK_BYTES:
            yield tuple(files_of_bin)
            files_of_bin, size = [], 0
        files_of_bin.append(file)
        size += more
    if files_of_bin:
        yield tuple(files_of_bin)


def discard(store: LogStore, add: AddFile) -> None:
    """Delete a file that no commit names; what storage keeps is left to VACUUM."""
    with suppress(StorageFailure):
        store.delete(decode_path(add.path, store.url))
