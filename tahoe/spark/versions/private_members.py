"""The private members of Spark's JVM classes that Tahoe uses by name, and whether the JARs of an installation have them.

`tahoe.spark.versions.members` finds them in a running JVM; here they are read from the class files, so `tahoe doctor` starts none.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tahoe.spark.versions.class_file import Jars, parameters_in

_SQL = "org.apache.spark.sql"


@dataclass(frozen=True, slots=True)
class PrivateMember:
    """A private field or method.

    Args:
        owners: the class of the object in each Spark version, newest first; a superclass may declare a field.
        use: what Tahoe cannot do without it, after "cannot".
        parameters: their number; None for a field.
    """

    owners: tuple[str, ...]
    name: str
    use: str
    parameters: int | None = None

    def __str__(self) -> str:
        return f"{self.owners[0].rpartition('.')[2]}.{self.name}"


def _fields(owner: str, use: str, *names: str) -> tuple[PrivateMember, ...]:
    return tuple(PrivateMember((f"{_SQL}.{owner}",), name, use) for name in names)


_WRITER, _START = "classic.DataStreamWriter", "write streams but by foreachBatch"
_CATALOG = f"{_SQL}.connector.catalog"
REQUIRED = (
    *_fields("classic.DataStreamReader", "read streams", "source", "extraOptions", "userSpecifiedSchema"),
    *_fields(_WRITER, _START, "source", "outputMode", "extraOptions", "partitioningColumns", "clusteringColumns"),
    PrivateMember((f"{_SQL}.{_WRITER}",), "startQuery", _START, 5),
    PrivateMember((f"{_SQL}.{_WRITER}",), "normalizedParCols", _START, 0),
    PrivateMember((f"{_SQL}.{_WRITER}",), "normalizedClusteringCols", _START, 0),
    *_fields("internal.SessionState", "give names to tables", "sqlParser", "createClone", "analyzerBuilder"),
    PrivateMember(
        (f"{_CATALOG}.DefaultCatalogManager", f"{_CATALOG}.CatalogManager"), "defaultSessionCatalog", "give names to tables"
    ),
    *_fields("catalyst.catalog.SessionCatalog", "give names to tables", "tableRelationCache"),
    *_fields("execution.CacheManager", "cache written tables again", "cachedData"),
)
"""All that `private_value`, `private_method` and `enable_names` require; optional ones are not listed."""


def missing_members(folder: Path) -> list[PrivateMember]:
    """Return the required members that Spark's JARs in a folder lack.

    Raises `ValueError` or `zipfile.BadZipFile`: a damaged JAR.
    """
    with closing(Jars(folder, "spark-")) as jars:
        return [member for member in REQUIRED if not _has(jars, member)]


def _has(jars: Jars, member: PrivateMember) -> bool:
    classes = next((class_file for owner in member.owners if (class_file := list(jars.with_parents(owner)))), [])
    if member.parameters is None:
        return any(member.name in class_file.fields for class_file in classes)
    signatures = {(name, parameters_in(descriptor)) for class_file in classes[:1] for name, descriptor in class_file.methods}
    return (member.name, member.parameters) in signatures
