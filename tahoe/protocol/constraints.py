"""The constraints of a table on its rows: CHECK constraints, column invariants, NOT NULL inside structs, generated columns.

(PROTOCOL.md, "CHECK Constraints", "Column Invariants", "Generated Columns".) Their texts come from the table, so each passes the
allow-list of `tahoe.expr.parse.parse_expression` before it is used. If Spark evaluates one, it receives text of `spark_text`, which is
generated from the parsed expression: every name in back-ticks, every constant quoted. An expression outside the list becomes an
`EngineText`: it raises only when rows are written without Spark (`Constraints.require_evaluator`); with Spark another list decides
(`tahoe.spark.write.stored_expressions`).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.exceptions import CorruptTable, InvalidRequest, InvariantViolation, Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.compute.comparison import null_safe_equal
from tahoe.expr.compute.compute import compute, compute_mask
from tahoe.expr.parse.engine_text import engine_text
from tahoe.expr.parse.parse_expression import parse_condition, parse_expression
from tahoe.expr.tree.common_types import same_type
from tahoe.expr.tree.expression import (
    EngineText,
    Expression,
    Reference,
    columns,
    engine_text_in,
    references_of,
    sql_of_expression,
    sql_type,
)
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.expr.tree.signatures import cast_to
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT, check_length, default_of
from tahoe.protocol.column_values.identity import IDENTITY, check_new_identity
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature, Use, check_columns
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.types import GENERATION_EXPRESSION, ArrayType, DataType, MapType, StructField, StructType, is_opaque

_INVARIANTS = "delta.invariants"
GENERATED = "Generated Column"
"""The name of the rule that a generated column's values are those of its expression, in errors."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must be TRUE for every row; NULL is a violation.

    Args:
        text: as the table states it.
    """

    name: str
    text: str
    condition: Expression


@dataclass(frozen=True, slots=True)
class Generated:
    """A column whose value is that of an expression over the row's other columns.

    Args:
        text: as the table states it.
        value: in the column's type.
    """

    column: StructField
    text: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints of a table, except NOT NULL of top-level columns, which is checked when rows are converted to the table's types.

    Args:
        table: the table's URL, for messages.
        required: fields inside structs that must not be null; nor may the structs around them.
    """

    table: str
    checks: tuple[Check, ...] = ()
    generated: tuple[Generated, ...] = ()
    required: tuple[tuple[str, ...], ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that are needed to check a row."""
        read = {name for rule in self.checks for _, name in columns(rule.condition)}
        read |= {name for rule in self.generated for _, name in columns(rule.value)}
        return frozenset(read | {rule.column.name for rule in self.generated} | {path[0] for path in self.required})

    def __bool__(self) -> bool:
        return bool(self.checks or self.generated or self.required)

    def require_evaluator(self) -> None:
        """Refuse rows if only Spark can evaluate a constraint: `Unsupported`, or `InvalidRequest` for errors in Spark too."""
        for expression, _, subject in self.expressions():
            if engine := engine_text_in(expression):
                raise cannot_enforce(self.table, subject, engine)

    def expressions(self) -> Iterator[tuple[Expression, str, str]]:
        """Yield each condition and each value of a generated column, with its text in the table and its name for messages."""
        yield from ((check.condition, check.text, f"CHECK constraint '{check.name}'") for check in self.checks)
        for generated in self.generated:
            yield generated.value, generated.text, f"the generated column '{generated.column.name}'"


def constraints_of(config: TableConfig, time_zone: str = "UTC") -> Constraints:
    """Return the constraints of a table.

    Args:
        time_zone: of the session, for expressions that read the wall clock of a timestamp.

    Raises:
        InvalidRequest: an expression is too long or nested too deep.
        CorruptTable: invariants that do not follow the specification.
    """
    return Constraints(
        config.table,
        tuple(_checks(config, time_zone)),
        tuple(_generated(config.schema, config.table, time_zone)),
        tuple(_required(config.schema, ())),
    )


def check_new(config: TableConfig, *, by_spark: bool = False, columns_by_spark: bool = False) -> None:
    """Refuse a new table whose constraints no writer could satisfy, or that the reference would not accept.

    Args:
        by_spark: Spark creates the table, and checks the expressions that only Spark can evaluate.
        columns_by_spark: Spark checks the generated columns and defaults that only it can evaluate, but no CHECK constraints.

    Raises:
        As `constraints_of`; `InvalidRequest` with ``DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH`` if a generated column's type is not
        that of its expression, and with ``DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN`` for a type that cannot be compared;
        for identity columns and defaults the errors of `tahoe.protocol.column_values`.
    """
    refuse_required_in_collections(config.schema, config.table)
    check_new_identity(config.schema, config.partition_columns, config.table)
    for column in config.schema:
        check_default(
            column,
            config.table,
            enabled=Feature.ALLOW_COLUMN_DEFAULTS in config.features,
            statement="CREATE TABLE",
            by_spark=by_spark or columns_by_spark,
        )
    constraints = constraints_of(config)
    if not by_spark:
        (replace(constraints, generated=()) if columns_by_spark else constraints).require_evaluator()
    for rule in constraints.generated:
        data_type = rule.column.data_type
        if is_opaque(data_type):
            raise InvalidRequest(
                f"Table {config.table}: the generated column '{rule.column.name}' is of type {data_type}, whose values cannot be "
                "compared and so not checked. Give it another type.",
                code="DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN",
                table=config.table,
                column=rule.column.name,
            )
        if engine_text_in(rule.value) is None:
            check_generated_type(rule, parse_expression(rule.text, config.schema).data_type, config.table)


def check_default(column: StructField, table: str, *, enabled: bool, statement: str, by_spark: bool = False) -> None:
    """Refuse a default that the table does not support.

    Args:
        enabled: whether the table has the feature.
        statement: for the message.
        by_spark: Spark checks the expressions that only Spark can evaluate.

    Raises:
        InvalidRequest: ``WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED``; ``EXCEED_LIMIT_LENGTH``; the error of the feature of the
            column's type; else as `default_of`.
    """
    if CURRENT_DEFAULT not in column.metadata and EXISTS_DEFAULT not in column.metadata:
        return
    if not enabled:
        raise InvalidRequest(
            f"Failed to execute {statement} command because it assigned a column DEFAULT value ('{column.name}'), but the corresponding "
            f"table feature was not enabled (table {table}). Please retry the command again after executing ALTER TABLE … SET TBLPROPERTIES "
            "('delta.feature.allowColumnDefaults' = 'supported'), or give a new table that property.",
            code="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            table=table,
            column=column.name,
        )
    check_columns(StructType((column,)), Use.DEFAULT, table=table, column=column.name, data_type=str(column.data_type))
    default = default_of(column, table, Moment(0))
    if default is not None:
        check_length(default, table)
    if default is not None and not by_spark and isinstance(default.value, EngineText):
        raise InvalidRequest(default.value.reason, code=default.value.code, table=table, column=column.name)


def check_generated_type(rule: Generated, data_type: DataType, table: str) -> None:
    """Raise `InvalidRequest` (``DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH``) unless the column has the type of its expression."""
    expected = rule.column.data_type
    if not same_type(data_type, expected):
        raise InvalidRequest(
            f"Table {table}: the generated column '{rule.column.name}' is {expected}, but its expression ({rule.text[:200]}) is "
            f"{data_type}. Give the column that type, or write CAST(... AS {sql_type(expected)}).",
            code="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            table=table,
            column=rule.column.name,
        )


def refuse_required_in_collections(schema: StructType, table: str) -> None:
    """Raise `InvalidRequest` (``DELTA_NESTED_NOT_NULL_CONSTRAINT``) for a NOT NULL field inside an array or a map.

    Delta does not support them. A table of another writer that has such a field is read and written, and its rows are validated.
    """
    path = next(_required_in_collections(schema, "", False), None)
    if path is not None:
        raise InvalidRequest(
            f"Table {table}: {path} is NOT NULL inside an array or a map. Delta does not support NOT NULL constraints nested within arrays "
            "or maps. Leave NOT NULL out there; the column itself and fields of structs may have it.",
            code="DELTA_NESTED_NOT_NULL_CONSTRAINT",
            table=table,
            column=path,
        )


def check_dependents(config: TableConfig, schema: StructType) -> None:
    """Refuse a new schema that changes the type of a generated column, or of a field that a constraint or a generated column reads.

    Args:
        config: the table as it is.

    Raises:
        InvalidRequest: ``DELTA_CONSTRAINT_DATA_TYPE_MISMATCH`` or ``DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH``; for a generated
            column ``DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH``.
    """
    constraints = constraints_of(config)
    readers = [
        *(("CONSTRAINT", f"CHECK constraint '{rule.name}'", rule.text, rule.condition) for rule in constraints.checks),
        *(
            ("GENERATED_COLUMNS", f"the generated column '{rule.column.name}'", rule.text, rule.value)
            for rule in constraints.generated
        ),
    ]
    for kind, subject, text, expression in readers:
        for reference in references_of(expression):
            now = _type_at(schema, reference.path)
            if now is None or isinstance(now, StructType) or same_type(reference.data_type, now):
                continue
            raise InvalidRequest(
                f"Column {reference} of table {config.table} would change its type from {reference.data_type} to {now}, but {subject} "
                f"({text[:200]}) reads it. Drop that first, or cast the data to {reference.data_type}.",
                code=f"DELTA_{kind}_DATA_TYPE_MISMATCH",
                table=config.table,
                column=".".join(reference.path),
            )
    for rule in constraints.generated:
        before, after = rule.column.data_type, schema.find(rule.column.name)
        if after is not None and not same_type(before, after.data_type):
            raise InvalidRequest(
                f"The generated column '{after.name}' of table {config.table} would change its type from {before} to {after.data_type}, but "
                f"its expression ({rule.text[:200]}) is {before}. Leave the column out, or cast the data to {before}.",
                code="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
                table=config.table,
                column=after.name,
            )


def check(constraints: Constraints, rows: pa.Table) -> None:
    """Check rows against the constraints.

    Args:
        rows: under logical names, in the types of the table; at least the columns of `constraints.columns`.

    Raises:
        InvariantViolation: naming constraint, and the values of a row that breaks it.
    """
    if not rows.num_rows:
        return
    for path in constraints.required:
        _check_required(constraints, path, rows)
    for rule in constraints.checks:
        _refuse(constraints, rule.name, rule.text, _computed_mask(constraints, rule, rows), rule.condition, rows)
    for generated in constraints.generated:
        stored = compute(Reference((generated.column.name,), generated.column.data_type), rows)
        mask = null_safe_equal(stored, _computed(constraints, generated, rows))
        text = f"{quote_identifier(generated.column.name)} <=> {generated.text}"
        _refuse(constraints, GENERATED, text, mask, generated.value, rows, generated.column.name)


def generated_values(constraints: Constraints, rows: pa.Table, absent: Iterable[str]) -> dict[str, pa.Array]:
    """Compute the generated columns that the rows lack.

    Args:
        rows: as for `check`.
        absent: names of the columns to compute, without regard to case; columns that are not generated are ignored.
    """
    names = {name.lower() for name in absent}
    return {
        rule.column.name: _computed(constraints, rule, rows)
        for rule in constraints.generated
        if rule.column.name.lower() in names
    }


def recomputed(schema: StructType, rows: pa.Table, written: Iterable[str], table: str = "", time_zone: str = "UTC") -> pa.Table:
    """Return rows with changed base columns, with their generated columns recomputed.

    Args:
        schema: the table's; rows have its logical names and types.
        written: columns with explicit values, which `check` will compare with their expressions.
    """
    written_names = {name.lower() for name in written}
    constraints = Constraints(table, generated=tuple(_generated(schema, table, time_zone)))
    constraints.require_evaluator()
    names = [rule.column.name for rule in constraints.generated if rule.column.name.lower() not in written_names]
    for name, values in generated_values(constraints, rows, names).items():
        position = rows.schema.get_field_index(name)
        rows = rows.set_column(position, rows.schema.field(position), values)
    return rows


def base_columns(schema: StructType) -> StructType:
    """Return the columns that a generated column may read: those that are not generated."""
    return StructType(tuple(field for field in schema if not field.is_generated))


def with_optional_generated(schema: StructType) -> StructType:
    """Return the schema that data must fit: columns that the table fills in may be left out even if they must not be null."""
    return StructType(tuple(replace(field, nullable=True) if is_filled_in(field) else field for field in schema))


def is_filled_in(field: StructField) -> bool:
    """Whether the table fills in a column that rows lack: a generated column, an identity column, or one with a default."""
    return any(key in (GENERATION_EXPRESSION, CURRENT_DEFAULT) or key.startswith(IDENTITY) for key in field.metadata)


def spark_text(expression: Expression) -> str:
    """Return text that is safe to pass to Spark, generated from the parsed form.

    Raises `InvalidRequest` for text in which Spark would substitute a variable before parsing it.
    Not for an `EngineText`, which Spark's own parser must check first.
    """
    assert engine_text_in(expression) is None
    written = sql_of_expression(expression)
    if "${" in written:
        raise InvalidRequest(
            f"The expression '{written[:120]}' contains '${{', which Spark would replace by a variable of its own. Write it without.",
            code="TAHOE_EXPRESSION_NOT_ALLOWED",
            expression=written[:1000],
        )
    return written


def null_found(path: tuple[str, ...], table: str) -> InvariantViolation:
    """Return the error for a null in a column, a field, an element or a value of a map that must not be null."""
    name = ".".join(path)
    return InvariantViolation(
        f"Column '{name}' of table {table} must not be null, but the data has rows without a value there. "
        "Nothing was committed. Correct the data, or drop the column's NOT NULL constraint.",
        code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        table=table,
        column=name,
    )


def violated(table: str, name: str, text: str, values: Mapping[str, object]) -> InvariantViolation:
    """Return the error for a row that breaks a constraint.

    Args:
        text: the constraint as in the table.
        values: of the row, by the names that the constraint reads.
    """
    lines = "\n".join(f" - {column} : {str(value)[:200]}" for column, value in sorted(values.items()))
    return InvariantViolation(
        f"CHECK constraint {name} ({text[:300]}) of table {table} is violated by a row with values:\n{lines}\n"
        "Nothing was committed. Correct the data, or change the constraint.",
        code="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        table=table,
        constraint=name,
        values=dict(values),
    )


def _checks(config: TableConfig, time_zone: str) -> Iterator[Check]:
    for key, text in sorted(config.metadata.configuration.items()):
        if key.lower().startswith(CONSTRAINT_PREFIX):
            name = key[len(CONSTRAINT_PREFIX) :]
            yield Check(name, text, _understood(config, f"CHECK constraint '{name}'", text, time_zone))
    for path, field in _fields_in_structs(config.schema, ()):
        if _INVARIANTS in field.metadata:
            text = _invariant(config, ".".join(path), field.metadata[_INVARIANTS])
            yield Check(
                f"EXPRESSION({text})", text, _understood(config, f"the invariant of column '{'.'.join(path)}'", text, time_zone)
            )


def _type_at(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    at: DataType = schema
    for name in path:
        field = at.find(name) if isinstance(at, StructType) else None
        if field is None:
            return None
        at = field.data_type
    return at


def _understood(config: TableConfig, subject: str, text: str, time_zone: str) -> Expression:
    try:
        return _READ.condition(text, config.schema, time_zone)
    except (InvalidRequest, Unsupported) as error:
        return _left_to_spark(config.table, subject, text, config.schema, error)


class _LongConditions:
    """A cache of the long conditions parsed last: parsing 50,000 terms takes seconds, and every write needs it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str, str], Expression] = OrderedDict()

    def condition(self, text: str, schema: StructType, time_zone: str) -> Expression:
        """Parse a condition as `parse_condition` does."""
        if len(text) < _LONG:
            return parse_condition(text, schema, time_zone)
        key = (text, schema.to_json(), time_zone)
        with self._lock:
            condition = self._known.pop(key, None)
        if condition is None:
            condition = parse_condition(text, schema, time_zone)
        with self._lock:
            self._known[key] = condition
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return condition


_LONG, _MOST_KEPT = 2_000, 8
_READ = _LongConditions()


def _generated(schema: StructType, table: str, time_zone: str) -> Iterator[Generated]:
    base = base_columns(schema)
    for field in schema:
        text = field.metadata.get(GENERATION_EXPRESSION)
        if text is None:
            continue
        try:
            value = cast_to(parse_expression(str(text), base, time_zone), field.data_type, time_zone)
        except (InvalidRequest, Unsupported) as error:
            value = _left_to_spark(table, f"the generated column '{field.name}'", str(text), base, error)
        yield Generated(field, str(text), value)


def _left_to_spark(table: str, subject: str, text: str, schema: StructType, error: InvalidRequest | Unsupported) -> EngineText:
    """Return the text of an expression that Tahoe does not parse; raises if Spark must not evaluate it either."""
    engine = engine_text(text, schema, error.code, error.message)
    if error.code in _NOT_FOR_SPARK:
        raise cannot_enforce(table, subject, engine) from error
    return engine


_ONLY_SPARK = ("TAHOE_EXPRESSION_NOT_ALLOWED", "PARSE_SYNTAX_ERROR")
"""The errors of texts that may be SQL outside Tahoe's own grammar."""
_NOT_FOR_SPARK = ("TAHOE_EXPRESSION_TOO_LONG", "TAHOE_EXPRESSION_TOO_DEEP")


def cannot_enforce(table: str, subject: str, engine: EngineText) -> InvalidRequest | Unsupported:
    """Return the error for a constraint or a generated column that cannot be evaluated.

    Args:
        subject: its name for messages.
        engine: its text, and why.
    """
    kind, text, code = Unsupported if engine.code == _ONLY_SPARK[0] else InvalidRequest, engine.text, engine.code
    remedy = " Write to this table through Spark (tahoe.enable), if Spark can evaluate it." if engine.code in _ONLY_SPARK else ""
    if code == "DELTA_COLUMN_NOT_FOUND":
        code = f"DELTA_INVALID_{'GENERATED_COLUMN' if subject.startswith('the generated') else 'CHECK_CONSTRAINT'}_REFERENCES"
    if code == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
        code = "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"
    return kind(
        f"Table {table}: {subject} ({text[:200]}) cannot be enforced, so nothing was written. {engine.reason}{remedy}",
        code=code,
        table=table,
        expression=text[:1000],
    )


def _invariant(config: TableConfig, column: str, stored: Any) -> str:
    try:
        text = json.loads(stored)["expression"]["expression"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"The invariant of column '{column}' of table {config.table} is not as the specification has it: {str(stored)[:200]}. "
            "Repair the metaData action.",
            code="DELTA_UNRECOGNIZED_INVARIANT",
            table=config.table,
            column=column,
        ) from error
    return str(text)


def _fields_in_structs(schema: StructType, prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield every field outside arrays and maps."""
    for field in schema:
        path = (*prefix, field.name)
        yield path, field
        if isinstance(field.data_type, StructType):
            yield from _fields_in_structs(field.data_type, path)


def _required(schema: StructType, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (path for path, field in _fields_in_structs(schema, prefix) if len(path) > 1 and not field.nullable)


def _required_in_collections(data_type: DataType, path: str, inside: bool) -> Iterator[str]:
    match data_type:
        case StructType():
            for field in data_type:
                name = f"{path}.{field.name}" if path else field.name
                if inside and not field.nullable:
                    yield name
                yield from _required_in_collections(field.data_type, name, inside)
        case ArrayType():
            yield from _required_in_collections(data_type.element_type, f"{path}.element", True)
        case MapType():
            yield from _required_in_collections(data_type.key_type, f"{path}.key", True)
            yield from _required_in_collections(data_type.value_type, f"{path}.value", True)


def _check_required(constraints: Constraints, path: tuple[str, ...], rows: pa.Table) -> None:
    values: Any = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    if values.null_count:
        raise null_found(path, constraints.table)


def _computed_mask(constraints: Constraints, constraint: Check, rows: pa.Table) -> pa.Array:
    try:
        return compute_mask(constraint.condition, rows)
    except InvalidRequest as error:
        raise _not_computed(constraints, f"CHECK constraint '{constraint.name}'", constraint.text, error) from error


def _computed(constraints: Constraints, generated: Generated, rows: pa.Table) -> pa.Array:
    try:
        return compute(generated.value, rows)
    except InvalidRequest as error:
        raise _not_computed(constraints, f"the generated column '{generated.column.name}'", generated.text, error) from error


def _not_computed(constraints: Constraints, subject: str, text: str, error: InvalidRequest) -> InvalidRequest:
    return InvalidRequest(
        f"Table {constraints.table}: {subject} ({text[:200]}) cannot be computed for the rows to be written; nothing was committed. "
        f"{error.message}",
        code=error.code,
        table=constraints.table,
        expression=text[:1000],
    )


def _refuse(constraints: Constraints, name: str, text: str, mask: pa.Array, read: Expression, rows: pa.Table, *more: str) -> None:
    """Raise for the first row for which the mask is not TRUE."""
    broken = pc.index(mask, False).as_py()
    if broken < 0:
        return
    row = rows.slice(broken, 1)
    values = {str(reference).replace("`", ""): compute(reference, row)[0].as_py() for reference in references_of(read)}
    values |= {column: row.column(column)[0].as_py() for column in more}
    raise violated(constraints.table, name, text, values)
