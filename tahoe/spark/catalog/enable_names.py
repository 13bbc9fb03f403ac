"""Enables table names in a session: puts Python proxies into private fields of its objects.

The names and types of the fields are checked before anything is changed: an unsupported Spark version raises an error that names the
difference, and is never changed halfway.

    CatalogManager.defaultSessionCatalog     CatalogPlugin      create, load for reading or writing, time travel
    SessionCatalog.tableRelationCache        Cache (Guava)      the plan for reading a named table
    SessionState.sqlParser                   ParserInterface    statements on Delta tables
    SessionState.createClone                 Function2          copies of the session have all of these too
    SessionState.analyzerBuilder             Function0          in a copy: creates the owners of the first two
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from tahoe.spark.catalog.jar_settings import restore_own_catalog
from tahoe.spark.catalog.optimizer_rules import notify_coordinator, plan_writes, refuse_raw_commands
from tahoe.spark.catalog.relation_cache import CacheAnswers, LoadedTables, relation_cache
from tahoe.spark.catalog.session_catalog import CatalogAnswers, session_catalog
from tahoe.spark.catalog.table_changes import register_table_changes
from tahoe.spark.commands.upkeep import compact_after
from tahoe.spark.jvm.bridge import JavaObject, Jvm, handle_of
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.hadoop_files import JvmFiles
from tahoe.spark.jvm.proxies import AnswersFunction, Proxied, answered, is_proxy
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import after_commits, describe_commits
from tahoe.spark.names.settings import user_metadata_of
from tahoe.spark.scan.from_log import answer_from_log
from tahoe.spark.scan.renewal import follow_tables
from tahoe.spark.scan.user_cache import recache
from tahoe.spark.statements.parser import ParserAnswers, parser
from tahoe.spark.versions.members import private_field, unsupported_spark
from tahoe.store.hadoop_store import use_file_systems


def enable_names(spark: SparkSession) -> None:
    """Make Delta tables accessible by name in the session. A second call does nothing.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`) on an unsupported Spark version, before anything is changed.
    """
    install()
    state = spark._jsparkSession.sessionState()
    if is_proxy(state.sqlParser()):
        return
    restore_own_catalog(spark)
    # A JVM exception that passes through Python must stay the original one; Spark catches some by class.
    Jvm.of(spark).gateway.python_parameters.propagate_java_exceptions = True
    _replace_fields(spark, state)
    follow_tables(spark)
    # After `follow_tables`: the log must answer for the version that the plan was renewed to.
    answer_from_log(spark)
    after_commits(partial(recache, spark), partial(compact_after, spark))
    describe_commits(user_metadata_of)
    use_file_systems(partial(JvmFiles, spark))
    plan_writes(spark)
    refuse_raw_commands(spark)
    notify_coordinator(spark)
    register_table_changes(spark)


def _replace_fields(spark: SparkSession, state: JavaObject) -> None:
    """Look up all fields before changing one."""
    manager = state.catalogManager()
    fields, catalogs = fields_of_state(state), fields_of_catalogs(manager)
    _replace_in_catalogs(spark, catalogs, manager, *_catalog_answers(spark, *_originals(manager, catalogs)))
    own_parser, clone = fields["sqlParser"].get(), fields["createClone"].get()
    fields["sqlParser"].set(parser(spark, own_parser, ParserAnswers(own_parser, spark)))
    fields["createClone"].set(compiled_object(Jvm.of(spark), "Copies", clone, _Copies(spark)))


def _originals(manager: JavaObject, fields: Mapping[str, _Field]) -> tuple[JavaObject, JavaObject, JavaObject]:
    """Return Spark's own catalog, the ``SessionCatalog`` with its entries, and the cache of relations."""
    return fields["defaultSessionCatalog"].get(), manager.v1SessionCatalog(), fields["tableRelationCache"].get()


def _catalog_answers(
    spark: SparkSession, catalog: JavaObject, entries: JavaObject, cache: JavaObject
) -> tuple[CatalogAnswers, CacheAnswers]:
    """Return the answers for the catalog and the cache of a session; the second knows the tables that the first has loaded."""
    tables = LoadedTables()
    return CatalogAnswers(catalog, spark, entries, tables), CacheAnswers(cache, spark, tables)


def _replace_in_catalogs(
    spark: SparkSession, fields: Mapping[str, _Field], manager: JavaObject, of_catalog: object, of_cache: object
) -> None:
    catalog, cache = fields["defaultSessionCatalog"], fields["tableRelationCache"]
    catalog.set(session_catalog(spark, catalog.get(), manager.v1SessionCatalog(), of_catalog))
    cache.set(relation_cache(spark, cache.get(), cache.interface, of_cache))


# -- copies of a session, which streams and caching make ---------------------------------------------------------------------------
#
# Spark creates the state of a copy under the copy's lock, and its analyzer under the lock of the state. If PySpark's threads are not
# pinned to JVM threads, Python's calls arrive on other threads than the one with the lock, and would wait for it forever. So Java creates
# the objects that need the lock, and passes them to Python, which adds names to them.
#
# Python must not refer to a copy that has answered no question (`LazyAnswers.java`), so these objects serve all copies of a session.


class _OfCopies(Proxied):
    """A function of a copied JVM session and another object.

    Args:
        spark: the enabled session that is copied.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    def _answers_for(self, name: str, answers_of_copy: JavaObject) -> JavaObject:
        return compiled_object(self._jvm, "LazyAnswers", answers_of_copy, name)

    def _named(self, answers: Mapping[str, object]) -> JavaObject:
        functions = self._jvm.java_class("java.util.HashMap")()
        for name, each in answers.items():
            functions.put(name, AnswersFunction(each))
        return functions

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function2",)


class _Copies(_OfCopies):
    """``(session, state)`` of a copy: enables names in it."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._add_catalogs, self._answers = _CopiedCatalogs(spark), _CopiedParserAnswers(spark)

    @answered
    def apply(self, session: JavaObject, state: JavaObject) -> None:
        """Replace the fields of the copy's state now, and those of its catalogs when they are created."""
        jvm, fields = self._jvm, fields_of_state(state)
        own_parser, clone, builder = (fields[name].get() for name in ("sqlParser", "createClone", "analyzerBuilder"))
        answers = compiled_object(jvm, "AnswersOfCopy", self._answers, session, own_parser)
        fields["sqlParser"].set(parser(self._spark, own_parser, self._answers_for("parser", answers)))
        fields["createClone"].set(compiled_object(jvm, "Copies", clone, self))
        fields["analyzerBuilder"].set(compiled_object(jvm, "Analyzers", builder, self._add_catalogs, session))


class _CopiedParserAnswers(_OfCopies):
    """``(session, its own parser) → answers of its proxy``."""

    @answered
    def apply(self, session: JavaObject, original: JavaObject) -> JavaObject:
        """Return the answers by name."""
        return self._named({"parser": ParserAnswers(original, handle_of(self._spark, session))})


class _CopiedCatalogs(_OfCopies):
    """``(session, manager)`` of the catalogs of a copy: enables names in them."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._answers = _CopiedCatalogAnswers(spark)

    @answered
    def apply(self, session: JavaObject, manager: JavaObject) -> None:
        """Replace the fields of the catalogs."""
        fields = fields_of_catalogs(manager)
        originals = self._jvm.seq(*_originals(manager, fields))
        answers = compiled_object(self._jvm, "AnswersOfCopy", self._answers, session, originals)
        of_catalog, of_cache = (self._answers_for(name, answers) for name in ("catalog", "cache"))
        _replace_in_catalogs(self._spark, fields, manager, of_catalog, of_cache)


class _CopiedCatalogAnswers(_OfCopies):
    """``(session, its own catalog, entries and cache) → answers of their proxies``."""

    @answered
    def apply(self, session: JavaObject, originals: JavaObject) -> JavaObject:
        """Return the answers by name."""
        of_catalog, of_cache = _catalog_answers(handle_of(self._spark, session), *items(originals))
        return self._named({"catalog": of_catalog, "cache": of_cache})


# -- the private fields ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    """One private field of a JVM object, and the full name of its type."""

    owner: JavaObject
    field: JavaObject
    interface: str

    def get(self) -> JavaObject:
        """Return the field's value."""
        return self.field.get(self.owner)

    def set(self, value: object) -> None:
        """Set the field's value."""
        self.field.set(self.owner, value)


_TYPES = {
    "defaultSessionCatalog": "org.apache.spark.sql.connector.catalog.CatalogPlugin",
    "tableRelationCache": ".guava.cache.Cache",  # Spark ships it under a package of its own, which differs between versions
    "sqlParser": "org.apache.spark.sql.catalyst.parser.ParserInterface",
    "createClone": "scala.Function2",
    "analyzerBuilder": "scala.Function0",
}


def fields_of_state(state: JavaObject) -> dict[str, _Field]:
    """Return the fields of a ``SessionState``, by name.

    Raises `Unsupported` (`TAHOE_SPARK_VERSION`): this Spark version lacks one of them, or it has another type.
    """
    return {name: _field(state, name) for name in ("sqlParser", "createClone", "analyzerBuilder")}


def fields_of_catalogs(manager: JavaObject) -> dict[str, _Field]:
    """Return the fields of a ``CatalogManager`` and its ``SessionCatalog``. Raises the errors of `fields_of_state`."""
    owners = {"defaultSessionCatalog": manager, "tableRelationCache": manager.v1SessionCatalog()}
    return {name: _field(owner, name) for name, owner in owners.items()}


def _field(owner: JavaObject, name: str) -> _Field:
    key = (str(owner.getClass().getName()), name)
    if key not in _FIELDS:
        field = private_field(owner, name)
        if field is None:
            raise unsupported_spark(_USE, f"{key[0]} has no {name}")
        _FIELDS[key] = _checked(owner, field)
    return _Field(owner, *_FIELDS[key])


_USE = "give names to tables"
# Sessions are copied often, and a field lookup takes dozens of calls.
_FIELDS: dict[tuple[str, str], tuple[JavaObject, str]] = {}


def _checked(owner: JavaObject, field: JavaObject) -> tuple[JavaObject, str]:
    name, kind = str(field.getName()), field.getType()
    if not kind.isInterface() or not str(kind.getName()).endswith(_TYPES[name]):
        path, expected = f"{owner.getClass().getName()}.{name}", _TYPES[name].removeprefix(".")
        raise unsupported_spark(_USE, f"{path} is a {kind.getName()}, expected the interface {expected}")
    return field, str(kind.getName())
