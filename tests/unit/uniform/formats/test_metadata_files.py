"""The fingerprint of metadata files, which detects other writers, and the files' names."""

from __future__ import annotations

import json

import pytest

from tahoe.base.exceptions import CorruptTable, ForeignWriter
from tahoe.uniform.formats.metadata_files import metadata_bytes, metadata_name, metadata_number, read_metadata
from tests.unit.uniform.sample_documents import history


def test_tahoe_s_own_metadata_passes_the_fingerprint():
    document = history(2)
    opened = read_metadata(metadata_bytes(document), "v1")
    assert metadata_bytes(opened) == metadata_bytes(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["properties"].pop("tahoe-fingerprint"),
        lambda d: d["properties"].update({"delta-version": "9"}),
        lambda d: d["snapshots"].pop(),
        lambda d: d.update({"current-snapshot-id": 1}),
    ],
)
def test_metadata_written_or_changed_by_another_writer_is_detected(change):
    document = json.loads(metadata_bytes(history(2)))
    change(document)
    with pytest.raises(ForeignWriter, match=r"v7\.metadata\.json.*rebuild=True"):
        read_metadata(json.dumps(document).encode(), "file:///t/metadata/v7.metadata.json")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"properties": 5}', b"\xff"])
def test_invalid_metadata_is_refused(data):
    with pytest.raises((ForeignWriter, CorruptTable), match=r"v7"):
        read_metadata(data, "v7")


@pytest.mark.parametrize(
    ("location", "number"),
    [
        ("file:///t/metadata/v7.metadata.json", 7),
        ("v0.metadata.json", 0),
        ("file:///t/metadata/00007-abc.metadata.json", None),
        ("v7.metadata.json.crc", None),
        ("vv7.metadata.json", None),
    ],
)
def test_metadata_files_are_named_by_their_number(location, number):
    assert metadata_number(location) == number
    assert metadata_number(metadata_name(41)) == 41
