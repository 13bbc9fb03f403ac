"""How a Parquet file is opened and cut into pieces, by its size and the place where it is, so that little of it is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tahoe.lazy import pq

__all__ = ["is_tiny", "openings", "parquet_file", "rows_of_a_batch", "runs", "whole"]


def parquet_file(
    source: pa.NativeFile, *, verify_pages: bool, buffer_size: int = 0, metadata: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """The file, for a reader that wants no more of it in memory than it needs.

    Args:
        verify_pages: hold each page against its checksum, where it has one.
        buffer_size: read each column in pieces of so many bytes; 0 where whole column chunks are read at once.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        # In nanoseconds, Arrow's default for INT96, the years before 1677 and after 2262 would overflow.
        coerce_int96_timestamp_unit="us",
        # Column chunks fetched in few large requests: what object stores need. Mapped files are read where they lie.
        pre_buffer=not buffer_size and not isinstance(source, _AT_HAND),
        buffer_size=buffer_size,
        arrow_extensions_enabled=False,
        page_checksum_verification=verify_pages,
    )


def openings(
    file: pq.ParquetFile, source: pa.NativeFile, kept: Sequence[int], columns: Sequence[str], verify_pages: bool
) -> Iterator[tuple[int, list[int], pq.ParquetFile]]:
    """Runs of row groups, each with the file opened in the way that suits its size and the place where it is.

    Arrow holds what it fetches in advance of all row groups of one read until that read ends, so a large file is read some row groups at a
    time, and a row group that is too large by itself in pieces.
    """
    if isinstance(source, _AT_HAND):
        yield from ((start, run, file) for start, run in runs(file.metadata, kept))
        return
    if isinstance(source, pa.OSFile):
        pieces = parquet_file(source, verify_pages=verify_pages, buffer_size=_LOCAL_PIECE, metadata=file.metadata)
        yield from ((start, run, pieces) for start, run in runs(file.metadata, kept))
        return
    for start, run in runs(file.metadata, kept):
        for first, some in _split(file.metadata, start, run, columns):
            if _compressed(file.metadata, some[0], columns) <= _FETCHED_AT_ONCE:
                yield first, some, file
            else:
                yield (
                    first,
                    some,
                    parquet_file(source, verify_pages=verify_pages, buffer_size=_REMOTE_PIECE, metadata=file.metadata),
                )


def _split(metadata: pq.FileMetaData, start: int, run: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    """A run as runs of at most `_FETCHED_AT_ONCE` bytes, or of a single row group."""
    some, size, first = list[int](), 0, start
    for index in run:
        more = _compressed(metadata, index, columns)
        if some and size + more > _FETCHED_AT_ONCE:
            yield first, some
            some, size, first = [], 0, start
        some.append(index)
        size += more
        start += metadata.row_group(index).num_rows
    yield first, some


def _compressed(metadata: pq.FileMetaData, index: int, columns: Sequence[str]) -> int:
    return sum(int(chunk.total_compressed_size) for chunk in _chunks(metadata.row_group(index), columns))


def rows_of_a_batch(group: pq.RowGroupMetaData, columns: Sequence[str], most: int) -> int:
    """So many rows that the columns of a batch have about `_BYTES_OF_A_BATCH`, by what the footer says of a row group."""
    size = sum(int(chunk.total_uncompressed_size) for chunk in _chunks(group, columns))
    if size <= 0 or group.num_rows <= 0:
        return most
    return max(1, min(most, max(_LEAST_ROWS, _BYTES_OF_A_BATCH * int(group.num_rows) // size)))


def is_tiny(source: pa.NativeFile) -> bool:
    """Whether a file is at hand and so small that to think about pieces costs more than to read it."""
    return isinstance(source, _AT_HAND) and source.size() <= _TINY


def _chunks(group: pq.RowGroupMetaData, columns: Sequence[str]) -> list[pq.ColumnChunkMetaData]:
    """Those of the columns; of names with dots in them only as good as a guess, which is enough for sizes."""
    wanted = {name.partition(".")[0] for name in columns}
    chunks = (group.column(i) for i in range(group.num_columns))
    return [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in wanted]


_AT_HAND = (pa.MemoryMappedFile, pa.BufferReader)
_TINY = 64 * 1024
_LOCAL_PIECE = 256 * 1024
_REMOTE_PIECE = 4 * 1024 * 1024
_FETCHED_AT_ONCE = 32 * 1024 * 1024
_BYTES_OF_A_BATCH = 2 * 1024 * 1024
_LEAST_ROWS = 64


def whole(file: pq.ParquetFile, columns: Sequence[str], batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """All rows of a file that `is_tiny`, each batch with the position of its first row."""
    start = 0
    for batch in file.read(columns, use_threads=False).to_batches(batch_rows):
        yield start, batch
        start += batch.num_rows


def runs(metadata: pq.FileMetaData, kept: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Neighbouring row groups that are kept, with the position of their first row: within a run positions count on."""
    start, run_start, run = 0, 0, list[int]()
    wanted = set(kept)
    for index in range(metadata.num_row_groups):
        if index in wanted:
            run_start = run_start if run else start
            run.append(index)
        elif run:
            yield run_start, run
            run = []
        start += metadata.row_group(index).num_rows
    if run:
        yield run_start, run
