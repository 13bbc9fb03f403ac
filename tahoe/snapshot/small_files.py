"""Reads many small files as a few streams, and their rows as a few batches, so that the fixed cost of a batch is rarely paid.

    file file file file … ─ as long as they are small ─► one stream ─ rows of several files ─► one batch
                                                           └ tiny files: footers checked by their shape, and against the log all at once

Files that this fast path cannot verify are read one by one, which raises the usual errors.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pq
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.log.checkpoints.footer_shape import FooterShape, FooterValues
from tahoe.protocol.statistics.thrift import read_integer
from tahoe.snapshot.arrow_reader import FileReader, ReadTask
from tahoe.snapshot.file_row_groups import is_at_hand, is_tiny, parquet_file
from tahoe.snapshot.footer_cross_check import Bounds, certainly_equal
from tahoe.snapshot.read_errors import OF_DAMAGED_BYTES

Begin = Callable[[], Iterator[pa.RecordBatch]]

_BYTES_OF_A_STREAM = 1 << 20
_FILES_OF_A_STREAM = 64
_BYTES_OF_A_BATCH = 1 << 20
_ROWS_OF_A_BATCH = 1 << 16


def together(tasks: Sequence[ReadTask]) -> list[list[ReadTask]]:
    """Group the files, in their order, into streams: neighbouring small files become one stream."""
    groups: list[list[ReadTask]] = []
    size = 0
    for task in tasks:
        more = _BYTES_OF_A_STREAM if task.size is None else task.size
        if not groups or size + more > _BYTES_OF_A_STREAM or len(groups[-1]) == _FILES_OF_A_STREAM:
            groups.append([])
            size = 0
        groups[-1].append(task)
        size += more
    return groups


def joined(streams: Sequence[Begin]) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of all streams in their order, small batches joined. Rows read before an error are yielded before it is raised."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for stream in streams:
        try:
            for batch in stream():
                more = batch.nbytes  # Arrow computes it column by column
                if waiting and (rows + batch.num_rows > _ROWS_OF_A_BATCH or size + more > _BYTES_OF_A_BATCH):
                    yield _joined(waiting)
                    waiting, rows, size = [], 0, 0
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + more
        except Exception:
            if waiting:
                yield _joined(waiting)
            raise
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


# -- tiny files ------------------------------------------------------------------------------------------------------------------


class _FileKind:
    """A known shape of footers, with the columns to read and the bounds to check in files of that shape.

    `columns` are the names in the file of the columns to read. `bounds` has, for each column whose bounds are checked against the log, its
    name in the log's statistics, the position of the leaf, and its type.
    """

    def __init__(self, shape: FooterShape, file: pq.ParquetFile, reader: FileReader) -> None:
        self.shape = shape
        self.columns = reader.columns_to_read(file.schema_arrow)
        places = {file.schema.column(index).path: index for index in range(len(file.schema))}
        names = reader.names_in(file.schema_arrow)
        # If the files lack a column, each file must be checked for values of it in the log's statistics.
        self.is_whole = bool(self.columns) and None not in names.values()
        self.bounds: list[tuple[str, int, pa.DataType]] = []
        for name, in_file in names.items() if self.is_whole else ():
            data_type = file.schema_arrow.field(in_file).type
            if places.get(str(in_file)) in shape.bounds:
                self.is_whole = self.is_whole and not _is_odd(data_type)
                self.bounds.append((name, places[str(in_file)], data_type))

    def agrees(self, footers: Sequence[FooterValues], stats: Sequence[str | None]) -> bool:
        """Whether the log's statistics of files surely agree with their footers."""
        rows = [read_integer(values[self.shape.rows], 0) for values in footers]
        sides = [(name, *self.shape.bounds[place], data_type) for name, place, data_type in self.bounds]
        stated = [
            Bounds(name, data_type, [values[low] for values in footers], [values[high] for values in footers])
            for name, low, high, data_type in sides
        ]
        return certainly_equal(rows, stated, stats)


class TinyFiles:
    """Reads files of a few KB together, which is faster than one by one if the same writer wrote many of them.

    Args:
        reader_of: returns the reader of a file; the readers of a table's files differ only in partition values.
    """

    def __init__(self, reader_of: Callable[[ReadTask], FileReader], open_input: Callable[[str], pa.NativeFile]) -> None:
        self._reader_of = reader_of
        self._open_input = open_input
        self._kinds: list[_FileKind] = []
        self._is_of_use = True

    def rows(self, tasks: Sequence[ReadTask]) -> list[pa.RecordBatch] | None:
        """Read all rows of files of one partition, in their order.

        Returns None if the files must be read one by one: they cannot be read together, or one of them is faulty.
        """
        if not self._is_of_use or len(tasks) < 2 or any(task.deletion_vector is not None for task in tasks):
            return None
        try:
            reader = self._reader_of(tasks[0])
            batches = list[pa.RecordBatch]()
            for file_kind, footers, some, tables in self._runs(tasks, reader):
                if not file_kind.agrees(footers, [task.stats for task in some]):
                    return None
                batches += [reader.logical(batch, 0) for batch in pa.concat_tables(tables).combine_chunks().to_batches()]
            return batches
        except (TahoeError, _ByItself, *OF_DAMAGED_BYTES):
            return None  # reading that file by itself raises the same error, with its name

    def _runs(
        self, tasks: Sequence[ReadTask], reader: FileReader
    ) -> Iterator[tuple[_FileKind, list[FooterValues], list[ReadTask], list[pa.Table]]]:
        """Yield runs of neighbouring files whose footers have one shape. Raises `_ByItself` for a file that cannot be read in this way."""
        last, footers, some, tables = None, list[FooterValues](), list[ReadTask](), list[pa.Table]()
        for task in tasks:
            content = self._content(task)
            file_kind, values = self._proven(content, reader)
            if last is not None and last is not file_kind:
                yield last, footers, some, tables
                footers, some, tables = [], [], []
            last = file_kind
            footers.append(values)
            some.append(task)
            tables.append(parquet_file(pa.BufferReader(content), verify_pages=False).read(file_kind.columns, use_threads=False))
        if last is not None:
            yield last, footers, some, tables

    def _content(self, task: ReadTask) -> pa.Buffer:
        with self._open_input(task.name) as source:
            if source.size() == task.size and is_tiny(source):
                return source.read_buffer()
            # Files that are not at hand cost by the request, and are read side by side.
            self._is_of_use = is_at_hand(source)
        raise _ByItself

    def _proven(self, content: pa.Buffer, reader: FileReader) -> tuple[_FileKind, FooterValues]:
        """Return the shape of a footer that Arrow can read safely, and the values in it; raise `_ByItself` otherwise."""
        size = content.size
        length = int.from_bytes(content[size - 8 : size - 4].to_pybytes(), "little")
        if not 0 < length <= size - 12:
            raise _ByItself
        footer = content[size - 8 - length : size - 8].to_pybytes()
        for file_kind in self._kinds:
            values = file_kind.shape.values_in(footer)
            if values is not None:
                return file_kind, values
        shape = FooterShape.of(footer) if len(self._kinds) < _MOST_SHAPES and fault_in_footer(footer) is None else None
        values = None if shape is None else shape.values_in(footer)
        if shape is None or values is None:
            raise _ByItself
        file_kind = _FileKind(shape, parquet_file(pa.BufferReader(content), verify_pages=False), reader)
        if not file_kind.is_whole:
            raise _ByItself
        self._kinds.append(file_kind)
        return file_kind, values


class _ByItself(Exception):
    """Raised for a file that must be read by itself."""


def _is_odd(data_type: pa.DataType) -> bool:
    """Whether Arrow reads the bounds of a type differently from this module."""
    return bool(pa.types.is_unsigned_integer(data_type) or pa.types.is_dictionary(data_type))


_MOST_SHAPES = 8
