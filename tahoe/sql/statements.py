"""What the user asked for, as frozen values: the statements of Delta, and queries that read tables by path (`tahoe.sql.parse`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tahoe.sql.references import Reference

__all__ = [
    "AddConstraint",
    "Command",
    "Delete",
    "DescribeDetail",
    "DescribeHistory",
    "DescribeTable",
    "DropConstraint",
    "Purge",
    "Query",
    "SetProperties",
    "ShowProperties",
    "Statement",
    "SyncMetadata",
    "TableAtPath",
    "UnsetProperties",
    "Update",
    "UpgradeUniform",
]


@dataclass(frozen=True, slots=True)
class TableAtPath:
    """A table named by its path; `written` is how the user wrote it."""

    path: str
    written: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``ALTER TABLE … SET TBLPROPERTIES (…)``."""

    table: TableAtPath
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``ALTER TABLE … UNSET TBLPROPERTIES [IF EXISTS] (…)``."""

    table: TableAtPath
    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ALTER TABLE … ADD CONSTRAINT name CHECK (condition)``."""

    table: TableAtPath
    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``ALTER TABLE … DROP CONSTRAINT [IF EXISTS] name``."""

    table: TableAtPath
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """``SHOW TBLPROPERTIES … [(key)]``."""

    table: TableAtPath
    key: str | None


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """``DESCRIBE [TABLE] …``: the columns."""

    table: TableAtPath


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """``DESCRIBE DETAIL …``."""

    table: TableAtPath


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """``DESCRIBE HISTORY … [LIMIT n]``."""

    table: TableAtPath
    limit: int | None


@dataclass(frozen=True, slots=True)
class SyncMetadata:
    """``MSCK REPAIR TABLE … SYNC METADATA``: convert the newest version to Iceberg now."""

    table: TableAtPath


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """``REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))``."""

    table: TableAtPath
    compat_version: int


@dataclass(frozen=True, slots=True)
class Purge:
    """``REORG TABLE … [WHERE condition] APPLY (PURGE)``."""

    table: TableAtPath
    where: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM … [[AS] alias] [WHERE condition]``."""

    table: TableAtPath
    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE … [[AS] alias] SET column = expression, … [WHERE condition]``; columns as the user wrote them, ``a.b`` for fields."""

    table: TableAtPath
    alias: str | None
    values: Mapping[str, str]
    where: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """Any text of Spark's that reads tables by path.

    Args:
        is_kept: Spark may keep the text and run it again: a view, a function, a script.
    """

    text: str
    references: tuple[Reference, ...]
    is_kept: bool


Command = (
    SetProperties
    | UnsetProperties
    | AddConstraint
    | DropConstraint
    | ShowProperties
    | DescribeDetail
    | DescribeHistory
    | SyncMetadata
    | UpgradeUniform
    | Purge
    | Delete
    | Update
)
"""What is done to, or asked of, one table."""
Statement = Command | DescribeTable | Query
