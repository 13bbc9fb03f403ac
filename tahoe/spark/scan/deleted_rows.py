"""Deletion vectors on Spark's native scan: each file has the bits of its deleted rows as a hidden partition value.

A row is live if its file has no vector, or if its bit is 0. The bits are packed like Arrow's booleans, and a static method of Hadoop,
called from Spark's generated code, reads 32 of them at a time. Nothing is joined or broadcast; only the vectors of files that a query reads
are fetched, and each task gets those of its own files.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.base.cache import is_kept, keep
from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.dv import decode, file_name
from tahoe.spark.jvm.bridge import Jvm
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64


DELETED_ROWS = "__tahoe_deleted_rows"
"""The hidden partition column: binary, null for a file without a vector."""

_KIND = "deletion vectors"
_BYTES_OF_A_BLOCK = 2**16 // 8
_BLOCKS_OF_A_PART = 64
_ROWS_OF_A_PART = _BLOCKS_OF_A_PART * 2**16
_COOKIE_WITH_RUNS = 12347
_MOST_ROWS = 2**33
"""The limit for one file; its bits then fill 1 GB. A vector with greater positions is malicious or corrupt."""


def bitmaps(store: LogStore, descriptors: Sequence[DeletionVectorDescriptor]) -> pa.Array:
    """Return the deleted rows of each vector as packed bits: bit *i* of byte *i / 8*, lowest first, up to the last deleted row.

    Vectors in files are cached (`tahoe.base.cache`): the next query gets them without accessing storage.

    Raises `CorruptTable` for a corrupt vector.
    """
    new = [descriptor for descriptor in dict.fromkeys(descriptors) if not is_kept(_KIND, (store.url, descriptor))]
    names = sorted({name for descriptor in new if (name := file_name(descriptor, store.url)) is not None})
    contents = dict(zip(names, store.get_many(names), strict=True))

    def bits(descriptor: DeletionVectorDescriptor) -> bytes:
        # A vector that was evicted from the cache meanwhile is fetched separately.
        return packed(
            decode(descriptor, lambda name: contents[name] if name in contents else store.get(name), store.url), store.url
        )

    return pa.array(
        [keep(_KIND, (store.url, descriptor), partial(bits, descriptor), len) for descriptor in descriptors], pa.binary()
    )


def packed(rows: BitMap64, table: str) -> bytes:
    """Return a set of row positions as bits: bit *i* of byte *i / 8*, lowest first, up to the last position, in whole words of 32."""
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
    parts = (_bits_of_part(rows, start) for start in range(0, last + 1, _ROWS_OF_A_PART))
    return b"".join(parts)[: (last // 32 + 1) * 4]


def is_live(jvm: Jvm, deleted_rows: Column, row_index: Column) -> Column:
    """Return whether the row at a position of its file is live.

    Args:
        deleted_rows: the column `DELETED_ROWS`.
        row_index: the physical position in the file, a long.
    """
    # Nothing here can overflow, so there are no checks per row: each extra operation costs a scan some percent.
    # row >> 5 << 2: the first byte of the row's word, with 32 rows per word and 4 bytes per word.
    word = _read_int(jvm, deleted_rows, _low_int(jvm, sf.shiftleft(sf.shiftright(row_index, 5), 2)))
    # The method reads the most significant byte first, the bits are packed the other way: row 0 of a word is its bit 24. Java shifts
    # by the low five bits of a number, and row ^ 7 moves the row's own bit to the top, where the sign is.
    shifted = jvm.column(
        jvm.catalyst("expressions.ShiftLeft")(
            jvm.expression(word), jvm.expression(_low_int(jvm, row_index.bitwiseXOR(sf.lit(7))))
        )
    )
    beyond = sf.shiftright(row_index, 3) >= sf.octet_length(deleted_rows)
    return deleted_rows.isNull() | beyond | (shifted >= 0)


def _bits_of_part(rows: BitMap64, start: int) -> bytes:
    """Return the bits of `_ROWS_OF_A_PART` rows from `start` on.

    A block of a Roaring bitmap is stored as bits if many rows are set, otherwise as a list. United with every even row, or with every odd
    row, each block is stored as bits, and every other bit of the two unions belongs to the rows: two copies instead of a loop over the
    rows.
    """
    even, odd = _every_other_row()
    part = (rows & _range(start)).shift(-start)
    if not part:
        return bytes(_ROWS_OF_A_PART // 8)
    # As one large integer each, so that a few Python operations process all bits: even | rows has the rows' bits at odd positions, and
    # odd | rows at even ones. 0xAA has the odd bits of a byte, shifted by one the even ones.
    at_odd, at_even = (int.from_bytes(_bits_of_blocks(part | every_other), "little") for every_other in (even, odd))
    odd_bits = int.from_bytes(b"\xaa" * (_ROWS_OF_A_PART // 8), "little")
    return ((at_odd & odd_bits) | (at_even & (odd_bits >> 1))).to_bytes(_ROWS_OF_A_PART // 8, "little")


def _range(start: int) -> BitMap64:
    from pyroaring import BitMap64

    return BitMap64(range(start, start + _ROWS_OF_A_PART))


@cache
def _every_other_row() -> tuple[BitMap64, BitMap64]:
    from pyroaring import BitMap64

    return BitMap64(range(0, _ROWS_OF_A_PART, 2)), BitMap64(range(1, _ROWS_OF_A_PART, 2))


def _bits_of_blocks(rows: BitMap64) -> bytes:
    """Return the bits of a bitmap with one bucket of `_BLOCKS_OF_A_PART` blocks, in which at least half of the rows are set
    (RoaringFormatSpec: a cookie, a header, the blocks; each block is 8 KB of bits, or runs, here one run of all rows).
    """
    data = rows.serialize()
    at = 12  # The number of buckets, and the key of the only one.
    (cookie,) = struct.unpack_from("<I", data, at)
    has_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    flags = data[at + 4 : at + 4 + _BLOCKS_OF_A_PART // 8] if has_runs else bytes(_BLOCKS_OF_A_PART // 8)
    at += 4 + len(flags) if has_runs else 8
    at += 8 * _BLOCKS_OF_A_PART
    parts = []
    for block in range(_BLOCKS_OF_A_PART):
        if flags[block >> 3] >> (block & 7) & 1:  # this block's bit, eight blocks to a byte: it is stored as runs
            parts.append(b"\xff" * _BYTES_OF_A_BLOCK)
            at += 6
        else:
            parts.append(data[at : at + _BYTES_OF_A_BLOCK])
            at += _BYTES_OF_A_BLOCK
    return b"".join(parts)


def _low_int(jvm: Jvm, values: Column) -> Column:
    """Return the low 32 bits of a long."""
    cast, legacy = jvm.catalyst("expressions.Cast"), jvm.catalyst("expressions.EvalMode").LEGACY()
    return jvm.column(cast(jvm.expression(values), jvm.data_type('"integer"'), jvm.option(None), legacy))


def _read_int(jvm: Jvm, data: Column, start: Column) -> Column:
    # Spark SQL has no function that reads a number from bytes. Hadoop has one, and `StaticInvoke` compiles a call to it into the scan's
    # loop.
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
