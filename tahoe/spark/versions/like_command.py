"""``CREATE TABLE … LIKE`` before Spark 4.2: the parser returns ``CreateTableLikeCommand``, with resolved names and a file format.

Obsolete when PySpark 4.2 is the oldest supported release, whose parser returns ``CreateTableLike``.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject


def identifier_parts(identifier: JavaObject) -> tuple[str, ...]:
    """Return the identifiers of a ``TableIdentifier``."""
    qualifiers = (name.get() for name in (identifier.catalog(), identifier.database()) if name.isDefined())
    return (*(str(name) for name in qualifiers), str(identifier.table()))
