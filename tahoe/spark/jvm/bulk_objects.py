"""Creates many JVM objects in one call.

A call through py4j costs about 0.1 ms, and more while Spark is busy. So a small Java class creates the objects that Spark needs for each
file of a scan from packed columns: strings as offsets, flags and bytes, numbers in their memory layout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

_BLOCK_SIZE = 134_217_728
_MOST_BYTES_AS_TEXT = 2**18


@dataclass(frozen=True, slots=True)
class LoggedValues:
    """Columns of the log's strings, which Spark casts to types.

    Args:
        types: for each column the JSON of its Spark type.
        time_zone: of timestamps without a time zone.
    """

    columns: Sequence[pa.Array | pa.ChunkedArray]
    types: Sequence[object]
    time_zone: str

    @property
    def packed(self) -> list[bytes]:
        """The columns as parts of the argument of `BulkObjects.java`."""
        return [part for column in self.columns for part in _texts(column)]

    @property
    def type_lines(self) -> str:
        """The types, one per line."""
        return "\n".join(json.dumps(data_type) for data_type in self.types)


def directories(jvm: Jvm, files: pa.Table, stops: pa.Array, values: LoggedValues) -> JavaObject:
    """Return a Scala `Seq` with a ``PartitionDirectory`` for each group of files, in the order of the files.

    Args:
        files: ordered by group, with the columns of `tahoe.spark.scan.listed_files.Listing`.
        stops: for each group the index after its last file.
        values: the groups' partition values.
    """
    sizes, times = _numbers(files["size"], pa.int64()), _numbers(files["modificationTime"], pa.int64())
    parts = [*_texts(files["url"]), sizes, times, _numbers(stops, pa.int32()), *values.packed]
    with _as_argument(parts) as packed:
        return _bulk_objects(jvm).directories(packed, len(files), len(stops), values.type_lines, values.time_zone, _BLOCK_SIZE)


def rows_of(jvm: Jvm, values: LoggedValues) -> JavaObject:
    """Return a Scala `Seq` of Catalyst rows, cast as Spark casts them."""
    with _as_argument(values.packed) as packed:
        return _bulk_objects(jvm).typed(packed, len(values.columns[0]), values.type_lines, values.time_zone)


def rows_matching(jvm: Jvm, predicate: JavaObject, values: LoggedValues) -> list[bool]:
    """Return for each row, cast as Spark casts it, whether a Catalyst ``BasePredicate`` is true."""
    with _as_argument(values.packed) as packed:
        count, types = len(values.columns[0]), values.type_lines
        matches = _bulk_objects(jvm).matches(packed, count, types, values.time_zone, predicate)
    return [bool(match) for match in matches]


def texts(jvm: Jvm, values: pa.Array) -> JavaObject:
    """Return a Java array of ``UTF8String`` over the bytes of a string or binary array; null stays null."""
    with _as_argument(_texts(values)) as packed:
        return _bulk_objects(jvm).texts(packed, len(values))


def _bulk_objects(jvm: Jvm) -> JavaObject:
    return jvm.cached("BulkObjects", lambda: compiled_object(jvm, "BulkObjects"))


@contextmanager
def _as_argument(parts: Sequence[bytes]) -> Iterator[bytes | str]:
    """Yield the argument that passes these bytes to the JVM. py4j converts bytes to text; large data goes faster through a file, which the
    JVM reads on the same host.
    """
    data = b"".join(parts)
    if len(data) < _MOST_BYTES_AS_TEXT:
        yield data
        return
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "bytes")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def _texts(values: pa.Array | pa.ChunkedArray) -> list[bytes]:
    """Return the end offsets of all strings, their validity, and their bytes."""
    values = _contiguous(values)
    if not len(values):
        return []
    offsets = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, values.buffers()[1]], offset=values.offset)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    content = values.buffers()[2]
    present = _numbers(values.is_valid().cast(pa.uint8()), pa.uint8())
    ends = _numbers(pc.subtract(offsets.slice(1), first), pa.int32())
    return [ends, present, b"" if content is None else content.slice(first, last - first).to_pybytes()]


def _numbers(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> bytes:
    values = _contiguous(values).cast(data_type)
    width = data_type.bit_width // 8
    return values.buffers()[1].slice(values.offset * width, len(values) * width).to_pybytes() if len(values) else b""


def _contiguous(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
