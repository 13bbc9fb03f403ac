"""ALTER TABLE … SET and UNSET TBLPROPERTIES, and ALTER COLUMN … SYNC IDENTITY, on an existing table. Nothing is committed here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked_rows
from tahoe.log.replay import add_files
from tahoe.ops.tables.cluster_by import check_still_clusterable
from tahoe.ops.tables.create import with_properties
from tahoe.protocol.actions import Metadata
from tahoe.protocol.clustering import refuse_enabling
from tahoe.protocol.column_values.identity import IdentityColumn, further, identity_of, with_marks
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import COORDINATED, ENFORCED, Feature
from tahoe.protocol.iceberg_compat import deletes_form
from tahoe.protocol.properties import same_key
from tahoe.schema.column_edits import Path, field_at, name_of, not_there
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.coordinated import TIMESTAMP_PROPERTIES
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction


def stage_set_properties(transaction: Transaction, snapshot: Snapshot, properties: Mapping[str, str]) -> Operation:
    """Stage new values of properties; ``comment`` is the table's description.

    Args:
        snapshot: of the transaction.

    Raises:
        InvalidRequest: an unknown or reserved property, a value that is not allowed, or one that conflicts with the table's files.
    """
    refuse_enabling(properties, snapshot.config)
    _refuse_reserved(snapshot.config, properties)
    description = properties.get("comment")
    metadata = with_properties(
        snapshot.config, {key: value for key, value in properties.items() if key != "comment"}, transaction.clock
    )
    if description is not None:
        metadata = replace(metadata, description=description)
    return _stage(transaction, snapshot, metadata, "SET TBLPROPERTIES", {"properties": _json(dict(properties))})


def stage_unset_properties(
    transaction: Transaction, snapshot: Snapshot, names: Sequence[str], *, if_exists: bool = False
) -> Operation:
    """Stage the removal of properties.

    Raises `InvalidRequest` (`DELTA_UNSET_NON_EXISTENT_PROPERTY`) for one that is not set, unless `if_exists`.
    """
    has_comment = snapshot.metadata.description is not None
    missing = [
        name
        for name in names
        if not any(same_key(name, key) for key in snapshot.metadata.configuration) and not (name == "comment" and has_comment)
    ]
    if missing and not if_exists:
        raise InvalidRequest(
            f"Table {snapshot.store.url} has no property {', '.join(missing)} to unset. Leave it out, or write IF EXISTS.",
            code="DELTA_UNSET_NON_EXISTENT_PROPERTY",
            table=snapshot.store.url,
        )
    _refuse_reserved(snapshot.config, names)
    if _PROTECTION.lower() in map(str.lower, names) and Feature.CHECKPOINT_PROTECTION in snapshot.config.features:
        raise InvalidRequest(
            f"The property {_PROTECTION} of table {snapshot.store.url} keeps checkpoints that older clients need, and is removed "
            "together with its feature: "
            "ALTER TABLE … DROP FEATURE checkpointProtection TRUNCATE HISTORY (Table.drop_feature).",
            code="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            table=snapshot.store.url,
            property=_PROTECTION,
        )
    refused = {name.lower() for name in names} & {name.lower() for name in TIMESTAMP_PROPERTIES}
    if refused and snapshot.config.features & COORDINATED:
        raise InvalidRequest(
            f"Table {snapshot.store.url} keeps {', '.join(sorted(refused))}: where a coordinator ratifies commits, their times stand in "
            "them.",
            code="DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
            table=snapshot.store.url,
        )
    metadata = with_properties(snapshot.config, {name: None for name in names if name != "comment"}, transaction.clock)
    if "comment" in names:
        metadata = replace(metadata, description=None)
    parameters = {"properties": _json(list(names)), "ifExists": if_exists}
    return _stage(transaction, snapshot, metadata, "UNSET TBLPROPERTIES", parameters)


def stage_changed_properties(
    transaction: Transaction, snapshot: Snapshot, properties: Mapping[str, str | None], name: str
) -> Operation:
    """Stage properties, or their removal if the value is None, including those that users may not change; for Tahoe's own operations.

    Args:
        name: of the operation in the history: ``SET TBLPROPERTIES`` or ``UNSET TBLPROPERTIES``.
    """
    metadata = with_properties(snapshot.config, properties, transaction.clock)
    if name.startswith("UNSET"):
        return _stage(transaction, snapshot, metadata, name, {"properties": _json(list(properties)), "ifExists": True})
    return _stage(transaction, snapshot, metadata, name, {"properties": _json(dict(properties))})


def _stage(
    transaction: Transaction, snapshot: Snapshot, metadata: Metadata, name: str, parameters: Mapping[str, object]
) -> Operation:
    check_still_clusterable(snapshot, metadata)
    transaction.set_metadata(metadata)
    _check_files(transaction, snapshot, future_config(transaction))
    return Operation(name, parameters)


_PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
_RESERVED = {
    "provider": ("DELTA_CANNOT_CHANGE_PROVIDER", "says that the table is Delta, and cannot be changed"),
    "location": ("DELTA_CANNOT_CHANGE_LOCATION", "is where the table is; clone or move the table instead"),
    "clusteringcolumns": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "is what ALTER TABLE … CLUSTER BY (…) changes"),
    "delta.columnmapping.maxcolumnid": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "is counted by the table itself"),
    "delta.rowtracking.materializedrowidcolumnname": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "is given by the table itself"),
    "delta.rowtracking.materializedrowcommitversioncolumnname": (
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "is given by the table itself",
    ),
    "delta.incommittimestampenablementversion": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "is noted by the table itself"),
    "delta.incommittimestampenablementtimestamp": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "is noted by the table itself"),
}


def _refuse_reserved(config: TableConfig, names: Mapping[str, str] | Sequence[str]) -> None:
    for name in names:
        reserved = _RESERVED.get(name.lower())
        if reserved is not None:
            raise InvalidRequest(
                f"The property '{name}' of table {config.table} {reserved[1]}. Leave it out.",
                code=reserved[0],
                table=config.table,
                property=name,
            )


def _check_files(transaction: Transaction, snapshot: Snapshot, config: TableConfig) -> None:
    """Refuse to enable IcebergCompat if a file has features that Iceberg does not support; otherwise the conversion would fail later."""
    if config.iceberg_compat_version is None or deletes_form(config.properties) != "none":
        return
    before = snapshot.config
    if before.iceberg_compat_version is not None and deletes_form(before.properties) == "none":
        return
    transaction.read_whole_table()
    if Feature.DELETION_VECTORS not in before.features:
        return
    marked = next((add for add in add_files(snapshot.files()) if add.deletion_vector is not None), None)
    if marked is not None:
        raise InvalidRequest(
            f"Table {config.table} has files with deletion vectors, such as {marked.path}, which IcebergCompatV"
            f"{config.iceberg_compat_version} does not allow. Run REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = "
            f"{config.iceberg_compat_version})) (table.uniform.upgrade), which rewrites them, or REORG TABLE … APPLY (PURGE) first.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_NOT_PURGED",
            table=config.table,
            file=marked.path,
        )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def stage_sync_identity(
    transaction: Transaction, snapshot: Snapshot, path: Path, *, may_lower: bool = False, progress: Progress = silent
) -> Operation | None:
    """Stage a high-water mark beyond all values of an identity column, as explicitly written values require; None if it is already. All
    rows are read.

    Args:
        snapshot: of the transaction.
        may_lower: the mark may be lowered to the values in the rows.

    Raises:
        InvalidRequest: ``DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN``.
    """
    table, column = snapshot.config.table, field_at(snapshot.schema, path)
    if column is None:
        raise not_there(snapshot.schema, path)
    identity = identity_of(column, table) if len(path) == 1 else None
    if identity is None:
        raise InvalidRequest(
            f"ALTER TABLE ALTER COLUMN SYNC IDENTITY is only supported by identity columns, and '{name_of(path)}' of table {table} is none. "
            "Name an identity column.",
            code="DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            table=table,
            column=name_of(path),
        )
    transaction.enforces = ENFORCED
    transaction.read_whole_table()
    furthest = _furthest(snapshot, identity, progress)
    if furthest is None:
        return None
    schema = with_marks(snapshot.schema, {identity.physical_name: furthest}, table, may_lower=may_lower)
    if schema == snapshot.schema:
        return None
    transaction.set_metadata(replace(snapshot.metadata, schema_string=schema.to_json()))
    described = schema.field(column.name).to_json_value()
    return Operation("CHANGE COLUMN", {"column": compact_json(described)})


def _furthest(snapshot: Snapshot, column: IdentityColumn, progress: Progress) -> int | None:
    """Return the furthest value of the column in the live rows, or None."""
    values = []
    for batch in tracked_rows(Scan(snapshot, columns=(column.name,)).to_batches(), progress, "rows read"):
        bounds = pc.min_max(batch.column(0))
        value = bounds["max" if column.step > 0 else "min"].as_py()
        values += [] if value is None else [value]
    return further(column.step, values) if values else None
