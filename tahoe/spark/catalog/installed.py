"""Names of a session, switched on: Python's answers in the places of `tahoe.spark.catalog.session_fields`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from tahoe.spark.catalog.after_writes import compact_after
from tahoe.spark.catalog.dropped import tell_coordinator_of_names
from tahoe.spark.catalog.jar_settings import take_back_missing_catalog
from tahoe.spark.catalog.known import KnownTables
from tahoe.spark.catalog.planned_writes import plan_writes
from tahoe.spark.catalog.raw_commands import refuse_raw_commands
from tahoe.spark.catalog.relation_cache import relation_cache
from tahoe.spark.catalog.session_catalog import session_catalog
from tahoe.spark.catalog.session_fields import Field, fields_of_catalogs, fields_of_state
from tahoe.spark.catalog.table_changes import give_table_changes
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.stand_ins import Proxied, answered, is_stand_in
from tahoe.spark.jvm.storage import after_commits
from tahoe.spark.scan.cached import recache
from tahoe.spark.scan.from_log import answer_from_log
from tahoe.spark.scan.renewal import follow_tables
from tahoe.spark.statements.parser import parser

__all__ = ["give_names"]


def give_names(spark: SparkSession) -> None:
    """Let the session know Delta tables by their names. A second call does nothing.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`) before anything is changed, where this Spark is not one that Tahoe knows.
    """
    install()
    state = spark._jsparkSession.sessionState()
    if is_stand_in(state.sqlParser()):
        return
    take_back_missing_catalog(spark)
    # An exception of the JVM that passes through Python goes on as what it was; Spark catches some by their class.
    Jvm.of(spark).gateway.python_parameters.propagate_java_exceptions = True
    _answer(spark, state)
    follow_tables(spark)
    # After it: what the log says is asked of the version that a plan was given.
    answer_from_log(spark)
    after_commits(partial(recache, spark), partial(compact_after, spark))
    plan_writes(spark)
    refuse_raw_commands(spark)
    tell_coordinator_of_names(spark)
    give_table_changes(spark)


def _answer(spark: SparkSession, state: JavaObject) -> None:
    """All fields are looked at before one is changed."""
    manager = state.catalogManager()
    fields, catalogs = fields_of_state(state), fields_of_catalogs(manager)
    _answer_catalogs(spark, manager, catalogs)
    _answer_state(spark, fields)


def _answer_state(spark: SparkSession, fields: Mapping[str, Field]) -> None:
    there = fields["createClone"].get()
    fields["sqlParser"].set(parser(fields["sqlParser"].get(), spark))
    fields["createClone"].set(compiled_object(Jvm.of(spark), "Copies", there, _Copies(spark)))


def _answer_catalogs(spark: SparkSession, manager: JavaObject, fields: Mapping[str, Field]) -> None:
    known, cache = KnownTables(), fields["tableRelationCache"]
    catalog = fields["defaultSessionCatalog"]
    catalog.set(session_catalog(catalog.get(), spark, manager.v1SessionCatalog(), known))
    cache.set(relation_cache(cache.get(), spark, known, cache.interface))


# -- copies of a session, which streams, caching and writers make ------------------------------------------------------------------
#
# Spark makes the state of a copy under the lock of the copy, and its analyzer under that of the state. Where PySpark's threads are not
# pinned to threads of the JVM, Python's calls come on other threads than the one that holds the lock, and would wait for it for ever. So
# Java makes what needs the lock, and Python is called with what it gives names to.


class _Copies(Proxied):
    """``(session, state)`` of a copy: it has the same names."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, session: JavaObject, state: JavaObject) -> None:
        """Give them to the copy: what stands in the state at once, its catalogs when they are made."""
        copy, fields = SparkSession(self._spark.sparkContext, session), fields_of_state(state)
        _answer_state(copy, fields)
        builder = fields["analyzerBuilder"]
        later = (builder.get(), _Catalogs(copy))
        builder.set(compiled_object(Jvm.of(copy), "Analyzers", *later))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function2",)


class _Catalogs(Proxied):
    """``manager`` of the catalogs of a copy."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, manager: JavaObject) -> None:
        """Give names to them."""
        _answer_catalogs(self._spark, manager, fields_of_catalogs(manager))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)
