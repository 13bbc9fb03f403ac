"""Rejects Spark's own commands that would change a Delta table without its log, whichever way they arrive.

The parser turns statements on Delta tables into Tahoe's commands (`tahoe.spark.statements`). The text of EXECUTE IMMEDIATE may
have passed another parser (`tahoe.spark.versions.execute_immediate`); such commands would truncate files, or alter only the catalog entry.
Optimizer rules see commands too; they are classes, so one is compiled (`tahoe.spark.jvm.compiled`).
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.compiled import add_optimizer_rule
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.names.entries import entry_at, is_delta
from tahoe.spark.versions.execute_immediate import HINT
from tahoe.spark.versions.members import has_field

__all__ = ["refuse_raw_commands"]

# These correctly change only catalog entries.
_OF_ENTRIES = ("AlterTableRenameCommand", "AlterTableRename", "AlterTableSetLocationCommand", "AlterTableSetLocation")


def refuse_raw_commands(spark: SparkSession) -> None:
    """Add the rule to the session; copies of the session have it too. A second call does nothing."""
    add_optimizer_rule(spark, "RawCommands", lambda: _RawCommandCheck(spark))


class _RawCommandCheck(Proxied):
    """``command → command``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, command: JavaObject) -> JavaObject:
        """Return the command itself. Raises `Unsupported` for a command on a Delta table."""
        kind = str(command.getClass().getSimpleName())
        field = next((name for name in ("tableName", "table") if has_field(command, name)), None)
        if kind in _OF_ENTRIES or field is None:
            return command
        identifier = getattr(command, field)()
        if str(identifier.getClass().getSimpleName()) != "TableIdentifier":
            return command
        entry = entry_at(self._spark._jsparkSession.sessionState().catalog(), identifier)
        if entry is not None and is_delta(entry):
            name = str(entry.identifier().unquotedString())
            raise Unsupported(
                f"{kind} would change table {name} past its log; nothing was changed. {HINT}",
                code="DELTA_OPERATION_NOT_ALLOWED",
                table=name,
            )
        return command

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)
