"""Argument checks with delta-spark's messages, which existing programs may match."""

from __future__ import annotations

from pyspark.sql import Column

from tahoe.base.argument_checks import WrongArgument
from tahoe.ops.copies.clone import CloneRequest

_KINDS = {int: "an int", str: "a string", bool: "a boolean", dict: "a dict"}


def wrong_argument(message: str, parameter: str) -> WrongArgument:
    """Return the error; append the parameter's name if the message lacks it."""
    named = message if parameter in message else f"{message} (parameter '{parameter}')"
    return WrongArgument(named, parameter=parameter)


def check_kind(value: object, name: str, kind: type, called: str | None = None, parameter: str | None = None) -> None:
    """Raise `WrongArgument` for a value of another type; a bool is no int.

    Args:
        name: the argument, as in the message.
        called: the type's name in the message, if it differs from `_KINDS`.
        parameter: the parameter's name, if it is not the last word of `name`.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        expected = called or _KINDS.get(kind) or f"a {kind.__name__}"
        raise wrong_argument(f"{name} needs to be {expected} but got '{type(value)}'.", parameter or name.split()[-1])


def checked_clone(target: object, is_shallow: object, replace: object, properties: object) -> CloneRequest:
    """Return the request. Raises `WrongArgument` for invalid arguments of CLONE."""
    check_kind(target, "target", str)
    check_kind(is_shallow, "isShallow", bool)
    check_kind(replace, "replace", bool)
    if properties is None:
        properties = {}
    check_kind(properties, "properties", dict)
    assert isinstance(properties, dict)
    for key, value in properties.items():
        check_kind(key, f"All property keys including {key}", str, parameter="properties")
        check_kind(value, f"All property values including {value}", str, parameter="properties")
    return CloneRequest(bool(is_shallow), "createOrReplace" if replace else "create", properties)


def checked_expression(expression: object, name: str = "condition") -> str | Column | None:
    """Return SQL text, a column expression, or None. Raises `WrongArgument` for anything else."""
    if expression is None or isinstance(expression, str | Column):
        return expression
    raise wrong_argument(
        f"'{name}' must be a Spark SQL Column or a string (expression in SQL syntax), found to be of type {type(expression)}",
        name,
    )


def checked_expressions(expressions: object, name: str, method: str | None = None) -> tuple[tuple[str, str | Column], ...]:
    """Return pairs of a column and an expression. Raises `WrongArgument` unless `expressions` is a dict of text or column expressions."""
    where = f"'{name}'" if method is None else f"'{name}' in {method}"
    if expressions is None:
        raise wrong_argument(f"{where} cannot be None", name)
    if type(expressions) is not dict:
        raise wrong_argument(f"{where} must be a dict, found to be {type(expressions)}", name)
    for key, value in expressions.items():
        if type(key) is not str:
            raise wrong_argument(
                f"Keys of dict in {where} must contain only strings with column names, found '{key}' of type '{type(key)}'", name
            )
        if not isinstance(value, str | Column):
            raise wrong_argument(
                f"Values of dict in {where} must contain only Spark SQL Columns or strings (expressions in SQL syntax) as values, "
                f"found '{value}' of type '{type(value)}'",
                name,
            )
    return tuple(expressions.items())
