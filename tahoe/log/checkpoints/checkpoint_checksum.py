"""The embedded checksum of a checkpoint that Tahoe wrote: twenty bytes before its Parquet footer, with its version and the footer's CRC-32.

Pages carry checksums of their own, and the footer has none: a flipped bit in it may hide row groups, and the checkpoint of another version
under this one's name is whole Parquet. Readers of Parquet go by offsets and never look at these bytes.

    … pages │ "TAHOECP1" │ version, 8 bytes │ CRC-32, 4 bytes │ footer │ its length, 4 bytes │ "PAR1"
"""

from __future__ import annotations

from struct import Struct
from zlib import crc32

_CHECKSUM = Struct("<8sqI")
_MAGIC = b"TAHOECP1"
_LENGTH_AND_MAGIC = 8

CHECKSUM_BYTES = _CHECKSUM.size


def footer_of(data: bytes) -> bytes:
    """The serialised `FileMetaData` of a whole Parquet file."""
    return data[len(data) - _LENGTH_AND_MAGIC - int.from_bytes(data[-8:-4], "little") : -_LENGTH_AND_MAGIC]


def checkpoint_with_checksum(data: bytes, version: int) -> bytes:
    """A Parquet file with the embedded checksum before its footer. No offset in it changes, for all of them point before the footer."""
    footer = footer_of(data)
    checksum = _CHECKSUM.pack(_MAGIC, version, _crc32(version, footer))
    return b"".join((memoryview(data)[: -_LENGTH_AND_MAGIC - len(footer)], checksum, footer, data[-_LENGTH_AND_MAGIC:]))


def fault_in_checkpoint_checksum(
    before: bytes, footer: bytes, version: int, *, may_be_older: bool = False
) -> tuple[bool, str | None]:
    """Return whether there is an embedded checksum, and the fault that it reveals.

    Args:
        before: the `CHECKSUM_BYTES` bytes before the footer, or fewer at the beginning of a file.
        version: the version in the file's name.
        may_be_older: whether it may have been written for an older version, as a sidecar may.
    """
    if len(before) != CHECKSUM_BYTES or not before.startswith(_MAGIC):
        return False, None
    _, recorded_version, crc = _CHECKSUM.unpack(before)
    if crc != _crc32(recorded_version, footer):
        return True, "its footer is not the one that was written"
    in_place = recorded_version == version or (may_be_older and recorded_version < version)
    return True, None if in_place else f"it was written for version {recorded_version}"


def _crc32(version: int, footer: bytes) -> int:
    return crc32(footer, crc32(version.to_bytes(8, "little", signed=True)))
