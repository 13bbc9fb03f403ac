"""ALTER TABLE … ALTER COLUMN … SYNC IDENTITY: raise the mark of an identity column to explicitly written values. Nothing is
committed here."""

from __future__ import annotations

import json
from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.protocol.column_values.identity import IdentityColumn, further, identity_of, with_marks
from tahoe.protocol.features import ENFORCED
from tahoe.schema.column_edits import Path, field_at, name_of, not_there
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["stage_sync_identity"]


def stage_sync_identity(transaction: Transaction, snapshot: Snapshot, path: Path, *, may_lower: bool = False) -> Operation | None:
    """Stage a high-water mark beyond all values of the column; None if it is already. All rows are read.

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
    furthest = _furthest(snapshot, identity)
    if furthest is None:
        return None
    schema = with_marks(snapshot.schema, {identity.physical_name: furthest}, table, may_lower=may_lower)
    if schema == snapshot.schema:
        return None
    transaction.set_metadata(replace(snapshot.metadata, schema_string=schema.to_json()))
    told = schema.field(column.name).to_json_value()
    return Operation("CHANGE COLUMN", {"column": json.dumps(told, separators=(",", ":"), ensure_ascii=False)})


def _furthest(snapshot: Snapshot, column: IdentityColumn) -> int | None:
    """Return the furthest value of the column in the live rows, or None."""
    found = []
    for batch in Scan(snapshot, columns=(column.name,)).to_batches():
        bounds = pc.min_max(batch.column(0))
        value = bounds["max" if column.step > 0 else "min"].as_py()
        found += [] if value is None else [value]
    return further(column.step, found) if found else None
