"""ALTER TABLE without Spark: functions that are methods of `Table`. Each commits one version, or none if nothing changes.

Columns are named as in SQL: ``a``, ``a.b`` for a field of a struct, a name with a dot in back-ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import late_modules
from tahoe.base.progress import shown

if TYPE_CHECKING:
    from tahoe.ops.tables import alter, alter_columns, constrain
    from tahoe.ops.tables import cluster_by as clustering
    from tahoe.ops.tables.requests import WritableTable
    from tahoe.protocol.statistics import collect
    from tahoe.schema import column_edits, schema_forms
    from tahoe.schema.column_edits import Path, Position
    from tahoe.schema.schema_forms import SchemaLike, TypeLike
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.txn import prepare
    from tahoe.txn.transaction import Operation, Transaction
else:
    alter, alter_columns, constrain = late_modules("tahoe.ops.tables", "alter", "alter_columns", "constrain")
    (clustering,) = late_modules("tahoe.ops.tables", "cluster_by")
    (collect,) = late_modules("tahoe.protocol.statistics", "collect")
    column_edits, schema_forms = late_modules("tahoe.schema", "column_edits", "schema_forms")
    (prepare,) = late_modules("tahoe.txn", "prepare")


Arguments = ParamSpec("Arguments")


def add_feature(self: WritableTable, name: str) -> int:
    """Add support for a feature and those that it requires; return the new version, or the newest if it was supported already.

    Args:
        name: case-insensitive; docs/features.md lists them.

    Raises `InvalidRequest` (`DELTA_UNSUPPORTED_FEATURES_IN_CONFIG`): there is no such feature.
    """
    return _with_properties(self, {f"delta.feature.{name}": "supported"})


def upgrade_protocol(self: WritableTable, reader_version: int, writer_version: int) -> int:
    """Raise the protocol to at least these versions; return the new version. A table that has them is not changed.

    The protocol is written in its weakest equivalent form: version numbers if they imply exactly its features, else names.

    Raises `InvalidRequest`: ``TAHOE_TABLE_PROPERTY`` for unknown version numbers,
        ``DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE`` for reader 3 with a writer below 7.
    """
    versions = {"delta.minReaderVersion": str(reader_version), "delta.minWriterVersion": str(writer_version)}
    return _with_properties(self, versions)


def cluster_by(self: WritableTable, columns: Sequence[str]) -> int:
    """Set the clustering columns from the next OPTIMIZE on, or none with an empty list; return the new version.

    Raises: see `tahoe.ops.tables.cluster_by.stage_cluster_by`.
    """
    return _altered(self, clustering.stage_cluster_by, columns)


def add_constraint(self: WritableTable, name: str, condition: str) -> int:
    """Add a CHECK constraint for all rows; see `tahoe.ops.tables.constrain`. Return the new version."""
    with shown() as progress:
        count = partial(constrain.count_violations, progress=progress)
        return _altered(self, constrain.stage_add_constraint, name, condition, count)


def drop_constraint(self: WritableTable, name: str, *, if_exists: bool = False) -> int:
    """Drop a CHECK constraint. Raises `InvalidRequest` (`DELTA_CONSTRAINT_DOES_NOT_EXIST`), unless `if_exists`."""

    def stage(transaction: Transaction, snapshot: Snapshot) -> Operation | None:
        operation = constrain.stage_drop_constraint(transaction, snapshot, name)
        if operation is None and not if_exists:
            raise InvalidRequest(
                f"Table {transaction.store.url} has no constraint '{name}' to drop. Leave it out, or pass if_exists=True.",
                code="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            )
        return operation

    return _altered(self, stage)


def add_columns(
    self: WritableTable, columns: SchemaLike, *, inside: str = "", first: bool = False, after: str | None = None
) -> int:
    """Add columns, which are NULL in the existing rows; return the new version.

    Args:
        columns: of pyarrow, of Delta, or names and types: ``{"id": "long"}``.
        inside: the struct to which they are added; by default they are columns of the table.
        first, after: the position of the first one, followed by the others; by default they come last.
    """
    schema = schema_forms.schema_of(columns)
    position, added = _position(first, after), []
    for column in schema:
        added.append(column_edits.NewColumn(_path(inside), column, position))
        position = position and column_edits.Position(column.name)
    return _altered(self, alter_columns.stage_add_columns, added)


def drop_columns(self: WritableTable, names: Sequence[str], *, if_exists: bool = False) -> int:
    """Drop columns, or fields of structs, of a table with column mapping; return the new version."""
    paths = [_path(name) for name in names]
    return _altered(self, alter_columns.stage_drop_columns, paths, if_exists=if_exists)


def rename_column(self: WritableTable, name: str, new: str) -> int:
    """Rename a column, or a field of a struct, of a table with column mapping; return the new version.

    Args:
        new: the new name, without the path.
    """
    return _altered(self, alter_columns.stage_rename_column, _path(name), new)


def change_column(
    self: WritableTable,
    name: str,
    *,
    comment: str | None = None,
    nullable: bool | None = None,
    data_type: TypeLike | None = None,
    default: str | None = None,
    first: bool = False,
    after: str | None = None,
) -> int:
    """Change a column's comment, its place, its type, its default, or drop its NOT NULL (``nullable=True``); return the new version.

    Args:
        data_type: of Delta or pyarrow, or a name such as ``long`` or ``decimal(10,2)``.
        default: SQL text of the value for rows that lack the column; empty for none. The table must have the feature:
            ``set_properties({"delta.feature.allowColumnDefaults": "supported"})``.

    Raises: see `tahoe.ops.tables.alter_columns.stage_change_columns`.
    """
    target = None if data_type is None else schema_forms.type_of(data_type, name)
    change = alter_columns.ColumnChange(_path(name), target, nullable, comment, _position(first, after), default)
    with shown() as progress:
        return _altered(self, alter_columns.stage_change_columns, [change], progress)


def sync_identity(self: WritableTable, name: str, *, may_lower: bool = False) -> int:
    """Raise the high-water mark of an identity column to the values in its rows (``SYNC IDENTITY``); return the new version.

    Args:
        may_lower: the mark may be lowered too; then values that were assigned and deleted may be assigned again.

    Raises: see `tahoe.ops.tables.alter.stage_sync_identity`.
    """
    with shown() as progress:
        return _altered(self, alter.stage_sync_identity, _path(name), may_lower=may_lower, progress=progress)


def replace_columns(self: WritableTable, columns: SchemaLike) -> int:
    """Replace the columns: add columns or change their order; see `tahoe.ops.tables.alter_columns.stage_replace_columns`."""
    schema = schema_forms.schema_of(columns)
    return _altered(self, alter_columns.stage_replace_columns, schema)


def _with_properties(table: WritableTable, properties: Mapping[str, str]) -> int:
    """Set properties that require no change of files; for other properties see `Table.set_properties`."""
    return _altered(table, alter.stage_set_properties, properties)


def _altered(
    table: WritableTable,
    stage: Callable[Concatenate[Transaction, Snapshot, Arguments], Operation | None],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> int:
    """Stage a change and commit it; return the new version, or the newest if there is nothing to change."""
    transaction = table.begin()
    snapshot = transaction.existing()
    operation = stage(transaction, snapshot, *args, **kwargs)
    is_changed = transaction.staged or prepare.future_config(transaction) != snapshot.config
    return table.commit(transaction, operation).version if operation is not None and is_changed else snapshot.version


def _position(first: bool, after: str | None) -> Position | None:
    return column_edits.FIRST if first else None if after is None else column_edits.Position(after)


def _path(name: str) -> Path:
    return next(iter(collect.multipart_names(name)), ())
