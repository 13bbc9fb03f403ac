"""The Avro encoder compared with fastavro, and corrupt files."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import CorruptTable
from tahoe.uniform.formats.avro import decode_long, decode_value, encode_long, read_container, write_container
from tahoe.uniform.formats.data_files import spec_of
from tahoe.uniform.formats.manifests import (
    read_manifest,
)
from tests.unit.uniform.sample_manifests import PARTITIONED_BY, SCHEMA, encoded, entries, manifest_of


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_is_read_back_as_it_was_written(number):
    data = encode_long(number)
    assert decode_long(data + b"\x55", 0) == (number, len(data))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_fastavro_reads_our_longs(numbers):
    data = write_container('{"type":"long"}', {}, map(encode_long, numbers), sync=b"0123456789abcdef")
    assert list(fastavro.reader(io.BytesIO(data))) == numbers


def test_a_file_of_several_blocks_is_read_whole():
    numbers = list(range(4000))
    data = write_container('{"type":"long"}', {"a": "ä"}, map(encode_long, numbers), sync=b"0123456789abcdef")
    metadata, blocks = read_container(data, "f.avro")
    assert metadata["a"] == "ä"
    decoded = []
    for count, block in blocks:
        position = 0
        for _ in range(count):
            number, position = decode_long(block, position)
            decoded.append(number)
    assert decoded == numbers


@pytest.mark.parametrize("cut", [0, 3, 10, 200, -1, -20])
def test_the_error_for_a_truncated_file_names_it(cut):
    data = encoded(entries(50))
    with pytest.raises(CorruptTable, match=r"m\.avro"):
        read_manifest(data[:cut], manifest_of(data, []), spec_of(SCHEMA, PARTITIONED_BY))


def test_a_general_reader_equals_fastavro():
    data = encoded(entries(30))
    metadata, blocks = read_container(data, "m")
    schema = json.loads(metadata["avro.schema"])
    ours = []
    for count, block in blocks:
        position = 0
        for _ in range(count):
            value, position = decode_value(schema, block, position)
            ours.append(value)
    for mine, theirs in zip(ours, fastavro.reader(io.BytesIO(data)), strict=True):
        assert mine["status"] == theirs["status"]
        assert mine["data_file"]["file_path"] == theirs["data_file"]["file_path"]
        assert mine["data_file"]["null_value_counts"] == theirs["data_file"]["null_value_counts"]
        assert mine["data_file"]["upper_bounds"] == theirs["data_file"]["upper_bounds"]
