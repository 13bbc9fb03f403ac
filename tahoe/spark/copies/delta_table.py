"""The CLONE and GENERATE methods of `DeltaTable`."""

# ruff: noqa: N802, N803 - the names are delta-spark's

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tahoe.base.argument_checks import checked_arguments
from tahoe.ops.copies.clone import CloneRequest
from tahoe.spark.commands.checked_arguments import check_kind, checked_clone
from tahoe.spark.copies.clone import NamedCloneRequest, clone_named
from tahoe.spark.names.entries import parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tahoe.api.table import Table


class Copies:
    """Creates copies of this table."""

    _spark: SparkSession
    _table: Table
    _name: str | None

    if TYPE_CHECKING:  # `DeltaTable` has it

        def __init__(self, spark: SparkSession, table: Table) -> None: ...

    @checked_arguments
    def generate(self, mode: str) -> None:
        """Write lists of the live files for readers that do not read the log.

        Args:
            mode: ``symlink_format_manifest``.

        Raises: see `tahoe.ops.copies.symlink_manifests.generate`.
        """
        self._table.generate(mode)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> Self:
        """Create an independent table with the rows of this one, and return it.

        Args:
            target: a path, or a name in the session's catalog.
            isShallow: reference this table's files instead of copying them. With `replace`, a repeated deep clone copies only new files.
            replace: replace an existing table.
            properties: of the clone; they override this table's.

        Raises: see `tahoe.spark.copies.clone.clone_named`.
        """
        return self._cloned(target, checked_clone(target, isShallow, replace, properties))

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> Self:
        """Clone an older version; see `clone`."""
        check_kind(version, "version", int)
        request = checked_clone(target, isShallow, replace, properties)
        return self._cloned(target, request, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> Self:
        """Clone the newest version at a timestamp, which is parsed in the session's time zone; see `clone`."""
        check_kind(timestamp, "timestamp", str)
        request = checked_clone(target, isShallow, replace, properties)
        return self._cloned(target, request, timestamp=timestamp)

    def _cloned(self, target: str, request: CloneRequest, version: int | None = None, timestamp: str | None = None) -> Self:
        is_path = target.startswith("/") or ":/" in target  # as Hadoop: `file:/data/t` is absolute too
        name = ("delta", target) if is_path else parts_of(self._spark, target)
        source = parts_of(self._spark, self._name) if self._name else ()
        named = NamedCloneRequest(name, source, request, version, timestamp)
        _, copy = clone_named(self._spark, named, None if source else self._table)
        return type(self)(self._spark, copy)
