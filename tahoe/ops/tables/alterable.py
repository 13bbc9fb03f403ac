"""`Alterable`, the ALTER TABLE methods of `tahoe.api.table.Table`, without Spark. Each method commits one version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest

if TYPE_CHECKING:
    from tahoe.schema.column_edits import Path, Position
    from tahoe.schema.schema_forms import SchemaLike, TypeLike
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Alterable"]


@checked_arguments
class Alterable(ABC):
    """Properties, constraints, clustering and columns of a table. Columns are named as in SQL: ``a``, ``a.b`` for a field of a struct, a name
    with a dot in back-ticks."""

    @abstractmethod
    def begin(self) -> Transaction:
        """Return a transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation) -> Any:
        """Commit a transaction; the result has the `version`."""

    def add_feature(self, name: str) -> int:
        """Add support for a feature and those that it requires; return the new version, or the newest if it was supported already.

        Args:
            name: case-insensitive; docs/features.md lists them.

        Raises `InvalidRequest` (`DELTA_UNSUPPORTED_FEATURES_IN_CONFIG`): there is no such feature.
        """
        return self._with_properties({f"delta.feature.{name}": "supported"})

    def upgrade_protocol(self, reader_version: int, writer_version: int) -> int:
        """Raise the protocol to at least these versions; return the new version. A table that has them is not changed.

        The protocol is written in its weakest equivalent form: version numbers if they imply exactly its features, else names.

        Raises `InvalidRequest`: ``TAHOE_TABLE_PROPERTY`` for unknown version numbers,
            ``DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE`` for reader 3 with a writer below 7.
        """
        versions = {"delta.minReaderVersion": str(reader_version), "delta.minWriterVersion": str(writer_version)}
        return self._with_properties(versions)

    def cluster_by(self, columns: Sequence[str]) -> int:
        """Set the clustering columns from the next OPTIMIZE on, or none with an empty list; return the new version.

        Raises: see `tahoe.ops.tables.cluster_by.stage_cluster_by`.
        """
        from tahoe.ops.tables.cluster_by import stage_cluster_by

        return self._altered(lambda transaction: stage_cluster_by(transaction, transaction.existing(), columns))

    def add_constraint(self, name: str, condition: str) -> int:
        """Add a CHECK constraint for all rows; see `tahoe.ops.tables.constrain`. Return the new version."""
        from tahoe.ops.tables.constrain import stage_add_constraint

        return self._altered(lambda transaction: stage_add_constraint(transaction, transaction.existing(), name, condition))

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> int:
        """Drop a CHECK constraint. Raises `InvalidRequest` (`DELTA_CONSTRAINT_DOES_NOT_EXIST`), unless `if_exists`."""
        from tahoe.ops.tables.constrain import stage_drop_constraint

        def stage(transaction: Transaction) -> Operation | None:
            operation = stage_drop_constraint(transaction, transaction.existing(), name)
            if operation is None and not if_exists:
                raise InvalidRequest(
                    f"Table {transaction.store.url} has no constraint '{name}' to drop.", code="DELTA_CONSTRAINT_DOES_NOT_EXIST"
                )
            return operation

        return self._altered(stage)

    def add_columns(self, columns: SchemaLike, *, inside: str = "", first: bool = False, after: str | None = None) -> int:
        """Add columns, which are NULL in the existing rows; return the new version.

        Args:
            columns: of pyarrow, of Delta, or names and types: ``{"id": "long"}``.
            inside: the struct to which they are added; by default they are columns of the table.
            first, after: the position of the first one, followed by the others; by default they come last.
        """
        from tahoe.ops.tables.alter_columns import stage_add_columns
        from tahoe.schema.column_edits import NewColumn, Position
        from tahoe.schema.schema_forms import schema_of

        schema = schema_of(columns)
        position, added = _position(first, after), []
        for column in schema:
            added.append(NewColumn(_path(inside), column, position))
            position = position and Position(column.name)
        return self._altered(lambda transaction: stage_add_columns(transaction, transaction.existing(), added))

    def drop_columns(self, names: Sequence[str], *, if_exists: bool = False) -> int:
        """Drop columns, or fields of structs, of a table with column mapping; return the new version."""
        from tahoe.ops.tables.alter_columns import stage_drop_columns

        paths = [_path(name) for name in names]
        return self._altered(
            lambda transaction: stage_drop_columns(transaction, transaction.existing(), paths, if_exists=if_exists)
        )

    def rename_column(self, name: str, new: str) -> int:
        """Rename a column, or a field of a struct, of a table with column mapping; return the new version.

        Args:
            new: the new name, without the path.
        """
        from tahoe.ops.tables.alter_columns import stage_rename_column

        return self._altered(lambda transaction: stage_rename_column(transaction, transaction.existing(), _path(name), new))

    def change_column(
        self,
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
        from tahoe.ops.tables.alter_columns import ColumnChange, stage_change_columns
        from tahoe.schema.schema_forms import type_of

        target = None if data_type is None else type_of(data_type, name)
        change = ColumnChange(_path(name), target, nullable, comment, _position(first, after), default)
        return self._altered(lambda transaction: stage_change_columns(transaction, transaction.existing(), [change]))

    def sync_identity(self, name: str, *, may_lower: bool = False) -> int:
        """Raise the high-water mark of an identity column to the values in its rows (``SYNC IDENTITY``); return the new version.

        Args:
            may_lower: the mark may be lowered too; then values that were assigned and deleted may be assigned again.

        Raises: see `tahoe.ops.tables.sync_identity.stage_sync_identity`.
        """
        from tahoe.ops.tables.sync_identity import stage_sync_identity

        return self._altered(
            lambda transaction: stage_sync_identity(transaction, transaction.existing(), _path(name), may_lower=may_lower)
        )

    def replace_columns(self, columns: SchemaLike) -> int:
        """Replace the columns: add columns or change their order; see `tahoe.ops.tables.alter_columns.stage_replace_columns`."""
        from tahoe.ops.tables.alter_columns import stage_replace_columns
        from tahoe.schema.schema_forms import schema_of

        schema = schema_of(columns)
        return self._altered(lambda transaction: stage_replace_columns(transaction, transaction.existing(), schema))

    def _with_properties(self, properties: Mapping[str, str]) -> int:
        """Set properties that require no change of files; for other properties see `Table.set_properties`."""
        from tahoe.ops.tables.alter import stage_set_properties

        return self._altered(lambda transaction: stage_set_properties(transaction, transaction.existing(), properties))

    def _altered(self, stage: Callable[[Transaction], Operation | None]) -> int:
        transaction = self.begin()
        operation = stage(transaction)
        if operation is None:
            return transaction.existing().version
        return int(self.commit(transaction, operation).version)


def _position(first: bool, after: str | None) -> Position | None:
    from tahoe.schema.column_edits import FIRST, Position

    return FIRST if first else None if after is None else Position(after)


def _path(name: str) -> Path:
    from tahoe.protocol.statistics.collect import multipart_names

    return next(iter(multipart_names(name)), ())
