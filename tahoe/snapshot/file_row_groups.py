"""The row groups of a Parquet file: those that may contain matching rows, by the statistics in the footer, and the pieces in which they are
read, so that only a small part of a file is in memory.

Skipping is conservative: a row group without statistics, or with statistics of an unknown form, is read. The rows are filtered after
reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from tahoe.base.lazy import kept_by_identity, pc, pq
from tahoe.expr.tree.alternatives import outline
from tahoe.expr.tree.predicate import (
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    normalise,
)
from tahoe.protocol.statistics.checkpoint_row_groups import leaf_positions

Value = TypeVar("Value")

LeafOf = Callable[[tuple[str, ...]], tuple[str, ...] | None]
"""The path of a logical column in the file, None where it has none there."""


def row_groups_that_may_match(predicate: Predicate, file: pq.ParquetFile, leaf_of: LeafOf) -> list[int]:
    """Numbers of the row groups that must be read, ascending."""
    metadata = file.metadata
    positions = leaf_positions(metadata)
    selected = _in_short(predicate)

    def bounds_in(group: pq.RowGroupMetaData) -> Callable[[Column], _Bounds | None]:
        def bounds(column: Column) -> _Bounds | None:
            leaf = leaf_of(column.path)
            position = None if leaf is None else positions.get(".".join(leaf))
            return None if position is None else _bounds_of(group.column(position))

        return bounds

    return [i for i in range(metadata.num_row_groups) if _may_match(selected, bounds_in(metadata.row_group(i)))]


@kept_by_identity
def _in_short(predicate: Predicate) -> Predicate:
    return normalise(outline(predicate))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The statistics of a column chunk; `least` and `most` are None if it has none."""

    least: Any
    most: Any
    nulls: int | None
    values: int


def _bounds_of(chunk: pq.ColumnChunkMetaData) -> _Bounds | None:
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    least = most = None
    # INT96 has no order that statistics could follow; a text bound that was cut inside a character does not decode.
    if statistics.has_min_max and chunk.physical_type != "INT96":
        try:
            least, most = statistics.min, statistics.max
        except (UnicodeDecodeError, ValueError, OverflowError):
            least = most = None
    return _Bounds(least, most, nulls, chunk.num_values)


def _may_match(predicate: Predicate, bounds: Callable[[Column], _Bounds | None]) -> bool:
    match predicate:
        case Constant(value):
            return value is True
        case And(parts):
            return all(_may_match(part, bounds) for part in parts)
        case Or(parts):
            return any(_may_match(part, bounds) for part in parts)
        case Comparison() | In() | IsNull() | IsNotNull() | StartsWith():
            column_bounds = bounds(predicate.column)
            return column_bounds is None or _leaf_may_match(predicate, column_bounds)
    return True


def _leaf_may_match(predicate: Comparison | In | IsNull | IsNotNull | StartsWith, bounds: _Bounds) -> bool:
    match predicate:
        case IsNull():
            return bounds.nulls != 0
        case IsNotNull():
            return bounds.nulls is None or bounds.nulls < bounds.values
        case Comparison("<=>", _, literal) if literal.value is None:
            return bounds.nulls != 0
        case Comparison(op, _, literal):
            return _not_only_nulls(bounds) and _in_range(op, literal.value, bounds)
        case In(_, literals):
            return _not_only_nulls(bounds) and any(_in_range("=", literal.value, bounds) for literal in literals)
        case StartsWith(_, prefix):
            if not isinstance(bounds.least, str) or not isinstance(bounds.most, str):
                return True
            # Code points order as UTF-8 bytes do.
            return bounds.least[: len(prefix)] <= prefix <= bounds.most[: len(prefix)]


def _not_only_nulls(bounds: _Bounds) -> bool:
    return bounds.nulls is None or bounds.nulls < bounds.values


def _in_range(op: str, value: Any, bounds: _Bounds) -> bool:
    """Whether some value between the bounds may fulfil `op value`."""
    least, most = _comparable(bounds.least, value), _comparable(bounds.most, value)
    if least is None or most is None:
        return True
    # Statistics leave NaN out, though to SQL it is the greatest value.
    floating = isinstance(least, float)
    if floating and (math.isnan(value) or math.isnan(least) or math.isnan(most)):
        return True
    match op:
        case "=" | "<=>":
            return bool(least <= value <= most)
        case "<":
            return bool(least < value)
        case "<=":
            return bool(least <= value)
        case ">":
            return floating or bool(most > value)
        case ">=":
            return floating or bool(most >= value)
    return floating or not (least == most == value)


def _comparable(bound: object, value: object) -> Any:
    """Return the bound as a value that Python can compare with `value`, or None."""
    if bound is None or isinstance(value, bytes):
        return None
    if isinstance(value, datetime):
        if type(bound) is not datetime:  # a date; or nanoseconds, which are cut down when read
            return None
        if value.tzinfo is None:
            return bound.replace(tzinfo=None)
        return bound.astimezone(UTC) if bound.tzinfo is not None else bound.replace(tzinfo=UTC)
    if isinstance(value, bool) != isinstance(bound, bool):
        return None
    if isinstance(value, float):
        return float(bound) if isinstance(bound, int | float) else None
    return bound if type(bound) is type(value) else None


# -- pieces ----------------------------------------------------------------------------------------------------------------------


def parquet_file(
    source: pa.NativeFile,
    *,
    verify_pages: bool,
    buffer_size: int = 0,
    metadata: pq.FileMetaData | None = None,
    dictionaries: Sequence[str] = (),
) -> pq.ParquetFile:
    """Open the file for a reader that loads only the parts that it needs.

    Args:
        verify_pages: check each page against its checksum, if it has one.
        buffer_size: read each column in pieces of so many bytes; 0 where whole column chunks are read at once.
        dictionaries: columns to read as Arrow dictionaries.
    """
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=list(dictionaries) or None,
        # In nanoseconds, Arrow's default for INT96, the years before 1677 and after 2262 would overflow.
        coerce_int96_timestamp_unit="us",
        # Object stores need few large requests for column chunks. Mapped files are read in place.
        pre_buffer=not buffer_size and not isinstance(source, _AT_HAND),
        buffer_size=buffer_size,
        arrow_extensions_enabled=False,
        page_checksum_verification=verify_pages,
    )


def openings(
    file: pq.ParquetFile, source: pa.NativeFile, row_groups: Sequence[int], columns: Sequence[str], verify_pages: bool
) -> Iterator[tuple[int, list[int], pq.ParquetFile]]:
    """Yield runs of row groups, each with the file opened in the way that suits its size and its storage.

    Arrow keeps the prefetched bytes of all row groups of a read until the read ends. A large file is therefore read a few row groups at a
    time, and a row group that is too large by itself in pieces. Texts that the file stores as dictionaries are read as such (`plain`).
    """
    dictionaries = _stored_as_dictionary(file, row_groups, columns)
    again = partial(parquet_file, source, verify_pages=verify_pages, metadata=file.metadata, dictionaries=dictionaries)
    if isinstance(source, pa.OSFile):
        file = again(buffer_size=_LOCAL_PIECE)
    elif dictionaries:
        file = again()
    if is_local(source):
        yield from ((start, run, file) for start, run in runs(file.metadata, row_groups))
        return
    for start, run in runs(file.metadata, row_groups):
        for first, some in _split(file.metadata, start, run, columns):
            if _compressed(file.metadata, some[0], columns) <= _FETCHED_AT_ONCE:
                yield first, some, file
            else:
                yield first, some, again(buffer_size=_REMOTE_PIECE)


def _stored_as_dictionary(file: pq.ParquetFile, row_groups: Sequence[int], columns: Sequence[str]) -> list[str]:
    """Return the columns of texts of which a file stores each distinct value once, as far as its first row group shows.

    Decoding the numbers of the values takes a quarter of the time of decoding the values. If a dictionary became too large for the writer,
    which then stored values one by one, reading a dictionary would be slow; such a column chunk is larger.
    """
    if not row_groups or file.metadata.row_group(row_groups[0]).num_rows < _ROWS_WORTH_A_DICTIONARY:
        return []
    texts = {field.name for field in file.schema_arrow if pa.types.is_string(field.type)}.intersection(columns)
    return [
        chunk.path_in_schema
        for chunk in (_chunks(file.metadata.row_group(row_groups[0]), columns) if texts else ())
        if chunk.path_in_schema in texts and _DICTIONARY_ENCODINGS.intersection(chunk.encodings)
        if chunk.total_uncompressed_size < _LEAST_BYTES_OF_A_TEXT * (chunk.num_values - _nulls(chunk))
    ]


def _nulls(chunk: pq.ColumnChunkMetaData) -> int:
    statistics = chunk.statistics if chunk.is_stats_set else None
    return int(statistics.null_count) if statistics is not None and statistics.has_null_count else 0


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the values of its Arrow dictionaries in their place.

    Raises `pa.ArrowInvalid` for a number that is not in its dictionary: Arrow does not check this when it reads dictionaries.
    """
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    fields, arrays = list[pa.Field](), list[pa.Array]()
    for field, values in zip(batch.schema, batch.columns, strict=True):
        is_dictionary = pa.types.is_dictionary(field.type)
        if is_dictionary:
            _check_numbers(values, field.name)
        fields.append(field.with_type(field.type.value_type) if is_dictionary else field)
        arrays.append(values.dictionary_decode() if is_dictionary else values)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _check_numbers(values: pa.DictionaryArray, column: str) -> None:
    ends = pc.min_max(values.indices).as_py()
    if ends["max"] is not None and not 0 <= ends["min"] <= ends["max"] < len(values.dictionary):
        raise pa.ArrowInvalid(
            f"the dictionary of column '{column}' has {len(values.dictionary)} texts, but its rows have numbers from {ends['min']} to "
            f"{ends['max']}"
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


def rows_of_a_batch(group: pq.RowGroupMetaData, columns: Sequence[str], most: int, most_bytes: int | None) -> int:
    """Return the number of rows for which a batch has about `most_bytes`, by the sizes of a row group in the footer.

    Args:
        most_bytes: None for `_BYTES_OF_A_BATCH`.
    """
    size = sum(int(chunk.total_uncompressed_size) for chunk in _chunks(group, columns))
    if size <= 0 or group.num_rows <= 0:
        return most
    return max(1, min(most, max(_LEAST_ROWS, (most_bytes or _BYTES_OF_A_BATCH) * int(group.num_rows) // size)))


def is_local(source: pa.NativeFile) -> bool:
    """Whether a read of a part of the file costs no request: it is at hand, or on a local disk."""
    return isinstance(source, (*_AT_HAND, pa.OSFile))


def is_at_hand(source: pa.NativeFile) -> bool:
    """Whether a file is in memory, or memory-mapped."""
    return isinstance(source, _AT_HAND)


def is_tiny(source: pa.NativeFile) -> bool:
    """Whether a file is at hand and so small that planning pieces costs more than reading it."""
    return is_at_hand(source) and source.size() <= _TINY


def _chunks(group: pq.RowGroupMetaData, columns: Sequence[str]) -> list[pq.ColumnChunkMetaData]:
    """Return the chunks of the columns; for names with dots it is a guess, which is sufficient for sizes."""
    roots = {name.partition(".")[0] for name in columns}
    chunks = (group.column(i) for i in range(group.num_columns))
    return [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in roots]


_DICTIONARY_ENCODINGS = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_ROWS_WORTH_A_DICTIONARY = 4096
_LEAST_BYTES_OF_A_TEXT = 4
"""Parquet stores the length of a text in so many bytes, unless it is in a dictionary."""
_AT_HAND = (pa.MemoryMappedFile, pa.BufferReader)
_TINY = 64 * 1024
_LOCAL_PIECE = 256 * 1024
_REMOTE_PIECE = 4 * 1024 * 1024
_FETCHED_AT_ONCE = 32 * 1024 * 1024
_BYTES_OF_A_BATCH = 4 * 1024 * 1024
_LEAST_ROWS = 64


def whole(file: pq.ParquetFile, columns: Sequence[str], batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """All rows of a file that `is_tiny`, each batch with the position of its first row."""
    start = 0
    for batch in file.read(columns, use_threads=False).to_batches(batch_rows):
        yield start, batch
        start += batch.num_rows


def runs(metadata: pq.FileMetaData, row_groups: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield runs of neighbouring row groups to read, with the position of their first row: positions within a run are contiguous."""
    start, run_start, run = 0, 0, list[int]()
    selected = set(row_groups)
    for index in range(metadata.num_row_groups):
        if index in selected:
            run_start = run_start if run else start
            run.append(index)
        elif run:
            yield run_start, run
            run = []
        start += metadata.row_group(index).num_rows
    if run:
        yield run_start, run


def evenly(values: Sequence[Value], most: int) -> list[Value]:
    """Return `most` of the values, evenly spaced from the first on, or all if there are no more."""
    return [values[place * len(values) // most] for place in range(most)] if len(values) > most else list(values)
