"""The members of classes in JARs, read from the class files (Java Virtual Machine Specification, chapter 4) without starting a JVM."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

_MAGIC = 0xCAFEBABE
_UTF8, _CLASS = 1, 7
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""By the tag of a constant: its number of bytes."""
_TWO_PLACES = (5, 6)  # long and double


@dataclass(frozen=True, slots=True)
class ClassFile:
    """The declared members of a class.

    Args:
        parent: the superclass, with dots; '' for ``java.lang.Object``.
        fields: their names.
        methods: their names and descriptors, such as ``(ILjava/lang/String;)V``.
    """

    parent: str
    fields: frozenset[str]
    methods: frozenset[tuple[str, str]]


class Jars:
    """The classes in the JARs of a folder whose names begin with `prefix`. Close it after use."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._files = [ZipFile(path) for path in sorted(folder.glob(f"{prefix}*.jar"))]

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def read(self, name: str) -> ClassFile | None:
        """Return a class by its name with dots; None if no JAR has it. Raises `ValueError` for a damaged class file."""
        entry = f"{name.replace('.', '/')}.class"
        for file in self._files:
            try:
                return parsed(file.read(entry))
            except KeyError:
                continue
        return None

    def with_parents(self, name: str) -> Iterator[ClassFile]:
        """Yield a class and its superclasses, up to the first that no JAR has. Raises the errors of `read`."""
        while name and (class_file := self.read(name)) is not None:
            yield class_file
            name = class_file.parent


def parsed(data: bytes) -> ClassFile:
    """Parse a class file. Raises `ValueError` if it is not one."""
    stream = BytesIO(data)
    try:
        magic, _, _ = _numbers(stream, ">IHH")
        if magic != _MAGIC:
            raise ValueError("not a class file")
        texts, classes = _constants(stream)
        _, _, parent, interfaces = _numbers(stream, ">HHHH")
        stream.read(2 * interfaces)
        fields, methods = (frozenset(_members(stream, texts)) for _ in range(2))
        return ClassFile(texts[classes[parent]].replace("/", ".") if parent else "", frozenset(n for n, _ in fields), methods)
    except (struct.error, KeyError) as error:
        raise ValueError(f"a damaged class file ({type(error).__name__})") from error


def parameters_in(descriptor: str) -> int:
    """Return the number of parameters in a method's descriptor."""
    count, place = 0, 1
    while descriptor[place] != ")":
        while descriptor[place] == "[":
            place += 1
        place = descriptor.index(";", place) + 1 if descriptor[place] == "L" else place + 1
        count += 1
    return count


def _numbers(stream: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, stream.read(struct.calcsize(form)))


def _constants(stream: BinaryIO) -> tuple[dict[int, str], dict[int, int]]:
    """Read the constant pool; return the texts, and the places of the names of classes, by place."""
    texts, classes = dict[int, str](), dict[int, int]()
    (count,) = _numbers(stream, ">H")
    place = 1
    while place < count:
        (tag,) = _numbers(stream, ">B")
        if tag == _UTF8:
            (length,) = _numbers(stream, ">H")
            texts[place] = stream.read(length).decode(errors="replace")
        elif tag == _CLASS:
            (classes[place],) = _numbers(stream, ">H")
        else:
            stream.read(_SIZES[tag])
        place += 2 if tag in _TWO_PLACES else 1
    return texts, classes


def _members(stream: BinaryIO, texts: dict[int, str]) -> Iterator[tuple[str, str]]:
    (count,) = _numbers(stream, ">H")
    for _ in range(count):
        _, name, descriptor, attributes = _numbers(stream, ">HHHH")
        yield texts[name], texts[descriptor]
        for _ in range(attributes):
            _, length = _numbers(stream, ">HI")
            stream.read(length)
