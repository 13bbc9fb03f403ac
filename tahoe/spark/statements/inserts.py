"""INSERT into a Delta table, as far as Spark's analyzer does not know what it means there.

    INSERT INTO t (a, b) …             columns that are left out are computed, where they are generated, else NULL
    INSERT WITH SCHEMA EVOLUTION …     columns that only the query has are added by the commit that brings the rows, and columns become
                                       wider where the table widens types (Spark 4.2 and later; with the session's setting
                                       schema.autoMerge.enabled every INSERT does, on every Spark)

Every other INSERT is resolved and cast by Spark, and arrives at `tahoe.spark.catalog.writable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import insert_request
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied, field_names, has_field, items
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.names.options import AUTO_MERGE
from tahoe.spark.names.settings import is_on, settings_of
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import Target, target_of

__all__ = ["INSERT_STATEMENTS"]

_SQL = "org.apache.spark.sql"
_FILLS = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"


def _insert(spark: SparkSession, plan: JavaObject) -> Command | None:
    asked = has_field(plan, "withSchemaEvolution") and bool(plan.withSchemaEvolution())
    evolves = asked or (is_on(spark, AUTO_MERGE) and not any(_parts(plan).values()))
    if not evolves and plan.userSpecifiedCols().isEmpty() and not plan.byName():
        return None
    target = target_of(spark, plan.table())
    if target is None:
        return None
    return _evolving(spark, plan, target) if evolves else _completed(spark, plan, target)


INSERT_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "InsertIntoStatement": _insert,
    "UnresolvedInsert": _insert,  # INSERT INTO IDENTIFIER(…), where it is made of a variable (Spark 4.3)
}
"""By the name of the plan's node."""


# -- columns that are left out ---------------------------------------------------------------------------------------------------


def _completed(spark: SparkSession, plan: JavaObject, target: Target) -> Command | None:
    """An INSERT that leaves columns out, as one into a table that has only the others.

    Spark resolves and casts what is given, as ever; the rows that arrive are completed as those of a DataFrame without these columns.
    """
    if spark.conf.get(_FILLS) == "false":
        return None
    # The columns of a query are known when its parameters are.
    if not plan.byName() and _left_out(plan, target, _listed(plan)) is None:
        return None

    def run() -> None:
        jvm = Jvm.of(spark)
        given = jvm.frame(spark._jsparkSession, plan.query(), spark).columns if plan.byName() else _listed(plan)
        kept = _left_out(plan, target, given)
        changed = copied(plan, table=plan.table() if kept is None else _relation(spark, target, kept))
        # A statement with IDENTIFIER has a node of its own, with the same fields, until the name is known (Spark 4.3).
        statement = jvm.catalyst("plans.logical.InsertIntoStatement")(*items(changed.productIterator().toSeq()))
        jvm.frame(spark._jsparkSession, statement, spark)

    return Command("INSERT", run)


def _listed(plan: JavaObject) -> list[str]:
    return [str(name) for name in items(plan.userSpecifiedCols())]


def _left_out(plan: JavaObject, target: Target, given: Sequence[str]) -> list[str] | None:
    """The columns that stay where others are left out; None where none is, or names are wrong, which is Spark's to tell."""
    partition = (str(name) for name in items(plan.partitionSpec().keys().toSeq()))
    meant = {name.lower() for name in (*given, *partition)}
    names = target.named.table.schema().names
    kept = [name for name in names if name.lower() in meant]
    return kept if len(kept) == len(meant) < len(names) else None


def _relation(spark: SparkSession, target: Target, kept: Sequence[str]) -> JavaObject:
    """What Spark's analyzer would make of the table's name, with some of its columns."""
    jvm, catalog = Jvm.of(spark), spark._jsparkSession.sessionState().catalogManager().v2SessionCatalog()
    entry = target.named.entry
    namespace, name = (
        ("delta", target.named.name.path) if entry is None else (entry.identifier().database().get(), entry.identifier().table())
    )
    identifier = jvm.java_class(f"{_SQL}.connector.catalog.Identifier").of(jvm.array("java.lang.String", [namespace]), name)
    writes = jvm.java_class("java.util.HashSet")()
    writes.add(jvm.java_class(f"{_SQL}.connector.catalog.TableWritePrivilege").INSERT)
    whole = catalog.loadTable(identifier, writes)
    table = stand_in(
        spark, whole, _Narrowed(jvm, whole, frozenset(kept)), ["columns", "schema"], [f"{_SQL}.connector.catalog.SupportsWrite"]
    )
    relation = jvm.java_class(f"{_SQL}.execution.datasources.v2.DataSourceV2Relation")
    created = relation.create(table, jvm.option(catalog), jvm.option(identifier))
    return copied(created, options=jvm.java_class(f"{_SQL}.util.CaseInsensitiveStringMap")(target.options))


class _Narrowed:
    """What Python answers for a table some of whose columns a statement leaves out."""

    def __init__(self, jvm: Jvm, table: JavaObject, kept: frozenset[str]) -> None:
        self._jvm, self._table, self._kept = jvm, table, kept

    def columns(self) -> JavaObject:
        """The other columns, for Spark's analyzer."""
        kept = [one for one in self._table.columns() if str(one.name()) in self._kept]
        return self._jvm.array(f"{_SQL}.connector.catalog.Column", kept)

    def schema(self) -> JavaObject:
        """The same, as Spark asked for it once."""
        fields = [one for one in self._table.schema().fields() if str(one.name()) in self._kept]
        return self._jvm.java_class(f"{_SQL}.types.StructType")(self._jvm.array(f"{_SQL}.types.StructField", fields))


# -- WITH SCHEMA EVOLUTION -------------------------------------------------------------------------------------------------------


def _evolving(spark: SparkSession, plan: JavaObject, target: Target) -> Command:
    _refuse_parts(plan, target)
    listed = _listed(plan)
    by_name, mode, query = bool(plan.byName()), "Overwrite" if plan.overwrite() else "Append", plan.query()

    def run() -> None:
        rows = Jvm.of(spark).frame(spark._jsparkSession, query, spark)
        table = target.named.table
        named = rows if by_name else _named(rows, listed or table.schema().names, target, only=bool(listed))
        request = insert_request(mode, None, target.options, settings_of(spark), merge_schema=True, same_types=False)
        insert(table, named, request)

    return Command("INSERT WITH SCHEMA EVOLUTION", run)


def _parts(plan: JavaObject) -> dict[str, bool]:
    """The clauses with which schema evolution does not go, and whether the statement has them."""
    replaces = any(getattr(plan, name)().isDefined() for name in field_names(plan) if name.startswith("replaceCriteria"))
    return {"PARTITION": not plan.partitionSpec().isEmpty(), "REPLACE": replaces}


def _refuse_parts(plan: JavaObject, target: Target) -> None:
    for words, is_there in _parts(plan).items():
        if is_there:
            raise Unsupported(
                f"INSERT WITH SCHEMA EVOLUTION into {target.named.name} may not have {words}. Add the columns first (ALTER "
                f"TABLE … ADD COLUMNS), then INSERT … {words} without evolution.",
                code="DELTA_OPERATION_NOT_ALLOWED",
                table=str(target.named.name),
            )


def _named(rows: DataFrame, names: Sequence[str], target: Target, *, only: bool) -> DataFrame:
    """Rows by position: these names, then, unless these are the `only` ones, the query's own for the columns that it has more."""
    if len(rows.columns) < len(names) or (only and len(rows.columns) > len(names)):
        raise InvalidRequest(
            f"Cannot write to {target.named.name}: it has the columns {', '.join(names)}, and the query {len(rows.columns)}. Give all, or "
            "list the columns, or write BY NAME.",
            code="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            table=str(target.named.name),
        )
    return rows.toDF(*names, *rows.columns[len(names) :])
