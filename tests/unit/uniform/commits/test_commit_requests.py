"""Requests of clients as values: every update of the specification is translated or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.commits.commit_requests import AddedSnapshot, NewTable, check_partitioning, new_table, table_change
from tahoe.uniform.formats.client_snapshot import ClientSnapshot

SNAPSHOT = {
    "snapshot-id": 7,
    "parent-snapshot-id": 6,
    "sequence-number": 2,
    "timestamp-ms": 5,
    "manifest-list": "file:///t/metadata/snap-7.avro",
    "summary": {"operation": "overwrite", "own": "kept"},
}
MAIN = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}


def changed(*updates: dict[str, Any]) -> Any:
    return table_change({"requirements": [], "updates": list(updates)}, "a client")


def test_a_snapshot_is_read_with_its_client() -> None:
    change = changed({"action": "add-snapshot", "snapshot": SNAPSHOT}, MAIN)
    expected = ClientSnapshot(7, "overwrite", {"own": "kept"}, "a client")
    assert change.snapshots == (AddedSnapshot(expected, 6, "file:///t/metadata/snap-7.avro"),)
    assert change.main == 7


def test_updates_of_the_definition_are_read() -> None:
    change = changed(
        {"action": "assign-uuid", "uuid": "A"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {"type": "struct", "fields": []}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": "file:///t"},
        {"action": "set-properties", "updates": {"a": "1"}},
        {"action": "set-properties", "updates": {"b": "2"}},
        {"action": "remove-properties", "removals": ["c"]},
    )
    assert (change.uuid, change.format_version, change.schema_id, change.location) == ("a", 2, -1, "file:///t")
    assert (change.schemas, change.set_properties) == (({"type": "struct", "fields": []},), {"a": "1", "b": "2"})
    assert change.removed_properties == ("c",)


@pytest.mark.parametrize(
    ("update", "named"),
    [
        ({**MAIN, "ref-name": "audit"}, "the branch 'audit'"),
        ({**MAIN, "type": "tag"}, "the tag 'main'"),
        ({**MAIN, "max-ref-age-ms": 5}, "'max-ref-age-ms'"),
        ({"action": "remove-snapshot-ref", "ref-name": "audit"}, "the branch or tag 'audit'"),
        ({"action": "remove-snapshots", "snapshot-ids": [1]}, "'remove-snapshots'"),
        ({"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [{}]}}, "a sort order"),
        ({"action": "set-default-sort-order", "sort-order-id": 3}, "the sort order 3"),
        ({"action": "add-encryption-key", "encryption-key": {}}, "'add-encryption-key'"),
        ({"action": "add-view-version"}, "'add-view-version'"),
        ({"action": "set-statistics", "statistics": {}}, "'set-statistics', since the Iceberg side follows"),
        ({"action": "add-snapshot", "snapshot": {**SNAPSHOT, "key-id": "k"}}, "encrypted"),
    ],
)
def test_an_update_without_a_meaning_in_delta_is_named(update: dict[str, Any], named: str) -> None:
    with pytest.raises(Unsupported, match=named):
        changed(update)


def test_only_the_partitioning_of_the_table_is_accepted() -> None:
    part = {"name": "part", "source-id": 2, "transform": "identity"}
    document = {"default-spec-id": 3, "partition-specs": [{"spec-id": 3, "fields": [part]}]}
    add, default = {"action": "add-spec", "spec": {"fields": [part]}}, {"action": "set-default-spec", "spec-id": -1}
    for updates in ([add], [add, default], [{**default, "spec-id": 3}], []):
        check_partitioning(document, changed(*updates))
    for fields in ([], [{**part, "name": "other"}], [{**part, "source-id": 1}], [part, {**part, "source-id": 1}]):
        with pytest.raises(Unsupported, match="add-spec"):
            check_partitioning(document, changed({"action": "add-spec", "spec": {"fields": fields}}))
    for other in (default, {**default, "spec-id": 0}):
        with pytest.raises(Unsupported, match="set-default-spec"):
            check_partitioning(document, changed(other))


@pytest.mark.parametrize(
    ("snapshot", "named"),
    [
        ({"snapshot-id": -1}, "is not above 0"),
        ({"snapshot-id": "7"}, "snapshot.snapshot-id' of the request must be a whole number"),
        ({"manifest-list": None}, "manifest-list' is missing"),
        ({"summary": {"operation": "merge"}}, "operation 'merge'"),
        ({"summary": {"operation": "append", "n": 1}}, "must be a text"),
    ],
)
def test_a_malformed_snapshot_is_refused(snapshot: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        changed({"action": "add-snapshot", "snapshot": {**SNAPSHOT, **snapshot}})


SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def test_a_new_table_is_read() -> None:
    spec = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}]}
    body = {"name": "t", "schema": SCHEMA, "partition-spec": spec, "properties": {"a": "b"}, "write-order": {"fields": []}}
    assert new_table(body) == NewTable("t", SCHEMA, ((1, "id"),), properties={"a": "b"})
    assert new_table({"name": "t", "schema": SCHEMA, "stage-create": True, "location": "x"}) == NewTable(
        "t", SCHEMA, location="x", is_staged=True
    )


def test_transforms_and_sort_orders_of_a_new_table_are_refused_by_name() -> None:
    spec = {"fields": [{"source-id": 1, "name": "id_bucket", "transform": "bucket[16]"}]}
    with pytest.raises(Unsupported, match=r"'bucket\[16\]' of 'id_bucket'"):
        new_table({"name": "t", "schema": SCHEMA, "partition-spec": spec})
    with pytest.raises(Unsupported, match="a sort order"):
        new_table({"name": "t", "schema": SCHEMA, "write-order": {"fields": [{"source-id": 1}]}})
