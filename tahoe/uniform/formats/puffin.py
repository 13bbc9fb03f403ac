"""Deletion vectors as Iceberg's: one Puffin file per vector, with the bytes of Delta's file (format/puffin-spec.md).

Delta's file and Puffin store a vector in the same bytes: its length, its magic number and bitmap, its checksum. Each vector gets a file
of its own, because some readers apply every vector of a file, including replaced ones.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from tahoe.base.json_values import compact_json
from tahoe.base.version import __version__
from tahoe.uniform.formats.avro import encode_bytes, encode_long, encode_string
from tahoe.uniform.formats.data_files import Target
from tahoe.uniform.formats.manifests import DataFile

_MAGIC = b"PFA1"
_OFFSET = len(_MAGIC)
_ROW_POSITION_ID = 2147483645
_PATH_ID = 2147483546
_HEAD = encode_long(1)  # content: position deletes
_PUFFIN = encode_string("PUFFIN")
_NONE = b"\0"
_SOME = b"\2"


class Puffin(NamedTuple):
    """A Puffin file with one vector, and the vector's length in it."""

    data: bytes
    length: int


def puffin_bytes(vector: bytes, url: str, cardinality: int) -> Puffin:
    """Return the file.

    Args:
        vector: magic number and bitmap, from `tahoe.protocol.dv.vector_data`.
        url: the data file, spelled as in its manifest entry.
        cardinality: the number of deleted rows.
    """
    blob = b"".join((struct.pack(">i", len(vector)), vector, struct.pack(">I", zlib.crc32(vector))))
    described = {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": _OFFSET,
        "length": len(blob),
        "properties": {"referenced-data-file": url, "cardinality": str(cardinality)},
    }
    footer = {"blobs": [described], "properties": {"created-by": f"tahoe {__version__}"}}
    payload = compact_json(footer).encode()
    ending = (_MAGIC, payload, struct.pack("<i", len(payload)), bytes(4), _MAGIC)
    return Puffin(b"".join((_MAGIC, blob, *ending)), len(blob))


def puffin_entry(url: str, puffin: Puffin, target: Target, cardinality: int) -> DataFile:
    """Return the record of a vector in a delete manifest of format version 3. `url` is the Puffin file's."""
    parts = [
        _HEAD,
        encode_string(url),
        _PUFFIN,
        target.encoded_partition,
        encode_long(cardinality),
        encode_long(len(puffin.data)),
    ]
    # The path as both bounds: readers that match deletes by bounds find exactly this data file.
    bound = b"".join((_SOME, encode_long(1), encode_long(_PATH_ID), encode_bytes(target.url.encode()), _NONE))
    parts += [_NONE * 4, bound, bound, _NONE * 4, _NONE]  # the last is the missing first row id
    parts += [_SOME, encode_string(target.url), _SOME, encode_long(_OFFSET), _SOME, encode_long(puffin.length)]
    return DataFile(url, b"".join(parts), target.partition, cardinality, len(puffin.data), None, (target.url,))
