"""Columns of DataFrames by their names."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from tahoe.expr.tree.predicate import quote_identifier

_SIGNS = frozenset(".`*")


def column_in(frame: DataFrame, name: str) -> Column:
    """Return a top-level column of a DataFrame.

    The name is in back-ticks only if it needs them: with ``spark.sql.parser.quotedRegexColumnNames``, a DataFrame reads a name in
    back-ticks as a pattern of names.
    """
    return frame[quote_identifier(name) if set(name) & _SIGNS else name]
