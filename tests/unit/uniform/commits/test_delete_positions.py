"""Position deletes and deletion vectors of clients: decoded, or refused by name."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.dv import bitmap_to_bytes
from tahoe.uniform.commits.client_manifests import POSITION_DELETES, ClientFile
from tahoe.uniform.commits.delete_positions import deleted_positions


def parquet(paths: list[Any], positions: list[Any]) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table({"file_path": pa.array(paths, pa.string()), "pos": pa.array(positions, pa.int64())}), target)
    return target.getvalue()


POSITIONS = ClientFile("d", POSITION_DELETES, "PARQUET", 3, 9)


def test_position_deletes_are_read_in_any_order() -> None:
    data = parquet(["b", "a", "b"], [7, 0, 2])
    assert deleted_positions(data, POSITIONS) == {"a": BitMap64([0]), "b": BitMap64([2, 7])}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (parquet(["a"], [1]), "it has 1 rows, and 3 by its manifest"),
        (parquet(["a", None, "a"], [1, 2, 3]), "missing or negative"),
        (parquet(["a", "a", "a"], [1, -2, 3]), "missing or negative"),
        (b"no Parquet", "cannot be read"),
    ],
)
def test_invalid_position_deletes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        deleted_positions(data, POSITIONS)


BLOB = bitmap_to_bytes(BitMap64([1, 5]))
PUFFIN = b"PFA1" + struct.pack(">i", len(BLOB)) + BLOB + struct.pack(">I", zlib.crc32(BLOB))
VECTOR = ClientFile("v", POSITION_DELETES, "PUFFIN", 2, len(PUFFIN), referenced_file="a", offset=4, length=len(PUFFIN) - 4)


def test_a_deletion_vector_is_read_at_its_offset() -> None:
    assert deleted_positions(PUFFIN, VECTOR) == {"a": BitMap64([1, 5])}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rows": 3}, "deletes 2 rows, and 3 by its manifest"),
        ({"offset": None}, "lacks the offset"),
        ({"referenced_file": None}, "lacks the offset, the length or the data file"),
        ({"offset": 3}, "the length or the checksum"),
        ({"length": 2**40}, "not in the file"),
        ({"length": 5}, "not in the file"),
    ],
)
def test_an_invalid_vector_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        deleted_positions(PUFFIN, replace(VECTOR, **changes))


def test_a_corrupt_bitmap_is_refused() -> None:
    blob = BLOB[:4] + b"\xff" * (len(BLOB) - 4)
    data = b"PFA1" + struct.pack(">i", len(blob)) + blob + struct.pack(">I", zlib.crc32(blob))
    with pytest.raises(InvalidRequest, match="cannot be read"):
        deleted_positions(data, VECTOR)


def test_other_deletes_are_named() -> None:
    with pytest.raises(Unsupported, match="of the format AVRO"):
        deleted_positions(b"", replace(POSITIONS, file_format="AVRO"))
