"""ALTER TABLE ADD CONSTRAINT and DROP CONSTRAINT: a condition that every row has to fulfil, those that are there already included."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tahoe.exceptions import InvalidRequest, InvariantViolation
from tahoe.expr.compute.compute import compute_mask
from tahoe.lazy import pc
from tahoe.protocol.constraints import constraints_of
from tahoe.protocol.enforced import ENFORCED
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction
from tahoe.wording import counted

__all__ = ["stage_add_constraint", "stage_drop_constraint"]

_PREFIX = "delta.constraints."


def stage_add_constraint(transaction: Transaction, snapshot: Snapshot, name: str, condition: str) -> Operation:
    """Stage a CHECK constraint, after holding every row of the table against it.

    Args:
        name: any text without regard to case.
        condition: SQL text.

    Raises:
        InvalidRequest: ``DELTA_CONSTRAINT_ALREADY_EXISTS``; a condition that is not understood or not boolean.
        Unsupported: a condition that holds what is not on the allow-list.
        InvariantViolation: ``DELTA_NEW_CHECK_CONSTRAINT_VIOLATION``, telling how many rows break it.
    """
    key = _PREFIX + name.lower()
    if not name or _stored_key(snapshot, name) is not None:
        raise InvalidRequest(
            f"Table {snapshot.config.table} has a constraint '{name}' already, or the name is empty. Drop it first, or choose another.",
            code="DELTA_CONSTRAINT_ALREADY_EXISTS",
            table=snapshot.config.table,
        )
    transaction.enforces = ENFORCED
    transaction.read_whole_table()
    configuration = {**snapshot.metadata.configuration, key: condition}
    transaction.set_metadata(replace(snapshot.metadata, configuration=configuration))
    config = future_config(transaction)
    transaction.ensure_writable(config, transaction.enforces)
    [added] = [one for one in constraints_of(config).checks if one.name == name.lower()]
    wanted = sorted(replace(constraints_of(config), checks=(added,), generated=(), required=()).columns)
    broken = 0
    for batch in Scan(snapshot, columns=tuple(wanted) or None).to_batches():
        mask = compute_mask(added.condition, pa.Table.from_batches([batch]))
        broken += pc.sum(pc.invert(mask)).as_py() or 0
    if broken:
        raise InvariantViolation(
            f"{counted(broken, 'row')} of table {config.table} {'does' if broken == 1 else 'do'} not fulfil the new CHECK constraint "
            f"'{name}' ({condition[:300]}). "
            "Correct the rows, or change the condition.",
            code="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            table=config.table,
            constraint=name,
            rows=broken,
        )
    return Operation("ADD CONSTRAINT", {"name": name, "expr": condition})


def stage_drop_constraint(transaction: Transaction, snapshot: Snapshot, name: str) -> Operation | None:
    """Stage that a CHECK constraint goes; None where there is none of that name."""
    key = _stored_key(snapshot, name)
    if key is None:
        return None
    configuration = {k: v for k, v in snapshot.metadata.configuration.items() if k != key}
    transaction.set_metadata(replace(snapshot.metadata, configuration=configuration))
    return Operation("DROP CONSTRAINT", {"name": name, "expr": snapshot.metadata.configuration[key], "existed": "true"})


def _stored_key(snapshot: Snapshot, name: str) -> str | None:
    wanted = _PREFIX + name.lower()
    return next((key for key in snapshot.metadata.configuration if key.lower() == wanted), None)
