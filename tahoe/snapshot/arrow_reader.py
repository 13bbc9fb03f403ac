"""One data file → Arrow record batches of the table's logical schema, without Spark.

    Parquet file ─ row groups that the predicate may match ─► batches of the requested columns, by name or by field id
        ─► logical names, the table's types, nulls for missing columns, partition values from the log
        ─► rows that are not in the deletion vector ─► rows for which the predicate is true

Imported in Spark's executors too: needs pyarrow and pyroaring only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.lazy import pc, pq
from tahoe.expr.compute.evaluate import filter_table
from tahoe.expr.tree.predicate import Predicate, references
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.protocol.action_members import check_partition_values
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.partition import deserialize
from tahoe.schema.arrow import to_arrow_schema, to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.cast import STORED, CannotCast, Rule, conform, find_by_id, read_cast
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.file_row_groups import (
    evenly,
    is_local,
    is_tiny,
    openings,
    parquet_file,
    plain,
    row_groups_that_may_match,
    rows_of_a_batch,
    runs,
    whole,
)
from tahoe.snapshot.footer_cross_check import contradiction
from tahoe.snapshot.late_columns import OtherColumns, positions_of_matches, taken
from tahoe.snapshot.memory_release import MemoryRelease
from tahoe.snapshot.read_errors import check_text, reported_as_damage

if TYPE_CHECKING:
    from pyroaring import BitMap64


BATCH_ROWS = 131_072
_ROWS_WORTH_THREADS = 65_536
_ROWS_WORTH_PARTS = 16_384
# Checking a footer costs about 50 microseconds a column: footers with very many columns or row groups are not checked.
_LARGEST_FOOTER_CHECKED = 16 * 1024


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One logical file to read; a plain value that can be sent to another process.

    Args:
        name: store name, relative to the table's root.
        size: of the file in bytes, from the log; None if the log lacks it.
        partition_values: by physical column name, as the log has them.
        stats: of all rows, the JSON text in the log; the file's footer is checked against it.
    """

    name: str
    size: int | None
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    stats: str | None = None


@dataclass(frozen=True, slots=True)
class ExtraColumns:
    """The columns to add to each row, after the table's (PROTOCOL.md, "Reader Requirements for Row Tracking").

    Args:
        row_id_column: name for the stable row id, a long; None to leave it out.
        row_commit_version_column: name for the stable row commit version, a long; None to leave it out.
        materialized_row_id_column: the table's ``delta.rowTracking.materializedRowIdColumnName``.
        materialized_row_commit_version_column: the table's ``delta.rowTracking.materializedRowCommitVersionColumnName``.
        row_index_column: name for the physical position of the row in its file, a long, before the others; None to leave it out.
    """

    row_id_column: str | None = None
    row_commit_version_column: str | None = None
    materialized_row_id_column: str | None = None
    materialized_row_commit_version_column: str | None = None
    row_index_column: str | None = None


NO_EXTRA_COLUMNS = ExtraColumns()


@dataclass(frozen=True, slots=True)
class FileReadOptions:
    """How to read one file.

    Args:
        batch_rows: the most rows of one batch.
        batch_bytes: the approximate bytes of one batch; None for the usual size.
        verify_pages: check each page against its checksum, if it has one.
        most_row_groups: read only so many, evenly spaced from the first to the last: a sample.
        use_threads: decode the columns of a large file in parallel.
    """

    batch_rows: int = BATCH_ROWS
    batch_bytes: int | None = None
    verify_pages: bool = False
    most_row_groups: int | None = None
    use_threads: bool = True


USUAL = FileReadOptions()
INTO_MEMORY = FileReadOptions(batch_rows=1024 * 1024, batch_bytes=16 * 1024 * 1024)
"""For rows that are all kept: a row group of Tahoe's files in one batch takes three quarters of the time of one in several."""


@dataclass(frozen=True, slots=True)
class RowsToRead:
    """The rows of one file to read, and how to read them.

    Args:
        vector: the deleted rows.
        predicate: is true for the rows.
    """

    vector: BitMap64 | None
    predicate: Predicate | None
    options: FileReadOptions

    def batches(
        self, file: pq.ParquetFile, run: Sequence[int], columns: Sequence[str], until: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read row groups in batches of a bounded size.

        Args:
            until: the rows from this one on are not needed: a batch ends there.
        """
        rows = rows_of_a_batch(file.metadata.row_group(run[0]), columns, self.options.batch_rows, self.options.batch_bytes)
        if until is not None:  # as many batches as before, all of one size
            rows = -(-until // -(-until // rows))
        threads = self.options.use_threads and file.metadata.num_rows >= _ROWS_WORTH_THREADS
        batches: Iterator[pa.RecordBatch] = file.iter_batches(
            batch_size=rows, row_groups=list(run), columns=list(columns), use_threads=threads
        )
        return batches


def check_footer(
    task: ReadTask, schema: StructType, column_mapping_mode: str, open_input: Callable[[str], pa.NativeFile]
) -> None:
    """Raise the errors that `FileReader.live_rows` raises before the first row, except those of its deletion vector and its partition.

    Args:
        schema: the logical columns that are stored in data files.
    """
    reader = FileReader(task, schema, column_mapping_mode, ())
    with _opened(task, open_input) as source, reported_as_damage(task.name):
        reader.checked(source)


def _opened(task: ReadTask, open_input: Callable[[str], pa.NativeFile]) -> pa.NativeFile:
    """Open the file and check its size against the log; the size is known from opening, so the check needs no request."""
    try:
        source = open_input(task.name)
    except (NotFound, FileNotFoundError) as error:
        raise missing_file(task.name) from error
    size = source.size()
    if task.size is not None and size != task.size:
        source.close()
        raise wrong_size(task.name, size, task.size)
    return source


def missing_file(name: str) -> NotFound:
    """Return the error for a data file of the log that is not in storage."""
    return NotFound(
        f"Data file '{name}' is in the table's log but not in storage. It was removed by other means than the table's own operations, or "
        "by a VACUUM that retained less than this reader needs. Read the newest version, or restore it.",
        code="DELTA_FILE_NOT_FOUND",
        file=name,
    )


def wrong_size(name: str, size: int, expected: int) -> CorruptTable:
    """Return the error for a data file whose size differs from the log."""
    return CorruptTable(
        f"Data file '{name}' has {size:,} bytes, but the table's log says {expected:,}: it was cut, or another file lies in its "
        "place. Restore the file from a copy, or restore the table to an earlier version.",
        code="TAHOE_DATA_FILE_SIZE",
        file=name,
    )


class FileReader:
    """The reader of one file. `tahoe.snapshot.data_reader.DataFiles` makes it for the files of a table.

    Args:
        schema: the logical columns of the result, in order, with their column mapping metadata.
        column_mapping_mode: ``none``, ``name`` or ``id``.
        partition_columns: logical names; their values come from the task, never from the file.
    """

    def __init__(
        self,
        task: ReadTask,
        schema: StructType,
        column_mapping_mode: str,
        partition_columns: Sequence[str],
        extra: ExtraColumns = NO_EXTRA_COLUMNS,
    ) -> None:
        self.task = task
        self.schema = schema
        self.extra = extra
        self._mode = column_mapping_mode
        self.rule = Rule(find_by_id, read_cast) if column_mapping_mode == "id" else STORED
        partitioned = {name.lower() for name in partition_columns}
        self.partition_values = {
            column.name: self._partition_value(column) for column in schema if column.name.lower() in partitioned
        }
        self.arrow_schema = self._with_extra_columns(to_arrow_schema(schema))
        # Where columns have the same names in the file, and nothing is added, rows in the table's types are taken as they are.
        self.is_plain = column_mapping_mode == "none" and not self.partition_values and extra == NO_EXTRA_COLUMNS

    def live_rows(
        self,
        open_input: Callable[[str], pa.NativeFile],
        read_vector: Callable[[DeletionVectorDescriptor], BitMap64 | None],
        predicate: Predicate | None = None,
        options: FileReadOptions = USUAL,
    ) -> Iterator[pa.RecordBatch]:
        """Read the live rows for which `predicate` is true, in file order.

        Args:
            open_input: opens a random-access file by its store name.
            read_vector: reads the deleted row positions of a descriptor.
            predicate: may only refer to columns of the schema.

        Yields:
            Batches whose schema is `to_arrow_schema(schema)`, followed by the requested extra columns.

        Raises:
            CorruptTable: the file is not a Parquet file, a column's type cannot be read as the table's, or the deletion vector does not
                fit the file.
            NotFound: the file is not in storage.
        """
        task = self.task
        vector = None if task.deletion_vector is None else read_vector(task.deletion_vector)
        request = RowsToRead(vector, predicate, options)
        with _opened(task, open_input) as source, reported_as_damage(task.name):
            file = self.checked(source, options.verify_pages)
            parts = None if predicate is None else self._parted(file, source, {path[0] for path in references(predicate)})
            if predicate is not None and parts is not None:
                yield from self._matching_batches(file, source, request, predicate, parts)
                return
            for start, batch in self._physical_batches(file, source, request):
                alive = _alive(vector, start, batch.num_rows)
                logical = self.logical(batch, start)
                if alive is not None:
                    logical = logical.take(alive)
                if predicate is None:
                    yield logical
                else:
                    yield from filter_table(predicate, pa.Table.from_batches([logical])).to_batches()

    def _physical_batches(
        self, file: pq.ParquetFile, source: pa.NativeFile, request: RowsToRead
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the requested columns in the file's types, each batch with the position of its first row."""
        self._check_vector(request.vector, file)
        columns = self.columns_to_read(file.schema_arrow)
        if columns and request.predicate is None and request.options.most_row_groups is None and is_tiny(source):
            yield from whole(file, columns, request.options.batch_rows)
            return
        row_groups = self._row_groups(file, request)
        if not columns:
            for start, run in runs(file.metadata, row_groups):
                yield from _empty_batches(
                    start, sum(file.metadata.row_group(i).num_rows for i in run), request.options.batch_rows
                )
            return
        memory_release = MemoryRelease()
        for start, run, opened in openings(file, source, row_groups, columns, request.options.verify_pages):
            for batch in request.batches(opened, run, columns):
                size, rows = batch.nbytes, batch.num_rows
                yield start, plain(batch)
                del batch
                memory_release.passed(size)
                start += rows

    def _parted(
        self, file: pq.ParquetFile, source: pa.NativeFile, names: Collection[str]
    ) -> tuple[FileReader, FileReader] | None:
        """Return readers of the named columns and of all others, if it is faster to read the first ones before the others.

        For files that are not at hand it is not: each part of a file costs a request.
        """
        is_large = is_local(source) and not is_tiny(source) and file.metadata.num_rows >= _ROWS_WORTH_PARTS
        if not is_large or self.extra != NO_EXTRA_COLUMNS:
            return None
        parts = [StructType(tuple(c for c in self.schema if (c.name in names) == named)) for named in (True, False)]
        first, others = (
            FileReader(self.task, part, self._mode, tuple(self.partition_values), NO_EXTRA_COLUMNS) for part in parts
        )
        both_have_columns = first.columns_to_read(file.schema_arrow) and others.columns_to_read(file.schema_arrow)
        return (first, others) if both_have_columns else None

    def _matching_batches(
        self,
        file: pq.ParquetFile,
        source: pa.NativeFile,
        request: RowsToRead,
        predicate: Predicate,
        parts: tuple[FileReader, FileReader],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows for which the predicate is true, in batches of the table.

        Args:
            parts: the readers of the predicate's columns and of all others (`parted`).
        """
        self._check_vector(request.vector, file)
        first, others = parts
        columns, more = (part.columns_to_read(file.schema_arrow) for part in parts)
        memory_release = MemoryRelease()
        for start, run, opened in openings(
            file, source, self._row_groups(file, request), [*columns, *more], request.options.verify_pages
        ):
            for index in run:
                rest, done = OtherColumns(partial(request.batches, opened, [index], more)), 0
                for batch in request.batches(opened, [index], columns):
                    rows = first.logical(plain(batch), start)
                    positions = positions_of_matches(predicate, rows, _alive(request.vector, start, rows.num_rows))
                    done += rows.num_rows
                    if len(positions):
                        of_group = pc.add(positions, scalar(done - rows.num_rows, positions.type))
                        of_rest = rest.rows(of_group, are_last=done == file.metadata.row_group(index).num_rows)
                        yield self._joined(taken(rows, positions), others.logical(of_rest, 0))
                    start += rows.num_rows
                    memory_release.passed(batch.nbytes)
                memory_release.passed(rest.bytes_read)

    def _joined(self, *parts: pa.RecordBatch) -> pa.RecordBatch:
        columns = {name: values for part in parts for name, values in zip(part.schema.names, part.columns, strict=True)}
        return pa.RecordBatch.from_arrays([columns[name] for name in self.arrow_schema.names], schema=self.arrow_schema)

    def _row_groups(self, file: pq.ParquetFile, request: RowsToRead) -> Sequence[int]:
        row_groups: Sequence[int] = range(file.num_row_groups)
        if request.predicate is not None:
            row_groups = row_groups_that_may_match(request.predicate, file, self._leaf_of(file.schema_arrow))
        return row_groups if request.options.most_row_groups is None else evenly(row_groups, request.options.most_row_groups)

    def _check_vector(self, vector: BitMap64 | None, file: pq.ParquetFile) -> None:
        if vector is not None and len(vector) and vector.max() >= file.metadata.num_rows:
            raise CorruptTable(
                f"The deletion vector of file '{self.task.name}' removes row {vector.max()}, but the file has "
                f"{file.metadata.num_rows} rows. Restore the table to an earlier version.",
                code="TAHOE_CORRUPT_DELETION_VECTOR",
                file=self.task.name,
            )

    def checked(self, source: pa.NativeFile, verify_pages: bool = False) -> pq.ParquetFile:
        """Open the file and check its footer against the log's statistics."""
        self._check_bytes_of_footer(source)
        file = parquet_file(source, verify_pages=verify_pages)
        self._check_footer(file)
        return file

    def _check_bytes_of_footer(self, source: pa.NativeFile) -> None:
        """Raise `CorruptTable` for a footer that would make Arrow end the process."""
        size = source.size()
        length = int.from_bytes(source.read_at(8, size - 8)[:4], "little") if size > 8 else 0
        if not 0 < length <= min(size - 8, _LARGEST_FOOTER_CHECKED):
            return  # Arrow raises the error
        fault = fault_in_footer(source.read_at(length, size - 8 - length))
        if fault is not None:
            raise CorruptTable(
                f"Data file '{self.task.name}' is damaged: {fault}. Restore the file from a copy, or restore the table to an earlier "
                "version.",
                code="TAHOE_DATA_FILE_DAMAGED",
                file=self.task.name,
            )

    def _check_footer(self, file: pq.ParquetFile) -> None:
        if self.task.stats is None:
            return
        columns = self.names_in(file.schema_arrow)
        fault = contradiction(file.metadata, self.task.stats, columns, has_vector=self.task.deletion_vector is not None)
        if fault is not None:
            raise CorruptTable(
                f"Data file '{self.task.name}' is damaged, or another file is in its place: {fault}. Restore the file from a copy, or "
                "restore the table to an earlier version. If the file is as its writer left it, the log's statistics are wrong: "
                "`tahoe analyze` computes them again.",
                code="TAHOE_DATA_FILE_CONTRADICTS_LOG",
                file=self.task.name,
            )

    def names_in(self, file_schema: pa.Schema) -> dict[str, str | None]:
        """Map the physical names of the columns to read to their names in the file; None if the file lacks one."""
        if self.is_plain and file_schema.equals(self.arrow_schema):
            return {name: name for name in file_schema.names}
        file_type, names = pa.struct(file_schema), dict[str, str | None]()
        for column in self.schema:
            if column.name not in self.partition_values and column.data_type != PrimitiveType("void"):
                position = self.rule.find(file_type, column)
                names[column.physical_name] = None if position is None else file_schema.field(position).name
        return names

    def logical(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Convert a batch of the file to a batch of the table."""
        rows = batch.num_rows
        if self.is_plain and batch.schema.equals(self.arrow_schema):
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                check_text(values, name, self.task.name)
            return pa.RecordBatch.from_arrays(batch.columns, schema=self.arrow_schema)
        file_type = pa.struct(batch.schema)
        arrays = [self._column(column, batch, file_type) for column in self.schema]
        extra = self.extra
        if extra.row_index_column is not None:
            arrays.append(_positions(start, rows))
        if extra.row_id_column is not None:
            arrays.append(self._row_ids(batch, start))
        if extra.row_commit_version_column is not None:
            default = scalar(self.task.default_row_commit_version, pa.int64())
            arrays.append(_coalesce(batch, extra.materialized_row_commit_version_column, pa.repeat(default, rows)))
        if not arrays:
            # A batch without columns cannot carry a row count through `from_arrays`.
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _column(self, column: StructField, batch: pa.RecordBatch, file_type: pa.StructType) -> pa.Array:
        target = self.arrow_schema.field(column.name).type
        if column.name in self.partition_values:
            return pa.repeat(self.partition_values[column.name], batch.num_rows)
        position = self.rule.find(file_type, column)
        if position is None or column.data_type == PrimitiveType("void"):
            return pa.nulls(batch.num_rows, target)
        try:
            values = conform(batch.column(position), column.data_type, target, self.rule, (column.name,))
        except CannotCast as error:
            name = ".".join(error.path)
            raise CorruptTable(
                f"Column '{name}' of data file '{self.task.name}' is {error.source}, which cannot be read as the table's "
                f"{error.target}{f' ({error.reason})' if error.reason else ''}. Rewrite the file with the right type, or remove "
                "it from the table.",
                code="TAHOE_DATA_FILE_TYPE_MISMATCH",
                file=self.task.name,
                column=name,
            ) from error
        check_text(values, column.name, self.task.name)
        return values

    def _row_ids(self, batch: pa.RecordBatch, start: int) -> pa.Array:
        base = self.task.base_row_id
        default = pa.nulls(batch.num_rows, pa.int64()) if base is None else _positions(base + start, batch.num_rows)
        return _coalesce(batch, self.extra.materialized_row_id_column, default)

    def _partition_value(self, column: StructField) -> pa.Scalar:
        check_partition_values(self.task.name, self.task.partition_values, self.schema, (column.name,), "")
        text = self.task.partition_values[column.physical_name]
        return scalar(deserialize(text, column.data_type), to_arrow_type(column.data_type))

    def columns_to_read(self, file_schema: pa.Schema) -> list[str]:
        """Return the names in the file of the columns to read."""
        if self.is_plain and file_schema.equals(self.arrow_schema):
            return list(file_schema.names)
        file_type = pa.struct(file_schema)
        columns = [
            self.rule.find(file_type, column)
            for column in self.schema
            if column.name not in self.partition_values and column.data_type != PrimitiveType("void")
        ]
        names = [file_schema.field(position).name for position in columns if position is not None]
        extra = self.extra
        if extra.row_id_column is not None and extra.materialized_row_id_column in file_schema.names:
            names.append(extra.materialized_row_id_column)
        if extra.row_commit_version_column is not None and extra.materialized_row_commit_version_column in file_schema.names:
            names.append(extra.materialized_row_commit_version_column)
        return list(dict.fromkeys(names))

    def _leaf_of(self, file_schema: pa.Schema) -> Callable[[tuple[str, ...]], tuple[str, ...] | None]:
        """The path of a logical column in the file, or None where the file or the schema does not have it."""

        def leaf_of(path: tuple[str, ...]) -> tuple[str, ...] | None:
            fields: Any = self.schema
            inside: pa.DataType = pa.struct(file_schema)
            names: list[str] = []
            for part in path:
                column = fields.find(part) if isinstance(fields, StructType) else None
                if column is None or not pa.types.is_struct(inside) or (not names and column.name in self.partition_values):
                    return None
                position = self.rule.find(inside, column)
                if position is None:
                    return None
                names.append(inside.field(position).name)
                inside, fields = inside.field(position).type, column.data_type
            return tuple(names)

        return leaf_of

    def _with_extra_columns(self, schema: pa.Schema) -> pa.Schema:
        extra = self.extra
        for name in (extra.row_index_column, extra.row_id_column, extra.row_commit_version_column):
            if name is not None:
                schema = schema.append(pa.field(name, pa.int64(), name != extra.row_index_column))
        return schema


def _empty_batches(start: int, rows: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches without columns, for reads of positions and partition values only."""
    while rows > 0:
        count = min(rows, batch_rows)
        yield start, pa.record_batch({"": pa.nulls(count)})
        start, rows = start + count, rows - count


def _alive(vector: BitMap64 | None, start: int, rows: int) -> pa.Array | None:
    """Return the positions within the batch that the vector does not delete; None if those are all."""
    if vector is None or not vector.range_cardinality(start, start + rows):
        return None
    from pyroaring import BitMap64

    window = BitMap64()
    window.add_range(start, start + rows)
    window -= vector
    positions = pa.Array.from_buffers(pa.uint64(), len(window), [None, pa.py_buffer(window.to_array())])
    return pc.subtract(positions, scalar(start, pa.uint64()))


def _positions(start: int, rows: int) -> pa.Array:
    return pa.arange(start, start + rows)


def _coalesce(batch: pa.RecordBatch, name: str | None, default: pa.Array) -> pa.Array:
    position = -1 if name is None else batch.schema.get_field_index(name)
    return default if position < 0 else pc.coalesce(batch.column(position).cast(pa.int64()), default)
