"""Private fields of a session in whose places other objects stand. Their names and types are looked at before anything is changed:
a Spark that has others is refused by name, not half changed.

    CatalogManager.defaultSessionCatalog     CatalogPlugin      create, load for reading or writing, time travel
    SessionCatalog.tableRelationCache        Cache (Guava)      the plan that a named table is read by
    SessionState.sqlParser                   ParserInterface    statements on Delta tables
    SessionState.createClone                 Function2          copies of the session have all of these too
    SessionState.analyzerBuilder             Function0          in a copy: makes what the first two belong to
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.private_fields import other_spark, private_field

__all__ = ["Field", "fields_of_catalogs", "fields_of_state"]


@dataclass(frozen=True, slots=True)
class Field:
    """One private field of an object of the JVM, and the full name of its type."""

    owner: JavaObject
    field: JavaObject
    interface: str

    def get(self) -> JavaObject:
        """What stands there."""
        return self.field.get(self.owner)

    def set(self, value: Any) -> None:
        """Put something else there."""
        self.field.set(self.owner, value)


_TYPES = {
    "defaultSessionCatalog": "org.apache.spark.sql.connector.catalog.CatalogPlugin",
    "tableRelationCache": ".guava.cache.Cache",  # Spark ships it under a package of its own, which differs between versions
    "sqlParser": "org.apache.spark.sql.catalyst.parser.ParserInterface",
    "createClone": "scala.Function2",
    "analyzerBuilder": "scala.Function0",
}


def fields_of_state(state: JavaObject) -> dict[str, Field]:
    """The fields of a ``SessionState``, by name.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`): this Spark has not got one of them, or it holds another type.
    """
    return {name: _field(state, name) for name in ("sqlParser", "createClone", "analyzerBuilder")}


def fields_of_catalogs(manager: JavaObject) -> dict[str, Field]:
    """Those of a ``CatalogManager`` and its ``SessionCatalog``. Raises as `fields_of_state`."""
    owners = {"defaultSessionCatalog": manager, "tableRelationCache": manager.v1SessionCatalog()}
    return {name: _field(owner, name) for name, owner in owners.items()}


def _field(owner: JavaObject, name: str) -> Field:
    key = (str(owner.getClass().getName()), name)
    if key not in _KNOWN:
        field = private_field(owner, name)
        if field is None:
            raise other_spark(_USE, f"{key[0]} has no {name}")
        _KNOWN[key] = _checked(owner, field)
    return Field(owner, *_KNOWN[key])


_USE = "give names to tables"
# Sessions are copied often, and looking for a field costs some dozens of calls.
_KNOWN: dict[tuple[str, str], tuple[JavaObject, str]] = {}


def _checked(owner: JavaObject, field: JavaObject) -> tuple[JavaObject, str]:
    name, kind = str(field.getName()), field.getType()
    if not kind.isInterface() or not str(kind.getName()).endswith(_TYPES[name]):
        place, wanted = f"{owner.getClass().getName()}.{name}", _TYPES[name].removeprefix(".")
        raise other_spark(_USE, f"{place} holds a {kind.getName()}, expected the interface {wanted}")
    return field, str(kind.getName())
