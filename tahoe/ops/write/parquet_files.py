"""Encoding of stored rows as the bytes of a Parquet file: compression, dictionaries, and the contents of the footer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc, pq
from tahoe.ops.write.bloom_filters import bloom_filter_columns, bloom_filter_options
from tahoe.protocol.config import TableConfig

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
    if count < 16 * _ROWS_LOOKED_AT or pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return False
    middle = values.slice(count // 2, _ROWS_LOOKED_AT)
    if len(middle.unique()) < 0.995 * _ROWS_LOOKED_AT:
        return False
    spread = pa.arange(0, count, count // _ROWS_LOOKED_AT)
    return len(values.take(spread).unique()) >= 0.995 * len(spread)


def parquet_bytes(table: pa.Table, parquet_format: ParquetFormat) -> bytes:
    """Return the bytes of a Parquet file with these rows."""
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, table, parquet_format) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


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
    writer = pq.ParquetWriter(
        sink,
        first.schema,
        use_dictionary=_columns_worth_a_dictionary(first),
        compression="none" if parquet_format.codec == "uncompressed" else parquet_format.codec,
        data_page_version="2.0" if parquet_format.version.startswith("2.") else "1.0",
        # Readers take types from the Delta schema; an embedded Arrow schema would only make the file larger.
        store_schema=False,
        store_decimal_as_integer=True,
        metadata_collector=footers,
        write_statistics=_columns_with_honest_bounds(first, are_all),
        **bloom_filter_options(parquet_format.bloom_filters, first.num_rows),
    )
    try:
        yield writer
        writer.close()
    finally:
        # After an error the writer is not closed: closing it on a failed sink would raise an error about the footer and mask the first.
        writer.is_open = False


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
