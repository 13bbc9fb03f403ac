"""The bits of dead rows that Spark's scan gets, against the positions themselves; and how many bytes cross to the JVM."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

import tahoe
from tahoe.base.exceptions import CorruptTable
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.bulk_objects import texts
from tahoe.spark.scan.deleted_rows import packed
from tests.sampling import examples

BLOCK, PART = 2**16, 2**22


def positions_of(bits: bytes) -> BitMap64:
    flags = pa.Array.from_buffers(pa.bool_(), len(bits) * 8, [None, pa.py_buffer(bits)])
    return BitMap64(pc.indices_nonzero(flags).to_pylist())


@st.composite
def dead_rows(draw: st.DrawFn) -> BitMap64:
    """Lists, bits and runs of rows, around the bounds of containers."""
    actual = BitMap64()
    border = st.sampled_from([0, BLOCK, 2 * BLOCK, PART - BLOCK, PART, PART + 3 * BLOCK])
    for _ in range(draw(st.integers(1, 4))):
        start = max(0, draw(border) + draw(st.integers(-70, 70)))
        count = draw(st.sampled_from([1, 33, 5000, BLOCK + 1]))
        actual |= BitMap64(range(start, start + count, draw(st.sampled_from([1, 2, 3, 31]))))
    if draw(st.booleans()):
        actual.run_optimize()
    return BitMap64.deserialize(actual.serialize())


@settings(max_examples=examples(60), deadline=None)
@given(dead_rows())
def test_the_bits_are_the_rows(rows: BitMap64) -> None:
    bits = packed(rows, "table")
    assert len(bits) == (rows.max() // 32 + 1) * 4
    assert positions_of(bits[: len(bits)]) == rows


def test_no_rows_are_no_bits_and_rows_that_no_file_has_are_refused() -> None:
    assert packed(BitMap64(), "table") == b""
    with pytest.raises(CorruptTable, match=r"row 8589934592 of one file"):
        packed(BitMap64([2**33]), "table")


@pytest.mark.parametrize("size", [0, 5, 100_000, 300_000, 2_000_000])
def test_bytes_of_any_size_reach_the_jvm_as_they_are(spark, size: int) -> None:
    jvm = Jvm.of(spark)
    values = pa.array([b"\x00\xff" * (size // 2), None, b"end"], pa.binary())
    actual = texts(jvm, values)
    assert [None if item is None else bytes(item.getBytes()) for item in actual] == values.to_pylist()


def test_the_next_query_has_the_vectors_already(spark, path):
    spark.range(100).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    tahoe.cache.clear()

    def asked() -> tuple[int, int]:
        remaining = next(item for item in tahoe.cache.report() if item.kind == "deletion vectors")
        return remaining.hits, remaining.misses

    frame = spark.read.format("delta").load(path).where("id % 2 = 0")
    counts = [(frame.count(), asked()) for _ in range(2)]
    (first, (hits, misses)), (second, later) = counts
    assert first == second == 33
    assert later[1] == misses and later[0] > hits
