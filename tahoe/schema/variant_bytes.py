"""The bytes of a variant, as far as taking objects apart and putting objects and arrays together needs them.

(Parquet's specification "Variant Binary Encoding".) A variant is two byte strings: its metadata, a dictionary of all field names, and its
value, whose objects name their fields by their places in that dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

NULL = b"\x00"
"""The value of a variant that is null."""
_SMALL = 0xFF
_SIZES = {
    0: 0,
    1: 0,
    2: 0,
    3: 1,
    4: 2,
    5: 4,
    6: 8,
    7: 8,
    8: 5,
    9: 9,
    10: 17,
    11: 4,
    12: 8,
    13: 8,
    14: 4,
    17: 8,
    18: 8,
    19: 8,
    20: 16,
}
"""The number of bytes after the first of a primitive value, by its type; binaries (15) and long strings (16) store their length."""


class MalformedVariant(Exception):
    """These bytes are no variant, or a variant was taken apart in a way that the specification does not know."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The field names of a variant, in UTF-8, and the place of each."""

    names: tuple[bytes, ...]
    places: Mapping[bytes, int]

    @classmethod
    def of(cls, metadata: bytes) -> Dictionary:
        """Parse a variant's metadata. Raises `MalformedVariant`."""
        if not metadata or metadata[0] & 0x0F != 1:
            raise MalformedVariant("its metadata is not of version 1")
        width = (metadata[0] >> 6) + 1
        count = _number(metadata, 1, width)
        start = 1 + width * (count + 2)
        offsets = [start + _number(metadata, 1 + width * (1 + index), width) for index in range(count + 1)]
        if offsets[-1] > len(metadata) or any(begin > end for begin, end in pairwise(offsets)):
            raise MalformedVariant("its metadata names fields beyond its own end")
        names = tuple(metadata[begin:end] for begin, end in pairwise(offsets))
        return cls(names, {name: place for place, name in enumerate(names)})

    def place(self, name: bytes) -> int:
        """Return the index of a field name. Raises `MalformedVariant` if it is missing."""
        place = self.places.get(name)
        if place is None:
            raise MalformedVariant(f"its metadata lacks the name of its field '{name.decode('utf-8', 'replace')}'")
        return place


def fields_of(value: bytes, dictionary: Dictionary) -> dict[bytes, bytes]:
    """The fields of an object and their values. Raises `MalformedVariant`, also of a value that is no object."""
    if not value or value[0] & 0b11 != 2:
        raise MalformedVariant("a value beside shredded fields is no object")
    header = value[0] >> 2
    offset_width, id_width = (header & 0b11) + 1, (header >> 2 & 0b11) + 1
    count_width = 4 if header >> 4 & 1 else 1
    count = _number(value, 1, count_width)
    offsets = 1 + count_width + count * id_width
    start = offsets + (count + 1) * offset_width
    fields = dict[bytes, bytes]()
    for index in range(count):
        place = _number(value, 1 + count_width + index * id_width, id_width)
        if place >= len(dictionary.names):
            raise MalformedVariant("an object has a field that its metadata does not name")
        first = start + _number(value, offsets + index * offset_width, offset_width)
        fields[dictionary.names[place]] = value[first : first + _size_at(value, first)]
    if len(fields) != count:
        raise MalformedVariant("an object has two fields of one name")
    return fields


def object_of(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """An object.

    Args:
        fields: of each, the place of its name and its value, in the order of the names' bytes.
    """
    places, values = [place for place, _ in fields], [value for _, value in fields]
    ends = list(accumulate(map(len, values), initial=0))
    if ends[-1] <= _SMALL and len(values) <= _SMALL and max(places, default=0) <= _SMALL:
        return b"".join((bytes((2, len(values), *places, *ends)), *values))
    id_width = _width(max(places))
    is_large = len(values) > _SMALL
    header = (is_large << 4 | (id_width - 1) << 2 | _width(ends[-1]) - 1) << 2 | 2
    ids = b"".join(place.to_bytes(id_width, "little") for place in places)
    return b"".join((_head(header, len(values), is_large), ids, _offsets(ends), *values))


def array_of(values: Sequence[bytes]) -> bytes:
    """An array of these values."""
    ends = list(accumulate(map(len, values), initial=0))
    is_large = len(values) > _SMALL
    return b"".join((_head((is_large << 2 | _width(ends[-1]) - 1) << 2 | 3, len(values), is_large), _offsets(ends), *values))


def _head(header: int, count: int, is_large: bool) -> bytes:
    return bytes((header,)) + count.to_bytes(4 if is_large else 1, "little")


def _offsets(ends: Sequence[int]) -> bytes:
    """Where each value begins, and where the last one ends."""
    width = _width(ends[-1])
    return bytes(ends) if width == 1 else b"".join(end.to_bytes(width, "little") for end in ends)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _number(data: bytes, position: int, width: int) -> int:
    if position + width > len(data):
        raise MalformedVariant("it ends early")
    return int.from_bytes(data[position : position + width], "little")


def _size_at(value: bytes, position: int) -> int:
    """How many bytes the value takes that begins there."""
    first = _number(value, position, 1)
    basic, header = first & 0b11, first >> 2
    if basic == 1:
        size = 1 + header
    elif basic == 0:
        size = 5 + _number(value, position + 1, 4) if header in (15, 16) else 1 + _SIZES.get(header, len(value))
    else:
        is_object = basic == 2
        count_width = 4 if header >> (4 if is_object else 2) & 1 else 1
        count = _number(value, position + 1, count_width)
        ids = count * ((header >> 2 & 0b11) + 1) if is_object else 0
        width = (header & 0b11) + 1
        last = 1 + count_width + ids + count * width
        size = last + width + _number(value, position + last, width)
    if position + size > len(value):
        raise MalformedVariant("it ends early, or is of a type that is not known")
    return size
