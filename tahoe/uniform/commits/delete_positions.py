"""The rows that a client's delete file deletes, by data file: position deletes (Parquet) and deletion vectors (Puffin). Pure: takes bytes.

Sources: format/spec.md, "Delete Formats"; format/puffin-spec.md, "deletion-vector-v1".
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.base.lazy import pc, pq
from tahoe.protocol.dv import bitmap_from_bytes
from tahoe.uniform.commits.client_manifests import ClientFile

if TYPE_CHECKING:
    from pyroaring import BitMap64

_PATH, _POSITION = "file_path", "pos"


def deleted_positions(data: bytes, file: ClientFile) -> dict[str, BitMap64]:
    """Return the deleted positions by the location of the data file.

    Args:
        data: the content of the delete file.

    Raises:
        InvalidRequest: the file cannot be read, or differs from its manifest.
        Unsupported: a file of another format.
    """
    if file.file_format not in _READERS:
        raise Unsupported(
            f"The delete file {file.path} is of the format {file.file_format:.20}; this server reads Parquet and Puffin.",
            code="TAHOE_ICEBERG_DELETES",
            file=file.path,
        )
    try:
        positions = _READERS[file.file_format](data, file)
    except (pa.ArrowException, CorruptTable, ValueError, KeyError, TypeError, struct.error, OSError) as error:
        raise wrong_delete_file(file, f"cannot be read: {error}") from error
    count = sum(map(len, positions.values()))
    if file.file_format == "PUFFIN" and count != file.rows:
        raise wrong_delete_file(file, f"deletes {count} rows, and {file.rows} by its manifest")
    return positions


def _of_parquet(data: bytes, file: ClientFile) -> dict[str, BitMap64]:
    from pyroaring import BitMap64

    rows = pq.read_table(pa.BufferReader(data), columns=[_PATH, _POSITION])
    if rows.num_rows != file.rows:
        raise ValueError(f"it has {rows.num_rows} rows, and {file.rows} by its manifest")
    positions = rows.column(_POSITION)
    if rows.column(_PATH).null_count or positions.null_count or (rows.num_rows and pc.min(positions).as_py() < 0):
        raise ValueError("a path or position is missing or negative")
    grouped = rows.group_by(_PATH).aggregate([(_POSITION, "list")])
    lists = grouped.column(f"{_POSITION}_list").to_pylist()
    return {path: BitMap64(each) for path, each in zip(grouped.column(_PATH).to_pylist(), lists, strict=True)}


def _of_puffin(data: bytes, file: ClientFile) -> dict[str, BitMap64]:
    offset, length = file.offset, file.length
    if offset is None or length is None or file.referenced_file is None:
        raise ValueError("its manifest lacks the offset, the length or the data file of the vector")
    if offset < 0 or length < 12 or offset + length > len(data):
        raise ValueError("the vector is not in the file")
    blob = data[offset : offset + length]
    (size,), (checksum,) = struct.unpack(">i", blob[:4]), struct.unpack(">I", blob[-4:])
    vector = blob[4:-4]
    if size != len(vector) or checksum != zlib.crc32(vector):
        raise ValueError("the length or the checksum of the vector is wrong")
    return {file.referenced_file: bitmap_from_bytes(vector, file.path)}


_READERS = {"PARQUET": _of_parquet, "PUFFIN": _of_puffin}


def wrong_delete_file(file: ClientFile, problem: str) -> InvalidRequest:
    """Return the error for a delete file that cannot be read, or differs from its manifest."""
    return InvalidRequest(f"The delete file {file.path} {problem}. Write it again.", code="TAHOE_ICEBERG_DELETES", file=file.path)
