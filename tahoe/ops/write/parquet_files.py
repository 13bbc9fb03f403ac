"""Rows, as they stand in a data file, to the bytes of a Parquet file: what is compressed how, and what the footer may say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tahoe.exceptions import InvalidRequest
from tahoe.lazy import pc, pq
from tahoe.ops.write.bloom_filters import bloom_filter_options
from tahoe.protocol.config import TableConfig

__all__ = ["SUFFIXES", "codec_of", "parquet_bytes", "parquet_writer"]

SUFFIXES = {
    "snappy": ".snappy",
    "zstd": ".zstd",
    "gzip": ".gz",
    "lz4": ".lz4",
    "lz4_raw": ".lz4raw",
    "none": "",
    "uncompressed": "",
}
"""What the name of a file says of its codec."""


def codec_of(compression: str | None, config: TableConfig) -> str:
    """The codec of new files: the one asked for, or else the table's, or else snappy. Raises `InvalidRequest` for an unknown one."""
    codec = (compression or config.properties.parquet_compression_codec or "snappy").lower()
    if codec not in SUFFIXES:
        raise InvalidRequest(
            f"There is no compression '{codec}' for data files; use one of {', '.join(SUFFIXES)}.",
            code="DELTA_ILLEGAL_OPTION",
            compression=codec,
        )
    return codec


_ROWS_LOOKED_AT = 4096
"""At the middle of a column, and as many spread over all of it."""


def _columns_worth_a_dictionary(table: pa.Table) -> list[str]:
    """Every leaf column, as Parquet writes its path, but those that hold next to nothing twice.

    For these Parquet would make a dictionary until it is too large and then write them plain: a third of the whole work, for nothing.
    """
    leaves = [leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in _leaves(name, column)]
    return [path for path, values in leaves if not _seldom_repeats(values)]


def _seldom_repeats(values: pa.ChunkedArray) -> bool:
    count = len(values)
    if count < 16 * _ROWS_LOOKED_AT or pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return False
    middle = values.slice(count // 2, _ROWS_LOOKED_AT)
    if len(middle.unique()) < 0.995 * _ROWS_LOOKED_AT:
        return False
    spread = pa.arange(0, count, count // _ROWS_LOOKED_AT)
    return len(values.take(spread).unique()) >= 0.995 * len(spread)


def parquet_bytes(table: pa.Table, codec: str, format_version: str, bloom_filters: Sequence[str] = ()) -> bytes:
    """A Parquet file of these rows.

    Args:
        codec: of `codec_of`.
        format_version: the table's ``delta.parquet.format.version``.
        bloom_filters: of `tahoe.ops.write.bloom_filters.bloom_filter_columns`.
    """
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, table, codec, format_version, bloom_filters) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


@contextmanager
def parquet_writer(
    sink: Any,
    first: pa.Table,
    codec: str,
    format_version: str,
    bloom_filters: Sequence[str] = (),
    *,
    are_all: bool = True,
    footers: list[pq.FileMetaData] | None = None,
) -> Iterator[pq.ParquetWriter]:
    """What writes a Parquet file to a sink, row group by row group.

    Args:
        first: the rows of the first row group, by which it is decided which columns get a dictionary.
        are_all: no row group follows. Of one that does it is not known whether it holds NaN, so floats get no bounds then.
        footers: where the footer is put once the writer is closed.
    """
    writer = pq.ParquetWriter(
        sink,
        first.schema,
        use_dictionary=_columns_worth_a_dictionary(first),
        compression="none" if codec == "uncompressed" else codec,
        data_page_version="2.0" if format_version.startswith("2.") else "1.0",
        # Readers take types from the Delta schema; Arrow's copy of its own would only make the file larger.
        store_schema=False,
        store_decimal_as_integer=True,
        metadata_collector=footers,
        write_statistics=_columns_with_honest_bounds(first, are_all),
        **bloom_filter_options(bloom_filters, first.num_rows),
    )
    try:
        yield writer
        writer.close()
    finally:
        # After an error nothing is closed: a sink that failed would raise another error, about the footer, in the place of its own.
        writer.is_open = False


def _columns_with_honest_bounds(table: pa.Table, are_all: bool) -> bool | list[str]:
    """Every leaf column, as Parquet writes its path, but those that hold NaN, or may; True for all.

    Arrow leaves NaN out of Parquet's bounds, and Spark, for which NaN is the greatest number, would skip rows by them.
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
