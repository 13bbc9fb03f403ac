"""Manifests carried over in pieces have the same entries as decoded ones."""

from __future__ import annotations

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tahoe.uniform.formats.avro import pack_block
from tahoe.uniform.formats.data_files import FileEncoder, spec_of
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tahoe.uniform.formats.manifest_pieces import blocks_of, carried, pieces_of
from tahoe.uniform.formats.manifests import (
    ADDED,
    Entry,
    ManifestFile,
    encode_entry,
    manifest_bytes,
    manifest_header,
    read_manifest,
)
from tests.sampling import examples
from tests.unit.uniform.sample_manifests import PARTITIONED_BY, SCHEMA, entries

DATA = "file:///data/a table/x y/ü.parquet"


@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.integers(0, 230),
    st.sets(st.integers(0, 240), max_size=3),
    st.integers(5, 2**63 - 1) | st.integers(5, 200),
    st.integers(1, 2**40) | st.integers(1, 200),
    st.booleans(),
    st.integers(1, 100),
)
@example(16, set(), 132, 132, False, 256)  # the numbers written out look like the start of another entry
def test_a_manifest_carried_over_in_pieces_has_the_same_entries(
    count, removed, snapshot_id, sequence_number, brings_numbers, block_entries
):
    """Runs twice, because entries carried over once are copied unchanged the second time."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
    current = [entry._replace(snapshot_id=snapshot_id if entry.status != 0 else 4) for entry in entries(count)]
    # In format 3, added entries have the sequence number under which Delta added the file.
    if brings_numbers:
        current = [entry._replace(sequence_number=1 + i % 2) if i % 2 else entry for i, entry in enumerate(current)]
    # Some blocks have entries of deleted files, some have none.
    current = [
        entry._replace(status=0, snapshot_id=4) if entry.status == 2 and i > 30 else entry for i, entry in enumerate(current)
    ]
    urls = [entry.file.url for entry in current]
    for _ in range(2):
        runs = [current[start : start + block_entries] for start in range(0, len(current), block_entries)]
        blocks = [(len(part), pack_block([*map(encode_entry, part)])) for part in runs]
        data = manifest_bytes(blocks, manifest_header(spec, schema))
        statuses = [sum(entry.status == status for entry in current) for status in (1, 0, 2)]
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
        current, snapshot_id, removed = stay, snapshot_id ^ 1, {i * 7 % 240 for i in removed}


def test_a_value_that_looks_like_an_entry_is_not_mistaken_for_one():
    """The bytes of the long 514 begin like an entry that snapshot 0 added."""
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    schema = {**iceberg_schema(SCHEMA), "schema-id": 0}
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"file:///t/{path}")
    files = [
        encoder.encode(name, {"col-3": None, "col-4": None}, 9, {"numRecords": 1, "minValues": {"col-1": least}})
        for name, least in (("a", 514), ("b", 1), ("c", 2))
    ]
    originals = [Entry(ADDED, 0, None, None, file) for file in files]
    data = manifest_bytes(blocks_of(pieces_of(originals)), manifest_header(spec, schema))
    manifest = ManifestFile("m", len(data), 0, 5, 5, 0, 3, 0, 0, 3, 0, 0, ())
    for removed in (frozenset[str](), frozenset({"file:///t/b"})):
        pieces, gone = carried(data, manifest, spec, removed)
        assert {entry.file.url for entry in gone} == removed
        again = read_manifest(manifest_bytes(blocks_of(pieces), manifest_header(spec, schema)), manifest, spec)
        assert [(entry.status, entry.sequence_number, entry.file) for entry in again] == [
            (0, 5, file) for file in files if file.url not in removed
        ]
