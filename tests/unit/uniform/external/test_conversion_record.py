"""The record of the last conversion, on the Delta side."""

from __future__ import annotations

import uuid

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.store.object_store import open_store
from tahoe.uniform.external.conversion_record import NAME, ConversionRecord, read_record, write_record


def test_a_record_is_read_back_as_it_was_written() -> None:
    store = open_store(f"memory://{uuid.uuid4()}/t")
    assert read_record(store) == ConversionRecord()
    record = ConversionRecord(7, {"prod:a.b": "file:///t/metadata/v7.metadata.json"}, frozenset({"file:///t/metadata/x"}))
    write_record(store, record)
    assert read_record(store) == record
    assert "/_" in NAME, "neither Iceberg's removal of orphans nor its purge looks there"


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"number": "x", "catalogs": {}, "discarded": []}'])
def test_the_error_for_a_corrupt_record_has_a_remedy(data: bytes) -> None:
    store = open_store(f"memory://{uuid.uuid4()}/t")
    store.put(NAME, data)
    with pytest.raises(CorruptTable, match=r"state\.json.*Delete it.*sync") as raised:
        read_record(store)
    assert raised.value.code == "TAHOE_CORRUPT_ICEBERG_METADATA"
