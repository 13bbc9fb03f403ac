"""Puffin files read back by PyIceberg, with the bytes of Delta's vectors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from tahoe.protocol.dv import descriptor_in_file, inline_descriptor, pack, vector_data
from tahoe.uniform.formats.puffin import puffin_bytes

DEAD = st.sets(st.integers(0, 70_000) | st.integers(0, 2**40), min_size=1, max_size=30).map(BitMap64)


DATA = "file:///data/a table/x y/ü.parquet"


@given(DEAD.map(lambda dead: BitMap64([position % 2**31 for position in dead])))
def test_pyiceberg_reads_a_puffin_file(dead):
    """PyIceberg 0.12 cannot read a vector whose positions are all beyond 2^32."""
    data = vector_data(inline_descriptor(dead), lambda name: b"", "file:///t")
    puffin = puffin_bytes(data, DATA, len(dead))
    (vector_read,) = deletion_vectors_from_puffin_file(PuffinFile(puffin.data))
    assert vector_read.referenced_data_file == DATA
    assert vector_read.to_vector().to_pylist() == sorted(dead)


def test_the_bytes_of_a_vector_are_copied_from_delta_s_file():
    content, places = pack([BitMap64([1, 2]), BitMap64(range(70_000))])
    for place, count in zip(places, (2, 70_000), strict=True):
        descriptor = descriptor_in_file("3f0a2e7c-0000-4000-8000-000000000001", place)
        puffin = puffin_bytes(vector_data(descriptor, lambda name: content, "file:///t"), DATA, count)
        assert puffin.data[4 : 4 + puffin.length] == content[place.offset : place.offset + place.size + 8]
