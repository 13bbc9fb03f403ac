"""Deletion vectors on Spark's native scan: each file brings the bits of its dead rows along as a hidden partition value.

A row is alive if its file has no vector, or if its bit is 0. The bits are packed as Arrow packs booleans, and one static method of
Hadoop's, called from Spark's generated code, reads 32 of them at a time. Nothing is joined or broadcast; only the vectors of files
that a query reads are fetched, and each task gets those of its own files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.exceptions import CorruptTable
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.dv import decode, file_name
from tahoe.spark.jvm import Jvm
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["DELETED_ROWS", "bitmaps", "is_alive", "packed"]

DELETED_ROWS = "__tahoe_deleted_rows"
"""The hidden partition column: binary, null for a file without a vector."""

_MOST_ROWS = 2**33
"""Of one file; its bits fill 1 GB then. A vector that speaks of more is hostile or broken."""


def bitmaps(store: LogStore, descriptors: Sequence[DeletionVectorDescriptor]) -> pa.Array:
    """The dead rows of each vector as packed bits: bit *i* of byte *i / 8*, lowest first, up to the last dead row.

    Raises `CorruptTable` where a vector is damaged.
    """
    names = sorted({name for one in descriptors if (name := file_name(one, store.url)) is not None})
    contents = dict(zip(names, store.get_many(names), strict=True))
    rows = (decode(one, contents.__getitem__, store.url) for one in descriptors)
    return pa.array([packed(one, store.url) for one in rows], pa.binary())


def packed(rows: BitMap64, table: str) -> bytes:
    """A set of row positions as bits: bit *i* of byte *i / 8*, lowest first, up to the last of them, in whole words of 32."""
    if not rows:
        return b""
    last = rows.max()
    if last >= _MOST_ROWS:
        raise CorruptTable(
            f"A deletion vector of table {table} speaks of row {last} of one file; no file has so many rows. "
            "Restore the table to an earlier version.",
            code="TAHOE_CORRUPT_DELETION_VECTOR",
            table=table,
        )
    positions = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows.to_array())])
    # What is scattered nowhere is null, so the validity bits of the result are the set of positions.
    bits = pc.scatter(pa.repeat(True, len(positions)), positions, max_index=last).buffers()[0]
    size = last // 8 + 1
    data = bytearray(b"\xff" * size if bits is None else bits.to_pybytes()[:size])
    data[-1] &= 0xFF >> (7 - last % 8)
    return bytes(data).ljust((last // 32 + 1) * 4, b"\0")


def is_alive(jvm: Jvm, deleted_rows: Column, row_index: Column) -> Column:
    """Whether the row at a position of its file is not dead.

    Args:
        deleted_rows: the column `DELETED_ROWS`.
        row_index: the physical position in the file, a long.
    """
    # Nothing here can overflow, so nothing is checked for it row by row: each operation more costs a scan some percent.
    word = _read_int(jvm, deleted_rows, _low_int(jvm, sf.shiftleft(sf.shiftright(row_index, 5), 2)))
    # The method reads bytes from the most significant one on, the bits are packed the other way: row 0 of a word is its bit 24. Java shifts
    # by the low five bits of a number, and row ^ 7 brings the row's own bit to the top, where the sign is.
    shifted = jvm.column(
        jvm.catalyst("expressions.ShiftLeft")(
            jvm.expression(word), jvm.expression(_low_int(jvm, row_index.bitwiseXOR(sf.lit(7))))
        )
    )
    beyond = sf.shiftright(row_index, 3) >= sf.octet_length(deleted_rows)
    return deleted_rows.isNull() | beyond | (shifted >= 0)


def _low_int(jvm: Jvm, values: Column) -> Column:
    """The low 32 bits of a long."""
    cast, legacy = jvm.catalyst("expressions.Cast"), jvm.catalyst("expressions.EvalMode").LEGACY()
    return jvm.column(cast(jvm.expression(values), jvm.data_type('"integer"'), jvm.option(None), legacy))


def _read_int(jvm: Jvm, data: Column, start: Column) -> Column:
    invoke = jvm.catalyst("expressions.objects.StaticInvoke")
    expression = invoke(
        jvm.reflected("org.apache.hadoop.io.WritableComparator"),
        jvm.data_type('"integer"'),
        "readInt",
        jvm.seq(jvm.expression(data), jvm.expression(start)),
        jvm.seq(jvm.data_type('"binary"'), jvm.data_type('"integer"')),
        True,
        True,
        True,
        jvm.option(None),
    )
    return jvm.column(expression)
