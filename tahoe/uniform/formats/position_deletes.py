"""Deletion vectors as Iceberg's position delete files (format/spec.md, "Position Delete Files").

    data file, deleted rows ─┐
    data file, deleted rows ─┼─ same partition ─► one Parquet file: file_path, pos, sorted ─► its entry for a delete manifest
    data file, deleted rows ─┘

One file for each partition and conversion, not for each data file. Together, the files of a snapshot are exact: for each live data
file they list exactly the rows of its vector, and nothing for a removed file. So it does not matter whether a reader applies them
by sequence number, by bounds, or by path alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc, pq
from tahoe.uniform.formats.avro import encode_bytes, encode_long, encode_string
from tahoe.uniform.formats.data_files import Target
from tahoe.uniform.formats.manifest_schema import DELETES, optional_tail_fields
from tahoe.uniform.formats.manifests import DataFile

if TYPE_CHECKING:
    from pyroaring import BitMap64


MOST_ROWS = 1_000_000
"""Rows of a position delete file; a single data file may exceed it."""

MOST_FILES = 5_000
"""The maximum number of data files in one position delete file."""

_FEW_ROWS = 1000
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)
_HEAD = encode_long(1)  # content: position deletes
_PARQUET = encode_string("PARQUET")
_NONE = b"\0"
_SOME = b"\2"


def groups(positions: Mapping[str, BitMap64]) -> Iterator[dict[str, BitMap64]]:
    """Yield the data files of one partition in path order, split where a delete file would become too large."""
    group: dict[str, BitMap64] = {}
    rows = 0
    for url in sorted(positions):
        count = len(positions[url])
        if group and (rows + count > MOST_ROWS or len(group) >= MOST_FILES):
            yield group
            group, rows = {}, 0
        group[url] = positions[url]
        rows += count
    if group:
        yield group


def position_delete_bytes(group: Mapping[str, BitMap64]) -> bytes:
    """Return the Parquet file; `group` has the data files in path order."""
    positions = array("q")
    for bitmap in group.values():
        positions.frombytes(bitmap.to_array().tobytes())
    few = len(positions) <= _FEW_ROWS  # compression takes longer than everything else
    rows = pa.Table.from_arrays([_paths(group, repeat=few), pa.array(positions, pa.int64())], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    compression = "none" if few else "zstd"
    with pq.ParquetWriter(sink, _SCHEMA, compression=compression, use_dictionary=["file_path"], store_schema=False) as writer:
        writer.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def position_delete_entry(url: str, size: int, target: Target, group: Mapping[str, BitMap64]) -> DataFile:
    """Return the record of a position delete file.

    Args:
        url, size: the URL and size of the Parquet file.
        target: one of the data files; all are in one partition.
    """
    about = tuple(group)
    rows = sum(map(len, group.values()))
    least = (about[0], min(bitmap.min() for bitmap in group.values()))
    most = (about[-1], max(bitmap.max() for bitmap in group.values()))
    parts = [_HEAD, encode_string(url), _PARQUET, target.encoded_partition, encode_long(rows), encode_long(size)]
    parts += [_NONE * 4, _bounds(*least), _bounds(*most), _NONE * 4]
    for name in optional_tail_fields(2, DELETES):
        referenced = name == "referenced_data_file" and len(about) == 1
        parts.append(_SOME + encode_string(about[0]) if referenced else _NONE)
    return DataFile(url, b"".join(parts), target.partition, rows, size, None, about)


def positions_in(data: bytes, name: str) -> dict[str, BitMap64]:
    """Return the deleted positions by data file in one of Tahoe's position delete files. Raises `CorruptTable` if it is unreadable."""
    from pyroaring import BitMap64

    try:
        rows = pq.read_table(pa.BufferReader(data), read_dictionary=["file_path"]).combine_chunks()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptTable(
            f"The Iceberg delete file {name} cannot be read: {error}. Rebuild the Iceberg side of the table.",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            file=name,
        ) from error
    dead_rows: dict[str, BitMap64] = {}
    if not rows.num_rows:
        return dead_rows
    paths = rows.column("file_path").combine_chunks()
    codes = paths.indices if isinstance(paths, pa.DictionaryArray) else paths.dictionary_encode().indices
    starts = [0, *pc.add(pc.indices_nonzero(pc.not_equal(codes[1:], codes[:-1])), 1).to_pylist(), len(codes)]
    column = rows.column("pos").combine_chunks()
    positions = memoryview(column.buffers()[1]).cast("q")[column.offset : column.offset + len(column)]
    for start, end in pairwise(starts):
        dead = BitMap64(positions[start:end])
        url = str(paths[start])
        dead_rows[url] = dead_rows[url] | dead if url in dead_rows else dead
    return dead_rows


def _paths(group: Mapping[str, BitMap64], *, repeat: bool) -> pa.ChunkedArray | pa.Array:
    """Return the path of each row's data file; for many rows, Arrow expands the texts from dictionary indices."""
    if repeat:
        return pa.array([url for url, bitmap in group.items() for _ in range(len(bitmap))], pa.string())
    indices = pa.concat_arrays([pa.repeat(pa.scalar(i, pa.int32()), len(bitmap)) for i, bitmap in enumerate(group.values())])
    return pa.DictionaryArray.from_arrays(indices, pa.array(group, pa.string())).cast(pa.string())


def _bounds(path: str, position: int) -> bytes:
    text = encode_long(_PATH_ID) + encode_bytes(path.encode())
    number = encode_long(_POSITION_ID) + encode_bytes(position.to_bytes(8, "little"))
    return b"".join((_SOME, encode_long(2), text, number, _NONE))
