"""What `DeltaTable` has of CLONE and GENERATE."""

# ruff: noqa: N802, N803 - the names are delta-spark's

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tahoe.argument_checks import checked_arguments
from tahoe.ops.copies.clone import CloneRequest
from tahoe.spark.commands.checked_arguments import check_clone, check_kind
from tahoe.spark.copies.clone import AskedClone, clone_named
from tahoe.spark.names.entries import parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tahoe.table import Table

__all__ = ["Copies"]


class Copies:
    """Tables made of this one."""

    _spark: SparkSession
    _table: Table
    _name: str | None

    if TYPE_CHECKING:  # `DeltaTable` has it

        def __init__(self, spark: SparkSession, table: Table) -> None: ...

    @checked_arguments
    def generate(self, mode: str) -> None:
        """Write lists of the live files for readers that know no log.

        Args:
            mode: ``symlink_format_manifest``.

        Raises: see `tahoe.ops.copies.symlink_manifests.generate`.
        """
        self._table.generate(mode)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> Self:
        """Make a table of its own with the rows of this one, and return it.

        Args:
            target: a path, or a name in the session's catalog.
            isShallow: name this table's files; else copy them. A deep clone that is made again with `replace` copies what is new.
            replace: let the clone take the place of a table that is there.
            properties: of the clone, over those of this table.

        Raises: see `tahoe.spark.copies.clone.clone_named`.
        """
        check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> Self:
        """As `clone`, of an older version."""
        check_kind(version, "version", int)
        check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> Self:
        """As `clone`, of the newest version of a time, which is read in the session's time zone."""
        check_kind(timestamp, "timestamp", str)
        check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties, timestamp=timestamp)

    def _cloned(self, target: str, shallow: bool, replace: bool, properties: dict[str, str] | None, **at: Any) -> Self:
        is_path = target.startswith("/") or "://" in target
        name = ("delta", target) if is_path else parts_of(self._spark, target)
        request = CloneRequest(shallow, "createOrReplace" if replace else "create", properties or {})
        source = parts_of(self._spark, self._name) if self._name else ()
        _, made = clone_named(self._spark, AskedClone(name, source, request, **at), None if source else self._table)
        return type(self)(self._spark, made)
