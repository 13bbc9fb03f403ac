"""The metadata of a new table, and of a table whose schema or properties change."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from tahoe.base.clock import Clock
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.base.wording import suggestion
from tahoe.ops.tables.cluster_by import stage_clustering
from tahoe.protocol.actions import Metadata
from tahoe.protocol.column_values.identity import with_marks_of
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import check_dependents, check_new
from tahoe.protocol.features import ENFORCED
from tahoe.protocol.iceberg_compat import required_properties
from tahoe.protocol.properties import CONSTRAINT_PREFIX, TableProperties, same_key, validate_properties
from tahoe.protocol.protocols import check_types_supported
from tahoe.protocol.row_tracking import with_materialized_columns
from tahoe.protocol.statistics.collect import check_statistics_columns
from tahoe.schema.collations import check_no_new_collations
from tahoe.schema.evolve import check_column_names, check_duplicates
from tahoe.schema.mapping import assign_ids, assign_nested_ids
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructType, is_opaque
from tahoe.schema.walk import all_fields
from tahoe.schema.widening import with_type_changes
from tahoe.store.log_store import LogStore
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_MODE = "delta.columnMapping.mode"


def new_metadata(
    schema: StructType,
    clock: Clock,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    table_id: str | None = None,
) -> Metadata:
    """Return the metadata of a new table.

    Args:
        schema: logical; ids and physical names are assigned if the properties enable column mapping.
        partition_by: names of columns of the schema, in order.
        table_id: kept when a table is replaced in place; else new.

    Raises:
        InvalidRequest: a partition column that does not exist or cannot partition, invalid names, unknown properties.
    """
    check_duplicates(schema, "DATA")
    check_no_new_collations(schema)
    columns = checked_partition_columns(schema, partition_by)
    configuration = validate_properties(properties or {})
    check_statistics_columns(schema, columns, configuration)
    configuration = with_materialized_columns({**required_properties(configuration), **configuration}, clock)
    schema, configuration = _mapped(schema, configuration, existing_table=False, clock=clock)
    return Metadata(
        id=table_id or clock.uuid(),
        schema_string=schema.to_json(),
        partition_columns=columns,
        configuration=configuration,
        name=name,
        description=description,
        created_time=clock.now_ms(),
    )


def stage_create(transaction: Transaction, metadata: Metadata, cluster_by: Sequence[str] | None) -> Operation:
    """Stage the creation of an empty table; return its operation.

    Args:
        cluster_by: columns by which OPTIMIZE clusters the rows; see `tahoe.ops.tables.cluster_by.stage_clustering`.
    """
    transaction.enforces = ENFORCED  # there are no rows yet
    transaction.set_metadata(metadata)
    clustered_by = stage_clustering(transaction, cluster_by)
    check_new(future_config(transaction))  # a text that cannot be enforced is better refused now than at the first write
    return create_operation(metadata, cluster_by=clustered_by)


def exists_already(url: str, remedy: str) -> InvalidRequest:
    """Return the error for a table that exists although it is to be created."""
    return InvalidRequest(f"There is a table at {url} already. {remedy}", code="DELTA_TABLE_ALREADY_EXISTS", table=url)


def refuse_files(
    store: LogStore,
    name: str,
    *,
    exists: bool,
    accepts_log: bool = True,
    needs_log: bool = False,
    expected: Container[str] = (),
) -> None:
    """Refuse to create a table in a folder with files that do not belong to it: VACUUM, or dropping the table, would delete them.

    Args:
        name: of the table, for the message.
        exists: whether the folder is a Delta table.
        accepts_log: accept a folder with a log but no commit, which a failed creation leaves, perhaps with data files.
        needs_log: the definition has no columns, so only an existing table could supply them.
        expected: names of files that an interrupted command may have left.

    Raises `InvalidRequest`: `DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`, `DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG`.
    """
    if accepts_log and not exists and next(store.walk("_delta_log"), None) is not None:
        return
    if any(entry.name not in expected for entry in store.walk("")):
        remedy = (
            f"adopt the Delta table: CREATE TABLE … USING delta LOCATION '{store.url}' without AS SELECT"
            if exists
            else "convert the Parquet files: CONVERT TO DELTA, Table.convert_to_delta or `tahoe convert`"
        )
        raise InvalidRequest(
            f"Table {name} cannot be created at {store.url}, which is not empty. Empty it, choose another location, or {remedy}.",
            code="DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG" if needs_log else "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
            table=name,
        )


def with_schema(
    config: TableConfig,
    schema: StructType,
    clock: Clock,
    partition_by: Sequence[str] | None = None,
    *,
    files_stay: bool = True,
) -> Metadata:
    """Return the table's metadata with another schema; new columns get ids if column mapping is on, and widened types are recorded.

    Args:
        partition_by: another partitioning, or other names for it; None keeps it.
        files_stay: False if no file of the earlier schema remains, so that there are no earlier types to record.
    """
    if files_stay and config.properties.enable_type_widening:
        schema = with_type_changes(config.schema, schema)
    check_duplicates(schema)
    check_no_new_collations(schema, config.schema)
    if files_stay:
        check_types_supported(all_fields(config.schema), all_fields(schema), config.protocol, config.table)
    columns = checked_partition_columns(schema, config.partition_columns if partition_by is None else partition_by)
    schema, configuration = _mapped(schema, dict(config.metadata.configuration), existing_table=False, clock=clock)
    return replace(config.metadata, schema_string=schema.to_json(), partition_columns=columns, configuration=configuration)


def set_schema(transaction: Transaction, config: TableConfig, schema: StructType) -> TableConfig:
    """Stage the table's metadata with a schema that differs from the current one; return the configuration after the commit.

    Raises: see `tahoe.protocol.constraints.check_dependents`.
    """
    if schema == config.schema:
        return config
    check_dependents(config, schema)
    transaction.set_metadata(with_schema(config, schema, transaction.clock))
    return future_config(transaction)


def with_properties(config: TableConfig, properties: Mapping[str, str | None], clock: Clock) -> Metadata:
    """Return the table's metadata with properties set, or removed if the value is None.

    Raises:
        InvalidRequest: an unknown property, a value that is not allowed, or a change of column mapping that would need a rewrite.
    """
    _refuse_constraints(config, properties)
    setting = validate_properties({key: value for key, value in properties.items() if value is not None})
    check_statistics_columns(config.schema, config.partition_columns, setting)
    removed = [key for key, value in properties.items() if value is None]
    there = config.metadata.configuration
    unchanged = {key: value for key, value in there.items() if not any(same_key(key, name) for name in removed)}
    changed = {**unchanged, **setting}
    configuration = with_materialized_columns({**required_properties(changed), **changed}, clock)
    _check_mapping_change(config, configuration)
    schema, configuration = _mapped(config.schema, configuration, existing_table=True, clock=clock)
    return replace(config.metadata, schema_string=schema.to_json(), configuration=configuration)


def with_kept_marks(metadata: Metadata, newest: Metadata) -> Metadata:
    """Return metadata that replaces the newest, from an older version or another table, with identity columns that continue from their
    current marks."""
    schema = with_marks_of(metadata.schema, newest.schema, newest.id)
    return metadata if schema == metadata.schema else replace(metadata, schema_string=schema.to_json())


def _refuse_constraints(config: TableConfig, properties: Mapping[str, str | None]) -> None:
    """Refuse constraints among the properties: they have a statement of their own, which validates the existing rows."""
    for key, value in properties.items():
        if key.lower().startswith(CONSTRAINT_PREFIX) and value is not None:
            raise InvalidRequest(
                f"'{key}' of table {config.table} is a CHECK constraint. The rows of the table are validated before one is added: use ALTER "
                "TABLE … ADD CONSTRAINT (Table.add_constraint).",
                code="DELTA_ADD_CONSTRAINTS",
                table=config.table,
            )


def create_operation(
    metadata: Metadata, name: str = "CREATE TABLE", *, is_managed: bool = False, cluster_by: Sequence[str] = ()
) -> Operation:
    """Return the operation of a creation, with the reference's parameters.

    Args:
        cluster_by: columns as `tahoe.ops.tables.cluster_by.stage_clustering` shows them.
    """
    return Operation(
        name,
        {
            "isManaged": "true" if is_managed else "false",
            "description": metadata.description,
            "partitionBy": json.dumps(list(metadata.partition_columns), separators=(",", ":")),
            "clusterBy": compact_json(list(cluster_by)),
            "properties": json.dumps(dict(metadata.configuration), separators=(",", ":")),
        },
    )


def _mapped(
    schema: StructType, configuration: dict[str, str], *, existing_table: bool, clock: Clock
) -> tuple[StructType, dict[str, str]]:
    properties = TableProperties(configuration)
    mode = properties.column_mapping_mode
    if mode == "none":
        check_column_names(schema, mode)
        return schema, configuration
    before = properties.max_column_id
    schema, last = assign_ids(schema, before, clock, mode, existing_table=existing_table)
    if properties.get("delta.enableIcebergCompatV2") or properties.get("delta.enableIcebergCompatV3"):
        schema, last = assign_nested_ids(schema, last)
    return schema, {**configuration, _MAX_COLUMN_ID: str(max(before, last))}


def _check_mapping_change(config: TableConfig, configuration: Mapping[str, str]) -> None:
    old, new = config.properties.column_mapping_mode, TableProperties(configuration).column_mapping_mode
    if old != new and (old, new) != ("none", "name"):
        raise InvalidRequest(
            f"Column mapping of table {config.table} cannot be changed from '{old}' to '{new}': only from 'none' to 'name'. "
            "Write the data to a new table with that mode.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=config.table,
        )


def checked_partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns of a new table, as its schema spells them. Raises the errors of `new_metadata`."""
    for name in partition_by:
        if schema.find(name) is None:
            raise InvalidRequest(
                f"There is no column '{name}' to partition by; the columns are: {', '.join(schema.names)}. Name one of these."
                f"{suggestion(name, schema.names)}",
                code="DELTA_PARTITION_COLUMN_NOT_FOUND",
                column=name,
            )
    names = tuple(schema.field(name).name for name in partition_by)
    if len(set(names)) != len(names):
        raise InvalidRequest(f"Partition columns must differ, found: {', '.join(names)}.", code="DELTA_DUPLICATE_COLUMNS_FOUND")
    for name in names:
        data_type = schema.field(name).data_type
        if isinstance(data_type, (StructType, ArrayType, MapType)) or data_type == PrimitiveType("void") or is_opaque(data_type):
            raise InvalidRequest(
                f"Column '{name}' of type {data_type} cannot partition a table; a partition column has single values.",
                code="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                column=name,
            )
    if names and len(names) == len(schema):
        raise InvalidRequest(
            "A table cannot be partitioned by all of its columns; leave at least one out.",
            code="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        )
    return names
