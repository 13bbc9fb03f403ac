"""A table made, or made anew, without rows: what the builders of `tahoe.tables` and, later, CREATE TABLE do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tahoe.exceptions import DeltaConcurrentModificationException, InvalidRequest, NotFound
from tahoe.log.replay import add_files
from tahoe.ops.tables.create import create_operation, new_metadata
from tahoe.protocol.constraints import check_new
from tahoe.protocol.enforced import ENFORCED
from tahoe.schema.types import StructType
from tahoe.table import Table
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation

__all__ = ["TableDefinition", "create_table"]

_OPERATIONS = {
    "create": "CREATE TABLE",
    "createIfNotExists": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "createOrReplace": "CREATE OR REPLACE TABLE",
}


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a new table shall be."""

    schema: StructType
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None


def create_table(table: Table, definition: TableDefinition, how: str) -> None:
    """Make the table.

    Args:
        how: ``create`` (it must not be there), ``createIfNotExists``, ``replace`` (it must be there), ``createOrReplace``. Replacing
            keeps the table's identity and history; its rows go.

    Raises:
        InvalidRequest: ``DELTA_TABLE_ALREADY_EXISTS``; a schema, partitioning or property that no table can have; a generated column or
            constraint that could not be enforced (`tahoe.protocol.constraints.check_new`).
        NotFound: ``DELTA_CANNOT_REPLACE_MISSING_TABLE``.
    """
    transaction = table.begin()
    snapshot = transaction.snapshot
    if snapshot is not None and how == "createIfNotExists":
        return
    if snapshot is not None and how == "create":
        raise InvalidRequest(
            f"There is a table at {table.url} already. Use createIfNotExists or createOrReplace, or choose another place.",
            code="DELTA_TABLE_ALREADY_EXISTS",
            table=table.url,
        )
    if snapshot is None and how == "replace":
        raise NotFound(
            f"There is no table at {table.url} to replace. Use createOrReplace or create.",
            code="DELTA_CANNOT_REPLACE_MISSING_TABLE",
            table=table.url,
        )
    metadata = new_metadata(
        definition.schema,
        table.clock,
        partition_by=definition.partition_by,
        properties=definition.properties,
        description=definition.comment,
        table_id=None if snapshot is None else snapshot.metadata.id,
    )
    transaction.set_metadata(metadata)
    transaction.enforces = ENFORCED  # there will be no rows
    check_new(future_config(transaction))
    if snapshot is not None:
        transaction.read_whole_table()
        now = table.clock.now_ms()
        transaction.stage(*(add.remove(now) for add in add_files(snapshot.files())))
    operation = create_operation(metadata)
    try:
        table.commit(transaction, Operation(_OPERATIONS[how], operation.parameters))
    except DeltaConcurrentModificationException:
        # Another writer created it in between, which is all that was asked for.
        if how != "createIfNotExists" or not table.exists():
            raise
