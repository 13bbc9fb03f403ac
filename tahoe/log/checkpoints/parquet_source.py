"""The Parquet files of a checkpoint: checked before they are opened, and read a row group and a few leaf columns at a time.

Every fault of such a file raises `DamagedCheckpoint`; the replay then uses an older checkpoint or the commits themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.base.lazy import cached_property, pq
from tahoe.log.checkpoints.checkpoint_checksum import CHECKSUM_BYTES, fault_in_checkpoint_checksum
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.log.files.listing import Checkpoint
from tahoe.store.log_store import LogStore

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


class DamagedCheckpoint(CorruptTable):
    """A checkpoint cannot be used; the state may still be recovered without it.

    Args:
        checkpoint: the corrupt checkpoint.
        file: its corrupt file.
        fault: the fault of that file.
        message, code: replace those that are built from the other arguments.
    """

    default_code = "DELTA_TXN_LOG_FAILED_INTEGRITY"

    def __init__(
        self, url: str, checkpoint: Checkpoint, file: str, fault: str, message: str | None = None, code: str | None = None
    ) -> None:
        self.names = checkpoint.names
        super().__init__(
            message
            or f"Table {url}: the checkpoint file {file} is damaged: {fault}. Delete it if the log's commits are "
            "complete, or restore "
            "it from a backup.",
            code=code,
            table=url,
            file=file,
            version=checkpoint.version,
        )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of one of the checkpoint's Parquet files."""

    file: ParquetSource
    index: int

    @property
    def metadata(self) -> pq.RowGroupMetaData:
        """The footer's metadata of the row group. Raises `DamagedCheckpoint` if the footer is not intact."""
        return self.file.metadata.row_group(self.index)

    def non_null(self, leaf: str) -> int | None:
        """Return the number of rows with a value in a leaf column outside of lists and maps; None if the file does not state it."""
        position = self.file.leaves.get(leaf)
        if position is None:
            return 0
        column = self.metadata.column(position)
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(column.num_values - statistics.null_count)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read the columns below the given dotted paths; top-level structs contain only the requested members."""
        with reading(self.file):
            file, names = self.file.open(), list(columns)
            if self.metadata.num_rows <= _ROWS_OF_A_BATCH:
                return self._valid(file.read_row_group(self.index, columns=names, use_threads=False))
            # Memory for a column of many rows grows by doubling: with the copies, several times the memory and time of small batches.
            batches = file.iter_batches(_ROWS_OF_A_BATCH, row_groups=[self.index], columns=names, use_threads=False)
            return self._valid(pa.Table.from_batches(list(batches)))

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `read`, `rows` at a time; each batch is decoded when the caller requests it."""
        with reading(self.file):
            for batch in self.file.open().iter_batches(rows, row_groups=[self.index], columns=list(columns), use_threads=False):
                yield self._valid(batch)

    def _valid(self, rows: _Rows) -> _Rows:
        """Return the rows after validation: Arrow reads strings without checking UTF-8. A file of Tahoe has page checksums instead."""
        if not self.file.has_commit_checksum:
            rows.validate(full=True)
        return rows


@dataclass(frozen=True)
class ParquetSource:
    """One Parquet file of a checkpoint.

    Args:
        footer_crc32: the required CRC-32 of the footer, if the file's writer has recorded it.
        size: the required size in bytes, if the checkpoint states it: the file is a sidecar, which older checkpoints may name too.
    """

    store: LogStore
    checkpoint: Checkpoint
    name: str
    footer_crc32: int | None = None
    size: int | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer, read once. Raises `DamagedCheckpoint` if it is not intact, or not the footer that was written."""
        return self._metadata[0]

    @property
    def has_commit_checksum(self) -> bool:
        """Whether Tahoe wrote the file, and its footer is the one that was written."""
        return self._metadata[1]

    @cached_property
    def _metadata(self) -> tuple[pq.FileMetaData, bool, bytes | None]:
        """The footer, whether Tahoe wrote the file, and the whole file if it is small: its readers then send no further request."""
        small_file = None
        with reading(self):
            opened = self.store.open_input(self.name)
            size = opened.size()
            ending = _end_of_file(opened, size) if self.size in (None, size) else None
            if size <= _BYTES_OF_MOST_FOOTERS:
                opened.seek(0)
                small_file = opened.read()
        if self.size not in (None, size):
            raise self.damaged(f"it has {size} bytes, but its checkpoint says {self.size}")
        if ending is None:
            raise self.damaged("it does not end as a Parquet file does")
        before, end = ending
        footer = end[:-_LENGTH_AND_MAGIC]
        has_commit_checksum, fault = fault_in_checkpoint_checksum(
            before, footer, self.checkpoint.version, may_be_older=self.size is not None
        )
        if fault is None and self.footer_crc32 is None:
            fault = None if has_commit_checksum else fault_in_footer(footer)
        elif fault is None:
            fault = None if crc32(footer) == self.footer_crc32 else "its footer is not the one that was written"
        if fault is not None:
            raise self.damaged(fault)
        with reading(self):
            return pq.read_metadata(pa.BufferReader(end)), has_commit_checksum, small_file

    @cached_property
    def leaves(self) -> dict[str, int]:
        """Dotted path of each leaf column, and its position."""
        schema = self.metadata.schema
        return {schema.column(i).path: i for i in range(len(schema))}

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The file's columns as Arrow reads them."""
        with reading(self):
            return self.metadata.schema.to_arrow_schema()

    def open(self) -> pq.ParquetFile:
        """Open the file for one reader."""
        # `pq.ParquetFile` is not thread-safe; each reader opens its own.
        metadata, _, small_file = self._metadata
        file = self.store.open_input(self.name) if small_file is None else pa.BufferReader(small_file)
        # Without a buffer, Arrow reads whole column chunks, which takes fewer requests and more memory.
        buffer_size = _BYTES_OF_BUFFER if self.store.asks_cheaply else 0
        return pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True, buffer_size=buffer_size)

    def row_groups(self) -> list[RowGroup]:
        """Return the row groups in the order of the file."""
        return [RowGroup(self, i) for i in range(self.metadata.num_row_groups)]

    def damaged(self, fault: str) -> DamagedCheckpoint:
        """Return the error for a fault in this file of the checkpoint; the caller raises it."""
        return DamagedCheckpoint(self.store.url, self.checkpoint, self.name, fault)


@contextmanager
def reading(source: ParquetSource) -> Iterator[None]:
    """Convert the errors that Arrow raises for invalid Parquet to `DamagedCheckpoint`; errors of the storage stay unchanged."""
    try:
        yield
    except NotFound as error:
        raise source.damaged("it is missing") from error
    except (StorageFailure, CorruptTable):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        text = str(error).strip().splitlines()
        raise source.damaged(f"it cannot be read as Parquet ({text[0][:200] if text else type(error).__name__})") from error


_ROWS_OF_A_BATCH = 65_536
_BYTES_OF_BUFFER = 1 << 20
_LENGTH_AND_MAGIC = 8
_BYTES_OF_MOST_FOOTERS = 64 << 10


def _end_of_file(source: pa.NativeFile, size: int) -> tuple[bytes, bytes] | None:
    """The bytes where a checksum may be, and a Parquet file's footer with the length and the magic bytes that follow it; None without a
    footer."""
    count = min(size, _BYTES_OF_MOST_FOOTERS)
    while True:
        source.seek(size - count)
        end = source.read(count)
        length = int.from_bytes(end[-_LENGTH_AND_MAGIC:-4], "little") + _LENGTH_AND_MAGIC
        if len(end) != count or count < _LENGTH_AND_MAGIC or not end.endswith(b"PAR1") or length > size:
            return None
        needed = min(size, length + CHECKSUM_BYTES)
        if needed <= count:
            return bytes(end[-needed:-length]), bytes(end[-length:])
        count = needed
