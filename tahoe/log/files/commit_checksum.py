"""The embedded checksum of a commit that Tahoe wrote: its version, its size in bytes, and their CRC-32.

The checksum is at the end of ``commitInfo``, which is free-form by the specification (PROTOCOL.md, "Commit Provenance Information"), as
``"tahoe.seal":"<version>.<bytes>.<crc32>"``. A reader of a commit can therefore detect, without another request, that the file is
truncated, that a bit of it flipped, or that it has the name of another version. The CRC-32 is that of the whole file with eight zeros in
place of the CRC-32 itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from zlib import crc32

from tahoe.protocol.actions import Action, CommitInfo, to_json_line

CHECKSUM_MEMBER = "tahoe.seal"
"""The member of `commitInfo`."""


def with_commit_checksum(version: int, actions: Sequence[Action]) -> bytes:
    """The lines of a commit, with an embedded checksum where `commitInfo` is the first of them."""
    lines = map(to_json_line, actions)
    if not actions or not isinstance(actions[0], CommitInfo):
        return b"".join(_encoded(lines))
    begin = next(lines).removesuffix("}}")
    comma = "" if begin.endswith("{") else ","
    first = f"{begin}{comma}{_NAME}{version}.".encode("utf-8", "surrogatepass")
    # A commit may have hundreds of megabytes, so there is only one copy of it.
    with BytesIO() as data:
        data.write(first + f'{0:0{_DIGITS_OF_SIZE}d}.{_NO_CRC}"}}}}\n'.encode())
        data.writelines(_encoded(lines))
        _replace(data, len(first), f"{data.tell():0{_DIGITS_OF_SIZE}d}")
        with data.getbuffer() as written:
            checksum = crc32(written)
        _replace(data, len(first) + _DIGITS_OF_SIZE + 1, f"{checksum:08x}")
        return data.getvalue()


def has_commit_checksum(data: bytes) -> bool:
    """Whether a commit's bytes have an embedded checksum, correct or not."""
    return _position(data) is not None


def fault_in_commit_checksum(version: int, data: bytes) -> str | None:
    """Describe the difference between a commit's bytes and their embedded checksum; None if it is correct or missing.

    Args:
        version: the version in the file's name.
    """
    position = _position(data)
    if position is None:
        return None
    match = _CHECKSUM.match(data, position)
    if match is None:
        return "its embedded checksum cannot be read, so bytes of it have changed"
    recorded_version, size = int(match["version"]), int(match["size"])
    if len(data) != size:
        return f"it has {len(data)} bytes, but was written with {size}"
    if _checksum_without(data, *match.span("crc")) != int(match["crc"], 16):
        return "its bytes are not those that were written, for their CRC-32 is another"
    if recorded_version != version:
        return f"it was written as version {recorded_version} and stands in the place of version {version}"
    return None


_NAME = f'"{CHECKSUM_MEMBER}":"'
_NO_CRC = "0" * 8
_DIGITS_OF_SIZE = 12
_CHECKSUM = re.compile(rb'"tahoe\.seal":"(?P<version>\d+)\.(?P<size>\d{12})\.(?P<crc>[0-9a-f]{8})"\}\}(?:\n|$)')


def _position(data: bytes) -> int | None:
    """The offset of the checksum in the first line, which is `commitInfo`. Inside a JSON text its quotation marks would be escaped."""
    end = data.find(b"\n")
    position = data.rfind(_NAME.encode(), 0, len(data) if end < 0 else end)
    return None if position < 0 else position


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (f"{line}\n".encode("utf-8", "surrogatepass") for line in lines)


def _replace(data: BytesIO, position: int, digits: str) -> None:
    data.seek(position)
    data.write(digits.encode())


def _checksum_without(data: bytes, start: int, stop: int) -> int:
    """Return the CRC-32 of the data with the checksum at these bytes replaced by zeros, without a copy."""
    whole = memoryview(data)
    return crc32(whole[stop:], crc32(_NO_CRC.encode(), crc32(whole[:start])))
