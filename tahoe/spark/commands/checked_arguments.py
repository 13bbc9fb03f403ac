"""Arguments checked in the words of delta-spark, which programs written for it may look for."""

from __future__ import annotations

from pyspark.sql import Column

__all__ = ["check_clone", "check_kind", "checked_expression", "checked_expressions"]

_KINDS = {int: "an int", str: "a string", bool: "a boolean", dict: "a dict"}


def check_kind(given: object, name: str, kind: type, called: str | None = None) -> None:
    """Raises `ValueError` for what is not of a type; a bool is no int.

    Args:
        called: the type's name in the message, where it is not that of `_KINDS`.
    """
    if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
        raise ValueError(f"{name} needs to be {called or _KINDS[kind]} but got '{type(given)}'.")


def check_clone(target: object, is_shallow: object, replace: object, properties: object) -> None:
    """Raises `ValueError` for what CLONE cannot take."""
    check_kind(target, "target", str)
    check_kind(is_shallow, "isShallow", bool)
    check_kind(replace, "replace", bool)
    if properties is None:
        return
    check_kind(properties, "properties", dict)
    assert isinstance(properties, dict)
    for key, value in properties.items():
        check_kind(key, f"All property keys including {key}", str)
        check_kind(value, f"All property values including {value}", str)


def checked_expression(given: object, name: str = "'condition'") -> str | Column | None:
    """SQL text, a column expression, or None. Raises `TypeError` for anything else."""
    if given is None or isinstance(given, str | Column):
        return given
    raise TypeError(
        f"{name} must be a Spark SQL Column or a string (expression in SQL syntax), found to be of type {type(given)}"
    )


def checked_expressions(given: object, name: str) -> dict[str, str | Column]:
    """Expressions by column. Raises `ValueError` for None, and `TypeError` for anything but a dict of texts and column expressions."""
    if given is None:
        raise ValueError(f"{name} cannot be None")
    if type(given) is not dict:
        raise TypeError(f"{name} must be a dict, found to be {type(given)}")
    for key, value in given.items():
        if type(key) is not str:
            raise TypeError(
                f"Keys of dict in {name} must contain only strings with column names, found '{key}' of type '{type(key)}'"
            )
        if not isinstance(value, str | Column):
            raise TypeError(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings (expressions in SQL syntax) as values, "
                f"found '{value}' of type '{type(value)}'"
            )
    return given
