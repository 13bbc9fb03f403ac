"""Delete files and their entries, byte by byte, against PyIceberg's readers, fastavro and our own reading of Delta's vectors."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO, _read_deletes
from pyiceberg.manifest import DataFile as TheirDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from tahoe.exceptions import CorruptTable
from tahoe.protocol.dv import descriptor_in_file, inline_descriptor, pack, vector_data
from tahoe.uniform.formats import position_deletes
from tahoe.uniform.formats.avro import decode_value, pack_block, read_container
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
    read_manifest,
)
from tahoe.uniform.formats.position_deletes import groups, position_delete_bytes, position_delete_entry, positions_in
from tahoe.uniform.formats.puffin import puffin_bytes, puffin_entry
from tests.unit.uniform.test_avro import PARTITIONED_BY, SCHEMA, encoded, entries

DEAD = st.sets(st.integers(0, 70_000) | st.integers(0, 2**40), min_size=1, max_size=30).map(BitMap64)
DATA = "file:///data/a table/x y/ü.parquet"


@given(st.dictionaries(st.text(min_size=1, max_size=8), DEAD, min_size=1, max_size=6))
def test_a_position_delete_file_is_sorted_and_read_back(dead):
    (group,) = groups(dead)
    data = position_delete_bytes(group)
    assert positions_in(data, "f") == dead
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    keys = [(row["file_path"].encode(), row["pos"]) for row in rows]
    assert keys == sorted(keys)
    assert position_delete_bytes(group) == data, "the same rows give the same bytes"


def test_pyiceberg_reads_a_position_delete_file(tmp_path: Path):
    dead = {"file:///b": BitMap64([3, 1]), "file:///a": BitMap64([2**33, 0])}
    (group,) = groups(dead)
    path = tmp_path / "deletes.parquet"
    path.write_bytes(position_delete_bytes(group))
    theirs = TheirDataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=f"file://{path}", file_format=FileFormat.PARQUET
    )
    found = _read_deletes(PyArrowFileIO(), theirs)
    assert {name: positions.to_pylist() for name, positions in found.items()} == {"file:///a": [0, 2**33], "file:///b": [1, 3]}


def test_a_group_is_cut_at_rows_and_at_files(monkeypatch):
    monkeypatch.setattr(position_deletes, "MOST_ROWS", 10)
    monkeypatch.setattr(position_deletes, "MOST_FILES", 3)
    dead = {f"f{i}": BitMap64(range(size)) for i, size in enumerate([4, 4, 4, 25, 1, 1, 1, 1])}
    assert [list(group) for group in groups(dead)] == [["f0", "f1"], ["f2"], ["f3"], ["f4", "f5", "f6"], ["f7"]]


def test_a_damaged_position_delete_file_is_named():
    with pytest.raises(CorruptTable, match=r"d\.parquet"):
        positions_in(b"PAR1 no", "d.parquet")


@given(DEAD.map(lambda dead: BitMap64([position % 2**31 for position in dead])))
def test_pyiceberg_reads_a_puffin_file(dead):
    """PyIceberg 0.12 reads no vector that has positions beyond 2^32 and none below."""
    data = vector_data(inline_descriptor(dead), lambda name: b"", "file:///t")
    puffin = puffin_bytes(data, DATA, len(dead))
    (found,) = deletion_vectors_from_puffin_file(PuffinFile(puffin.data))
    assert found.referenced_data_file == DATA
    assert found.to_vector().to_pylist() == sorted(dead)


def test_the_bytes_of_a_vector_are_copied_from_delta_s_file():
    content, places = pack([BitMap64([1, 2]), BitMap64(range(70_000))])
    for place, count in zip(places, (2, 70_000), strict=True):
        descriptor = descriptor_in_file("3f0a2e7c-0000-4000-8000-000000000001", place)
        puffin = puffin_bytes(vector_data(descriptor, lambda name: content, "file:///t"), DATA, count)
        assert puffin.data[4 : 4 + puffin.length] == content[place.offset : place.offset + place.size + 8]


def test_entries_of_delete_manifests_are_read_by_fastavro_and_by_us():
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    data_file = entries(1)[0].file
    target = Target(DATA, (18_000, -150), b"\2" + spec.codecs[0].encode(18_000) + b"\2" + spec.codecs[1].encode(-150))
    assert len(data_file.partition) == 2
    one = position_delete_entry("file:///d1", 77, target, {DATA: BitMap64([5, 9])})
    two = position_delete_entry("file:///d2", 78, target, {DATA: BitMap64([7]), f"{DATA}2": BitMap64([8])})
    puffin = puffin_bytes(b"abcdefgh", DATA, 3)
    three = puffin_entry("file:///d3", puffin, target, 3)
    for version, files in ((2, [one, two]), (3, [three])):
        found = [Entry(ADDED, 5, None, None, file) for file in files]
        schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
        data = manifest_bytes(blocks_of(pieces_of(found)), manifest_header(spec, schema, format_version=version, content=DELETES))
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


def test_a_general_reader_reads_what_fastavro_reads():
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


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.integers(0, 230),
    st.sets(st.integers(0, 240), max_size=3),
    st.integers(5, 2**63 - 1) | st.integers(5, 200),
    st.integers(1, 2**40) | st.integers(1, 200),
    st.booleans(),
    st.integers(1, 100),
)
@example(16, set(), 132, 132, False, 256)  # the numbers written out look like the beginning of another entry
def test_a_manifest_carried_over_in_pieces_holds_what_it_holds_decoded(
    count, removed, snapshot_id, sequence_number, brings_numbers, block_entries
):
    """Twice, as what was carried over once is copied as it is the second time."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
    found = [entry._replace(snapshot_id=snapshot_id if entry.status != 0 else 4) for entry in entries(count)]
    # Format 3 gives what it adds the number under which Delta added it.
    if brings_numbers:
        found = [entry._replace(sequence_number=1 + i % 2) if i % 2 else entry for i, entry in enumerate(found)]
    # Some blocks with entries of files that are gone, some without.
    found = [entry._replace(status=0, snapshot_id=4) if entry.status == 2 and i > 30 else entry for i, entry in enumerate(found)]
    urls = [entry.file.url for entry in found]
    for _ in range(2):
        runs = [found[start : start + block_entries] for start in range(0, len(found), block_entries)]
        blocks = [(len(part), pack_block([*map(encode_entry, part)])) for part in runs]
        data = manifest_bytes(blocks, manifest_header(spec, schema))
        statuses = [sum(entry.status == status for entry in found) for status in (1, 0, 2)]
        manifest = ManifestFile("m", len(data), 0, sequence_number, 1, snapshot_id, *statuses, 0, 0, 0, ())
        gone_urls = frozenset(urls[i] for i in removed if i < count)
        pieces, gone = carried(data, manifest, spec, gone_urls)
        slow = [entry._replace(status=0) for entry in read_manifest(data, manifest, spec) if entry.status != 2]
        assert gone == [entry for entry in slow if entry.file.url in gone_urls]
        stay = [entry._replace(status=0) for entry in slow if entry.file.url not in gone_urls]
        carried_data = manifest_bytes(blocks_of(pieces), manifest_header(spec, schema))
        again = read_manifest(carried_data, ManifestFile("m", 0, 0, 1, 1, 1, 0, len(stay), 0, 0, 0, 0, ()), spec)
        assert {entry.file.url: entry for entry in again} == {entry.file.url: entry for entry in stay}
        assert len(again) == len(stay)
        assert sum(piece.entries for piece in pieces) == len(stay)
        found, snapshot_id, removed = stay, snapshot_id ^ 1, {i * 7 % 240 for i in removed}


@pytest.mark.parametrize("status", [0, ADDED])
def test_a_value_that_looks_like_a_file_s_path_is_not_taken_for_one(status):
    """A text with all that stands around the path of another file, its numbers before and its format after it."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    header = manifest_header(spec, {**iceberg_schema(SCHEMA), "schema-id": 0})
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"file:///t/{path}")
    text = encode_entry(Entry(0, 9, 5, 5, encoder.encode("b", {"col-3": None, "col-4": None}, 9, {"numRecords": 1}))).decode()
    files = [
        encoder.encode(name, {"col-3": None, "col-4": None}, 9, {"numRecords": 1, "minValues": {"col-2": least}})
        for name, least in (("a", text), ("b", "x"), ("c", text))
    ]
    found = [Entry(status, 9, None if status else 5, None if status else 5, file) for file in files]
    data = manifest_bytes(blocks_of(pieces_of(found)), header)
    manifest = ManifestFile("m", len(data), 0, 5, 5, 9 if status else 10, *((3, 0) if status else (0, 3)), 0, 3, 0, 0, ())
    for removed in (frozenset({"file:///t/b"}), frozenset({"file:///t/a"}), frozenset({"file:///t/b", "file:///t/c"})):
        pieces, gone = carried(data, manifest, spec, removed)
        assert {entry.file.url for entry in gone} == removed
        again = read_manifest(manifest_bytes(blocks_of(pieces), header), manifest, spec)
        assert [(entry.status, entry.sequence_number, entry.file) for entry in again] == [
            (0, 5, file) for file in files if file.url not in removed
        ]


def test_a_value_that_looks_like_the_beginning_of_an_entry_is_not_taken_for_one():
    """The bytes of the long 514 begin as an entry does that snapshot 0 added."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"file:///t/{path}")
    files = [
        encoder.encode(name, {"col-3": None, "col-4": None}, 9, {"numRecords": 1, "minValues": {"col-1": least}})
        for name, least in (("a", 514), ("b", 1), ("c", 2))
    ]
    found = [Entry(ADDED, 0, None, None, file) for file in files]
    data = manifest_bytes(blocks_of(pieces_of(found)), manifest_header(spec, schema))
    manifest = ManifestFile("m", len(data), 0, 5, 5, 0, 3, 0, 0, 3, 0, 0, ())
    for removed in (frozenset[str](), frozenset({"file:///t/b"})):
        pieces, gone = carried(data, manifest, spec, removed)
        assert {entry.file.url for entry in gone} == removed
        again = read_manifest(manifest_bytes(blocks_of(pieces), manifest_header(spec, schema)), manifest, spec)
        assert [(entry.status, entry.sequence_number, entry.file) for entry in again] == [
            (0, 5, file) for file in files if file.url not in removed
        ]
