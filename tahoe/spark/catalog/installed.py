"""Names of a session, switched on: Python's answers in the four places of `tahoe.spark.catalog.session_fields`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from tahoe.spark.catalog.dynamic_overwrite import plan_dynamic_overwrites
from tahoe.spark.catalog.known import KnownTables
from tahoe.spark.catalog.relation_cache import relation_cache
from tahoe.spark.catalog.session_catalog import session_catalog
from tahoe.spark.catalog.session_fields import fields_of
from tahoe.spark.catalog.table_changes import give_table_changes
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.stand_ins import is_stand_in, stand_in
from tahoe.spark.jvm.storage import after_commits
from tahoe.spark.scan.cached import recache
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
    # An exception of the JVM that passes through Python goes on as what it was; Spark catches some by their class.
    Jvm.of(spark).gateway.python_parameters.propagate_java_exceptions = True
    _answer(spark, state)
    follow_tables(spark)
    after_commits(partial(recache, spark))
    plan_dynamic_overwrites(spark)
    give_table_changes(spark)


def _answer(spark: SparkSession, state: JavaObject) -> None:
    fields, known = fields_of(state), KnownTables()
    new: dict[str, Callable[[JavaObject, str], JavaObject]] = {
        "defaultSessionCatalog": lambda there, _: session_catalog(there, spark, state.catalog(), known),
        "tableRelationCache": lambda there, interface: relation_cache(there, spark, known, interface),
        "sqlParser": lambda there, _: parser(there, spark),
        "createClone": lambda there, interface: stand_in(spark, there, _Clones(there, spark), ["apply"], [interface]),
    }
    for name, field in fields.items():
        field.set(new[name](field.get(), field.interface))


class _Clones:
    """``(session, state) → state`` of a copy of the session, which streams, caching and writers make: it has the same names."""

    def __init__(self, there: JavaObject, spark: SparkSession) -> None:
        self._there, self._spark = there, spark

    def apply(self, session: JavaObject, state: JavaObject) -> JavaObject:
        """The state of the copy."""
        copy = self._there.apply(session, state)
        _answer(SparkSession(self._spark.sparkContext, session), copy)
        return copy
