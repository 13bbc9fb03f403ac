"""A new table's location and its entry in the session's catalog, in delta-spark's form: provider, location, managed or external, comment.

The entry omits schema, partitioning and properties, which are in the log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import copied, created
from tahoe.spark.names.entries import SESSION_CATALOG, entry_at, entry_of, is_delta, table_identifier
from tahoe.spark.names.server_catalog import server_relation

_KINDS = "catalog.CatalogTableType"
_TAKEN = re.compile(r"\w+", re.ASCII)


def in_session_catalog(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return whether a name belongs to the session's own catalog, not to another catalog of the session."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    if len(parts) > 1 and bool(manager.isCatalogRegistered(parts[0])):
        return parts[0].lower() == SESSION_CATALOG and len(parts) < 4
    return len(parts) < 3 and str(manager.currentCatalog().name()).lower() == SESSION_CATALOG


def full_identifier(spark: SparkSession, parts: Sequence[str]) -> JavaObject:
    """Return the ``TableIdentifier`` for a name in the session's own catalog, with its database and catalog.

    Raises PySpark's ``AnalysisException`` (``SCHEMA_NOT_FOUND``) if there is no such database.
    """
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = catalog.qualifyIdentifier(table_identifier(Jvm.of(spark), parts))
    catalog.getDatabaseMetadata(identifier.database().get())
    return identifier


def delta_entry(spark: SparkSession, parts: Sequence[str]) -> JavaObject | None:
    """Return the ``CatalogTable`` of a Delta table in the session's own catalog, otherwise None.

    Temporary views, which hide tables from readers, do not hide them from writers.
    """
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = catalog.qualifyIdentifier(table_identifier(Jvm.of(spark), parts))
    entry = entry_at(catalog, identifier)
    return entry if entry is not None and is_delta(entry) else None


def uri_of_new(spark: SparkSession, identifier: JavaObject) -> JavaObject:
    """Return the location of a managed table with this name."""
    return spark._jsparkSession.sessionState().catalog().defaultTablePath(identifier)


def uri_of_text(spark: SparkSession, location: str) -> JavaObject:
    """Return the URI for a LOCATION; a relative one is below the warehouse."""
    jvm, state = Jvm.of(spark), spark._jsparkSession.sessionState()
    names = jvm.catalyst("catalog.CatalogUtils")
    return names.makeQualifiedDBObjectPath(names.stringToURI(location), state.conf().warehousePath(), state.newHadoopConf())


def new_entry(spark: SparkSession, identifier: JavaObject, uri: JavaObject, *, managed: bool, comment: str | None) -> JavaObject:
    """Return a new ``CatalogTable`` for a Delta table."""
    jvm = Jvm.of(spark)
    kinds = jvm.catalyst(_KINDS)
    storage = copied(jvm.catalyst("catalog.CatalogStorageFormat").empty(), locationUri=jvm.option(uri))
    schema = jvm.java_class("org.apache.spark.sql.types.StructType")()
    entry = created(
        jvm,
        "catalog.CatalogTable",
        identifier,
        kinds.MANAGED() if managed else kinds.EXTERNAL(),
        storage,
        schema,
        jvm.option("delta"),
    )
    return copied(entry, comment=jvm.option(comment), tracksPartitionsInCatalog=True)


def is_managed(entry: JavaObject) -> bool:
    """Return whether dropping the entry deletes the table's files."""
    return str(entry.tableType().name()) == "MANAGED"


def is_view(entry: JavaObject) -> bool:
    """Return whether the entry is that of a view."""
    return str(entry.tableType().name()) == "VIEW"


def names_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return whether a name is that of a view: a temporary one, or one of the session's catalog."""
    if not is_classic(spark):
        relation = server_relation(spark, parts)
        return relation is not None and relation.is_view
    entry = entry_of(spark, parts)
    if entry is not None:
        return is_view(entry)
    catalog = spark._jsparkSession.sessionState().catalog()
    return len(parts) <= 2 and bool(catalog.isTempView(table_identifier(Jvm.of(spark), parts)))


def refuse_odd_name(spark: SparkSession, identifier: JavaObject) -> None:
    """Reject a name that Spark's catalog would reject, with Spark's error (``INVALID_SCHEMA_OR_RELATION_NAME``), before a commit."""
    name = str(identifier.table())
    if _TAKEN.fullmatch(name) is None:
        errors = Jvm.of(spark).java_class("org.apache.spark.sql.errors.QueryCompilationErrors")
        raise captured.convert_exception(errors.invalidNameForTableOrDatabaseError(name))


def raise_exists(spark: SparkSession, identifier: JavaObject) -> NoReturn:
    """Raise Spark's error ``TABLE_OR_VIEW_ALREADY_EXISTS``."""
    kind = Jvm.of(spark).catalyst("analysis.TableAlreadyExistsException")
    raise captured.convert_exception(kind(identifier.database().get(), identifier.table()))


def raise_missing(spark: SparkSession, identifier: JavaObject) -> NoReturn:
    """Raise Spark's error for a missing table to replace: ``TABLE_OR_VIEW_NOT_FOUND``."""
    jvm = Jvm.of(spark)
    names = jvm.java_class("org.apache.spark.sql.connector.catalog.Identifier")
    name = names.of(jvm.array("java.lang.String", [str(identifier.database().get())]), str(identifier.table()))
    raise captured.convert_exception(jvm.catalyst("analysis.CannotReplaceMissingTableException")(name, jvm.option(None)))
