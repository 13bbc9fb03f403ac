"""Builds snapshots from the actions of the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.schema.types import StructType
from tahoe.testing.iceberg_verifier import live_entries, newest_document, verify
from tahoe.testing.uniform_log import SCHEMA, DeltaLog, column


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


def test_new_statistics_replace_a_file_s_entry(log):
    log.change(["a1", "a2"])
    log.convert()
    log.commit(log.add("a1", data_change=False, rows=77))
    log.convert()
    verify(log.store)
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert sorted(entry["data_file"]["record_count"] for entry in entries.values()) == [10, 77]


def test_a_restored_file_is_live_once(log):
    log.change(["a1", "a2"])
    log.convert()
    log.change([], ["a1"])
    log.convert()
    log.change(["a1"])
    log.convert()
    assert verify(log.store) == 3


def test_removing_a_missing_file_is_not_an_error(log):
    log.change(["a1"])
    log.convert()
    log.change([], ["never"])
    log.convert()
    assert verify(log.store) == 2


def test_odd_paths_are_shown_decoded_and_removed_in_any_spelling(log):
    log.change(["a%20b%2520c/f.parquet", f"{log.store.url.replace(' ', '%20')}/abs.parquet"])
    log.convert()
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert set(entries) == {f"{log.store.url}/a b%20c/f.parquet", f"{log.store.url}/abs.parquet"}
    log.change([], ["abs.parquet"])
    log.convert()
    assert set(live_entries(log.store, newest_document(log.store)["snapshots"][-1])) == {f"{log.store.url}/a b%20c/f.parquet"}


def test_another_partitioning_is_rebuilt_under_a_new_spec(log):
    log.change(["a1"])
    log.convert()
    log.commit(replace(log.metadata, partition_columns=()), log.remove("a1"), log.add("b1"))
    log.convert()
    verify(log.store)
    document = newest_document(log.store)
    assert (document["default-spec-id"], document["partition-specs"][1]["fields"]) == (1, [])


def test_a_new_column_makes_a_new_schema(log):
    log.change(["a1"])
    log.convert()
    wider = StructType((*SCHEMA, column("more", "double", 3)))
    log.commit(replace(log.metadata, schema_string=wider.to_json()))
    log.change(["a2"])
    log.convert()
    verify(log.store)
    document = newest_document(log.store)
    assert [snapshot["schema-id"] for snapshot in document["snapshots"]] == [0, 1]


def test_a_file_without_its_number_of_records_stops_the_conversion_and_is_named(log):
    log.commit(replace(log.add("b1"), stats='{"minValues":{}}'))
    with pytest.raises(CorruptTable, match="b1 has no number of records"):
        log.convert()
    assert newest_document(log.store) is None
