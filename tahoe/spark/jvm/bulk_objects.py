"""Creates many JVM objects in one call.

A call through py4j costs about 0.1 ms, and more while Spark is busy. So a small Java class creates the objects that Spark needs for each
file of a scan from packed columns: strings as offsets, flags and bytes, numbers in their memory layout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["directories", "rows_of", "rows_matching", "texts"]

_BLOCK_SIZE = 134_217_728
_MOST_BYTES_AS_TEXT = 2**18


def directories(
    jvm: Jvm,
    urls: pa.Array,
    sizes: pa.ChunkedArray,
    modification_times: pa.ChunkedArray,
    stops: pa.Array,
    values: Sequence[pa.Array],
    types: Sequence[object],
    time_zone: str,
) -> JavaObject:
    """Return a Scala `Seq` with a ``PartitionDirectory`` for each group of files, in the order of the files.

    Args:
        urls: of the files, percent-encoded, ordered by group.
        sizes, modification_times: of the files, in bytes and in milliseconds.
        stops: for each group the index after its last file.
        values: for each partition column the groups' values, as the log's strings.
        types: for each partition column the JSON of its Spark type.
        time_zone: of timestamps without a time zone.
    """
    parts = [*_texts(urls), _numbers(sizes, pa.int64()), _numbers(modification_times, pa.int64()), _numbers(stops, pa.int32())]
    parts += [part for column in values for part in _texts(column)]
    with _as_argument(parts) as packed:
        return _bulk_objects(jvm).directories(packed, len(urls), len(stops), _lines(types), time_zone, _BLOCK_SIZE)


def rows_of(jvm: Jvm, columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[object], time_zone: str) -> JavaObject:
    """Return a Scala `Seq` of Catalyst rows from the log's strings, cast as Spark casts them.

    Args:
        columns, types, time_zone: the arguments of `directories`.
    """
    with _as_argument([part for column in columns for part in _texts(column)]) as packed:
        return _bulk_objects(jvm).typed(packed, len(columns[0]), _lines(types), time_zone)


def rows_matching(
    jvm: Jvm, predicate: JavaObject, columns: Sequence[pa.Array], types: Sequence[object], time_zone: str
) -> list[bool]:
    """Return for each row of the log's strings, cast as Spark casts them, whether a Catalyst ``BasePredicate`` is true.

    Args:
        columns, types, time_zone: the arguments of `directories`.
    """
    with _as_argument([part for column in columns for part in _texts(column)]) as packed:
        matches = _bulk_objects(jvm).matches(packed, len(columns[0]), _lines(types), time_zone, predicate)
    return [bool(match) for match in matches]


def texts(jvm: Jvm, values: pa.Array) -> JavaObject:
    """Return a Java array of ``UTF8String`` over the bytes of a string or binary array; null stays null."""
    with _as_argument(_texts(values)) as packed:
        return _bulk_objects(jvm).texts(packed, len(values))


def _bulk_objects(jvm: Jvm) -> JavaObject:
    return jvm.cached("BulkObjects", lambda: compiled_object(jvm, "BulkObjects"))


def _lines(types: Sequence[object]) -> str:
    return "\n".join(json.dumps(data_type) for data_type in types)


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
