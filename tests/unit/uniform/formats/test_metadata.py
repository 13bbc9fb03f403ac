"""The metadata document as values: ids, schemas, specs, expiry and the metadata log."""

from __future__ import annotations

import json
from dataclasses import replace

from pyiceberg.table.metadata import TableMetadataV2

from tahoe.schema.types import DecimalType, PrimitiveType
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.metadata import AddedSnapshot, Totals
from tahoe.uniform.formats.metadata_files import metadata_bytes
from tests.unit.uniform.sample_documents import DAY, ID, TABLE_ID, advanced, column, described, history, metadata


def test_pyiceberg_accepts_the_document():
    document = json.loads(metadata_bytes(history(3, metadata(by=("day",)))))
    theirs = TableMetadataV2.model_validate(document)
    assert [field.name for field in theirs.schema().fields] == ["id", "day"]
    assert theirs.spec().fields[0].field_id == 1000
    assert theirs.current_snapshot().summary["delta-version"] == "2"
    assert theirs.last_sequence_number == 3
    assert theirs.snapshots[1].parent_snapshot_id == theirs.snapshots[0].snapshot_id


def test_a_table_id_that_is_not_a_uuid_is_hashed():
    odd = replace(metadata(), id="testId")
    theirs = TableMetadataV2.model_validate(json.loads(metadata_bytes(advanced(None, odd, 0))))
    assert theirs.table_uuid == TableMetadataV2.model_validate(json.loads(metadata_bytes(advanced(None, odd, 0)))).table_uuid
    assert str(TableMetadataV2.model_validate(json.loads(metadata_bytes(history(1)))).table_uuid) == TABLE_ID


def test_the_same_conversion_gives_the_same_bytes():
    assert metadata_bytes(history(4)) == metadata_bytes(history(4))


def test_snapshot_ids_derive_from_the_table_and_the_version():
    first = described(None, metadata(), 5)
    assert documents.next_snapshot_id(first, 5) == documents.next_snapshot_id(first, 5)
    assert documents.next_snapshot_id(first, 5) != documents.next_snapshot_id(first, 6)
    other = described(None, replace(metadata(), id="another"), 5)
    assert documents.next_snapshot_id(first, 5) != documents.next_snapshot_id(other, 5)
    assert 0 < documents.next_snapshot_id(first, 5) < 2**63


def test_a_version_converted_twice_gets_a_second_id():
    document = history(2)
    assert documents.next_snapshot_id(document, 1) not in {s["snapshot-id"] for s in document["snapshots"]}


def test_properties_record_the_conversion_and_include_the_user_s():
    asked = {
        "delta.universalformat.config.iceberg.owner": "me",
        "delta.universalFormat.config.iceberg.delta-version": "99",
        "delta.logRetentionDuration": "interval 2 days",
    }
    properties = described(history(3), metadata(**asked), 7)["properties"]
    assert properties["delta-version"] == properties["converted_delta_version"] == "7"
    assert properties["delta-timestamp"] == properties["converted_delta_timestamp"] == "7000"
    assert properties["base-delta-version"] == "2"
    assert properties["owner"] == "me"
    assert properties["gc.enabled"] == "false"
    assert properties["history.expire.max-snapshot-age-ms"] == str(2 * 86_400_000)


def test_a_changed_schema_is_added_and_a_former_schema_is_reused():
    wider = metadata(ID, DAY, column("c", DecimalType(9, 2), 3))
    document = advanced(advanced(advanced(None, metadata(), 0), wider, 1), metadata(), 2)
    assert [schema["schema-id"] for schema in document["schemas"]] == [0, 1]
    assert document["current-schema-id"] == 0
    assert [snapshot["schema-id"] for snapshot in document["snapshots"]] == [0, 1, 0]
    assert document["last-column-id"] == 3, "ids are never reused"


def test_the_highest_column_id_counts_dropped_columns():
    document = described(None, metadata(**{"delta.columnMapping.maxColumnId": "41"}), 0)
    assert document["last-column-id"] == 41


def test_a_renamed_partition_column_keeps_its_spec_and_field_id():
    document = advanced(None, metadata(by=("day",)), 0)
    renamed = metadata(ID, replace(DAY, name="date"), by=("date",))
    specs = advanced(document, renamed, 1)["partition-specs"]
    assert specs == [{"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "date"}]}]


def test_another_partitioning_is_another_spec_whose_new_fields_get_new_ids():
    document = advanced(advanced(None, metadata(by=("day",)), 0), metadata(by=("id", "day")), 1)
    assert [[f["field-id"] for f in spec["fields"]] for spec in document["partition-specs"]] == [[1000], [1001, 1000]]
    assert (document["default-spec-id"], document["last-partition-id"]) == (1, 1001)


def test_totals_continue_from_the_previous_snapshot():
    document = history(2)
    gone = AddedSnapshot(
        snapshot_id=9,
        version=2,
        timestamp_ms=0,
        operation="delete",
        manifest_list="file:///t/metadata/x",
        totals=Totals(deleted_files=1, deleted_rows=5, deleted_bytes=50),
    )
    deleted = documents.with_snapshot(document, gone)
    summary = deleted["snapshots"][-1]["summary"]
    assert (summary["total-data-files"], summary["total-records"], summary["total-files-size"]) == ("3", "15", "150")
    assert (summary["deleted-data-files"], summary["deleted-records"]) == ("1", "5")
    assert "added-data-files" not in summary
    assert deleted["snapshots"][-1]["timestamp-ms"] == 1000, "a snapshot is never older than its parent"


def test_old_snapshots_expire_with_their_schemas_but_the_current_one_stays():
    wider = metadata(ID, DAY, column("c", PrimitiveType("binary"), 3))
    document = advanced(advanced(advanced(None, metadata(), 0), wider, 10), wider, 20)
    assert documents.expired(document, retention_ms=10_000) == (document, []), "the first was superseded more recently"
    retained, old = documents.expired(document, retention_ms=9_999)
    assert [s["timestamp-ms"] for s in old] == [0]
    assert [s["timestamp-ms"] for s in retained["snapshots"]] == [10_000, 20_000]
    assert [s["schema-id"] for s in retained["schemas"]] == [1]
    assert len(retained["snapshot-log"]) == 2
    late = {**document, "last-updated-ms": 10**12}
    retained, old = documents.expired(late, retention_ms=0)
    assert (len(old), len(retained["snapshots"])) == (2, 1)
    assert documents.expired(retained, 0) == (retained, [])


def test_the_number_of_snapshots_is_bounded(monkeypatch):
    monkeypatch.setattr(documents, "MAX_SNAPSHOTS", 3)
    document = history(8)
    retained, old = documents.expired(document, 10**12)
    assert old == document["snapshots"][:5]
    assert retained["snapshots"] == document["snapshots"][5:]


def test_a_snapshot_that_is_current_again_expires_after_those_that_it_superseded():
    document = history(4)
    first, second, third, fourth = (snapshot["snapshot-id"] for snapshot in document["snapshots"])
    document = documents.with_earlier_snapshot(document, document["snapshots"][1], 10_000)
    assert document["current-snapshot-id"] == document["refs"]["main"]["snapshot-id"] == second
    assert document["last-sequence-number"] == 4, "numbers are not assigned twice"
    late = {**document, "last-updated-ms": 20_000}
    retained, old = documents.expired(late, retention_ms=0)
    assert [snapshot["snapshot-id"] for snapshot in old] == [first, third, fourth]
    assert [entry["snapshot-id"] for entry in retained["snapshot-log"]] == [second]
    document = advanced(document, metadata(), 12)
    assert document["snapshots"][-1]["parent-snapshot-id"] == second
    _, old = documents.expired(document, retention_ms=8_000)
    assert [snapshot["snapshot-id"] for snapshot in old] == [first, third], "the fourth was current until 10,000"
    assert not documents.is_linear(document["snapshots"])
    shown = [snapshot["snapshot-id"] for snapshot in documents.shown_since(document, 11_000)]
    assert shown == [second, document["current-snapshot-id"]]


def test_a_snapshot_without_row_ids_is_not_current_in_format_version_3():
    document = history(2)
    number = document["snapshots"][0]["snapshot-id"]
    assert documents.earlier_snapshot(document, number) == document["snapshots"][0]
    assert documents.earlier_snapshot({**document, "format-version": 3}, number) is None
    assert documents.earlier_snapshot(document, 1) is None, "an expired snapshot"


def test_the_metadata_log_is_bounded_and_names_deletable_files():
    document, dropped = None, []
    for version in range(103):
        base = document
        document, gone = documents.logged(advanced(base, metadata(), version), base, f"v{version - 1}" if base else None)
        dropped += gone
    assert len(document["metadata-log"]) == 100
    assert document["metadata-log"][-1] == {"timestamp-ms": 101_000, "metadata-file": "v101"}
    assert dropped == ["v0", "v1"]
