"""The definition of a table as an Iceberg client requests it: columns, partitioning and properties, translated to Delta's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tahoe.base.clock import Clock
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.ops.copies.iceberg_columns import delta_schema
from tahoe.ops.tables.alter_columns import with_stats_columns, with_stats_of
from tahoe.ops.tables.cluster_by import check_still_clusterable, stage_clustering
from tahoe.ops.tables.create import new_metadata, stage_create, with_properties, with_schema
from tahoe.ops.tables.dependents import refuse_clustering, refuse_dependents
from tahoe.protocol.actions import Metadata
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.protocol.iceberg_compat import format_version
from tahoe.protocol.identifier_fields import identifier_property, possible_identifiers, without_identifier_property
from tahoe.protocol.properties import CONSTRAINT_PREFIX, FEATURE_PREFIX
from tahoe.protocol.row_tracking import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from tahoe.schema.mapping import ID_KEY, NESTED_IDS_KEY, assign_ids, check_mapping_of_columns, explode, transform_fields
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.commit_requests import LAST_ADDED, NewTable, TableChange, partition_fields_of
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.commits.schema_change import changed_schema, defaults_of, has_dropped_columns, ids_of, refuse_required
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.client_snapshot import REPLACE_TABLE
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tahoe.uniform.formats.metadata import CONFIG_PREFIX
from tahoe.uniform.formats.metadata_files import FINGERPRINT, FOLDER

_UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.columnMapping.mode": "name"}
_COMPAT = {"1": "delta.enableIcebergCompatV2", "2": "delta.enableIcebergCompatV2", "3": "delta.enableIcebergCompatV3"}
"""By Iceberg's format version; tables of version 1 are created in version 2, which every client supports."""

_VECTORS = "delta.enableDeletionVectors"
_ROW_IDS = {MATERIALIZED_ROW_ID: "_row_id", MATERIALIZED_ROW_COMMIT_VERSION: "_last_updated_sequence_number"}
"""Iceberg's names of the columns in which moved rows keep their ids (format/spec.md, "Reserved Field IDs")."""

_ABOUT_COLUMNS = (CONSTRAINT_PREFIX, "delta.dataskippingstatscolumns")
"""The properties that name columns, in lower case."""

_CATALOG_MANAGED = f"{FEATURE_PREFIX}{Feature.CATALOG_MANAGED}"
"""The only property of Delta that a client sets, at the creation of a table: with it transactions can change several tables."""

_COMMENT = "comment"
_FORMAT_VERSION = "format-version"
_DATA = "data"
_NAME_MAPPING = "schema.name-mapping.default"
_OWN = frozenset(
    (
        FINGERPRINT,
        "gc.enabled",
        "delta-version",
        "delta-timestamp",
        "base-delta-version",
        "converted_delta_version",
        "converted_delta_timestamp",
        _NAME_MAPPING,
        "history.expire.max-snapshot-age-ms",
    )
)
"""Properties of the Iceberg side that follow from the Delta table."""


def delta_metadata(definition: NewTable, table: str, clock: Clock, table_id: str | None = None) -> Metadata:
    """Return the metadata of a new table with UniForm.

    The columns keep their ids, and files name them as the client does: so readers of both formats read files of both. Iceberg's Java library
    numbers them from 0, which is no id in Delta, and leaves it to the catalog to assign ids: then all ids are new.

    Args:
        table: the URL of the table.
        table_id: the table's id; None for a new one.

    Raises:
        InvalidRequest: invalid columns, ids, partitions or location.
        Unsupported: a type or property that Delta does not have.
    """
    if definition.location is not None and definition.location.rstrip("/") != table:
        raise InvalidRequest(
            f"A table of this catalog is in the folder of its name, {table}; the request has the location {definition.location}. Leave "
            "it out.",
            code="TAHOE_ICEBERG_LOCATION",
            table=table,
        )
    requested = _columns(definition.schema, table, {})
    check_mapping_of_columns(requested, "name")
    schema = _with_new_ids(requested, definition, clock) if 0 in ids_of(requested) else requested
    _refuse_other_defaults(defaults_of(definition.schema), {}, table)
    version = definition.properties.get(_FORMAT_VERSION, "2")
    if version not in _COMPAT:
        raise Unsupported(f"Delta's UniForm has no Iceberg format version {version:.20}.", code="TAHOE_ICEBERG_PROPERTY")
    own_properties = {key: value for key, value in definition.properties.items() if key not in (_FORMAT_VERSION, _COMMENT, *_OWN)}
    return new_metadata(
        schema,
        clock,
        partition_by=[_named(requested, number) for number, _ in definition.partition_by],
        properties={
            **_UNIFORM,
            **_of_version(version, schema),
            **identifier_property(_new_identifiers(definition.schema, requested, schema)),
            **{key if key == _CATALOG_MANAGED else _delta_key(key): value for key, value in own_properties.items()},
        },
        description=definition.properties.get(_COMMENT),
        table_id=table_id,
    )


def staged_document(metadata: Metadata, definition: NewTable, table: str) -> JsonObject:
    """Return the Iceberg metadata of a table that does not exist yet, for a client that commits it later."""
    document = documents.described(None, metadata, location=table, version=0, timestamp_ms=metadata.created_time or 0)
    return {**document, "properties": {key: value for key, value in definition.properties.items() if key not in _OWN}}


def new_definition(name: str, change: TableChange) -> NewTable:
    """Return the table that a commit with the requirement ``assert-create`` defines."""
    if not change.schemas:
        raise invalid("The request creates a table without a schema (add-schema).")
    properties = {key: value for key, value in change.set_properties.items() if key not in change.removed_properties}
    if change.format_version is not None:
        properties[_FORMAT_VERSION] = str(change.format_version)
    schema = _current(change, ())
    return NewTable(name, schema, change.partition_by or (), has_ids=True, location=change.location, properties=properties)


def stage_creation(transaction: Transaction, metadata: Metadata, client: str) -> Operation:
    """Stage the creation of a table; return its operation, which names the client."""
    operation = stage_create(transaction, metadata, None)
    return replace(operation, parameters={**operation.parameters, "client": client})


def refuse_other_files(store: LogStore) -> None:
    """Refuse a folder with files of something else; those of clients whose table was never committed are in ``data`` and ``metadata``."""
    for entry in store.walk(""):
        folder, *below = entry.name.split("/")
        if folder not in (_DATA, FOLDER) or not below or "_delta_log" in below or below[-1].endswith(".metadata.json"):
            raise InvalidRequest(
                f"The folder {store.url} of the new table is not empty: it has {entry.name}. Empty it, or choose another name.",
                code="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
                table=store.url,
            )


def stage_definition(transaction: Transaction, document: JsonMapping, change: TableChange) -> Operation | None:
    """Stage the changes of the schema and the properties of a table; None if nothing changes.

    Args:
        document: the current Iceberg metadata, whose schemas may become current again.

    Raises:
        InvalidRequest: ids that contradict the table, or a column that a rule of the table reads.
        Unsupported: a type change or a property that Delta does not have.
    """
    snapshot = transaction.existing()
    metadata = _with_schema(transaction, snapshot, change, document["schemas"])
    metadata = _with_properties(snapshot, metadata, change, transaction.clock)
    if metadata == snapshot.metadata:
        return None
    check_still_clusterable(snapshot, metadata)
    transaction.set_metadata(metadata)
    return _definition_operation("ICEBERG ALTER TABLE", metadata, change)


def _definition_operation(name: str, metadata: Metadata, change: TableChange) -> Operation:
    properties = {"set": dict(change.set_properties), "removed": list(change.removed_properties)}
    parameters = {
        "client": change.client,
        "columns": json.dumps(metadata.schema.names, ensure_ascii=False),
        "properties": json.dumps(properties, ensure_ascii=False),
    }
    return Operation(name, parameters)


def stage_replaced_definition(
    transaction: Transaction, document: JsonMapping, change: TableChange
) -> tuple[JsonObject, Operation]:
    """Stage the definition of a table whose rows all go: its columns may have other types, and its partitioning may be another.

    As in Delta's REPLACE TABLE, the table's constraints and clustering go. As in Iceberg's, its properties stay.

    Args:
        document: the current Iceberg metadata.

    Returns:
        The Iceberg metadata of a table with this definition and without snapshots, and the operation.

    Raises:
        InvalidRequest: an id of a column that was dropped, or a partition spec that does not exist.
        Unsupported: a type, a partition transform or a property that Delta does not have.
    """
    snapshot = transaction.existing()
    config = snapshot.config
    current = _current(change, document["schemas"])
    _refuse_other_defaults(defaults_of(current), {}, config.table)
    # Files of the old columns are read by the old schema alone, so the new columns can have their own names in files.
    schema = _columns(current, config.table, {})
    _check_ids_after_replacement(config, schema)
    partition_by = [_named(schema, number) for number, _ in partition_fields_of(document, change)]
    _refuse_other_partitions(config, schema, partition_by)
    configuration = {
        key: value for key, value in config.metadata.configuration.items() if not key.lower().startswith(_ABOUT_COLUMNS)
    }
    emptied = replace(config, metadata=replace(config.metadata, configuration=configuration))
    metadata = _with_identifiers(with_schema(emptied, schema, transaction.clock, partition_by, files_stay=False), current)
    metadata = _with_properties(snapshot, metadata, change, transaction.clock)
    transaction.set_metadata(metadata)
    stage_clustering(transaction, None)
    replaced = documents.described(
        document, metadata, location=config.table, version=snapshot.version, timestamp_ms=document["last-updated-ms"]
    )
    operation = _definition_operation(REPLACE_TABLE, metadata, change)
    return {**replaced, "current-snapshot-id": None, "snapshots": []}, operation


def _check_ids_after_replacement(config: TableConfig, schema: StructType) -> None:
    """Refuse ids of columns that were dropped earlier; those of the replaced columns may be used again, by columns of the same name."""
    last, present = config.properties.max_column_id, set(ids_of(config.schema))
    used = [number for number in ids_of(schema) if number <= last and number not in present]
    if used:
        raise invalid(f"The schema has the column id {used[0]}, which is of no column, and new ids are above {last}.")
    check_mapping_of_columns(schema, "name")
    stored = {config.metadata.configuration[key] for key in _ROW_IDS if key in config.metadata.configuration}
    reserved = sorted(name for name in schema.names if name in stored)
    if reserved:
        raise Unsupported(
            f"Files of table {config.table} have the ids of rows in a column {reserved[0]}, so no other column can have that name.",
            code="TAHOE_ICEBERG_SCHEMA",
            table=config.table,
            column=reserved[0],
        )


def _refuse_other_partitions(config: TableConfig, schema: StructType, partition_by: Sequence[str]) -> None:
    """Refuse other partition columns for a partitioned table (PROTOCOL.md, "Writer Requirements for IcebergCompatV2"), and other types of
    them, since manifests of earlier snapshots have the same partition spec."""
    before = [f"{column.name} {column.data_type}" for column in config.partition_schema]
    after = [f"{column.name} {column.data_type}" for column in map(schema.field, partition_by)]
    if before and before != after:
        raise Unsupported(
            f"Table {config.table} is partitioned by {', '.join(before)}, and the request replaces it by one that is "
            f"{'partitioned by ' + ', '.join(after) if after else 'not partitioned'}. Delta's rules for tables that are readable as Iceberg "
            "keep the partition columns: drop the table and create it again, or choose another name.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.REPLACE_TABLE_CHANGE_PARTITION_NAMES",
            table=config.table,
        )


def _with_schema(transaction: Transaction, snapshot: Snapshot, change: TableChange, earlier: Sequence[JsonMapping]) -> Metadata:
    """Return the metadata with the schema that becomes current."""
    config = snapshot.config
    if change.schema_id is None:
        if change.schemas:
            raise Unsupported(
                "The request adds a schema that does not become current (set-current-schema), and a Delta table has one schema.",
                code="TAHOE_ICEBERG_SCHEMA",
            )
        return snapshot.metadata
    current = _current(change, earlier)
    names = {column.field_id: column.physical_name for _, column in explode(config.schema) if column.field_id is not None}
    if has_dropped_columns(config):
        # A file may have values of a dropped column under the name of the new one.
        names = {**{number: f"col-{transaction.clock.uuid()}" for number in ids_of(_columns(current, "", {}))}, **names}
    edited = changed_schema(config, _columns(current, config.table, names))
    if edited.required:
        if snapshot.files().num_rows:
            refuse_required(config, edited)
        transaction.read_whole_table()  # no concurrent commit may add rows
    of_table = iceberg_schema(config.schema, format_version(config.properties))
    _refuse_other_defaults(defaults_of(current), defaults_of(of_table), config.table)
    configuration, renamed = dict(config.metadata.configuration), dict(edited.renamed)
    for path in edited.dropped:
        refuse_clustering(snapshot, path)
        configuration = with_stats_columns(configuration, path, None)
    for old, new in edited.renamed:
        configuration = with_stats_columns(configuration, old, new)
    for path in (*edited.dropped, *renamed, *edited.retyped):
        refuse_dependents(config, path)
    partition_by = [renamed.get((name,), (name,))[-1] for name in config.partition_columns]
    changed = with_schema(config, edited.schema, transaction.clock, partition_by)
    return _with_identifiers(with_stats_of(changed, configuration), current)


def _with_properties(snapshot: Snapshot, metadata: Metadata, change: TableChange, clock: Clock) -> Metadata:
    """Return the metadata with the properties that the client sets and removes; ``comment`` is the table's description."""
    values: dict[str, str | None] = {**change.set_properties, **dict.fromkeys(change.removed_properties)}
    # Clients send it with each change of columns; the conversion derives it from the columns.
    values.pop(_NAME_MAPPING, None)
    own = next((key for key in values if key in _OWN), None)
    if own is not None:
        raise Unsupported(
            f"The property '{own}' follows from the Delta table and cannot be changed here.",
            code="TAHOE_ICEBERG_PROPERTY",
            property=own,
        )
    if _COMMENT in values:
        metadata = replace(metadata, description=values.pop(_COMMENT))
    if not values:
        return metadata
    config = replace(snapshot.config, metadata=metadata)
    return with_properties(config, {_delta_key(key): value for key, value in values.items()}, clock)


def _current(change: TableChange, earlier: Sequence[JsonMapping]) -> JsonMapping:
    """Return the schema that becomes current: an added one, or one of the table's earlier ones."""
    if change.schema_id in (None, LAST_ADDED) and change.schemas:
        return change.schemas[-1]
    for schema in (*change.schemas, *earlier):
        if schema.get("schema-id") == change.schema_id:
            return schema
    raise invalid(f"There is no schema {change.schema_id}, which the request makes current.")


def _columns(schema: JsonMapping, table: str, names: Mapping[int, str]) -> StructType:
    """Return the columns in Delta's types with their ids.

    Args:
        names: physical names by id; the name of any other column is its own.
    """
    try:
        columns = delta_schema(schema, table, names)
        identifiers = tuple(schema.get("identifier-field-ids") or ())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise invalid(f"The schema of the request cannot be read: {type(error).__name__} {error}.") from error
    possible = set(possible_identifiers(columns))
    wrong = [each for each in identifiers if type(each) is not int or each not in possible]
    if wrong:
        raise invalid(
            f"The schema has the identifier field {wrong[0]!s:.50}, which is no required column, or one in a list, a map or an optional "
            "struct, or a floating-point number."
        )
    return columns


def _with_identifiers(metadata: Metadata, schema: JsonMapping) -> Metadata:
    """Return the metadata with the identifier fields of an Iceberg schema."""
    configuration = without_identifier_property(metadata.configuration)
    return replace(metadata, configuration={**configuration, **identifier_property(schema.get("identifier-field-ids") or ())})


def _refuse_other_defaults(requested: Mapping[int, object], existing: Mapping[int, object], table: str) -> None:
    """Refuse defaults for new rows that differ from the table's, by column ids."""
    other = sorted(number for number in {*requested, *existing} if requested.get(number) != existing.get(number))
    if other:
        raise Unsupported(
            f"The column with the id {other[0]} of table {table} has another default (write-default) in the request than in the table. "
            "Set defaults through Delta (ALTER COLUMN … SET DEFAULT, Table.change_column).",
            code="TAHOE_ICEBERG_SCHEMA",
            table=table,
        )


def _of_version(version: str, schema: StructType) -> dict[str, str]:
    """Return the properties that follow from the format version.

    In version 3 clients delete rows by vectors, and write the ids of rows that they move into columns with names of the specification.
    """
    compat = {_COMPAT[version]: "true"}
    if version != "3":
        return compat
    taken = {name.lower() for name in schema.names}
    return {**compat, _VECTORS: "true", **{key: name for key, name in _ROW_IDS.items() if name not in taken}}


def _with_new_ids(schema: StructType, definition: NewTable, clock: Clock) -> StructType:
    """Return the columns with ids from 1 on, which the client learns from the response."""
    if definition.has_ids:
        raise invalid("The schema of the new table has the column id 0, and ids are above 0.")
    return assign_ids(transform_fields(schema, _without_ids), 0, clock, "name", nested_ids=True)[0]


def _new_identifiers(definition: JsonMapping, requested: StructType, schema: StructType) -> Iterator[int]:
    """Yield the ids that the requested identifier fields have in the new table."""
    ids = {path: column.field_id for path, column in explode(schema)}
    identifiers = definition.get("identifier-field-ids") or ()
    return (ids[path] or 0 for path, column in explode(requested) if column.field_id in identifiers)


def _without_ids(column: StructField) -> StructField:
    return replace(column, metadata={key: value for key, value in column.metadata.items() if key not in (ID_KEY, NESTED_IDS_KEY)})


def _delta_key(key: str) -> str:
    if key.lower().startswith("delta."):
        raise Unsupported(
            f"The property '{key}' is Delta's, and Iceberg clients do not set it here. Set it through Delta.",
            code="TAHOE_ICEBERG_PROPERTY",
        )
    return f"{CONFIG_PREFIX}{key}"


def _named(schema: StructType, number: int) -> str:
    for column in schema:
        if column.field_id == number:
            return column.name
    raise invalid(f"The partition spec of the request names the source column {number}, which is no column outside structs.")
