"""Names of streaming sources: ``spark.readStream.name(…)`` and ``FROM STREAM t IDENTIFIED BY …``, since Spark 4.2.

Obsolete when PySpark 4.2 is the oldest supported release: all constructors then take a name.
"""

from __future__ import annotations

from collections.abc import Sequence

from py4j.java_gateway import JavaObject

from tahoe.spark.versions.members import private_field

NAMED_RELATION = "NamedStreamingRelation"
"""The node above an ``UnresolvedRelation`` that is read as a stream: its elements are the relation and its name."""

_DATA_SOURCE_PARAMETERS = 8
_RELATION_PARAMETERS = 3


def identified_by(identifier: JavaObject) -> str | None:
    """Return the name in a ``NamedStreamingRelation``; None if the user gave none."""
    return str(identifier.name()) if str(identifier.getClass().getSimpleName()) == "UserProvided" else None


def source_name(reader: JavaObject) -> str | None:
    """Return the name that the user gave to the source of a JVM ``DataStreamReader``, or None."""
    field = private_field(reader, "userProvidedSourceName")
    name = None if field is None else field.get(reader)
    return str(name.get()) if name is not None and name.isDefined() else None


def name_argument(parameters: Sequence[JavaObject]) -> str:
    """Return the Java text that passes ``name`` to the constructor of ``DataSource``, whose parameters these are."""
    return ", name" if len(parameters) > _DATA_SOURCE_PARAMETERS else ""


def name_of_table(table: JavaObject, parameters: Sequence[JavaObject]) -> tuple[JavaObject, ...]:
    """Return the last argument of ``StreamingRelation``, whose constructor has these parameters: the name of its table, if it takes one."""
    return (table.streamingSourceIdentifyingName(),) if len(parameters) > _RELATION_PARAMETERS else ()
