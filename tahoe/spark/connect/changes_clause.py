"""``FROM t CHANGES FROM VERSION 1 TO VERSION 5``: the changes of a table in the text of a query, as Spark 4.2 and later have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.spark.connect.constants import TIME_WORDS, VERSION_WORDS, constant_of, take_value, take_version
from tahoe.sql.dialect import Cursor

_ENDS = ("starting", "ending")


@dataclass(frozen=True, slots=True)
class ClauseBound:
    """One end of the commits that a clause names.

    Args:
        is_version: whether it is a version.
        text: the version, or the expression of a time.
        is_inclusive: whether the range includes it.
    """

    is_version: bool
    text: str
    is_inclusive: bool


def take_changes(cursor: Cursor) -> tuple[ClauseBound, ...]:
    """Consume a CHANGES clause and return its bounds, the start first; none if no clause comes."""
    if not cursor.take("CHANGES", "FROM"):
        return ()
    start = _bound(cursor)
    return (start, _bound(cursor)) if cursor.take("TO") else (start,)


def _bound(cursor: Cursor) -> ClauseBound:
    is_version = cursor.peek().is_word(*VERSION_WORDS)
    if not is_version and not cursor.peek().is_word(*TIME_WORDS):
        cursor.fail("VERSION or TIMESTAMP")
    cursor.next()
    text = take_version(cursor) if is_version else take_value(cursor)
    is_inclusive = not cursor.take("EXCLUSIVE")
    if is_inclusive:
        cursor.take("INCLUSIVE")
    return ClauseBound(is_version, text, is_inclusive)


def options_of_clause(spark: SparkSession, bounds: Sequence[ClauseBound], values: object) -> dict[str, str]:
    """Return the options of ``spark.read.changes`` that mean the same.

    Args:
        values: of the query's parameters.

    Raises `InvalidRequest` (``DELTA_CDC_READ_NULL_RANGE_BOUNDARY``) for a time that is NULL.
    """
    options = {}
    for end, bound in zip(_ENDS, bounds, strict=False):
        options[f"{end}BoundInclusive"] = str(bound.is_inclusive).lower()
        if bound.is_version:
            options[f"{end}Version"] = bound.text
            continue
        time = constant_of(spark, bound.text, values).text
        if time is None:
            raise InvalidRequest(
                f"The time {bound.text} of a CHANGES clause is NULL. Write a time, such as '2026-01-31 12:00:00'.",
                code="DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
            )
        options[f"{end}Timestamp"] = time
    return options
