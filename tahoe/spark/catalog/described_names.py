"""Names of tables with facts about their entries, as ``TableNames.java`` describes them in one text for each question of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.names.entries import unescaped
from tahoe.spark.versions.table_context import newest_context


@dataclass(frozen=True, slots=True)
class DescribedName:
    """The name of a table, and the Delta table that the session's catalog has under it.

    Args:
        parts: of the name.
        entry_number: of the catalog's entry; entries of a name with the same number are equal. None without an entry of a Delta table.
        location: the table's path or URL; empty without an entry.
    """

    parts: tuple[str, ...]
    entry_number: int | None
    location: str

    @classmethod
    def of(cls, text: str) -> DescribedName:
        """Parse the text of ``TableNames.java``."""
        number, location, name = text.split("\1", 2)
        return cls(tuple(name.split("\0")), int(number) or None, unescaped(location))


def describing(jvm: Jvm, entries: JavaObject | None) -> Callable[[object], JavaObject]:
    """Return the argument `described` of `tahoe.spark.jvm.proxies.proxy` for methods whose first argument is the name of a table.

    Args:
        entries: the ``SessionCatalog`` with the entries; None for methods of the cache of relations, whose keys are texts alone.
    """

    def newest() -> JavaObject:
        return newest_context(jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader(), jvm.java_class)

    context = jvm.cached("the newest version", newest)
    return lambda function: compiled_object(jvm, "TableNames", function, entries, context)
