"""Iceberg's table metadata, format versions 2 and 3, as values: each function takes a metadata document and returns the next
(format/spec.md, "Table Metadata").

Nothing here depends on the time of the conversion: timestamps are those of the Delta commits, ids derive from the table's id and the
version. So repeating a conversion, even in another process, gives the same bytes.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.base.version import __version__
from tahoe.protocol.actions import Metadata
from tahoe.protocol.iceberg_compat import format_version
from tahoe.protocol.identifier_fields import identifier_fields
from tahoe.protocol.properties import TableProperties
from tahoe.protocol.row_tracking import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    ROW_COMMIT_VERSION_FIELD_ID,
    ROW_ID_FIELD_ID,
)
from tahoe.uniform.formats.client_snapshot import ClientSnapshot
from tahoe.uniform.formats.iceberg_schema import (
    FIRST_PARTITION_ID,
    iceberg_schema,
    last_column_id,
    name_mapping,
    partition_fields,
)
from tahoe.uniform.formats.manifest_schema import Spec

MAX_METADATA_LOG = 100
"""Former metadata files listed in the newest one; older ones are deleted."""

MAX_SNAPSHOTS = 1000
"""The maximum number of snapshots, whatever their age: each lengthens every metadata file."""

CONFIG_PREFIX = "delta.universalformat.config.iceberg."
_DELTA_VERSION = "delta-version"
_DELTA_TIMESTAMP = "delta-timestamp"
_DELETES_SIZE = "total-delete-files-size"


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts in a snapshot's summary: its changes of data files or of delete files."""

    added_files: int = 0
    added_rows: int = 0
    added_bytes: int = 0
    deleted_files: int = 0
    deleted_rows: int = 0
    deleted_bytes: int = 0


def described(
    base: JsonMapping | None,
    metadata: Metadata,
    *,
    location: str,
    version: int,
    timestamp_ms: int,
) -> JsonObject:
    """Return the document for a Delta version: its schema, partitioning and properties, with the snapshots of `base`.

    Args:
        base: the document before, None for the first.
        location: the table's URL.
    """
    schema = metadata.schema
    document = dict(base) if base is not None else _empty(metadata.id, location)
    document["format-version"] = max(document["format-version"], format_version(TableProperties(metadata.configuration)))
    if document["format-version"] >= 3:
        document.setdefault("next-row-id", 0)
    identifiers = identifier_fields(schema, metadata.configuration, location)
    document["schemas"], document["current-schema-id"] = _with_schema(
        document["schemas"],
        {**iceberg_schema(schema, document["format-version"]), **({"identifier-field-ids": identifiers} if identifiers else {})},
    )
    maximum = TableProperties(metadata.configuration).max_column_id
    document["last-column-id"] = max(document["last-column-id"], last_column_id(schema), maximum)
    _set_spec(document, partition_fields(schema, metadata.partition_columns))
    document["last-updated-ms"] = max(document["last-updated-ms"], timestamp_ms)
    properties = table_properties(metadata, version, timestamp_ms)
    if base is not None:
        properties["base-delta-version"] = str(converted_version(base))
    document["properties"] = properties
    return document


def table_properties(metadata: Metadata, version: int, timestamp_ms: int) -> dict[str, str]:
    """Return the conversion state, the table's description, the properties that readers need, and those set by
    ``delta.universalFormat.config.iceberg.*``.
    """
    configured = {
        key[len(CONFIG_PREFIX) :]: value for key, value in metadata.configuration.items() if key.lower().startswith(CONFIG_PREFIX)
    }
    retention = {"history.expire.max-snapshot-age-ms": str(snapshot_retention_ms(metadata.configuration))}
    comment = {} if metadata.description is None else {"comment": metadata.description}
    return {
        **retention,
        **comment,
        **configured,
        _DELTA_VERSION: str(version),
        _DELTA_TIMESTAMP: str(timestamp_ms),
        "converted_delta_version": str(version),
        "converted_delta_timestamp": str(timestamp_ms),
        "schema.name-mapping.default": name_mapping(metadata.schema, _row_id_columns(metadata.configuration)),
        # Data files belong to the Delta table: Iceberg's own expiry and purge must leave them alone.
        "gc.enabled": "false",
    }


def _row_id_columns(configuration: Mapping[str, str]) -> dict[str, int]:
    """Return the columns in which data files may store row ids and row commit versions, with their Iceberg ids."""
    keys = {MATERIALIZED_ROW_ID: ROW_ID_FIELD_ID, MATERIALIZED_ROW_COMMIT_VERSION: ROW_COMMIT_VERSION_FIELD_ID}
    return {configuration[key]: number for key, number in keys.items() if key in configuration}


def snapshot_retention_ms(configuration: Mapping[str, str]) -> int:
    """Return how long an Iceberg snapshot is retained: as long as Delta is certain to keep both the version and its files."""
    properties = TableProperties(configuration)
    return min(properties.log_retention_ms, properties.deleted_file_retention_ms)


def data_totals(snapshot: JsonMapping) -> tuple[int, int]:
    """Return the number of live data files of a snapshot, and their size in bytes."""
    summary: Mapping[str, str] = snapshot["summary"]
    return int(summary["total-data-files"]), int(summary["total-files-size"]) - int(summary.get(_DELETES_SIZE, "0"))


def converted_version(document: JsonMapping) -> int:
    """Return the Delta version from which the document was converted."""
    return int(document["properties"][_DELTA_VERSION])


def snapshot_version(snapshot: JsonMapping) -> int:
    """Return the Delta version that a snapshot shows."""
    return int(snapshot["summary"][_DELTA_VERSION])


def converted_timestamp_ms(document: JsonMapping) -> int:
    """Return the timestamp of that version's commit."""
    return int(document["properties"][_DELTA_TIMESTAMP])


def current_snapshot(document: JsonMapping) -> JsonObject | None:
    """Return the snapshot that readers see; None for a table without."""
    return snapshot_with_id(document, document.get("current-snapshot-id"))


def snapshot_with_id(document: JsonMapping, snapshot_id: int | None) -> JsonObject | None:
    """Return the snapshot with an id; None if the table has none, or has it no more."""
    return next((snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] == snapshot_id), None)


def current_schema(document: JsonMapping) -> JsonObject:
    """Return the current Iceberg schema, with its ``schema-id``."""
    current: JsonObject = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    return current


def spec_from(document: JsonMapping, spec: Spec) -> Spec:
    """Return `spec` with the ids that the document assigns to it and its fields."""
    current = next(s for s in document["partition-specs"] if s["spec-id"] == document["default-spec-id"])
    return Spec(int(current["spec-id"]), tuple(current["fields"]), spec.codecs)


def next_snapshot_id(document: JsonMapping, version: int, client: ClientSnapshot | None = None) -> int:
    """Return the id of a Delta version's snapshot: the client's that committed it, else derived from the table's id and the version, so
    that a retry gives the same id."""
    existing = {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    if client is not None and client.snapshot_id not in existing:
        return client.snapshot_id
    for attempt in range(len(existing) + 1):
        digest = hashlib.sha256(f"{document['table-uuid']}/{version}/{attempt}".encode()).digest()
        number = int.from_bytes(digest[:8], "big") >> 1
        if number and number not in existing:
            return number
    raise AssertionError("more snapshots share one hash than there are snapshots")


def next_sequence_number(document: JsonMapping, version: int) -> int:
    """Return the sequence number of a Delta version's snapshot. In format version 3 it is the version, unless it must be higher than
    the last: so the data sequence numbers of files, which are Delta's row commit versions, share one sequence with those of snapshots."""
    last: int = document["last-sequence-number"]
    if document["format-version"] < 3:
        return last + 1
    return max(last + 1, version) if document["snapshots"] else max(last, version)


@dataclass(frozen=True, slots=True)
class AddedSnapshot:
    """A new snapshot of the table.

    Args:
        version: the Delta version that it shows.
        operation: Iceberg's name of the operation.
        manifest_list: the URL of its manifest list.
        totals, deletes: its changes of data files and of delete files.
        row_id_mark: the row id high-water mark.
        is_rebuilt: whether it names all files in new manifests: its totals are then the added files, whatever the previous snapshot had.
        client: the snapshot as the Iceberg client committed it.
    """

    snapshot_id: int
    version: int
    timestamp_ms: int
    operation: str
    manifest_list: str
    totals: Totals
    deletes: Totals = Totals()
    row_id_mark: int | None = None
    is_rebuilt: bool = False
    client: ClientSnapshot | None = None


def with_snapshot(document: JsonMapping, added: AddedSnapshot) -> JsonObject:
    """Return the document with another snapshot, which becomes the current one."""
    parent = current_snapshot(document)
    at = _not_before_log(document, added.timestamp_ms)
    sequence_number = next_sequence_number(document, added.version)
    snapshot: JsonObject = {
        "snapshot-id": added.snapshot_id,
        "sequence-number": sequence_number,
        "timestamp-ms": at,
        "manifest-list": added.manifest_list,
        "summary": {
            "engine-name": "tahoe",
            "engine-version": __version__,
            **({} if added.client is None else added.client.own_summary),
            "operation": added.operation,
            **_summary(parent, added, document["format-version"]),
            _DELTA_VERSION: str(added.version),
            _DELTA_TIMESTAMP: str(added.timestamp_ms),
        },
        "schema-id": document["current-schema-id"],
    }
    row_ids: dict[str, int] = {}
    if document["format-version"] >= 3:
        first = document["next-row-id"]
        row_ids["next-row-id"] = max(first, -1 if added.row_id_mark is None else added.row_id_mark + 1)
        # Every file has its own first row id; the snapshot advances the table's next row id by this much.
        snapshot |= {"first-row-id": first, "added-rows": row_ids["next-row-id"] - first}
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent["snapshot-id"]
    return {
        **document,
        **row_ids,
        "last-sequence-number": sequence_number,
        "last-updated-ms": max(document["last-updated-ms"], at),
        "snapshots": [*document["snapshots"], snapshot],
        **_as_current(document, added.snapshot_id, at),
    }


def earlier_snapshot(document: JsonMapping, snapshot_id: int) -> JsonMapping | None:
    """Return the snapshot with an id, if it can be current again; None if there is none, or if its rows have no ids, which format version 3
    requires."""
    snapshot = snapshot_with_id(document, snapshot_id)
    if snapshot is None or ("first-row-id" in snapshot) != (document["format-version"] >= 3):
        return None
    return snapshot


def with_earlier_snapshot(document: JsonMapping, snapshot: JsonMapping, timestamp_ms: int) -> JsonObject:
    """Return the document with one of its snapshots as the current one.

    Args:
        timestamp_ms: when it becomes current.
    """
    at = _not_before_log(document, timestamp_ms)
    return {
        **document,
        "last-updated-ms": max(document["last-updated-ms"], at),
        **_as_current(document, snapshot["snapshot-id"], at),
    }


def _not_before_log(document: JsonMapping, timestamp_ms: int) -> int:
    """Return the time of the next entry of the snapshot log, whose times never decrease."""
    last: list[int] = [entry["timestamp-ms"] for entry in document["snapshot-log"][-1:]]
    return max([timestamp_ms, *last])


def _as_current(document: JsonMapping, snapshot_id: int, timestamp_ms: int) -> JsonObject:
    return {
        "current-snapshot-id": snapshot_id,
        "snapshot-log": [*document["snapshot-log"], {"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id}],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
    }


def expired(document: JsonMapping, retention_ms: int) -> tuple[JsonObject, list[JsonObject]]:
    """Return the document without snapshots that were superseded too long ago, and those snapshots, oldest first.

    A snapshot's own age does not count: one that was current for a month is read until the next replaces it, and for some time after.
    Schemas that no retained snapshot uses are removed too.
    """
    superseded = _superseded_ms(document)
    oldest = document["last-updated-ms"] - retention_ms
    too_many = len(document["snapshots"]) - MAX_SNAPSHOTS
    gone = {number for position, (number, at) in enumerate(superseded.items()) if at < oldest or position < too_many}
    if not gone:
        return dict(document), []
    retained = [snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] not in gone]
    schema_ids = {snapshot["schema-id"] for snapshot in retained} | {document["current-schema-id"]}
    log = document["snapshot-log"]
    complete_from = max(position for position, entry in enumerate(log, start=1) if entry["snapshot-id"] in gone)
    without = {
        **document,
        "snapshots": retained,
        # Without its middle, the log would show another snapshot for some times.
        "snapshot-log": log[complete_from:],
        "schemas": [schema for schema in document["schemas"] if schema["schema-id"] in schema_ids],
    }
    return without, [snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] in gone]


def _superseded_ms(document: JsonMapping) -> dict[int, int]:
    """Return when each snapshot was current for the last time, by id, in that order; the current one is left out."""
    superseded: dict[int, int] = {}
    for entry, following in pairwise(document["snapshot-log"]):
        superseded.pop(entry["snapshot-id"], None)
        superseded[entry["snapshot-id"]] = following["timestamp-ms"]
    return {number: at for number, at in superseded.items() if number != document.get("current-snapshot-id")}


def is_linear(snapshots: Sequence[JsonMapping]) -> bool:
    """Whether each snapshot follows the one before it in the list, so that no earlier snapshot has become current again."""
    return all(after.get("parent-snapshot-id") == before["snapshot-id"] for before, after in pairwise(snapshots))


def shown_since(document: JsonMapping, since_ms: int) -> list[JsonMapping]:
    """Return the snapshots that were current at a time or later."""
    log = document["snapshot-log"]
    late = next((position for position, entry in enumerate(log) if entry["timestamp-ms"] >= since_ms), len(log))
    ids = {entry["snapshot-id"] for entry in log[max(late - 1, 0) :]}
    return [snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] in ids]


def logged(document: JsonMapping, base: JsonMapping | None, base_location: str | None) -> tuple[JsonObject, list[str]]:
    """Return the document with the previous metadata file in its log, and the files that dropped out of the log."""
    if base is None or base_location is None:
        return dict(document), []
    entries = [*document["metadata-log"], {"timestamp-ms": base["last-updated-ms"], "metadata-file": base_location}]
    dropped = [entry["metadata-file"] for entry in entries[:-MAX_METADATA_LOG]]
    return {**document, "metadata-log": entries[-MAX_METADATA_LOG:]}, dropped


def _empty(table_id: str, location: str) -> JsonObject:
    return {
        "format-version": 2,
        "table-uuid": _table_uuid(table_id),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "schemas": [],
        "current-schema-id": 0,
        "partition-specs": [],
        "default-spec-id": 0,
        "last-partition-id": FIRST_PARTITION_ID - 1,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {},
    }


def _table_uuid(table_id: str) -> str:
    """Return Delta's table id, which is a UUID only by convention; another text is hashed to one."""
    try:
        return str(uuid.UUID(table_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, table_id))


def _with_schema(schemas: Sequence[JsonMapping], target: JsonMapping) -> tuple[list[Any], int]:
    for schema in schemas:
        if {key: value for key, value in schema.items() if key != "schema-id"} == target:
            return list(schemas), int(schema["schema-id"])
    number = max((int(schema["schema-id"]) for schema in schemas), default=-1) + 1
    return [*schemas, {**target, "schema-id": number}], number


def _set_spec(document: JsonObject, new_fields: Sequence[JsonMapping]) -> None:
    """Set the current partition spec. Fields keep the ids they had in any earlier spec; a rename changes the spec in place."""
    specs = [dict(spec) for spec in document["partition-specs"]]
    known_ids = {field["source-id"]: field["field-id"] for spec in specs for field in spec["fields"]}
    last = document["last-partition-id"]
    fields = []
    for field in new_fields:
        number = known_ids.get(field["source-id"])
        if number is None:
            number = last = last + 1
        fields.append({**field, "field-id": number})
    same = [spec for spec in specs if [f["field-id"] for f in spec["fields"]] == [f["field-id"] for f in fields]]
    if same:
        same[0]["fields"] = fields
        chosen = same[0]["spec-id"]
    else:
        chosen = max((spec["spec-id"] for spec in specs), default=-1) + 1
        specs.append({"spec-id": chosen, "fields": fields})
    document["partition-specs"] = specs
    document["default-spec-id"] = chosen
    document["last-partition-id"] = last


def _summary(parent: JsonMapping | None, added: AddedSnapshot, format_version: int) -> dict[str, str]:
    """Return the counts of a summary (format/spec.md, "Optional Snapshot Summary Fields"); sizes cover data files and delete files."""
    totals, deletes, is_rebuilt = added.totals, added.deletes, added.is_rebuilt
    before: Mapping[str, str] = {} if parent is None or is_rebuilt else parent["summary"]

    def total(name: str, more: int, less: int) -> int:
        return int(before.get(name, "0")) + more - (0 if is_rebuilt else less)

    kind = "dvs" if format_version >= 3 else "position-delete-files"
    counts = {
        "added-data-files": totals.added_files,
        "added-records": totals.added_rows,
        "added-files-size": totals.added_bytes + deletes.added_bytes,
        "deleted-data-files": totals.deleted_files,
        "deleted-records": totals.deleted_rows,
        "removed-files-size": totals.deleted_bytes + deletes.deleted_bytes,
        "added-delete-files": deletes.added_files,
        f"added-{kind}": deletes.added_files,
        "added-position-deletes": deletes.added_rows,
        "removed-delete-files": deletes.deleted_files,
        f"removed-{kind}": deletes.deleted_files,
        "removed-position-deletes": deletes.deleted_rows,
        _DELETES_SIZE: total(_DELETES_SIZE, deletes.added_bytes, deletes.deleted_bytes),
    }
    always = {
        "total-data-files": total("total-data-files", totals.added_files, totals.deleted_files),
        "total-records": total("total-records", totals.added_rows, totals.deleted_rows),
        "total-files-size": total(
            "total-files-size", totals.added_bytes + deletes.added_bytes, totals.deleted_bytes + deletes.deleted_bytes
        ),
        "total-delete-files": total("total-delete-files", deletes.added_files, deletes.deleted_files),
        "total-position-deletes": total("total-position-deletes", deletes.added_rows, deletes.deleted_rows),
        "total-equality-deletes": 0,
    }
    return {
        **{name: str(count) for name, count in counts.items() if count},
        **{name: str(count) for name, count in always.items()},
    }
