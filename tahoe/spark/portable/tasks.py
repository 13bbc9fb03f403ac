"""What travels between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.exceptions import StorageFailure
from tahoe.ops.write.completion import refuse_incomplete
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import ChangedFile
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["WrittenFiles", "binned", "discard", "refuse_unfilled"]

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


def refuse_unfilled(config: TableConfig, columns: Iterable[str]) -> None:
    """Refuse rows without columns that the table fills in: tasks of a Python data source cannot know of each other, and so not number rows.

    Raises:
        Unsupported: ``TAHOE_COLUMN_NOT_FILLED_IN``.
    """
    remedy = "Write with a classic session, or without Spark (tahoe.Table.append)."
    refuse_incomplete(config, columns, "A write by way of Spark's Python data source", remedy)
