"""Columns in statements: a default is text in Spark 4.0; DROP DEFAULT is a field since 4.1, and DROP COMMENT since 4.3.

Obsolete when PySpark 4.3 is the oldest supported release, for defaults 4.1.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject

from tahoe.spark.versions.members import has_field


def default_text(default: JavaObject | str) -> str:
    """Return the SQL text of a default."""
    return default if isinstance(default, str) else str(default.originalSQL())


def new_default(spec: JavaObject) -> str | None:
    """Return the text of the new default of an ``AlterColumnSpec``: empty for DROP DEFAULT, None if the default stays."""
    if has_field(spec, "dropDefault") and bool(spec.dropDefault()):
        return ""
    default = spec.newDefaultExpression()
    return default_text(default.get()) if default.isDefined() else None


def drops_comment(spec: JavaObject) -> bool:
    """Return whether an ``AlterColumnSpec`` drops the column's comment."""
    return has_field(spec, "dropComment") and bool(spec.dropComment())
