"""Deletion vectors against the specification's own examples, files of the reference, and damage."""

from __future__ import annotations

import random
import struct
import zlib
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.dv import (
    bitmap_from_bytes,
    bitmap_to_bytes,
    decode,
    descriptor_in_file,
    file_name,
    inline_descriptor,
    new_file_name,
    pack,
    vector_data,
    z85_decode,
    z85_encode,
)

ROOT = "s3://mytable"
UUID = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
# PROTOCOL.md, "Deletion Vector Descriptor Schema", JSON examples 1 and 2.
RELATIVE = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
ABSOLUTE = DeletionVectorDescriptor("p", f"s3://mytable/deletion_vector_{UUID}.bin", 40, 6, 4)
# The same rows as example 3, in the format that the specification describes (its own bytes are of an older one, see below).
INLINE = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
# The only vector of a file of the golden table log-replay-dv-key-cases, as the reference wrote it.
FILE_OF_THE_REFERENCE = bytes.fromhex("0100000022d1d339640100000000000000000000003a3000000100000000000000100000000000f7a6b4b5")

positions = st.sets(st.integers(0, 2**63 - 1), max_size=50) | st.sets(st.integers(0, 300_000), max_size=50)


def no_reading(name: str) -> bytes:
    raise AssertionError(f"{name} was read")


def test_an_inline_vector_with_the_rows_of_the_specification_is_decoded_without_reading():
    assert list(decode(INLINE, no_reading, ROOT)) == [3, 4, 7, 11, 18, 29]


def test_an_inline_vector_is_encoded_as_others_encode_it():
    assert inline_descriptor(BitMap64([3, 4, 7, 11, 18, 29])) == INLINE


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_inline_vectors_of_sizes_that_are_no_multiple_of_four_come_back(count):
    bitmap = BitMap64(range(0, 7 * count, 7))
    descriptor = inline_descriptor(bitmap)
    assert decode(descriptor, no_reading, ROOT) == bitmap
    # Values passed elsewhere, for example to Iceberg, must not have the padding of the text.
    assert vector_data(descriptor, no_reading, ROOT) == bitmap_to_bytes(bitmap)


def test_file_names_are_those_of_the_specification():
    assert file_name(RELATIVE, ROOT) == f"ab/deletion_vector_{UUID}.bin"
    assert file_name(ABSOLUTE, ROOT) == f"deletion_vector_{UUID}.bin"
    assert file_name(INLINE, ROOT) is None
    assert new_file_name(UUID) == f"deletion_vector_{UUID}.bin"


def test_a_file_is_written_byte_for_byte_as_the_reference_does():
    content, places = pack([BitMap64([0])])
    assert content == FILE_OF_THE_REFERENCE
    assert descriptor_in_file("2ea5bf80-0000-4000-8000-000000000000", places[0]).size_in_bytes == 34


def test_the_bitmap_is_the_portable_serialisation_of_the_roaring_specification():
    # Number of buckets, then per bucket: key, cookie 12346, one container: key 0, cardinality - 1, offset 16, values.
    container = struct.pack("<IIHHI", 12346, 1, 0, 1, 16)
    expected = struct.pack("<Q", 2)
    expected += struct.pack("<I", 0) + container + struct.pack("<HH", 1, 5)
    expected += struct.pack("<I", 3) + container + struct.pack("<HH", 7, 9)
    assert bitmap_to_bytes(BitMap64([1, 5, (3 << 32) + 7, (3 << 32) + 9])) == struct.pack("<I", 1681511377) + expected


def test_several_vectors_share_a_file():
    bitmaps = [BitMap64([1]), BitMap64(range(1000)), BitMap64([2**40])]
    content, places = pack(bitmaps)
    descriptors = [descriptor_in_file(UUID, place, "ab") for place in places]
    assert [decode(d, {f"ab/deletion_vector_{UUID}.bin": content}.__getitem__, ROOT) for d in descriptors] == bitmaps
    assert places[0].offset == 1
    assert len({d.unique_id for d in descriptors}) == 3


def test_an_absent_offset_means_the_first_vector():
    content, places = pack([BitMap64([5])])
    assert list(decode(replace(descriptor_in_file(UUID, places[0]), offset=None), lambda _: content, ROOT)) == [5]


def damaged(change):
    content, places = pack([BitMap64([1, 2, 3])])
    return bytes(change(bytearray(content))), descriptor_in_file(UUID, places[0])


def with_byte(position, value):
    def change(content):
        content[position] = value
        return content

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (with_byte(0, 2), "TAHOE_CORRUPT_DELETION_VECTOR"),
        (with_byte(4, 99), "DELTA_DELETION_VECTOR_SIZE_MISMATCH"),
        (with_byte(30, 77), "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"),
        (with_byte(-1, 0), "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"),
        (lambda content: content[:-5], "DELTA_DELETION_VECTOR_SIZE_MISMATCH"),
        (lambda content: content[:3], "DELTA_DELETION_VECTOR_SIZE_MISMATCH"),
        (lambda content: b"", "TAHOE_CORRUPT_DELETION_VECTOR"),
    ],
)
def test_a_damaged_file_is_reported_by_its_error_class(change, code):
    content, descriptor = damaged(change)
    with pytest.raises(CorruptTable) as raised:
        decode(descriptor, lambda _: content, ROOT)
    assert raised.value.code == code
    assert "restore" in str(raised.value)


def test_a_wrong_cardinality_is_reported_for_files_and_for_inline_vectors():
    content, places = pack([BitMap64([1, 2, 3])])
    for descriptor in (replace(descriptor_in_file(UUID, places[0]), cardinality=4), replace(INLINE, cardinality=5)):
        with pytest.raises(CorruptTable) as raised:
            decode(descriptor, lambda _: content, ROOT)
        assert raised.value.code == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"


@pytest.mark.parametrize("size", [40, 45, 100])
def test_an_inline_vector_of_another_size_than_stated_is_reported(size):
    with pytest.raises(CorruptTable) as raised:
        decode(replace(INLINE, size_in_bytes=size), no_reading, ROOT)
    assert raised.value.code == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"


def test_a_vector_of_the_older_native_format_is_refused_by_its_name():
    with pytest.raises(Unsupported, match="native"):
        bitmap_from_bytes(struct.pack("<I", 1681511376) + b"\0" * 8)
    of_the_specification = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    with pytest.raises(Unsupported, match="native"):
        decode(DeletionVectorDescriptor("i", of_the_specification, 40, 6), no_reading, ROOT)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/x", "%2e%2e/x", "a\0b", "..", "a/b"])
def test_a_prefix_that_would_leave_the_folder_is_refused(path):
    with pytest.raises(CorruptTable):
        file_name(DeletionVectorDescriptor("u", path + "^-aqEH.-t@S}K{vb[*k^", 40, 6, 4), ROOT)


@pytest.mark.parametrize("path", ["s3://mytable/../other/x.bin", "file:///etc/passwd", "../x.bin"])
def test_an_absolute_path_outside_the_table_is_refused(path):
    with pytest.raises(CorruptTable) as raised:
        file_name(DeletionVectorDescriptor("p", path, 40, 6, 4), ROOT)
    assert raised.value.code == "TAHOE_PATH_OUTSIDE_TABLE"


def test_an_absolute_path_of_the_same_storage_is_a_url_which_the_store_opens_only_where_it_may():
    assert file_name(DeletionVectorDescriptor("p", "s3a://other/a%20b.bin", 40, 6, 4), ROOT) == "s3://other/a b.bin"


@pytest.mark.parametrize("encoded", ["short", "~" * 20, "é" * 20, "%" * 20 + "x" * 20, "#####" * 4])
def test_a_path_that_holds_no_uuid_is_refused(encoded):
    with pytest.raises(CorruptTable):
        file_name(DeletionVectorDescriptor("u", encoded, 40, 6, 4), ROOT)


def test_an_unknown_storage_type_is_refused_by_name():
    with pytest.raises(CorruptTable, match="'x'"):
        file_name(DeletionVectorDescriptor("x", "", 1, 1), ROOT)


def test_positions_beyond_63_bits_are_neither_written_nor_read():
    too_far = BitMap64([2**63])
    with pytest.raises(InvalidRequest, match="2\\^63"):
        bitmap_to_bytes(too_far)
    with pytest.raises(CorruptTable, match="2\\^63"):
        bitmap_from_bytes(struct.pack("<I", 1681511377) + too_far.serialize())


@given(positions)
def test_any_positions_come_back_from_a_file_and_from_the_log(rows):
    bitmap = BitMap64(rows)
    content, places = pack([BitMap64([9]), bitmap])
    assert decode(descriptor_in_file(UUID, places[1]), lambda _: content, ROOT) == bitmap
    assert decode(inline_descriptor(bitmap), no_reading, ROOT) == bitmap


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_give_a_bitmap_or_a_clear_error(data):
    with_checksum = b"\1" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    descriptor = DeletionVectorDescriptor("u", "^-aqEH.-t@S}K{vb[*k^", len(data), 1, 1)
    for content in (with_checksum, data):
        with suppress(CorruptTable, Unsupported):
            assert len(decode(descriptor, lambda _, c=content: c, ROOT)) == 1


@given(st.binary(max_size=64))
def test_z85_is_its_own_inverse(data):
    padded = data + b"\0" * (-len(data) % 4)
    assert z85_decode(z85_encode(padded)) == padded


def test_z85_encodes_the_test_vector_of_its_specification():
    assert z85_encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


def test_z85_refuses_bytes_that_are_no_multiple_of_four():
    with pytest.raises(InvalidRequest):
        z85_encode(b"abc")


@pytest.mark.parametrize("groups", [799, 801, 3_000])
def test_long_z85_texts_decode_as_short_ones_do(groups):
    data = random.Random(groups).randbytes(4 * groups)
    assert z85_decode(z85_encode(data)) == data


@pytest.mark.parametrize("bad", ["\x00abcd", "é?abc", "#####", "\ud800abcd"])
def test_characters_outside_z85_in_a_long_text_are_named(bad):
    text = z85_encode(bytes(8_000))
    with pytest.raises(CorruptTable, match="are not Z85"):
        z85_decode(text[:5_000] + bad + text[5_005:])
