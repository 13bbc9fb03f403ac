"""Arguments that are expressions, checked in the words of delta-spark, which programs written for it may look for."""

from __future__ import annotations

from pyspark.sql import Column

__all__ = ["checked_expression", "checked_expressions"]


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
