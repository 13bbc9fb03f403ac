"""Evaluates expressions over Arrow tables, with Spark's results in ANSI mode: a value that does not fit is an error that names the row.

A branch that is not taken cannot fail: CASE, COALESCE, AND and OR evaluate their operands only for the rows that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.lazy import kept_by_identity, pc
from tahoe.expr.compute.arithmetic import ARITHMETIC
from tahoe.expr.compute.column_cast import cast_array
from tahoe.expr.compute.comparison import COMPARISONS, is_one_of
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.compute.text_functions import TEXTS
from tahoe.expr.compute.time_functions import TIMES
from tahoe.expr.compute.values import Array, Incomputable
from tahoe.expr.tree.expression import Call, Case, Cast, EngineText, Expression, Literal, Reference, columns, sql_of_expression
from tahoe.expr.tree.implied import exact_predicate
from tahoe.expr.tree.predicate import LONGEST_CHAIN, Predicate
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import combined, scalar
from tahoe.schema.cast import READ, CannotCast, conform


def compute(expression: Expression, table: pa.Table) -> pa.Array:
    """Evaluate the expression for each row.

    Args:
        expression: the result of `tahoe.expr.parse.parse_expression`.
        table: columns by their logical names; for an expression over several tables, ``qualifier.name``.

    Returns:
        An array of the Arrow type that `to_arrow_type` has for the expression's type.

    Raises:
        InvalidRequest: a value cannot be computed (overflow, division by zero, a string that is not a number, …); the message names the
            expression, the row (from 0) and the reason. Or the table lacks a column.
    """
    try:
        return _value(expression, table)
    except Incomputable:
        row = _first_failing(expression, table)
        try:
            _value(expression, table.slice(row, 1))
        except Incomputable as error:
            text = sql_of_expression(expression)
            raise InvalidRequest(
                f"'{text[:300]}' cannot be computed for row {row}: {error}.", code=error.code, expression=text[:1000], row=row
            ) from error
        raise


def compute_mask(condition: Expression, table: pa.Table) -> pa.Array:
    """Return TRUE for rows for which the condition is TRUE, FALSE if it is FALSE or NULL."""
    mask: pa.Array = pc.fill_null(compute(condition, table), scalar(False))
    return mask


def _value(expression: Expression, table: pa.Table) -> Array:
    match expression:
        case Literal(value, data_type):
            return pa.repeat(scalar(value, to_arrow_type(data_type)), table.num_rows)
        case Reference():
            return _column(expression, table)
        case Cast(child, data_type, time_zone, _, lenient):
            return cast_array(_value(child, table), child.data_type, data_type, time_zone, lenient=lenient)
        case Case(branches, otherwise):
            return _case(branches, otherwise, expression, table)
        case Call("and", arguments):
            return _folded(pc.and_kleene, arguments, table, True)
        case Call("or", arguments) if len(arguments) > LONGEST_CHAIN and (same := _same_predicate(expression)) is not None:
            return combined(evaluate(same, table))
        case Call("or", arguments):
            return _folded(pc.or_kleene, arguments, table, False)
        case Call("in", (value, *options)) if len(
            literals := [option for option in options if isinstance(option, Literal)]
        ) == len(options):
            return is_one_of(_value(value, table), literals)
        case Call("coalesce", arguments):
            return _first_known(arguments, table)
        case EngineText(text, _, code, reason):
            raise Unsupported(f"Only Spark can evaluate ({text[:200]}). {reason}", code=code, expression=text[:1000])
        case Call(function, arguments):
            return _KERNELS[function](expression, *(_value(argument, table) for argument in arguments))


@kept_by_identity
def _same_predicate(long: Call) -> Predicate | None:
    """Return a long OR as a predicate, which evaluates it by look-up; None if no predicate has the same results."""
    return None if any(qualifier for qualifier, _ in columns(long)) else exact_predicate(long, long.time_zone)


def _column(reference: Reference, table: pa.Table) -> Array:
    position = table.schema.get_field_index(reference.column_name)
    if position < 0:
        raise InvalidRequest(
            f"There is no column {reference} in the data; its columns are: {', '.join(table.column_names)}.",
            code="DELTA_COLUMN_NOT_FOUND",
            column=str(reference),
        )
    values: Any = table.column(position)
    for name in reference.path[1:]:
        values = pc.struct_field(values, [name])  # a null struct makes its fields null, as SQL has it
    arrow_type = to_arrow_type(reference.data_type)
    array = combined(values)
    if array.type.equals(arrow_type):
        return array
    try:
        return conform(array, reference.data_type, arrow_type, READ)
    except CannotCast as error:
        raise InvalidRequest(
            f"Column {reference} has the type {array.type}, but {reference.data_type} is expected: {error}.",
            code="DATATYPE_MISMATCH",
            column=str(reference),
        ) from error


def _needed(expression: Expression, table: pa.Table, mask: Array) -> Array:
    """Evaluate the expression, correct at least for the rows of the mask: if it fails for all rows, only these are evaluated."""
    try:
        return _value(expression, table)
    except Incomputable:
        if not pc.any(pc.invert(mask), min_count=0).as_py():
            raise
        rows = pc.indices_nonzero(mask)
        values = _value(expression, table.take(rows))
        return values.take(pc.index_in(pa.array(range(table.num_rows), pa.uint64()), value_set=rows))


def _folded(join: Any, parts: tuple[Expression, ...], table: pa.Table, go_on: bool) -> Array:
    """Evaluate AND and OR from left to right: a part is evaluated only for rows that the parts before it have not decided."""
    answer = _value(parts[0], table)
    for part in parts[1:]:
        open_rows = pc.fill_null(answer if go_on else pc.invert(answer), True)
        if not pc.any(open_rows, min_count=0).as_py():
            break
        answer = join(answer, _needed(part, table, open_rows))
    return answer


def _case(branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, expression: Case, table: pa.Table) -> Array:
    arrow_type = to_arrow_type(expression.data_type)

    def of_rows(value: Expression, rows: Array) -> Array:
        computed = _needed(value, table, rows)
        return computed if computed.type == arrow_type else computed.cast(arrow_type)

    pending = pa.repeat(scalar(True), table.num_rows)
    answer = pa.nulls(table.num_rows, arrow_type)
    for condition, value in branches:
        # One branch after the other, so that memory has only one value a row, regardless of the number of branches.
        chosen = pc.and_(pending, pc.fill_null(_needed(condition, table, pending), False))
        if pc.any(chosen, min_count=0).as_py():
            answer = pc.if_else(chosen, of_rows(value, chosen), answer)
            pending = pc.and_(pending, pc.invert(chosen))
    return pc.if_else(pending, of_rows(otherwise, pending), answer)


def _first_known(parts: tuple[Expression, ...], table: pa.Table) -> Array:
    values = _value(parts[0], table)
    for part in parts[1:]:
        missing = pc.is_null(values)
        values = pc.if_else(missing, _needed(part, table, missing), values)
    return values


def _first_failing(expression: Expression, table: pa.Table) -> int:
    """Return the first row that cannot be computed; the caller knows that there is one."""
    start, end = 0, table.num_rows
    while end - start > 1:
        middle = (start + end) // 2
        try:
            _value(expression, table.slice(start, middle - start))
            start = middle
        except Incomputable:
            end = middle
    return start


_KERNELS: Mapping[str, Callable[..., Array]] = {**COMPARISONS, **ARITHMETIC, **TEXTS, **TIMES}
"""Name to a function of the call and its arguments' arrays."""
