"""ALTER COLUMN … SET NOT NULL: the validation of every row before its columns become NOT NULL."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.base.exceptions import InvariantViolation
from tahoe.base.wording import counted
from tahoe.expr.tree.predicate import Column, IsNull
from tahoe.protocol.constraints import refuse_required_in_collections
from tahoe.protocol.features import ENFORCED
from tahoe.schema.column_edits import Path, name_of
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Transaction

__all__ = ["validate_not_null"]


def validate_not_null(transaction: Transaction, snapshot: Snapshot, paths: Sequence[Path]) -> None:
    """Validate every row; files without NULL, as their statistics report it, are not read. A row that another writer adds is a conflict.

    Args:
        transaction: with the metadata that has the columns as NOT NULL.
        paths: of columns and of fields of structs; a field is NULL where the struct is.

    Raises:
        InvariantViolation: ``DELTA_NEW_NOT_NULL_VIOLATION``, with the number of rows.
        InvalidRequest: ``DELTA_NESTED_NOT_NULL_CONSTRAINT``.
    """
    config = future_config(transaction)
    refuse_required_in_collections(config.schema, config.table)
    transaction.enforces = ENFORCED
    transaction.read_whole_table()
    for path in paths:
        scan = Scan(snapshot, IsNull(Column(path)), columns=(path[0],))
        rows = sum(batch.num_rows for batch in scan.to_batches())
        if rows:
            raise InvariantViolation(
                f"NOT NULL constraint violated for column {name_of(path)} of table {config.table}: {counted(rows, 'row')} "
                f"{'has' if rows == 1 else 'have'} NULL in it; nothing was changed. Give these rows a value (UPDATE … WHERE "
                f"{name_of(path)} IS NULL), or delete them.",
                code="DELTA_NEW_NOT_NULL_VIOLATION",
                table=config.table,
                column=name_of(path),
                rows=rows,
            )
