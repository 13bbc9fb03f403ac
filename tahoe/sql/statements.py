"""The statements that only Delta has, as frozen values (`tahoe.sql.parse`)."""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.sql.table_name import TableName

__all__ = [
    "AddConstraint",
    "Clone",
    "ComputeStatistics",
    "Convert",
    "DescribeDetail",
    "DescribeHistory",
    "DropConstraint",
    "DropFeature",
    "Fsck",
    "Generate",
    "NotYet",
    "Optimize",
    "Purge",
    "Restore",
    "Statement",
    "SyncIdentity",
    "SyncMetadata",
    "UpgradeUniform",
    "Vacuum",
]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ALTER TABLE … ADD CONSTRAINT name CHECK (condition)``."""

    table: TableName
    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``ALTER TABLE … DROP CONSTRAINT [IF EXISTS] name``."""

    table: TableName
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class DropFeature:
    """``ALTER TABLE … DROP FEATURE name [TRUNCATE HISTORY]``."""

    table: TableName
    feature: str
    truncates_history: bool


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """``ALTER TABLE … ALTER | CHANGE [COLUMN] column SYNC IDENTITY``.

    Args:
        column: the parts of its name.
    """

    table: TableName
    column: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """``DESCRIBE DETAIL …``.

    Args:
        is_text: its path is a string, not an identifier.
    """

    table: TableName
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """``DESCRIBE HISTORY … [LIMIT n]``."""

    table: TableName
    limit: int | None


@dataclass(frozen=True, slots=True)
class SyncMetadata:
    """``MSCK REPAIR TABLE … SYNC METADATA``: convert the newest version to Iceberg now."""

    table: TableName


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """``REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))``."""

    table: TableName
    compat_version: int


@dataclass(frozen=True, slots=True)
class Purge:
    """``REORG TABLE … [WHERE condition] APPLY (PURGE)``."""

    table: TableName
    where: str | None


@dataclass(frozen=True, slots=True)
class Optimize:
    """``OPTIMIZE … [FULL] [WHERE condition] [ZORDER BY (columns)]``."""

    table: TableName
    where: str | None
    zorder_by: tuple[str, ...]
    is_full: bool


@dataclass(frozen=True, slots=True)
class Vacuum:
    """``VACUUM … [FULL | LITE] [USING INVENTORY (table | (query))] [RETAIN n HOURS] [DRY RUN]``, the modifiers in any order.

    Args:
        is_lite: None if the statement has neither FULL nor LITE.
        inventory: a query.
    """

    table: TableName
    is_lite: bool | None = None
    inventory: str | None = None
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """``RESTORE [TABLE] … [TO] [FOR] VERSION AS OF n`` or ``TIMESTAMP AS OF s``: one of the two."""

    table: TableName
    version: int | None
    timestamp: str | None


@dataclass(frozen=True, slots=True)
class Fsck:
    """``FSCK REPAIR TABLE … [DRY RUN]``."""

    table: TableName
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Generate:
    """``GENERATE mode FOR TABLE …``."""

    table: TableName
    mode: str


@dataclass(frozen=True, slots=True)
class ComputeStatistics:
    """``ANALYZE TABLE … COMPUTE DELTA STATISTICS``."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Clone:
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [SHALLOW | DEEP] CLONE source [VERSION | TIMESTAMP AS OF …] [TBLPROPERTIES (…)]
    [LOCATION '…']``.

    Args:
        table: the clone.
        how: ``create``, ``createIfNotExists``, ``replace`` or ``createOrReplace``.
        source: the name of a path may have another format instead of ``delta``: ``parquet.`/path` ``.
        is_shallow: False without either word.
        version, timestamp: of the source; at most one.
    """

    table: TableName
    how: str
    source: TableName
    is_shallow: bool
    version: int | None = None
    timestamp: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """``CONVERT TO DELTA … [NO STATISTICS] [PARTITIONED BY (column type, …)]``, the two in either order.

    Args:
        table: the name of a path has its present format instead of ``delta``: ``parquet.`/path` ``.
        partition_by: the text of the columns.
    """

    table: TableName
    statistics: bool
    partition_by: str | None


@dataclass(frozen=True, slots=True)
class NotYet:
    """A statement of Delta that this version of Tahoe does not support.

    Args:
        words: its first words, such as ``GENERATE``.
        table: the table in the statement; None if it names no table.
    """

    words: str
    table: TableName | None


Statement = (
    AddConstraint
    | DropConstraint
    | DropFeature
    | SyncIdentity
    | DescribeDetail
    | DescribeHistory
    | SyncMetadata
    | UpgradeUniform
    | Purge
    | Optimize
    | Vacuum
    | Restore
    | Clone
    | ComputeStatistics
    | Fsck
    | Generate
    | Convert
    | NotYet
)
