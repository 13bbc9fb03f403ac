"""Enables table names in a session: puts Python proxies into the fields of `tahoe.spark.catalog.session_fields`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from tahoe.spark.catalog.auto_compaction import compact_after
from tahoe.spark.catalog.coordinated_names import notify_coordinator
from tahoe.spark.catalog.jar_settings import restore_missing_catalog
from tahoe.spark.catalog.loaded_tables import LoadedTables
from tahoe.spark.catalog.planned_writes import plan_writes
from tahoe.spark.catalog.raw_commands import refuse_raw_commands
from tahoe.spark.catalog.relation_cache import relation_cache
from tahoe.spark.catalog.session_catalog import session_catalog
from tahoe.spark.catalog.session_fields import Field, fields_of_catalogs, fields_of_state
from tahoe.spark.catalog.table_changes import register_table_changes
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.proxies import Proxied, answered, is_proxy
from tahoe.spark.jvm.storage import after_commits
from tahoe.spark.scan.from_log import answer_from_log
from tahoe.spark.scan.renewal import follow_tables
from tahoe.spark.scan.user_cache import recache
from tahoe.spark.statements.parser import parser

__all__ = ["enable_names"]


def enable_names(spark: SparkSession) -> None:
    """Make Delta tables accessible by name in the session. A second call does nothing.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`) on an unsupported Spark version, before anything is changed.
    """
    install()
    state = spark._jsparkSession.sessionState()
    if is_proxy(state.sqlParser()):
        return
    restore_missing_catalog(spark)
    # A JVM exception that passes through Python must stay the original one; Spark catches some by class.
    Jvm.of(spark).gateway.python_parameters.propagate_java_exceptions = True
    _replace_fields(spark, state)
    follow_tables(spark)
    # After `follow_tables`: the log must answer for the version that the plan was renewed to.
    answer_from_log(spark)
    after_commits(partial(recache, spark), partial(compact_after, spark))
    plan_writes(spark)
    refuse_raw_commands(spark)
    notify_coordinator(spark)
    register_table_changes(spark)


def _replace_fields(spark: SparkSession, state: JavaObject) -> None:
    """Look up all fields before changing one."""
    manager = state.catalogManager()
    fields, catalogs = fields_of_state(state), fields_of_catalogs(manager)
    _replace_in_catalogs(spark, manager, catalogs)
    _replace_in_state(spark, fields)


def _replace_in_state(spark: SparkSession, fields: Mapping[str, Field]) -> None:
    original = fields["createClone"].get()
    fields["sqlParser"].set(parser(fields["sqlParser"].get(), spark))
    fields["createClone"].set(compiled_object(Jvm.of(spark), "Copies", original, _CopiedSession(spark)))


def _replace_in_catalogs(spark: SparkSession, manager: JavaObject, fields: Mapping[str, Field]) -> None:
    tables, cache = LoadedTables(), fields["tableRelationCache"]
    catalog = fields["defaultSessionCatalog"]
    catalog.set(session_catalog(catalog.get(), spark, manager.v1SessionCatalog(), tables))
    cache.set(relation_cache(cache.get(), spark, tables, cache.interface))


# -- copies of a session, which streams, caching and writers make ------------------------------------------------------------------
#
# Spark creates the state of a copy under the copy's lock, and its analyzer under the lock of the state. If PySpark's threads are not
# pinned to JVM threads, Python's calls arrive on other threads than the one with the lock, and would wait for it forever. So Java creates
# the objects that need the lock, and passes them to Python, which adds names to them.


class _CopiedSession(Proxied):
    """``(session, state)`` of a copy: enables names in it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, session: JavaObject, state: JavaObject) -> None:
        """Replace the fields of the copy's state now, and those of its catalogs when they are created."""
        copy, fields = SparkSession(self._spark.sparkContext, session), fields_of_state(state)
        _replace_in_state(copy, fields)
        builder = fields["analyzerBuilder"]
        arguments = (builder.get(), _CopiedCatalogs(copy))
        builder.set(compiled_object(Jvm.of(copy), "Analyzers", *arguments))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function2",)


class _CopiedCatalogs(Proxied):
    """``manager`` of the catalogs of a copy: enables names in them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, manager: JavaObject) -> None:
        """Replace the fields of the catalogs."""
        _replace_in_catalogs(self._spark, manager, fields_of_catalogs(manager))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)
