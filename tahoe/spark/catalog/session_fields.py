"""The private fields of a session that get other values.

Their names and types are checked before anything is changed: an unsupported Spark version raises an error that names the difference, and is
never changed halfway.

    CatalogManager.defaultSessionCatalog     CatalogPlugin      create, load for reading or writing, time travel
    SessionCatalog.tableRelationCache        Cache (Guava)      the plan for reading a named table
    SessionState.sqlParser                   ParserInterface    statements on Delta tables
    SessionState.createClone                 Function2          copies of the session have all of these too
    SessionState.analyzerBuilder             Function0          in a copy: creates the owners of the first two
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.versions.members import private_field, unsupported_spark

__all__ = ["Field", "fields_of_catalogs", "fields_of_state"]


@dataclass(frozen=True, slots=True)
class Field:
    """One private field of a JVM object, and the full name of its type."""

    owner: JavaObject
    field: JavaObject
    interface: str

    def get(self) -> JavaObject:
        """Return the field's value."""
        return self.field.get(self.owner)

    def set(self, value: Any) -> None:
        """Set the field's value."""
        self.field.set(self.owner, value)


_TYPES = {
    "defaultSessionCatalog": "org.apache.spark.sql.connector.catalog.CatalogPlugin",
    "tableRelationCache": ".guava.cache.Cache",  # Spark ships it under a package of its own, which differs between versions
    "sqlParser": "org.apache.spark.sql.catalyst.parser.ParserInterface",
    "createClone": "scala.Function2",
    "analyzerBuilder": "scala.Function0",
}


def fields_of_state(state: JavaObject) -> dict[str, Field]:
    """Return the fields of a ``SessionState``, by name.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`): this Spark version lacks one of them, or it has another type.
    """
    return {name: _field(state, name) for name in ("sqlParser", "createClone", "analyzerBuilder")}


def fields_of_catalogs(manager: JavaObject) -> dict[str, Field]:
    """Return the fields of a ``CatalogManager`` and its ``SessionCatalog``. Raises the errors of `fields_of_state`."""
    owners = {"defaultSessionCatalog": manager, "tableRelationCache": manager.v1SessionCatalog()}
    return {name: _field(owner, name) for name, owner in owners.items()}


def _field(owner: JavaObject, name: str) -> Field:
    key = (str(owner.getClass().getName()), name)
    if key not in _FIELDS:
        field = private_field(owner, name)
        if field is None:
            raise unsupported_spark(_USE, f"{key[0]} has no {name}")
        _FIELDS[key] = _checked(owner, field)
    return Field(owner, *_FIELDS[key])


_USE = "give names to tables"
# Sessions are copied often, and a field lookup takes dozens of calls.
_FIELDS: dict[tuple[str, str], tuple[JavaObject, str]] = {}


def _checked(owner: JavaObject, field: JavaObject) -> tuple[JavaObject, str]:
    name, kind = str(field.getName()), field.getType()
    if not kind.isInterface() or not str(kind.getName()).endswith(_TYPES[name]):
        path, expected = f"{owner.getClass().getName()}.{name}", _TYPES[name].removeprefix(".")
        raise unsupported_spark(_USE, f"{path} holds a {kind.getName()}, expected the interface {expected}")
    return field, str(kind.getName())
