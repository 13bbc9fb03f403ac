"""Deletion vectors: the deleted row positions of a data file, from and to bytes.

The source is PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format".

    descriptor ──file_name──► store name ──read──► file ──slice, size, CRC-32──┐
        └───────────── inline: Z85 ────────────────────────────────────────────┴─► magic + roaring bitmap ──► BitMap64

A bitmap's bytes are the portable 64-bit Roaring serialization, the format that `pyroaring.BitMap64` reads and writes.
Nothing here accesses storage: `decode` takes a function that reads.
"""

from __future__ import annotations

import re
import struct
import sys
import uuid as uuids
import zlib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tahoe.base.exceptions import CorruptTable, InvalidRequest, TahoeError, Unsupported
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.store.location import decode_path

if TYPE_CHECKING:
    from pyroaring import BitMap64


MAGIC = 1681511377
FILE_VERSION = 1
# The magic numbers of a format that early versions of the reference wrote, in either byte order.
_NATIVE_MAGICS = (struct.pack("<i", 1681511376), struct.pack(">i", 1681511376))
_MAX_ROW_INDEX = 2**63 - 1
_UUID_LENGTH = 20
_PREFIX = re.compile(r"[0-9A-Za-z_-]*")
_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = {character: value for value, character in enumerate(_ALPHABET)}
_NO_DIGIT = 255
_DIGIT_OF_BYTE = bytes(_DIGITS.get(byte, _NO_DIGIT) for byte in range(256))
_LONG_TEXT = 4_000
_CHARACTERS_AT_ONCE = 5 << 20


@dataclass(frozen=True, slots=True)
class Placed:
    """The position of one bitmap in a file from `pack`: byte offset, size of the bitmap with its magic number, and deleted rows."""

    offset: int
    size: int
    cardinality: int


def decode(descriptor: DeletionVectorDescriptor, read: Callable[[str], bytes], root_url: str) -> BitMap64:
    """Return the deleted row positions (from 0) of a descriptor, after every check of the format.

    Args:
        descriptor: of an `add` or `remove` action.
        read: returns the whole object of a store name; not called for inline vectors.
        root_url: the table's root, against which absolute paths are resolved.

    Raises:
        CorruptTable: the vector's size, checksum, magic number or cardinality does not match the descriptor or the format,
            or its path leaves the table.
    """
    try:
        name = file_name(descriptor, root_url)
        where = "the log" if name is None else f"file '{name}'"
        bitmap = bitmap_from_bytes(vector_data(descriptor, read, root_url), where)
        if len(bitmap) != descriptor.cardinality:
            raise _mismatch("CARDINALITY", where, "contains", f"{descriptor.cardinality} row positions", str(len(bitmap)))
    except TahoeError as error:
        error.located(table=root_url or None)
        raise
    return bitmap


def vector_data(descriptor: DeletionVectorDescriptor, read: Callable[[str], bytes], root_url: str) -> bytes:
    """Return a vector's bytes as stored, from its magic number to the end of its bitmap; size and checksum are checked.

    Args and errors: as for `decode`.
    """
    name = file_name(descriptor, root_url)
    return _inline_data(descriptor) if name is None else _data_of_file(read(name), descriptor, name)


def file_name(descriptor: DeletionVectorDescriptor, root_url: str) -> str | None:
    """Return the store name of the vector's file, e.g. ``ab/deletion_vector_<uuid>.bin``; None for an inline vector.

    Raises `CorruptTable` for a name that the specification does not allow; a name outside the table's root is a URL (`tahoe.store.outside`).
    """
    match descriptor.storage_type:
        case "i":
            return None
        case "p":
            return decode_path(descriptor.path_or_inline_dv, root_url, outside=True)
        case "u":
            prefix = descriptor.path_or_inline_dv[:-_UUID_LENGTH]
            encoded = descriptor.path_or_inline_dv[-_UUID_LENGTH:]
            if len(encoded) != _UUID_LENGTH or not _PREFIX.fullmatch(prefix):
                raise CorruptTable(
                    f"The deletion vector path '{descriptor.path_or_inline_dv}' must be a random prefix of letters and digits "
                    f"and a UUID of {_UUID_LENGTH} Z85 characters. Restore the action of the log that contains it.",
                    code="DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
                    path=descriptor.path_or_inline_dv,
                )
            return new_file_name(str(uuids.UUID(bytes=z85_decode(encoded))), prefix)
    raise CorruptTable(
        f"The storage type of a deletion vector must be 'u', 'i' or 'p', found '{descriptor.storage_type}'.",
        code="TAHOE_CORRUPT_DELETION_VECTOR",
        storage_type=descriptor.storage_type,
    )


def new_file_name(uuid: str, prefix: str = "") -> str:
    """Return the store name of a vector file with that UUID; `prefix` is the folder in tables with random file prefixes."""
    name = f"deletion_vector_{uuid}.bin"
    return f"{prefix}/{name}" if prefix else name


def pack(bitmaps: Iterable[BitMap64]) -> tuple[bytes, list[Placed]]:
    """Return the bytes of a vector file with these bitmaps in order, and their positions."""
    parts = [bytes([FILE_VERSION])]
    places: list[Placed] = []
    offset = 1
    for bitmap in bitmaps:
        data = bitmap_to_bytes(bitmap)
        places.append(Placed(offset, len(data), len(bitmap)))
        parts += [struct.pack(">i", len(data)), data, struct.pack(">I", zlib.crc32(data))]
        offset += len(data) + 8
    return b"".join(parts), places


def descriptor_in_file(uuid: str, place: Placed, prefix: str = "") -> DeletionVectorDescriptor:
    """Return the descriptor of one bitmap in the vector file `new_file_name(uuid, prefix)`."""
    encoded = z85_encode(uuids.UUID(uuid).bytes)
    return DeletionVectorDescriptor("u", prefix + encoded, place.size, place.cardinality, place.offset)


def inline_descriptor(bitmap: BitMap64) -> DeletionVectorDescriptor:
    """Return a descriptor that contains the bitmap itself."""
    data = bitmap_to_bytes(bitmap)
    return DeletionVectorDescriptor("i", z85_encode(data + b"\0" * (-len(data) % 4)), len(data), len(bitmap))


def bitmap_to_bytes(bitmap: BitMap64) -> bytes:
    """Return magic number and portable serialization, runs compressed. Raises `InvalidRequest` for a position of 2^63 or more."""
    if len(bitmap) and bitmap.max() > _MAX_ROW_INDEX:
        raise InvalidRequest(
            f"Row positions must be below 2^63, found {bitmap.max()}.",
            code="DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
            row_index=bitmap.max(),
        )
    compressed = bitmap.copy()
    compressed.run_optimize()
    return struct.pack("<i", MAGIC) + bytes(compressed.serialize())


def bitmap_from_bytes(data: bytes, where: str = "memory") -> BitMap64:
    """Reverse `bitmap_to_bytes`; `where` names the place in errors, which are `CorruptTable` or `Unsupported`."""
    from pyroaring import BitMap64

    magic = int.from_bytes(data[:4], "little")
    if data[:4] in _NATIVE_MAGICS:
        raise Unsupported(
            f"The deletion vector in {where} is in the reference's older 'native' format, which is not in the specification. "
            "Purge the table's deletion vectors with the writer that made it.",
            code="TAHOE_DELETION_VECTOR_FORMAT",
            magic=magic,
        )
    if magic != MAGIC:
        raise _corrupt(f"The deletion vector in {where} must begin with the magic number {MAGIC}, found {magic}.")
    try:
        bitmap = BitMap64.deserialize(data[4:])
    except (ValueError, RuntimeError, MemoryError) as error:
        raise _corrupt(f"The deletion vector in {where} is not a 64-bit Roaring bitmap ({error}).") from error
    if len(bitmap) and bitmap.max() > _MAX_ROW_INDEX:
        raise _corrupt(f"The deletion vector in {where} contains row position {bitmap.max()}; positions are below 2^63.")
    return bitmap


def z85_encode(data: bytes) -> str:
    """Return the Z85 text (https://rfc.zeromq.org/spec/32/) of bytes whose number is a multiple of 4."""
    if len(data) % 4:
        raise InvalidRequest(f"Z85 encodes groups of 4 bytes, got {len(data)} bytes.", code="TAHOE_Z85_LENGTH")
    text = bytearray()
    for (number,) in struct.iter_unpack(">I", data):
        for divisor in (52200625, 614125, 7225, 85, 1):
            text.append(_ALPHABET[number // divisor % 85])
    return text.decode("ascii")


def z85_decode(text: str) -> bytes:
    """Return the bytes of a Z85 text. Raises `CorruptTable` for invalid text."""
    if len(text) % 5:
        raise _corrupt(f"A Z85 text must have groups of 5 characters, found {len(text)} characters.")
    if len(text) > _LONG_TEXT:
        decoded = b"".join(
            _z85_decode_long(text[at : at + _CHARACTERS_AT_ONCE]) for at in range(0, len(text), _CHARACTERS_AT_ONCE)
        )
        if len(decoded) == len(text) // 5 * 4:
            return decoded
    data = bytearray()
    try:
        for start in range(0, len(text), 5):
            number = 0
            for character in text[start : start + 5].encode("ascii"):
                number = number * 85 + _DIGITS[character]
            data += struct.pack(">I", number)
    except (KeyError, UnicodeEncodeError, struct.error) as error:
        raise _corrupt(f"The characters '{text[start : start + 5]}' of a deletion vector are not Z85.") from error
    return bytes(data)


def _z85_decode_long(text: str) -> bytes:
    """Decode as `z85_decode`, all groups at once; returns no bytes for invalid Z85, which decoding group by group then reports."""
    import pyarrow as pa

    from tahoe.base.lazy import pc

    if not text.isascii():
        return b""
    digits = text.encode("ascii").translate(_DIGIT_OF_BYTE)
    if digits.find(_NO_DIGIT) >= 0:
        return b""
    numbers = pa.repeat(pa.scalar(0, pa.int64()), len(digits) // 5)
    for place in range(5):
        column = pa.Array.from_buffers(pa.uint8(), len(numbers), [None, pa.py_buffer(digits[place::5])])
        numbers = pc.add(pc.multiply(numbers, 85), column.cast(pa.int64()))
    if pc.max(numbers).as_py() >= 1 << 32:
        return b""
    words = array("I", numbers.cast(pa.uint32()).buffers()[1].to_pybytes()[: 4 * len(numbers)])
    if sys.byteorder == "little":
        words.byteswap()
    return words.tobytes()


def _inline_data(descriptor: DeletionVectorDescriptor) -> bytes:
    data = z85_decode(descriptor.path_or_inline_dv)
    # Encoders pad to a multiple of four bytes, so up to three extra bytes are valid.
    if not 0 <= len(data) - descriptor.size_in_bytes < 4:
        raise _mismatch("SIZE", "the log", "has", f"{descriptor.size_in_bytes} bytes", str(len(data)))
    return data[: descriptor.size_in_bytes]


def _data_of_file(content: bytes, descriptor: DeletionVectorDescriptor, name: str) -> bytes:
    where = f"file '{name}'"
    if content[:1] != bytes([FILE_VERSION]):
        version = content[0] if content else "an empty file"
        raise _corrupt(f"The deletion vector file '{name}' must begin with version {FILE_VERSION}, found {version}.")
    # The specification lets an absent offset mean 0, but byte 0 is the file's version: the first vector is at 1.
    start = descriptor.offset or 1
    end = start + 4 + descriptor.size_in_bytes
    size = int.from_bytes(content[start : start + 4], "big")
    if size != descriptor.size_in_bytes or start < 1 or size < 4 or end + 4 > len(content):
        found_sizes = f"{size} bytes in a file of {len(content)}"
        raise _mismatch("SIZE", where, f"has at offset {start}", f"{descriptor.size_in_bytes} bytes", found_sizes)
    data = content[start + 4 : end]
    stated = int.from_bytes(content[end : end + 4], "big")
    actual = zlib.crc32(data)
    if stated != actual:
        raise _mismatch("CHECKSUM", where, f"has at offset {start}", f"the CRC-32 {stated}", str(actual))
    return data


def _mismatch(kind: str, where: str, verb: str, expected: str, actual: str) -> CorruptTable:
    return CorruptTable(
        f"The deletion vector in {where} {verb} {actual}, but {expected} are stated. The file or the log is damaged: "
        "restore it from a copy, or restore the table to an earlier version.",
        code=f"DELTA_DELETION_VECTOR_{kind}_MISMATCH",
        where=where,
    )


def _corrupt(message: str) -> CorruptTable:
    return CorruptTable(
        f"{message} The file or the log is damaged: restore it from a copy, or restore the table to an earlier version.",
        code="TAHOE_CORRUPT_DELETION_VECTOR",
    )
