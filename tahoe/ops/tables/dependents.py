"""The dependents of a column: constraints, generated columns, clustering, the marks of an identity column. A column with dependents cannot
be dropped, renamed or changed."""

from __future__ import annotations

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.expression import Expression, references_of
from tahoe.protocol.clustering import clustering_paths
from tahoe.protocol.column_values.identity import identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of
from tahoe.schema.column_edits import Path, name_of
from tahoe.schema.mapping import physical_path
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.snapshot import Snapshot


def refuse_dependents(config: TableConfig, path: Path) -> None:
    """Refuse to change a column that a CHECK constraint or a generated column reads, as a whole, in part, or as part of a struct.

    Raises:
        InvalidRequest: ``DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE`` or ``DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE``.
    """
    constraints = constraints_of(config)
    listing = "\n".join(f"{check.name} -> {check.text}" for check in constraints.checks if _reads(check.condition, path))
    if listing:
        raise InvalidRequest(
            f"Cannot alter column {name_of(path)} of table {config.table} because this column is referenced by the following check "
            f"constraint(s): {listing}. Drop them first (ALTER TABLE … DROP CONSTRAINT).",
            code="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            table=config.table,
            column=name_of(path),
        )
    listing = "\n".join(f"{each.column.name} -> {each.text}" for each in constraints.generated if _reads(each.value, path))
    if listing:
        raise InvalidRequest(
            f"Cannot alter column {name_of(path)} of table {config.table} because this column is referenced by the following generated "
            f"column(s): {listing}. Drop these first.",
            code="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            table=config.table,
            column=name_of(path),
        )


def refuse_clustering(snapshot: Snapshot, path: Path) -> None:
    """Refuse to drop a column that the table is clustered by. Raises `InvalidRequest` (`DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN`)."""
    columns = clustering_paths(snapshot.state.domains, snapshot.config.table) or ()
    if any(_meet(physical_path(snapshot.schema, path), column) for column in columns):
        raise InvalidRequest(
            f"Dropping clustering columns ({name_of(path)}) is not allowed (table {snapshot.config.table}). Cluster the table by others "
            "first: ALTER TABLE … CLUSTER BY (…), or NONE.",
            code="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
            table=snapshot.config.table,
            column=name_of(path),
        )


def refuse_altering(config: TableConfig, column: StructField, asked: bool) -> None:
    """Refuse to change type, nullability or default of an identity column.

    Args:
        asked: whether one of these is to change.

    Raises:
        InvalidRequest: ``DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED``.
    """
    if asked and identity_columns(StructType((column,)), config.table):
        raise InvalidRequest(
            f"ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns, such as '{column.name}' of table {config.table}. Its comment "
            "and its place may change, and its mark by SYNC IDENTITY.",
            code="DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            table=config.table,
            column=column.name,
        )


def refuse_replacing(config: TableConfig) -> None:
    """Refuse REPLACE COLUMNS of a table with identity columns. Raises `InvalidRequest`
    (``DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED``)."""
    identities = identity_columns(config.schema, config.table)
    if identities:
        raise InvalidRequest(
            f"ALTER TABLE REPLACE COLUMNS is not supported for table {config.table} with IDENTITY columns ({identities[0].name}). Add, drop "
            "or change the columns one by one.",
            code="DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            table=config.table,
        )


def _reads(expression: Expression, path: Path) -> bool:
    return any(_meet(path, reference.path) for reference in references_of(expression))


def _meet(first: Path, second: Path) -> bool:
    """Whether one path is equal to the other, or a prefix of it."""
    return all(a.lower() == b.lower() for a, b in zip(first, second, strict=False))
