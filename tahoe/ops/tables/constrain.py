"""ALTER TABLE ADD CONSTRAINT and DROP CONSTRAINT, and the validation of existing rows, which SET NOT NULL needs too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, InvariantViolation
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked, tracked_rows
from tahoe.base.wording import counted
from tahoe.expr.compute.compute import compute_mask
from tahoe.expr.tree.predicate import Column, IsNull
from tahoe.protocol.constraints import Constraints, constraints_of, refuse_required_in_collections
from tahoe.protocol.features import ENFORCED
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.column_edits import Path, name_of
from tahoe.snapshot.read_errors import naming
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

ROWS_CHECKED = "rows checked"
_RESERVED = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"


CountViolations = Callable[[Snapshot, Constraints], int]
"""Counts the rows of a version that violate the one CHECK constraint of a `Constraints`."""


def count_violations(snapshot: Snapshot, added: Constraints, progress: Progress = silent) -> int:
    """Count violations with Tahoe's own evaluator; raises `Unsupported` if only Spark can evaluate the condition."""
    added.require_evaluator()
    [check], violations = added.checks, 0
    batches = Scan(snapshot, columns=tuple(sorted(added.columns)) or None).to_batches()
    for batch in tracked_rows(batches, progress, ROWS_CHECKED):
        with naming(snapshot.store.url, snapshot.version):
            mask = compute_mask(check.condition, pa.Table.from_batches([batch]))
        violations += pc.sum(pc.invert(mask)).as_py() or 0
    return violations


def stage_add_constraint(
    transaction: Transaction,
    snapshot: Snapshot,
    name: str,
    condition: str,
    count: CountViolations = count_violations,
) -> Operation:
    """Stage a CHECK constraint, after validating every row of the table.

    Args:
        name: any text; the table stores it in lower case.
        condition: SQL text.
        count: counts the rows that violate the constraint.

    Raises:
        InvalidRequest: ``DELTA_CONSTRAINT_ALREADY_EXISTS``; ``DELTA_INVALID_CONSTRAINT_NAME`` for the name that the lengths of texts use; a
            condition that is not understood or not boolean.
        Unsupported: a condition that contains an expression outside the allow-list.
        InvariantViolation: ``DELTA_NEW_CHECK_CONSTRAINT_VIOLATION``, with the number of rows that break it.
    """
    key = CONSTRAINT_PREFIX + name.lower()
    if name == _RESERVED:
        raise InvalidRequest(
            f"Cannot use {name} as the name of a CHECK constraint of table {snapshot.config.table}: the lengths of char and varchar columns "
            "use it. Choose another name.",
            code="DELTA_INVALID_CONSTRAINT_NAME",
            table=snapshot.config.table,
            constraint=name,
        )
    if not name or key in snapshot.metadata.configuration:
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
    [added] = [check for check in constraints_of(config, transaction.time_zone).checks if check.name == name.lower()]
    broken = count(snapshot, Constraints(config.table, checks=(added,)))
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
    """Stage the removal of a CHECK constraint; None if there is none of that name."""
    key = _stored_key(snapshot, name)
    if key is None:
        return None
    configuration = {k: v for k, v in snapshot.metadata.configuration.items() if k != key}
    transaction.set_metadata(replace(snapshot.metadata, configuration=configuration))
    return Operation("DROP CONSTRAINT", {"name": name, "expr": snapshot.metadata.configuration[key], "existed": "true"})


def _stored_key(snapshot: Snapshot, name: str) -> str | None:
    """The property of a constraint: the key in lower case, as statements write it, or else a key that CREATE TABLE wrote in another case."""
    lowered = CONSTRAINT_PREFIX + name.lower()
    keys = sorted(snapshot.metadata.configuration, key=lambda key: key != lowered)
    return next((key for key in keys if key.lower() == lowered), None)


def validate_not_null(transaction: Transaction, snapshot: Snapshot, paths: Sequence[Path], progress: Progress = silent) -> None:
    """Validate every row; files without NULL, as their statistics report it, are not read. A row that another writer adds is a conflict.

    Args:
        transaction: with the metadata that has the columns as NOT NULL.
        paths: of columns and of fields of structs; a field is NULL where the struct is.
        progress: called with the number of columns checked.

    Raises:
        InvariantViolation: ``DELTA_NEW_NOT_NULL_VIOLATION``, with the number of rows.
        InvalidRequest: ``DELTA_NESTED_NOT_NULL_CONSTRAINT``.
    """
    config = future_config(transaction)
    refuse_required_in_collections(config.schema, config.table)
    transaction.enforces = ENFORCED
    transaction.read_whole_table()
    for path in tracked(paths, progress, "columns checked"):
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
