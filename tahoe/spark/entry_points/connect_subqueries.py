"""Subqueries in the expression texts of DataFrames in sessions of Spark Connect: ``df.where("id IN (SELECT id FROM a_delta_table)")``.

The server resolves the names in such a text, and it cannot read a Delta table by its name. So the client gives it a temporary view for each
Delta table, while a request runs.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

from pyspark.sql import DataFrame

from tahoe.spark.connect.queries import delta_rows, with_frames
from tahoe.spark.connect.requests.plan_parts import Message, parts_of_message
from tahoe.sql.selects import has_subquery

logger = logging.getLogger(__name__)
_NUMBERS = count()
_OF_ROWS = frozenset({"LocalRelation", "CachedLocalRelation"})


@dataclass(frozen=True, slots=True)
class SubqueryViews:
    """The temporary views that a request reads in place of Delta tables.

    Args:
        spark: the session.
        names: of the views.
        originals: the changed text of each expression → the user's.
    """

    spark: Any
    names: list[str]
    originals: dict[str, str]

    def create(self, rows: DataFrame) -> str:
        """Create a view of these rows and return its name."""
        name = f"tahoe_subquery_{next(_NUMBERS)}"
        inspect.unwrap(type(rows).createOrReplaceTempView)(rows, name)
        self.names.append(name)
        return name

    def restore(self, message: Message) -> None:
        """Put the user's texts into a plan that the server returns."""
        for expression in _texts_with_subqueries(message):
            expression.expression = self.originals.get(expression.expression, expression.expression)

    def drop(self) -> None:
        """Drop the views. A failure is logged: it changes nothing about the request, which may have written rows."""
        for name in self.names:
            try:
                self.spark.catalog.dropTempView(name)
            except Exception:  # of any kind: the server may be gone
                logger.warning("The temporary view %s of a subquery was not dropped", name, exc_info=True)


def views_of_subqueries(spark: Any, message: Message) -> SubqueryViews | None:
    """Let the subqueries in the expressions of a plan read views in place of Delta tables; return None if there are none.

    Args:
        message: a plan, or a part of one, whose texts are changed.
    """
    views = SubqueryViews(spark, [], {})
    with ExitStack() as failing:
        failing.callback(views.drop)
        for expression in _texts_with_subqueries(message):
            original = expression.expression
            text, frames = with_frames(original, delta_rows(spark, original), {})
            if frames:
                expression.expression = text.format(**{key: views.create(frame) for key, frame in frames.items()})
                views.originals[expression.expression] = original
        failing.pop_all()
    return views if views.names else None


def _texts_with_subqueries(message: Message) -> Iterator[Message]:
    if message.DESCRIPTOR.name in _OF_ROWS:
        return
    for field, part in parts_of_message(message):
        if field != "expression_string":
            yield from _texts_with_subqueries(part)
        elif "(" in part.expression and has_subquery(part.expression):
            yield part
