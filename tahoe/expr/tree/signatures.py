"""Common parts of the rules of `tahoe.expr.tree.functions`: the number of arguments of a function, and the casts that Spark inserts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.common_types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    common_type,
    is_integral,
    is_numeric,
    same_type,
)
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.expression import Call, Cast, Expression, Literal, sql_of_expression
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, is_opaque

Arguments: TypeAlias = tuple[Expression, ...]
Rule: TypeAlias = Callable[[str, Arguments, str], Expression]
"""A function's name, its arguments and the session's time zone to the typed call."""


def cast_to(expression: Expression, data_type: DataType, time_zone: str = "UTC") -> Expression:
    """The expression in another type, by an implicit cast; a constant is cast at once."""
    if same_type(expression.data_type, data_type):
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, data_type)
        try:
            return Literal(cast_value(expression.value, data_type, zone_of(time_zone)), data_type)
        except InvalidRequest as error:
            if error.code != "TAHOE_EXPRESSION_NOT_ALLOWED":
                raise
    return Cast(expression, data_type, time_zone, implicit=True)


def meet(name: str, arguments: Arguments, time_zone: str) -> Arguments:
    """The arguments in their common type."""
    common = arguments[0].data_type
    for argument in arguments[1:]:
        met = common_type(common, argument.data_type)
        if met is None:
            raise mismatch(name, arguments, "they have no common type")
        common = met
    return tuple(cast_to(argument, common, time_zone) for argument in arguments)


def condition(expression: Expression, time_zone: str = "UTC") -> Expression:
    """The expression if it is boolean, NULL, or a constant text of a truth value."""
    constant_text = expression.data_type == STRING and isinstance(expression, Literal)
    if expression.data_type not in (BOOLEAN, VOID) and not constant_text:
        text = sql_of_expression(expression)
        message = f"'{text[:120]}' is of type {expression.data_type}; a condition must be boolean."
        raise InvalidRequest(message, code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", expression=text[:1000])
    return cast_to(expression, BOOLEAN, time_zone)


def mismatch(name: str, arguments: Arguments, reason: str) -> InvalidRequest:
    """The error for arguments that the function does not take, with the first of them and their types."""
    listing = ", ".join(f"{sql_of_expression(argument)[:60]} {argument.data_type}" for argument in arguments[:_MOST_SHOWN])
    listing += ", …" if len(arguments) > _MOST_SHOWN else ""
    return InvalidRequest(
        f"'{name}' cannot take ({listing}): {reason}. Cast the arguments.", code="DATATYPE_MISMATCH", function=name
    )


def counted(name: str, arguments: Arguments, least: int, most: int | None) -> None:
    """Raise where there are fewer arguments than `least`, or more than `most`."""
    if len(arguments) < least or (most is not None and len(arguments) > most):
        expected = str(least) if least == most else f"{least} to {most}" if most is not None else f"{least} or more"
        raise InvalidRequest(
            f"The function '{name}' takes {expected} arguments, found {len(arguments)}.", code="WRONG_NUM_ARGS", function=name
        )


def fixed(result: DataType, *types: DataType, least: int | None = None) -> Rule:
    """A function of arguments of fixed types; those after the first `least` may be left out."""

    def rule(name: str, arguments: Arguments, time_zone: str) -> Expression:
        counted(name, arguments, len(types) if least is None else least, len(types))
        operands = tuple(taken(name, arguments, i, want, time_zone) for i, want in enumerate(types[: len(arguments)]))
        return Call(name, operands, result, time_zone)

    return rule


def taken(name: str, arguments: Arguments, index: int, data_type: DataType, time_zone: str) -> Expression:
    """One argument in the type that the function takes, where Spark would cast it by itself."""
    operand = arguments[index]
    have = operand.data_type
    allowed = (
        have in (data_type, VOID)
        or (data_type == STRING and not isinstance(have, ArrayType | MapType | StructType) and not is_opaque(have))
        or (have == STRING and (isinstance(operand, Literal) or data_type == PrimitiveType("binary")))
        or (data_type == DOUBLE and (is_numeric(have) or have == STRING))
        or (is_integral(data_type) and is_integral(have) and common_type(have, data_type) == data_type)
        or (data_type in (DATE, TIMESTAMP) and str(have) in ("date", "timestamp", "timestamp_ntz", "string"))
    )
    if not allowed:
        raise mismatch(name, arguments, f"argument {index + 1} must be {data_type}")
    return cast_to(operand, data_type, time_zone)


_MOST_SHOWN = 8
