"""Predicates over Arrow tables: a mask with SQL's NULLs, and the rows that are TRUE."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import cached_property, kept_by_identity, pc
from tahoe.expr.compute.comparison import compare_arrays
from tahoe.expr.tree.alternatives import Alternatives, Test, split
from tahoe.expr.tree.predicate import (
    LONGEST_CHAIN,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import array, combined, scalar

Array: TypeAlias = Any
"""`pa.Array | pa.ChunkedArray`; pyarrow ships no types."""


def evaluate(predicate: Predicate, table: pa.Table) -> Array:
    """TRUE, FALSE or null for each row, as Spark would answer.

    Args:
        predicate: columns by the table's own names, nested fields through structs.
        table: columns may be dictionary-encoded, and narrower or wider than the literals.
    """
    match predicate:
        case Constant(value):
            return pa.repeat(scalar(value, pa.bool_()), table.num_rows)
        case And(parts):
            return _folded(pc.and_kleene, parts, table, True)
        case Or(parts) if len(parts) > LONGEST_CHAIN and (tables := _looked_up(predicate)) is not None:
            return _any_of_long(tables, predicate, table)
        case Or(parts):
            return _folded(pc.or_kleene, parts, table, False)
        case Not(part):
            return pc.invert(evaluate(part, table))
        case _:
            return _leaf(predicate, _column(table, predicate.column))


def filter_table(predicate: Predicate, table: pa.Table) -> pa.Table:
    """The rows for which the predicate is TRUE."""
    return table.filter(evaluate(predicate, table), null_selection_behavior="drop")


def compare_array(op: str, values: Array, literal: Literal) -> Array:
    """`values op literal` element by element; NaN equals NaN and is greater than every other number."""
    if literal.value is None:
        return pc.is_null(values) if op == "<=>" else pa.repeat(scalar(None, pa.bool_()), len(values))
    if op == "<=>":
        return pc.fill_null(compare_array("=", values, literal), scalar(False))
    if pa.types.is_floating(values.type):
        return _compare_floats(op, values, literal.value)
    values, constant = _same_kind(values, scalar(literal.value, to_arrow_type(literal.data_type)))
    return pc.call_function(_COMPARE[op], [values, constant])


_COMPARE = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""The operators' functions in `pyarrow.compute`; by name, for that module is imported late."""


def _folded(join: Any, parts: tuple[Predicate, ...], table: pa.Table, empty: bool) -> Array:
    if not parts:
        return pa.repeat(scalar(empty), table.num_rows)
    mask = evaluate(parts[0], table)
    for part in parts[1:]:
        mask = join(mask, evaluate(part, table))
    return mask


class _Table:
    """Alternatives with their values as Arrow arrays."""

    def __init__(self, alternatives: Alternatives) -> None:
        self.key, self.tests = alternatives.key, alternatives.tests
        self.keys = array(alternatives.values, to_arrow_type(alternatives.key_type))
        columns = zip(*alternatives.constants, strict=True) if alternatives.tests else ()
        self.constants = [
            None if test.data_type is None else array(values, to_arrow_type(test.data_type))
            for test, values in zip(alternatives.tests, columns, strict=True)
        ]
        self._alternatives = alternatives

    @cached_property
    def without_key(self) -> Predicate:
        """See `Alternatives.without_key`."""
        return self._alternatives.without_key()


@kept_by_identity
def _looked_up(predicate: Or) -> tuple[list[_Table], Or] | None:
    """Return the look-up tables of a long OR and its remaining parts; None if no part of it can be looked up."""
    tables, rest = split(predicate.parts)
    return ([_Table(alternatives) for alternatives in tables], Or(tuple(rest))) if tables else None


def _any_of_long(lookups: tuple[list[_Table], Or], predicate: Or, table: pa.Table) -> Array:
    tables, rest = lookups
    try:
        masks = [_picked(outlined, table) for outlined in tables]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Data of other types than the constants': one part after the other finds its own way with each.
        return _folded(pc.or_kleene, predicate.parts, table, False)
    mask = _folded(pc.or_kleene, rest.parts, table, False)
    for outlined in masks:
        mask = pc.or_kleene(mask, outlined)
    return mask


def _picked(lookup: _Table, table: pa.Table) -> Array:
    """TRUE, FALSE or null for each row: the tests of the alternative that its key picks; FALSE where it picks none."""
    values, keys = _same_kind(_decoded(_column(table, lookup.key)), lookup.keys)
    if pa.types.is_integer(values.type):
        wider = max(values.type, keys.type, key=lambda kind: kind.bit_width)
        values, keys = values.cast(wider), keys.cast(wider)
    rows = pc.index_in(values, value_set=keys)
    picked = rows.is_valid()
    answer = picked
    for test, constants in zip(lookup.tests, lookup.constants, strict=True):
        answer = pc.and_kleene(answer, _tested(test, _decoded(_column(table, test.column)), constants, rows))
    answer = pc.if_else(picked, answer, scalar(False))
    unknown = pc.is_null(values)
    if unknown.true_count:
        # NULL = 1 is NULL, and NULL AND FALSE is FALSE.
        remainder = pc.and_kleene(evaluate(lookup.without_key, table.filter(unknown)), scalar(None, pa.bool_()))
        answer = pc.replace_with_mask(answer, unknown, combined(remainder))
    return answer


def _tested(test: Test, values: Array, constants: Array | None, rows: Array) -> Array:
    """The test of each row with the constant of its alternative."""
    if constants is None:
        return pc.is_null(values) if test.op == "is null" else pc.is_valid(values)
    if pa.types.is_floating(values.type):
        return compare_arrays(test.op, values.cast(pa.float64()), constants.cast(pa.float64()).take(rows))
    values, constants = _same_kind(values, constants)
    return compare_arrays(test.op, values, constants.take(rows))


def _decoded(values: Array) -> Array:
    # NULL-ness of a dictionary column may sit in its values, so it is decoded before anything else looks at it.
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return combined(values)


def _leaf(predicate: Comparison | In | IsNull | IsNotNull | StartsWith, values: Array) -> Array:
    # NULL-ness of a dictionary column may sit in its values, so it is decoded before anything else looks at it.
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    match predicate:
        case Comparison(op, _, literal):
            return compare_array(op, values, literal)
        case In(_, literals):
            return _is_in(values, literals)
        case IsNull():
            return pc.is_null(values)
        case IsNotNull():
            return pc.is_valid(values)
        case StartsWith(_, prefix):
            if pa.types.is_string_view(values.type):
                values = values.cast(pa.large_string())
            return pc.starts_with(values, pattern=prefix)


def _column(table: pa.Table, column: Column) -> Array:
    position = table.schema.get_field_index(column.path[0])
    if position < 0:
        message = f"There is no column {column}; the columns are: {', '.join(table.column_names)}."
        raise InvalidRequest(message, code="DELTA_COLUMN_NOT_FOUND", column=str(column))
    values = table.column(position)
    for name in column.path[1:]:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            message = f"There is no nested column {column} in the data."
            raise InvalidRequest(message, code="DELTA_COLUMN_NOT_FOUND", column=str(column))
        values = pc.struct_field(values, [name])  # a null struct makes its fields null, as SQL has it
    return values


def _compare_floats(op: str, values: Array, number: Any) -> Array:
    """Compare floats as Spark: NaN = NaN, and NaN > everything. In Arrow every comparison with NaN is false."""
    number = float(number)
    if math.isnan(number):
        is_nan = pc.is_nan(values)
        if op in ("=", ">="):
            return is_nan
        if op in ("<", "!="):
            return pc.invert(is_nan)
        return pc.or_(pc.is_nan(values), pc.invert(is_nan)) if op == "<=" else pc.and_(is_nan, pc.invert(is_nan))
    answer = pc.call_function(_COMPARE[op], [values, scalar(number, pa.float64())])
    return pc.or_(answer, pc.is_nan(values)) if op in (">", ">=") else answer


def _same_kind(values: Array, constant: Any) -> tuple[Array, Any]:
    """Both in types that Arrow compares; the constant is a scalar, or an array of several."""
    have, want = values.type, constant.type
    if have == want or (pa.types.is_integer(have) and pa.types.is_integer(want)):
        return values, constant
    if pa.types.is_null(have):
        return values.cast(want), constant
    if pa.types.is_large_string(have) or pa.types.is_large_binary(have):
        return values, constant.cast(have)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(want):
        return (values if have.unit == "us" and have.tz == want.tz else values.cast(want, safe=False)), constant
    try:
        return values.cast(want), constant
    except pa.ArrowInvalid:
        # The data is wider than the literal's type: the literal fits the data, then.
        return values, constant.cast(have)


def _is_in(values: Array, literals: tuple[Literal, ...]) -> Array:
    constants = [literal for literal in literals if literal.value is not None]
    if not literals:
        return pa.repeat(scalar(False), len(values))
    if not constants:
        return pa.repeat(scalar(None, pa.bool_()), len(values))
    values, options = _comparable(values, constants)
    mask = pc.is_in(values, value_set=options, skip_nulls=True)
    # Arrow's is_in answers false for null; SQL answers NULL.
    mask = pc.if_else(pc.is_valid(values), mask, scalar(None, pa.bool_()))
    return _with_null_literal(mask, values, len(constants) != len(literals))


def _comparable(values: Array, constants: list[Literal]) -> tuple[Array, pa.Array]:
    """Convert values and literals to one type, for a look-up by equality."""
    if pa.types.is_floating(values.type):
        # 0.0 and -0.0 are the same number; adding zero makes both 0.0.
        options = array([float(literal.value) for literal in constants], pa.float64())
        return pc.add(values.cast(pa.float64()), 0.0), pc.add(options, 0.0)
    options = array([literal.value for literal in constants], to_arrow_type(constants[0].data_type))
    if pa.types.is_integer(values.type) and pa.types.is_integer(options.type):
        wider = max(values.type, options.type, key=lambda data_type: data_type.bit_width)
        return values.cast(wider), options.cast(wider)
    values, _ = _same_kind(values, scalar(constants[0].value, to_arrow_type(constants[0].data_type)))
    return values, options.cast(values.type)


def _with_null_literal(mask: Array, values: Array, has_null: bool) -> Array:
    return pc.or_kleene(mask, pa.repeat(scalar(None, pa.bool_()), len(values))) if has_null else mask
