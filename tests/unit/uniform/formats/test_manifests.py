"""Manifests and their lists: fastavro, PyIceberg and Tahoe read the same entries that Tahoe wrote."""

from __future__ import annotations

import io

import fastavro
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile as TheirManifestFile
from pyiceberg.manifest import read_manifest_list as their_manifest_list
from pyroaring import BitMap64

from tahoe.uniform.formats.data_files import FileEncoder, Target, spec_of
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tahoe.uniform.formats.manifest_pieces import blocks_of, carried, pieces_of
from tahoe.uniform.formats.manifest_schema import DELETES
from tahoe.uniform.formats.manifests import (
    ADDED,
    Entry,
    ManifestFile,
    encode_entry,
    live_urls,
    manifest_bytes,
    manifest_header,
    manifest_list_bytes,
    paths_in,
    read_manifest,
    read_manifest_list,
)
from tahoe.uniform.formats.position_deletes import position_delete_entry
from tahoe.uniform.formats.puffin import puffin_bytes, puffin_entry
from tests.unit.uniform.sample_manifests import PARTITIONED_BY, ROOT, SCHEMA, encoded, entries, manifest_of


def test_a_manifest_is_read_back_as_it_was_written():
    originals = entries(2000)
    data = encoded(originals)
    again = read_manifest(data, manifest_of(data, originals), spec_of(SCHEMA, PARTITIONED_BY))
    assert [entry.file for entry in again] == [entry.file for entry in originals]
    assert [entry.status for entry in again] == [entry.status for entry in originals]
    inherited = [(entry.sequence_number, entry.file_sequence_number) for entry in again]
    assert inherited == [(5, 5) if entry.sequence_number is None else (3, 2) for entry in originals]


def test_paths_are_read_without_decoding_entries():
    originals = entries(100)
    assert [path.decode() for path in paths_in(encoded(originals), "m", f"{ROOT}/".encode())] == [
        entry.file.url for entry in originals
    ]


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
    assert {p["key"] for p in file["upper_bounds"]} == {1, 2}, "a maximum of NaN is not a bound"
    unused = ("column_sizes", "nan_value_counts", "key_metadata", "split_offsets", "equality_ids", "sort_order_id")
    assert all(file[name] is None for name in unused)


def test_pyiceberg_reads_our_manifest_and_list(tmp_path):
    originals = entries(1700)
    path = tmp_path / "m.avro"
    path.write_bytes(encoded(originals))
    manifest = manifest_of(path.read_bytes(), originals, f"file://{path}")
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
    assert [entry.data_file.file_path for entry in read] == [entry.file.url for entry in originals]
    assert [entry.data_file.record_count for entry in read] == [entry.file.record_count for entry in originals]
    assert [entry.data_file.partition[0] for entry in read] == [entry.file.partition[0] for entry in originals]
    assert [entry.sequence_number for entry in read] == [5 if entry.sequence_number is None else 3 for entry in originals]


DATA = "file:///data/a table/x y/ü.parquet"


def test_entries_of_delete_manifests_are_read_by_fastavro_and_by_us():
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    data_file = entries(1)[0].file
    target = Target(DATA, (18_000, -150), b"\2" + spec.codecs[0].encode(18_000) + b"\2" + spec.codecs[1].encode(-150))
    assert len(data_file.partition) == 2
    delete_file = position_delete_entry("file:///d1", 77, target, {DATA: BitMap64([5, 9])})
    two = position_delete_entry("file:///d2", 78, target, {DATA: BitMap64([7]), f"{DATA}2": BitMap64([8])})
    puffin = puffin_bytes(b"abcdefgh", DATA, 3)
    three = puffin_entry("file:///d3", puffin, target, 3)
    for version, files in ((2, [delete_file, two]), (3, [three])):
        originals = [Entry(ADDED, 5, None, None, file) for file in files]
        schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
        data = manifest_bytes(
            blocks_of(pieces_of(originals)), manifest_header(spec, schema, format_version=version, content=DELETES)
        )
        manifest = ManifestFile("m", len(data), 0, 9, 9, 5, len(files), 0, 0, 6, 0, 0, (), DELETES)
        again = read_manifest(data, manifest, spec)
        assert [entry.file.encoded for entry in again] == [file.encoded for file in files]
        assert [entry.file.about for entry in again] == [(DATA,), None][: len(files)]
        assert list(live_urls(data, "m")) == [file.url for file in files]
        reader = fastavro.reader(io.BytesIO(data))
        assert reader.metadata["content"] == "deletes"
        for record, file in zip(reader, files, strict=True):
            theirs = record["data_file"]
            assert (theirs["content"], theirs["record_count"], theirs["file_size_in_bytes"]) == (1, file.record_count, file.size)
            assert theirs["partition"]["price"] is not None
            lower = {bound["key"]: bound["value"] for bound in theirs["lower_bounds"]}
            assert lower[2147483546] == DATA.encode()
            if version == 3:
                assert (theirs["content_offset"], theirs["content_size_in_bytes"]) == (4, puffin.length)
                assert theirs["first_row_id"] is None
            else:
                assert lower[2147483545] == (7 if file is two else 5).to_bytes(8, "little")


@pytest.mark.parametrize("status", [0, ADDED])
def test_a_value_that_looks_like_a_file_s_path_is_not_mistaken_for_one(status):
    """A text that contains another file's path with the bytes around it, its numbers before and its format after it."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    header = manifest_header(spec, {**iceberg_schema(SCHEMA), "schema-id": 0})
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"file:///t/{path}")
    text = encode_entry(Entry(0, 9, 5, 5, encoder.encode("b", {"col-3": None, "col-4": None}, 9, {"numRecords": 1}))).decode()
    files = [
        encoder.encode(name, {"col-3": None, "col-4": None}, 9, {"numRecords": 1, "minValues": {"col-2": least}})
        for name, least in (("a", text), ("b", "x"), ("c", text))
    ]
    originals = [Entry(status, 9, None if status else 5, None if status else 5, file) for file in files]
    data = manifest_bytes(blocks_of(pieces_of(originals)), header)
    manifest = ManifestFile("m", len(data), 0, 5, 5, 9 if status else 10, *((3, 0) if status else (0, 3)), 0, 3, 0, 0, ())
    for removed in (frozenset({"file:///t/b"}), frozenset({"file:///t/a"}), frozenset({"file:///t/b", "file:///t/c"})):
        pieces, gone = carried(data, manifest, spec, removed)
        assert {entry.file.url for entry in gone} == removed
        again = read_manifest(manifest_bytes(blocks_of(pieces), header), manifest, spec)
        assert [(entry.status, entry.sequence_number, entry.file) for entry in again] == [
            (0, 5, file) for file in files if file.url not in removed
        ]
