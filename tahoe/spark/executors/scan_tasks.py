"""The tasks of a scan in Python workers: files to the columns of Spark's Parquet scan, for storage that Spark's JVM cannot read."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import Predicate
from tahoe.schema.arrow import to_arrow_schema, to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.arrow_reader import ExtraColumns, FileReader, FileReadOptions, ReadTask
from tahoe.snapshot.data_reader import DataFiles, VectorReader
from tahoe.snapshot.read_ahead import read_ahead
from tahoe.snapshot.read_errors import located_batches
from tahoe.snapshot.scan import MOST_BYTES_AHEAD
from tahoe.spark.executors.row_tasks import ROW
from tahoe.store.log_store import LogStore

_BATCHES = FileReadOptions(batch_rows=65_536)
"""Spark converts a batch to rows while the next one is decoded."""
_FILES = 3
"""The number of files that a task reads at once."""

PER_ROW = {"row_index": ROW, "row_id": "__tahoe_row_id", "row_commit_version": "__tahoe_row_commit_version"}
"""The column of read rows that has the values of a field of Spark's `_metadata`, for fields that differ between the rows of a file."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file to read.

    Args:
        url: its absolute URL, percent-encoded.
        modified_ms: the time of its last modification.
        selected: rows as packed bits, by the column of `ScannedColumns` that has them; null for all rows, in `ScannedColumns.narrowing`.
    """

    task: ReadTask
    url: str
    modified_ms: int
    selected: Mapping[str, bytes | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.task.size or 0

    def metadata(self, name: str) -> object:
        """Return a field of `_metadata` that is the same for all rows: of Spark's, or of those that tables with row tracking have."""
        match name:
            case "file_path":
                return self.url
            case "file_name":
                return self.url.rpartition("/")[2]
            case "file_size" | "file_block_length":
                return self.size
            case "file_block_start":
                return 0
            case "base_row_id":
                return self.task.base_row_id
            case "default_row_commit_version":
                return self.task.default_row_commit_version
        assert name == "file_modification_time", name
        return self.modified_ms * 1000


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """The columns of a scan.

    Args:
        output: the columns of the result, in order.
        stored: the columns that are in files, and those of partitions.
        mapping_mode: how columns are found in files: by their names in `stored` (``none``), or by field ids (``id``).
        partition_columns: the columns of `stored` whose values are not in the files.
        row_index: the column with the position of a row in its file.
        narrowing: columns that are null in the result; only the rows that they select are read.
        choosing: columns that are true for the rows that they select.
    """

    output: StructType
    stored: StructType
    mapping_mode: str
    partition_columns: tuple[str, ...] = ()
    row_index: str = ""
    narrowing: frozenset[str] = frozenset()
    choosing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PythonScan:
    """A scan, without its files.

    Args:
        version: of the table, for errors.
        predicate: is true for the wanted rows, in terms of `ScannedColumns.stored`.
    """

    store: LogStore
    version: int
    columns: ScannedColumns
    predicate: Predicate | None


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """The column `_metadata` of read rows.

    Args:
        column: the struct.
        per_row: the columns of read rows that have its values (`PER_ROW`).
    """

    column: StructField
    per_row: ExtraColumns


def rows_with_metadata(
    files: DataFiles,
    schema: StructType,
    predicate: Predicate | None,
    version: int,
    metadata: MetadataColumn,
    scanned: Iterable[ScannedFile],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files of a snapshot, with the column `_metadata` after the table's."""
    target, column = to_arrow_schema(StructType((*schema, metadata.column))), metadata.column
    for file in scanned:
        rows = files.read(file.task, schema, predicate, metadata.per_row)
        for batch in located_batches(rows, files.store.url, version, file.task.name):
            arrays = [*batch.columns[: len(schema.fields)], _metadata_values(column, batch, file)]
            yield pa.RecordBatch.from_arrays(arrays, names=target.names).cast(target)


def scanned_rows(scan: PythonScan, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, in the columns of the scan.

    Args:
        items: one column of pickled tuples of `ScannedFile`.
    """
    vectors = VectorReader(scan.store)
    for batch in items:
        for item in batch.column(0).to_pylist():
            files = pickle.loads(item)
            streams = [partial(_rows_of_file, scan, file, vectors, use_threads=len(files) == 1) for file in files]
            # Each file takes several requests, one after the other.
            with closing(read_ahead(streams, threads=_FILES, most_open=_FILES, most_bytes=MOST_BYTES_AHEAD)) as rows:
                yield from rows


def _rows_of_file(scan: PythonScan, file: ScannedFile, vectors: VectorReader, *, use_threads: bool) -> Iterator[pa.RecordBatch]:
    columns = scan.columns
    extra, schema = ExtraColumns(row_index_column=ROW), to_arrow_schema(columns.output)
    reader = FileReader(file.task, columns.stored, columns.mapping_mode, columns.partition_columns, extra)
    batches = reader.live_rows(scan.store.open_input, vectors.bitmap, scan.predicate, replace(_BATCHES, use_threads=use_threads))
    for batch in located_batches(batches, scan.store.url, scan.version, file.task.name):
        for name in columns.narrowing:
            bits = file.selected.get(name)
            if bits is not None:
                batch = batch.filter(_is_selected(bits, batch.column(ROW)))
        if batch.num_rows:
            arrays = [_column(columns, column, batch, file) for column in columns.output]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(columns: ScannedColumns, column: StructField, batch: pa.RecordBatch, file: ScannedFile) -> pa.Array:
    if column.name in columns.narrowing:
        return pa.nulls(batch.num_rows, to_arrow_type(column.data_type))
    if column.name in columns.choosing:
        return _is_selected(file.selected.get(column.name) or b"", batch.column(ROW))
    if column.name == columns.row_index:
        return batch.column(ROW)
    if column.name in columns.stored.names:
        return batch.column(column.name)
    return _metadata_values(column, batch, file)


def _metadata_values(column: StructField, batch: pa.RecordBatch, file: ScannedFile) -> pa.Array:
    """Return the values of Spark's column `_metadata`.

    Args:
        column: the struct with the fields to compute.
        batch: rows of the file, with the columns `PER_ROW` of these fields.
    """
    assert isinstance(column.data_type, StructType), column
    parts = [_metadata(part, batch, file) for part in column.data_type]
    return pa.StructArray.from_arrays(parts, fields=list(to_arrow_schema(column.data_type)))


def _metadata(part: StructField, batch: pa.RecordBatch, file: ScannedFile) -> pa.Array:
    if part.name in PER_ROW:
        return batch.column(PER_ROW[part.name])
    return pa.repeat(scalar(file.metadata(part.name), to_arrow_type(part.data_type)), batch.num_rows)


def _is_selected(bits: bytes, positions: pa.Array) -> pa.Array:
    """Return whether the bit of each position is set: bit *i* of byte *i / 8*, lowest first, which is Arrow's layout of booleans."""
    count = len(bits) * 8
    flags = pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)])
    inside = pc.less(positions, scalar(count, pa.int64()))
    return pc.fill_null(flags.take(pc.if_else(inside, positions, scalar(None, pa.int64()))), False)
