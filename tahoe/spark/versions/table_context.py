"""The arguments of ``TableCatalog.loadTable``: a version, a timestamp or privileges to write; since Spark 4.3 all in one ``TableContext``.

Obsolete when PySpark 4.3 is the oldest supported release: only the last part of `requested` is then needed.
"""

from __future__ import annotations

from collections.abc import Callable

from py4j.java_gateway import JavaObject

Travel = str | int | None
"""A version as text, microseconds since 1970, or the newest version."""


def requested(*arguments: JavaObject) -> tuple[Travel, bool]:
    """Return the version or timestamp, and whether the table is loaded to be written.

    Args:
        arguments: of ``loadTable``, after the name.
    """
    if not arguments:
        return None, False
    first = arguments[0]
    if isinstance(first, (int, str)):
        return first, False
    if not hasattr(first, "getClass") or not str(first.getClass().getSimpleName()).endswith("TableContext"):
        return None, True
    travel = first.timeTravel().orElse(None)
    writes = first.writePrivileges().size() > 0
    if travel is None:
        return None, writes
    return (str(travel.version()) if "Version" in str(travel.getClass().getSimpleName()) else int(travel.micros())), writes


def newest_context(loader: JavaObject, java_class: Callable[[str], JavaObject]) -> JavaObject | None:
    """Return the ``TableContext`` that requests the newest version to read; None before Spark 4.3, which has no such class.

    Args:
        loader: the class loader of Spark's classes.
        java_class: returns the class with a full name.
    """
    name = "org.apache.spark.sql.connector.catalog.TableContext"
    if loader.getResource(f"{name.replace('.', '/')}.class") is None:
        return None
    return java_class(name)(None, java_class("java.util.HashSet")())
