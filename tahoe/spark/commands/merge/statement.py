"""Resolves a MERGE on Spark: the meaning of its conditions and values on the two sides, and the checks that precede reading.

The user's expressions stay as they are: Spark's parser parses text, columns are used directly, and Catalyst resolves both against the side
or sides that their clause may see. The resulting columns are bound to those frames, whatever their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_, or_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import BooleanType, NullType

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.merge.clauses import Action, Clause, Kind, check_clauses, only_inserts
from tahoe.ops.merge.schema import check_identity, check_target, evolved_schema, star_pairs, with_places
from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable
from tahoe.ops.rows.defaults import Defaults
from tahoe.ops.tables.create import set_schema
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import can_coerce, check_duplicates, store_anything
from tahoe.schema.types import DataType, StructType
from tahoe.spark.commands.assignments import Assignment, Value
from tahoe.spark.commands.conditions import BEYOND_A_ROW, OF_MERGE, check_expression, text_of
from tahoe.spark.commands.merge.sql_functions import with_arguments
from tahoe.spark.commands.row_changes import TableVersion
from tahoe.spark.commands.source_keys import conjuncts
from tahoe.spark.commands.statement_time import StatementTime
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.frame_columns import column_in, column_of
from tahoe.spark.names.options import AUTO_MERGE, AUTOMATIC_WIDENING, widening_mode
from tahoe.spark.names.settings import is_case_sensitive, is_on, setting_of
from tahoe.spark.write.fitting import Casts, casts_of_assignments, columns_of
from tahoe.txn.transaction import Transaction

Term = str | Column

OUR_PREFIX = "__tahoe_"
"""The prefix of the columns that a MERGE adds."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The arguments of a MERGE.

    Args:
        source: read once.
        on: the condition under which a source row matches a target row.
        keeps_schema: whether the target keeps its columns regardless of session settings.
        automatic_widening: the types that schema evolution widens in a table with type widening; one of
            `tahoe.schema.widening.WIDENING_MODES`.
    """

    source: DataFrame
    on: Term
    clauses: tuple[Clause[Term], ...] = ()
    schema_evolution: bool = False
    keeps_schema: bool = False
    automatic_widening: str = "ALWAYS"

    def under(self, spark: SparkSession) -> MergeRequest:
        """Return the request with schema evolution and its widening mode as the session's settings require."""
        if self.keeps_schema:
            return replace(self, schema_evolution=False)
        if not self.schema_evolution and not is_on(spark, AUTO_MERGE):
            return self
        mode = widening_mode(setting_of(spark, AUTOMATIC_WIDENING))
        return replace(self, schema_evolution=True, automatic_widening=mode)


@dataclass(frozen=True, slots=True)
class Sides:
    """The frames on which expressions are resolved: the target under its alias, and the source."""

    target: DataFrame
    source: DataFrame

    def seen_by(self, kind: Kind) -> DataFrame:
        """Return the frame with the columns that the expressions of a clause may use."""
        match kind:
            case Kind.MATCHED:
                return self.target.crossJoin(self.source)
            case Kind.NOT_MATCHED:
                return self.source
        return self.target


@dataclass(frozen=True, slots=True)
class Step:
    """A resolved clause.

    Args:
        number: its position among all clauses.
        condition: a boolean column; None for every row of its kind.
        assignments: with whole paths.
        text: the condition's text for the history, as a server shows it.
    """

    number: int
    kind: Kind
    action: Action
    condition: Column | None
    assignments: tuple[Assignment, ...]
    text: str | None = None

    def inside(self, name: str) -> list[Assignment]:
        """The assignments to a column, their paths without its name."""
        return [assignment.inside() for assignment in self.assignments if assignment.path[0] == name]


@dataclass(frozen=True, slots=True)
class Plan:
    """The resolved statement.

    Args:
        sides: the frames to which all columns here are bound.
        on: a boolean column.
        casts: how values are cast to the table's columns.
        config: the table after the MERGE.
        is_upsert: whether new rows depend only on the source (`tahoe.spark.commands.merge.match.is_upsert`).
    """

    sides: Sides
    on: Column
    steps: tuple[Step, ...]
    casts: Casts
    config: TableConfig
    is_upsert: bool = False

    def of(self, *kinds: Kind) -> list[Step]:
        """The clauses of these kinds, in the order in which they are tried."""
        return [step for step in self.steps if step.kind in kinds]


@dataclass(frozen=True, slots=True)
class PreparedMerge:
    """A MERGE whose clauses assign to known columns.

    Args:
        request: the keys of its values are columns and fields of the table after the MERGE, without qualifiers.
        columns: the columns of the source.
        config: the table after the MERGE.
    """

    request: MergeRequest
    columns: StructType
    config: TableConfig

    def check_identities(self, steps: Iterable[Step]) -> None:
        """Refuse assignments to an identity column whose values only the table may generate."""
        for step in steps:
            check_identity(self.config, step.action, {assignment.path[0] for assignment in step.assignments})


def prepared(
    transaction: Transaction, request: MergeRequest, target: Columns, source: Callable[[], Columns], defaults: Defaults
) -> PreparedMerge:
    """Check the clauses, resolve the columns that they assign to, and evolve the table's schema: its new metadata is staged if it differs.

    Args:
        target, source: see `tahoe.ops.merge.schema.with_places`.
        defaults: of the table before the MERGE.

    Raises:
        InvalidRequest: the clauses violate a rule, assign to an unknown column, or change rows of an append-only table.
        SchemaMismatch: the source's and the table's schemas are incompatible.
    """
    before = defaults.config
    _refuse_reserved_names([*request.source.columns, *before.schema.names], before.table)
    check_clauses(request.clauses)
    if not only_inserts(request.clauses):
        before.refuse_if_append_only()
    check_target(before.schema, before.table, evolving=request.schema_evolution)
    clauses = with_places(request.clauses, target, source, defaults, evolving=request.schema_evolution)
    columns = columns_of(request.source)
    check_duplicates(columns)
    schema = before.schema
    if request.schema_evolution:
        widening = before.automatic_widening(request.automatic_widening)
        schema = evolved_schema(schema, columns, clauses, widening, can_coerce)
    return PreparedMerge(replace(request, clauses=clauses), columns, set_schema(transaction, before, schema))


def resolved(transaction: Transaction, version: TableVersion, request: MergeRequest, started: int) -> Plan:
    """Resolve the statement, whose expressions see the table under its alias and the source.

    Args:
        started: the start of the MERGE, in milliseconds since the epoch.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION`` for a name that is no visible column; aggregates, non-deterministic
            conditions, two assignments to one column or field; the errors of `prepared`.
        Unsupported: a condition with a subquery.
        SchemaMismatch: the type of a value does not fit.
        ParseException: PySpark's own, for invalid SQL text.
    """
    spark, before = version.spark, version.snapshot.config
    case_sensitive, statement_time = is_case_sensitive(spark), StatementTime(spark)
    defaults = Defaults(before, Moment(started, transaction.time_zone), written_default(spark, before.table))
    request = replace(request, source=statement_time.frame(request.source))
    target = Columns.of(before.schema, version.alias, case_sensitive=case_sensitive)
    merge = prepared(transaction, request, target, partial(_visible_columns, request.source, case_sensitive), defaults)
    sides, casts = Sides(version.shape(), request.source), casts_of_assignments(spark)
    resolver = _Resolver(Jvm.of(spark), merge, sides, statement_time, casts)
    on = resolver.condition(request.on, Kind.MATCHED, "the search condition of a MERGE", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE")
    steps = tuple(resolver.step(number, clause) for number, clause in enumerate(merge.request.clauses))
    merge.check_identities(steps)
    return Plan(sides, resolver.jvm.column(on), steps, casts, merge.config)


def _visible_columns(frame: DataFrame, case_sensitive: bool) -> Columns:
    """Return the columns of a frame with the names by which Spark resolves them."""
    output = items(frame._jdf.queryExecution().analyzed().output())
    qualifiers = [tuple(map(str, items(attribute.qualifier()))) for attribute in output]
    return Columns(tuple(zip(qualifiers, from_spark_schema(frame.schema), strict=True)), case_sensitive)


@dataclass(frozen=True)
class _Selection:
    """Terms, selected from the frame that they may see."""

    frame: DataFrame
    terms: Sequence[Term]
    seen: DataFrame
    where: str

    @property
    def types(self) -> list[DataType]:
        return [column.data_type for column in columns_of(self.frame)]


@dataclass(frozen=True)
class _Resolver:
    """Resolves names in expressions to columns of frames."""

    jvm: Jvm
    merge: PreparedMerge
    sides: Sides
    statement_time: StatementTime
    casts: Casts

    def step(self, number: int, clause: Clause[Term]) -> Step:
        where = f"WHEN {clause.kind.words} THEN {clause.action.name} of a MERGE"
        condition = None
        if clause.condition is not None:
            condition = self.jvm.column(self.condition(clause.condition, clause.kind, f"the condition of {where}"))
        if clause.values is None:
            return Step(number, clause.kind, clause.action, condition, self._star(clause))
        return Step(number, clause.kind, clause.action, condition, self._assignments(clause.values, clause.kind, where))

    def condition(
        self, term: Term, kind: Kind, where: str, not_boolean: str = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
    ) -> JavaObject:
        """Return the Catalyst expression of a condition."""
        selection = self._selected([term], kind, where, aggregates=OF_MERGE.aggregates)
        data_type = selection.frame.schema[0].dataType
        if not isinstance(data_type, BooleanType | NullType):
            raise InvalidRequest(
                f"{where[0].upper()}{where[1:]} must be true or false, but {text_of(term)} is {data_type.simpleString()}.",
                code=not_boolean,
            )
        check_expression(selection.frame, term, where, OF_MERGE)
        (expression,) = self._bound(selection)
        return expression

    def _assignments(self, values: Sequence[tuple[str, Term]], kind: Kind, where: str) -> tuple[Assignment, ...]:
        if not values:
            return ()
        places = assigned_places((key for key, _ in values), [Columns.of(self.merge.config.schema)])
        selection = self._selected([value for _, value in values], kind, where)
        types = selection.types
        if self.casts.by_name:
            for place, data_type in zip(places, types, strict=True):
                check_assignable(data_type, place.data_type, place.path, may_lack_fields=self.merge.request.schema_evolution)
        columns = map(self.jvm.column, self._bound(selection))
        return tuple(
            Assignment(place.path, Value(column, data_type))
            for place, column, data_type in zip(places, columns, types, strict=True)
        )

    def _bound(self, selection: _Selection) -> list[JavaObject]:
        """Return the Catalyst expressions of the terms, which use only columns of the frame that they see."""
        terms, where = selection.terms, selection.where
        plan = self.statement_time.plan(selection.frame._jdf.queryExecution().analyzed())
        if plan.getClass().getSimpleName() != "Project" or plan.projectList().size() != len(terms):
            raise self._computed_elsewhere(terms[0], where)
        seen = selection.seen._jdf.queryExecution().analyzed().outputSet()
        plan = with_arguments(self.jvm, plan, seen)
        selected = [plan.projectList().apply(i) for i in range(len(terms))]
        for term, alias in zip(terms, selected, strict=True):
            if alias.getClass().getSimpleName() != "Alias":  # a column of a `Window` below
                raise self._computed_elsewhere(term, where)
        bound = [alias.child() for alias in selected]
        for term, expression in zip(terms, bound, strict=True):
            if not expression.references().subsetOf(seen):
                raise self._computed_elsewhere(term, where)
        return bound

    def _star(self, clause: Clause[Term]) -> tuple[Assignment, ...]:
        pairs = star_pairs(
            clause.action,
            self.merge.columns,
            self.merge.config.schema,
            evolving=self.merge.request.schema_evolution,
            stores=store_anything,
            by_name=self.casts.by_name,
        )
        assignments = []
        for pair in pairs:
            column = column_in(self.sides.source, pair.source[0])
            assignments.append(Assignment(pair.target, Value(column, pair.source_type), pair.keeps_fields))
        return tuple(assignments)

    def _selected(self, terms: Sequence[Term], kind: Kind, where: str, *, aggregates: str = BEYOND_A_ROW) -> _Selection:
        columns = [column_of(term) for term in terms]
        seen = self.sides.seen_by(kind)
        try:
            frame = seen.select(*(column.alias(f"value{i}") for i, column in enumerate(columns)))
        except AnalysisException as error:
            condition = str(error.getCondition())
            if condition == "MISSING_GROUP_BY":
                raise self._computed_elsewhere(terms[0], where, aggregates) from error
            if not condition.startswith("UNRESOLVED_COLUMN"):
                raise
            raise self._unresolved(str(error).partition("\n")[0].partition(" SQLSTATE")[0], where) from error
        return _Selection(frame, terms, seen, where)

    def _computed_elsewhere(self, term: Term, where: str, code: str = BEYOND_A_ROW) -> InvalidRequest:
        return InvalidRequest(
            f"Aggregate, window and generator functions, and columns of metadata, are not supported in {where}: {text_of(term)}. "
            "Compute their values in the source first.",
            code=code,
        )

    def _unresolved(self, reason: str, where: str) -> InvalidRequest:
        return InvalidRequest(
            f"Cannot resolve {where}: {reason} Give source and target names by alias() and use these, as in 't.id = s.id'; a clause for "
            "rows that do not match sees the columns of its own side alone.",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        )


def _refuse_reserved_names(names: Iterable[str], table: str) -> None:
    reserved = next((name for name in names if name.lower().startswith(OUR_PREFIX)), None)
    if reserved is not None:
        raise InvalidRequest(
            f"Column '{reserved}' of table {table}, or of the source of a MERGE into it, has a name of those that Tahoe needs to merge on "
            f"Spark ({OUR_PREFIX}…). Rename the column.",
            code="TAHOE_RESERVED_COLUMN_NAME",
            table=table,
            column=reserved,
        )


def of_clauses(plan: Plan) -> list[Column]:
    """If all clauses are WHEN MATCHED, return the condition that the target row fulfills one of their conditions."""
    jvm = Jvm.of(plan.sides.target.sparkSession)
    target_columns = plan.sides.target._jdf.queryExecution().analyzed().outputSet()
    conditions = []
    for step in plan.steps:
        if step.kind != Kind.MATCHED or step.condition is None:
            return []
        parts = [part for part in conjuncts(jvm.expression(step.condition)) if part.references().subsetOf(target_columns)]
        if not parts:
            return []
        conditions.append(reduce(and_, map(jvm.column, parts)))
    return [reduce(or_, conditions)]
