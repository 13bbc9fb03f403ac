"""A MERGE on Spark, understood: what its conditions and values mean on the two sides, and what is refused before a row is read.

Expressions stay the user's own: text goes to Spark's parser, columns are taken as they are, and Catalyst resolves both against the side, or
the sides, that their clause may see. What comes out are columns that are bound to those frames, whatever the names in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, NullType

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.expression import Reference
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import Action, Clause, Kind, check_clauses
from tahoe.ops.merge.schema import evolved_schema, star_pairs
from tahoe.ops.rows.assignments import assigned_places
from tahoe.ops.tables.create import with_schema
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import can_coerce, check_duplicates, check_writable, store_anything
from tahoe.schema.types import DataType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.assigned_values import Assignment, Value
from tahoe.spark.commands.conditions import check_expression, text_of
from tahoe.spark.commands.moment import StatementMoment
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.scan.relation import Alias, last_of
from tahoe.spark.write.fitting import nullable_schema
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Transaction

__all__ = ["OUR_PREFIX", "MergeRequest", "Plan", "Sides", "Step", "conjuncts", "evolved", "resolved"]

Term = str | Column

OUR_PREFIX = "__tahoe_"
"""How the names begin that a MERGE gives to columns of its own."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What is asked of a MERGE.

    Args:
        source: read once.
        on: where it is true, a row of the source matches a row of the target.
        alias: a name that may stand for the target in all expressions.
        keeps_schema: whether the target keeps its columns whatever the session's settings are.
        automatic_widening: which types schema evolution makes wider, in a table with type widening; one of
            `tahoe.schema.widening.WIDENING_MODES`.
        options: Hadoop's, for the target's storage.
    """

    source: DataFrame
    on: Term
    clauses: tuple[Clause[Term], ...] = ()
    schema_evolution: bool = False
    keeps_schema: bool = False
    automatic_widening: str = "ALWAYS"
    alias: Alias | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[Clause[str], ...]:
        """The clauses with their conditions as texts, for those who read the history."""
        return tuple(
            Clause(one.kind, one.action, None if one.condition is None else text_of(one.condition)) for one in self.clauses
        )

    def check(self) -> None:
        """Raises `InvalidRequest` where the clauses break a rule."""
        check_clauses(self.clauses)


@dataclass(frozen=True, slots=True)
class Sides:
    """The frames on which expressions are resolved: the target under its alias, and the source."""

    target: DataFrame
    source: DataFrame

    def seen_by(self, kind: Kind) -> DataFrame:
        """What the expressions of a clause may name."""
        match kind:
            case Kind.MATCHED:
                return self.target.crossJoin(self.source)
            case Kind.NOT_MATCHED:
                return self.source
        return self.target


@dataclass(frozen=True, slots=True)
class Step:
    """A clause, understood.

    Args:
        number: its place among all clauses.
        condition: a boolean column; None for every row of its kind.
        assignments: with whole paths.
    """

    number: int
    kind: Kind
    action: Action
    condition: Column | None
    assignments: tuple[Assignment, ...]

    def inside(self, name: str) -> list[Assignment]:
        """The assignments to a column, their paths without its name."""
        return [Assignment(one.path[1:], one.value) for one in self.assignments if one.path[0] == name]


@dataclass(frozen=True, slots=True)
class Plan:
    """The statement, understood.

    Args:
        sides: the frames to which all columns here are bound.
        on: a boolean column.
        parts: the Catalyst expressions that `on` is the conjunction of.
    """

    sides: Sides
    on: Column
    parts: tuple[JavaObject, ...]
    steps: tuple[Step, ...]

    def of(self, *kinds: Kind) -> list[Step]:
        """The clauses of these kinds, in the order in which they are tried."""
        return [step for step in self.steps if step.kind in kinds]


def evolved(transaction: Transaction, snapshot: Snapshot, request: MergeRequest, source: StructType) -> TableConfig:
    """The table as it will be; stages its new metadata where that is other than the old.

    Raises:
        SchemaMismatch: source and table cannot be brought together.
    """
    check_duplicates(source)
    config = snapshot.config
    _refuse_our_names([*source.names, *config.schema.names], config.table)
    schema = config.schema
    if request.schema_evolution:
        widening = config.automatic_widening(request.automatic_widening)
        schema = evolved_schema(schema, source, request.clauses, last_of(request.alias), widening, can_coerce)
    if schema == config.schema:
        return config
    transaction.set_metadata(with_schema(config, schema, transaction.clock))
    return future_config(transaction)


def resolved(request: MergeRequest, sides: Sides, source: StructType, schema: StructType, moment: StatementMoment) -> Plan:
    """The statement on these frames.

    Args:
        source: the schema of the source's own columns.
        schema: of the table as it will be.
        moment: of all queries of the MERGE.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION`` for what names no column that it may see; aggregates, conditions that are
            not deterministic, two assignments to one place.
        Unsupported: a condition with a subquery.
        SchemaMismatch: a value whose type does not fit.
        ParseException: PySpark's own, for text that is no SQL.
    """
    resolver = _Resolver(Jvm.of(sides.target.sparkSession), request, sides, source, schema, moment)
    on = resolver.condition(request.on, Kind.MATCHED, "the search condition of a MERGE")
    drafts = [resolver.draft(clause) for clause in request.clauses]
    selections = [on, *(one for draft in drafts for one in (draft.condition, draft.values) if one is not None)]
    bound = dict(zip(map(id, selections), resolver.bound(selections), strict=True))
    steps = []
    for number, (clause, draft) in enumerate(zip(request.clauses, drafts, strict=True)):
        condition = None if draft.condition is None else resolver.jvm.column(bound[id(draft.condition)][0])
        assignments = draft.star
        if draft.values is not None:
            columns = [resolver.jvm.column(one) for one in bound[id(draft.values)]]
            assignments = tuple(
                Assignment(path, Value(column, given))
                for path, column, given in zip(draft.paths, columns, draft.values.types, strict=True)
            )
        steps.append(Step(number, clause.kind, clause.action, condition, assignments))
    (searched,) = bound[id(on)]
    return Plan(sides, resolver.jvm.column(searched), tuple(conjuncts(searched)), tuple(steps))


@dataclass(frozen=True)
class _Selection:
    """Terms, selected from what they may see."""

    frame: DataFrame
    terms: Sequence[Term]
    seen: DataFrame
    where: str

    @property
    def types(self) -> list[DataType]:
        return [column.data_type for column in nullable_schema(from_spark_schema(self.frame.schema))]

    @property
    def plan(self) -> JavaObject:
        return self.frame._jdf.queryExecution().analyzed()


@dataclass(frozen=True)
class _Draft:
    """A clause, checked, its expressions selected but not bound yet.

    Args:
        paths: what `values` are assigned to.
        star: the assignments that ``*`` stands for.
    """

    condition: _Selection | None
    values: _Selection | None = None
    paths: Sequence[tuple[str, ...]] = ()
    star: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class _Resolver:
    """Names in expressions → columns of frames."""

    jvm: Jvm
    request: MergeRequest
    sides: Sides
    source: StructType
    schema: StructType
    moment: StatementMoment

    def draft(self, clause: Clause[Term]) -> _Draft:
        where = f"WHEN {clause.kind.words} THEN {clause.action.name} of a MERGE"
        condition = None
        if clause.condition is not None:
            condition = self.condition(clause.condition, clause.kind, f"the condition of {where}")
        if clause.values is None:
            return _Draft(condition, star=self._star(clause))
        if not clause.values:
            return _Draft(condition)
        places = self._places([key for key, _ in clause.values], clause.action, where)
        values = self._selected([value for _, value in clause.values], clause.kind, where)
        for place, given in zip(places, values.types, strict=True):
            name = place.path[-1]
            wanted = StructType((StructField(name, place.data_type),))
            check_writable(StructType((StructField(name, given),)), wanted, store_anything)
        return _Draft(condition, values, [place.path for place in places])

    def condition(self, term: Term, kind: Kind, where: str) -> _Selection:
        selection = self._selected([term], kind, where)
        data_type = selection.frame.schema[0].dataType
        if not isinstance(data_type, BooleanType | NullType):
            raise InvalidRequest(
                f"{where[0].upper()}{where[1:]} must be true or false, but {text_of(term)} is {data_type.simpleString()}.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
            )
        check_expression(self.jvm, selection.frame, term, where)
        return selection

    def bound(self, selections: Sequence[_Selection]) -> list[list[JavaObject]]:
        """For each selection the Catalyst expressions of its terms, over nothing but the columns of the frame that they see."""
        return [self._bound(selection, self.moment.plan(selection.plan)) for selection in selections]

    def _bound(self, selection: _Selection, plan: JavaObject) -> list[JavaObject]:
        terms, where = selection.terms, selection.where
        if plan.getClass().getSimpleName() != "Project" or plan.projectList().size() != len(terms):
            raise self._computed_elsewhere(terms[0], where)
        seen = selection.seen._jdf.queryExecution().analyzed().outputSet()
        bound = [plan.projectList().apply(i).child() for i in range(len(terms))]
        for term, expression in zip(terms, bound, strict=True):
            if not expression.references().subsetOf(seen):
                raise self._computed_elsewhere(term, where)
        return bound

    def _places(self, keys: Iterable[str], action: Action, where: str) -> list[Reference]:
        try:
            places = assigned_places(keys, self.schema, last_of(self.request.alias), inserts=action == Action.INSERT)
        except InvalidRequest as error:
            if error.code in ("DELTA_CONFLICT_SET_COLUMN", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"):
                raise
            raise self._unresolved(error.message, where) from error
        nested = next((".".join(place.path) for place in places if len(place.path) > 1), None)
        if action == Action.INSERT and nested is not None:
            raise Unsupported(
                f"Nested fields are not supported in the INSERT clause of a MERGE: {nested}. Give the whole column a struct.",
                code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                column=nested,
            )
        return places

    def _star(self, clause: Clause[Term]) -> tuple[Assignment, ...]:
        pairs = star_pairs(clause.action, self.source, self.schema, evolving=self.request.schema_evolution, stores=store_anything)
        assignments = []
        for pair in pairs:
            column = self.sides.source[quote_identifier(pair.source[0])]
            for name in pair.source[1:]:
                column = column.getField(name)
            assignments.append(Assignment(pair.target, Value(column, pair.source_type)))
        return tuple(assignments)

    def _selected(self, terms: Sequence[Term], kind: Kind, where: str) -> _Selection:
        columns = [sf.expr(term) if isinstance(term, str) else term for term in terms]
        seen = self.sides.seen_by(kind)
        try:
            frame = seen.select(*(column.alias(f"value{i}") for i, column in enumerate(columns)))
        except ParseException:
            raise
        except AnalysisException as error:
            raise self._unresolved(str(error).partition("\n")[0].partition(" SQLSTATE")[0], where) from error
        return _Selection(frame, terms, seen, where)

    def _computed_elsewhere(self, term: Term, where: str) -> InvalidRequest:
        return InvalidRequest(
            f"Aggregate, window and generator functions, and columns of metadata, are not supported in {where}: {text_of(term)}. "
            "Compute their values in the source first.",
            code="DELTA_AGGREGATION_NOT_SUPPORTED",
        )

    def _unresolved(self, reason: str, where: str) -> InvalidRequest:
        return InvalidRequest(
            f"Cannot resolve {where}: {reason} Give source and target names by alias() and use these, as in 't.id = s.id'; a clause for "
            "rows that do not match sees the columns of its own side alone.",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        )


def _refuse_our_names(names: Iterable[str], table: str) -> None:
    taken = next((name for name in names if name.lower().startswith(OUR_PREFIX)), None)
    if taken is not None:
        raise InvalidRequest(
            f"Column '{taken}' of table {table}, or of the source of a MERGE into it, has a name of those that Tahoe needs to merge on Spark "
            f"({OUR_PREFIX}…). Rename the column.",
            code="TAHOE_RESERVED_COLUMN_NAME",
            table=table,
            column=taken,
        )


def conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    """The Catalyst expressions that this one is the conjunction of."""
    if expression.getClass().getSimpleName() == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression
