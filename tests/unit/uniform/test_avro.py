"""Our Avro encoder against fastavro and PyIceberg: what we write, they read alike; what we read back is what we wrote."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile as TheirManifestFile
from pyiceberg.manifest import read_manifest_list as their_manifest_list

from tahoe.exceptions import CorruptTable
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tahoe.uniform.formats.avro import decode_long, encode_long, read_container, write_container
from tahoe.uniform.formats.data_files import FileEncoder, partition_summaries, spec_of
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tahoe.uniform.formats.manifest_pieces import blocks_of, pieces_of
from tahoe.uniform.formats.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    Entry,
    ManifestFile,
    manifest_bytes,
    manifest_header,
    manifest_list_bytes,
    paths_in,
    read_manifest,
    read_manifest_list,
)

ROOT = "file:///data/a table"


def column(name: str, data_type: object, number: int) -> StructField:
    return StructField(
        name, data_type, True, {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    )


SCHEMA = StructType(
    (
        column("id", PrimitiveType("long"), 1),
        column("name", PrimitiveType("string"), 2),
        column("1 odd/naïve %name", PrimitiveType("date"), 3),
        column("price", DecimalType(12, 2), 4),
        column("ratio", PrimitiveType("double"), 5),
    )
)
PARTITIONED_BY = ("1 odd/naïve %name", "price")


def entries(count: int, per_partition: int = 10) -> list[Entry]:
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"{ROOT}/{path}")
    files = []
    for number in range(count):
        date = None if number % 7 == 0 else f"2020-01-{number // per_partition % 28 + 1:02d}"
        stats = {
            "numRecords": number + 1,
            "minValues": {"col-1": number, "col-2": f"a{number}", "col-5": "-0.5"},
            "maxValues": {"col-1": number * 10, "col-2": f"z{number}\U0010ffff", "col-5": "NaN"},
            "nullCount": {"col-1": 0, "col-2": number},
        }
        files.append(encoder.encode(f"f{number}.parquet", {"col-3": date, "col-4": f"-{number}.50"}, 1000 + number, stats))
    statuses = [ADDED, EXISTING, DELETED]
    return [
        Entry(statuses[i % 3], 77, None if i % 3 == 0 else 3, None if i % 3 == 0 else 2, file) for i, file in enumerate(files)
    ]


def manifest_of(data: bytes, found: list[Entry], path: str = "file:///data/a table/metadata/m.avro") -> ManifestFile:
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    return ManifestFile(
        path, len(data), 0, 5, 2, 77, 1, 2, 3, 4, 5, 6, partition_summaries(spec, (entry.file.partition for entry in found))
    )


def encoded(found: list[Entry]) -> bytes:
    header = manifest_header(spec_of(SCHEMA, PARTITIONED_BY), {**iceberg_schema(SCHEMA), "schema-id": 4})
    return manifest_bytes(blocks_of(pieces_of(found)), header)


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
    found = []
    for count, block in blocks:
        position = 0
        for _ in range(count):
            number, position = decode_long(block, position)
            found.append(number)
    assert found == numbers


@pytest.mark.parametrize("cut", [0, 3, 10, 200, -1, -20])
def test_a_file_that_is_cut_off_is_refused_by_name(cut):
    data = encoded(entries(50))
    with pytest.raises(CorruptTable, match=r"m\.avro"):
        read_manifest(data[:cut], manifest_of(data, []), spec_of(SCHEMA, PARTITIONED_BY))


def test_a_manifest_is_read_back_as_it_was_written():
    found = entries(2000)
    data = encoded(found)
    again = read_manifest(data, manifest_of(data, found), spec_of(SCHEMA, PARTITIONED_BY))
    assert [entry.file for entry in again] == [entry.file for entry in found]
    assert [entry.status for entry in again] == [entry.status for entry in found]
    inherited = [(entry.sequence_number, entry.file_sequence_number) for entry in again]
    assert inherited == [(5, 5) if entry.sequence_number is None else (3, 2) for entry in found]


def test_paths_are_found_without_decoding_entries():
    found = entries(100)
    assert [path.decode() for path in paths_in(encoded(found), "m", f"{ROOT}/".encode())] == [entry.file.url for entry in found]


def test_equal_entries_give_equal_bytes():
    assert encoded(entries(30)) == encoded(entries(30))


def test_fastavro_decodes_every_member_of_an_entry():
    data = encoded(entries(3))
    records = list(fastavro.reader(io.BytesIO(data)))
    assert [record["status"] for record in records] == [1, 0, 2]
    second = records[1]
    assert (second["snapshot_id"], second["sequence_number"], second["file_sequence_number"]) == (77, 3, 2)
    file = second["data_file"]
    assert file["file_path"] == f"{ROOT}/f1.parquet"
    assert (file["content"], file["file_format"], file["record_count"], file["file_size_in_bytes"]) == (0, "PARQUET", 2, 1001)
    assert {field: str(value) for field, value in file["partition"].items()} == {
        "_1_x20odd_x2Fna_xEFve_x20_x25name": "2020-01-01",
        "price": "-1.50",
    }
    pairs = {name: {p["key"]: p["value"] for p in file[name]} for name in ("value_counts", "null_value_counts", "lower_bounds")}
    assert pairs["value_counts"] == {1: 2, 2: 2, 5: 2}
    assert pairs["null_value_counts"] == {1: 0, 2: 1}
    assert pairs["lower_bounds"] == {1: (1).to_bytes(8, "little"), 2: b"a1", 5: b"\0\0\0\0\0\0\xe0\xbf"}
    assert {p["key"] for p in file["upper_bounds"]} == {1, 2}, "a maximum of NaN bounds nothing"
    unused = ("column_sizes", "nan_value_counts", "key_metadata", "split_offsets", "equality_ids", "sort_order_id")
    assert all(file[name] is None for name in unused)


def test_pyiceberg_reads_our_manifest_and_list(tmp_path):
    found = entries(1700)
    path = tmp_path / "m.avro"
    path.write_bytes(encoded(found))
    manifest = manifest_of(path.read_bytes(), found, f"file://{path}")
    listed = tmp_path / "snap.avro"
    listed.write_bytes(manifest_list_bytes([manifest] * 3, snapshot_id=77, parent_snapshot_id=None, sequence_number=5))
    assert read_manifest_list(listed.read_bytes(), "snap") == [manifest] * 3

    io_ = PyArrowFileIO()
    theirs: list[TheirManifestFile] = list(their_manifest_list(io_.new_input(f"file://{listed}")))
    assert len(theirs) == 3
    first = theirs[0]
    assert (first.manifest_path, first.manifest_length, first.partition_spec_id) == (manifest.path, manifest.length, 0)
    assert (first.sequence_number, first.min_sequence_number, first.added_snapshot_id) == (5, 2, 77)
    assert (first.added_files_count, first.existing_files_count, first.deleted_files_count) == (1, 2, 3)
    assert (first.added_rows_count, first.existing_rows_count, first.deleted_rows_count) == (4, 5, 6)
    summary = first.partitions[0]
    assert (summary.contains_null, summary.contains_nan) == (True, None)
    assert summary.lower_bound == manifest.partitions[0].lower_bound
    read = first.fetch_manifest_entry(io_, discard_deleted=False)
    assert [entry.data_file.file_path for entry in read] == [entry.file.url for entry in found]
    assert [entry.data_file.record_count for entry in read] == [entry.file.record_count for entry in found]
    assert [entry.data_file.partition[0] for entry in read] == [entry.file.partition[0] for entry in found]
    assert [entry.sequence_number for entry in read] == [5 if entry.sequence_number is None else 3 for entry in found]


def test_the_avro_names_of_partition_fields_are_legal_and_tell_the_real_name():
    schema = fastavro.reader(io.BytesIO(encoded(entries(1)))).writer_schema
    data_file = next(field for field in schema["fields"] if field["name"] == "data_file")
    partition = next(field for field in data_file["type"]["fields"] if field["name"] == "partition")
    odd = partition["type"]["fields"][0]
    assert odd["name"].isascii()
    assert odd["name"].isidentifier()
    assert odd["iceberg-field-name"] == "1 odd/naïve %name"
    assert json.dumps(schema)
