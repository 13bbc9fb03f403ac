"""Columns of DataFrames by their names, and columns of expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.sql.expression_text import in_brackets

_SIGNS = frozenset(".`*")


def column_in(frame: DataFrame, name: str) -> Column:
    """Return a top-level column of a DataFrame.

    The name is in back-ticks only if it needs them: with ``spark.sql.parser.quotedRegexColumnNames``, a DataFrame reads a name in
    back-ticks as a pattern of names.
    """
    return frame[quote_identifier(name) if set(name) & _SIGNS else name]


def column_of(term: str | Column) -> Column:
    """Return the column of a whole expression, which has no alias; see `tahoe.sql.expression_text.in_brackets`."""
    return sf.expr(in_brackets(term)) if isinstance(term, str) else term
