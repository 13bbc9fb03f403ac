"""Encoding of stored rows as the bytes of a Parquet file: compression, dictionaries, and the contents of the footer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc, pq
from tahoe.ops.write.bloom_filters import bloom_filter_columns, bloom_filter_options
from tahoe.protocol.config import TableConfig
from tahoe.protocol.statistics.collect import StatisticsCollector
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.protocol.statistics.parquet_join import Bytes, joined_parts

ROWS_OF_A_GROUP = 1024 * 1024
BYTES_OF_A_GROUP = 16 * 1024 * 1024
"""The maximum rows of a row group, and its approximate maximum bytes in memory."""
_SUFFIXES = {
    "snappy": ".snappy",
    "zstd": ".zstd",
    "gzip": ".gz",
    "lz4": ".lz4",
    "lz4_raw": ".lz4raw",
    "none": "",
    "uncompressed": "",
}
"""The codec's part of a file name."""
_ROWS_LOOKED_AT = 4096
"""The sample size: so many rows from the middle of a column, and as many spread over all of it."""


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """The format of a table's new files.

    Args:
        codec: ``snappy``, ``zstd``, ``gzip``, ``lz4``, ``lz4_raw``, ``none`` or ``uncompressed``.
        version: the table's ``delta.parquet.format.version``.
        bloom_filters: the Parquet paths of the columns with a bloom filter.
    """

    codec: str
    version: str
    bloom_filters: Sequence[str] = ()

    @classmethod
    def of(cls, config: TableConfig, compression: str | None = None, *, with_bloom_filters: bool = True) -> ParquetFormat:
        """Return the format with the requested codec, else the table's, else snappy. Raises `InvalidRequest` for an unknown codec."""
        codec = (compression or config.properties.parquet_compression_codec or "snappy").lower()
        if codec not in _SUFFIXES:
            raise InvalidRequest(
                f"There is no compression '{codec}' for data files; use one of {', '.join(_SUFFIXES)}.",
                code="DELTA_ILLEGAL_OPTION",
                compression=codec,
            )
        bloom_filters = bloom_filter_columns(config) if with_bloom_filters else ()
        return cls(codec, config.properties.get("delta.parquet.format.version"), bloom_filters)

    @property
    def suffix(self) -> str:
        """The codec's part of a file name."""
        return _SUFFIXES[self.codec]


def _columns_worth_a_dictionary(table: pa.Table) -> list[str]:
    """Return every leaf column, by its Parquet path, except those with hardly any repeated values.

    For these Parquet would build a dictionary until it is too large and then fall back to plain: a third of the encoding time, wasted.
    """
    leaves = [leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in _leaves(name, column)]
    return [path for path, values in leaves if not _seldom_repeats(values)]


def _seldom_repeats(values: pa.ChunkedArray) -> bool:
    count = len(values)
    if count < 4 * _ROWS_LOOKED_AT or pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return False
    middle = values.slice(count // 2, _ROWS_LOOKED_AT)
    if len(middle.unique()) < 0.995 * _ROWS_LOOKED_AT:
        return False
    # Chunk by chunk: taking from all chunks at once would join them first.
    step = count // _ROWS_LOOKED_AT
    spread = pa.chunked_array([chunk.take(pa.arange(0, len(chunk), step)) for chunk in values.chunks], values.type)
    return len(spread.unique()) >= 0.995 * len(spread)


def row_groups_of(table: pa.Table) -> list[pa.Table]:
    """Split the rows of a file into row groups of about equal size, within `ROWS_OF_A_GROUP` and `BYTES_OF_A_GROUP`."""
    count = max(1, -(-table.num_rows // ROWS_OF_A_GROUP), -(-table.nbytes // BYTES_OF_A_GROUP))
    step = max(1, -(-table.num_rows // count))
    return [table.slice(start, step) for start in range(0, max(1, table.num_rows), step)]


def encode_file(
    table: pa.Table, parquet_format: ParquetFormat, collected: StatisticsCollector, write: Callable[[Bytes], object]
) -> FileStatistics:
    """Encode the rows of a file, its row groups in parallel, and write its bytes part by part; return its statistics.

    Args:
        collected: takes the extremes of texts from the footer (`texts_by_footer`).
        write: appends to the file.
    """
    groups = row_groups_of(table)
    encode = partial(_encoded_group, _writer_options(table, parquet_format, groups[0].num_rows, are_all=True))
    if len(groups) == 1:
        content, footer = encode(table)
        collected.add(table)
        write(memoryview(content))
        return collected.statistics(footer)
    footers = list[pq.FileMetaData]()
    with ThreadPoolExecutor(min(len(groups), os.cpu_count() or 1), thread_name_prefix="tahoe-encode") as pool:
        parts = pool.map(encode, groups)
        for group in groups:
            collected.add(group)
        for part in joined_parts(_contents(parts, footers)):
            write(part)
    for footer in footers[1:]:
        footers[0].append_row_groups(footer)
    return collected.statistics(footers[0])


def _contents(parts: Iterable[tuple[pa.Buffer, pq.FileMetaData]], footers: list[pq.FileMetaData]) -> Iterator[memoryview]:
    for content, footer in parts:
        footers.append(footer)
        yield memoryview(content)


def encoded_groups(table: pa.Table, parquet_format: ParquetFormat, sizes: Sequence[int]) -> bytes:
    """Encode the rows of a file with row groups of these numbers of rows; return its bytes."""
    sink, start = pa.BufferOutputStream(), 0
    with pq.ParquetWriter(sink, table.schema, **_writer_options(table, parquet_format, max(sizes), are_all=True)) as writer:
        for size in sizes:
            writer.write_table(table.slice(start, size), row_group_size=size)
            start += size
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _encoded_group(options: Mapping[str, Any], rows: pa.Table) -> tuple[pa.Buffer, pq.FileMetaData]:
    sink, footers = pa.BufferOutputStream(), list[pq.FileMetaData]()
    with pq.ParquetWriter(sink, rows.schema, metadata_collector=footers, **options) as writer:
        writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    return sink.getvalue(), footers[0]


@contextmanager
def parquet_writer(
    sink: object,
    first: pa.Table,
    parquet_format: ParquetFormat,
    *,
    are_all: bool = True,
    footers: list[pq.FileMetaData] | None = None,
) -> Iterator[pq.ParquetWriter]:
    """A writer of a Parquet file to a sink, row group by row group.

    Args:
        first: the rows of the first row group, which decide which columns get a dictionary.
        are_all: no row group follows. Otherwise later ones may contain NaN, so floats get no bounds.
        footers: the footer is appended here after the writer is closed.
    """
    options = _writer_options(first, parquet_format, first.num_rows, are_all=are_all)
    writer = pq.ParquetWriter(sink, first.schema, metadata_collector=footers, **options)
    try:
        yield writer
        writer.close()
    finally:
        # After an error the writer is not closed: closing it on a failed sink would raise an error about the footer and mask the first.
        writer.is_open = False


def _writer_options(table: pa.Table, parquet_format: ParquetFormat, rows_of_a_group: int, *, are_all: bool) -> Mapping[str, Any]:
    """Return the options of Arrow's writer for a file with these rows, or with these and others."""
    return dict(
        use_dictionary=_columns_worth_a_dictionary(table),
        compression="none" if parquet_format.codec == "uncompressed" else parquet_format.codec,
        data_page_version="2.0" if parquet_format.version.startswith("2.") else "1.0",
        # Readers take types from the Delta schema; an embedded Arrow schema would only make the file larger.
        store_schema=False,
        store_decimal_as_integer=True,
        write_statistics=_columns_with_honest_bounds(table, are_all),
        # Arrow's default of 1,024 rows takes 5 % longer. The size of a page is only checked after so many rows.
        write_batch_size=max(1024, min(16 * 1024, 1024 * 1024 * table.num_rows // max(1, table.nbytes))),
        **bloom_filter_options(parquet_format.bloom_filters, rows_of_a_group),
    )


def _columns_with_honest_bounds(table: pa.Table, are_all: bool) -> bool | list[str]:
    """Return every leaf column, by its Parquet path, except those that contain NaN, or may; True for all.

    Arrow leaves NaN out of Parquet's bounds, and Spark, for which NaN is the greatest number, would skip rows because of them.
    """
    leaves = [leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in _leaves(name, column)]
    honest = [path for path, values in leaves if not (_has_nan(values) if are_all else pa.types.is_floating(values.type))]
    return True if len(honest) == len(leaves) else honest


def _leaves(path: str, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    data_type = values.type
    if pa.types.is_struct(data_type):
        for index in range(data_type.num_fields):
            yield from _leaves(f"{path}.{data_type.field(index).name}", pc.struct_field(values, index))
    elif pa.types.is_list(data_type):
        yield from _leaves(f"{path}.list.element", pc.list_flatten(values))
    elif pa.types.is_map(data_type):
        chunks = values.chunks
        for name, part, kind in (("key", "keys", data_type.key_type), ("value", "items", data_type.item_type)):
            flat = pa.chunked_array([getattr(chunk, part) for chunk in chunks], kind)
            yield from _leaves(f"{path}.key_value.{name}", flat)
    else:
        yield path, values


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py() is True
