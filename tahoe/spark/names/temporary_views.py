"""Temporary views over Delta tables in sessions of Spark Connect, which show the newest rows of their tables.

The server analyzes the query of a temporary view once, and the view would show its tables' versions of then for ever. So the client keeps the
plan of each view that it creates, and reads it in place of the view. The server's description of the view says whether it is the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

from tahoe.spark.names.server_catalog import ServerEntry, server_relation

_ATTRIBUTE = "_tahoe_view_plans"
"""Of the session: the name of a temporary view, in lower case → its plan. A plan with a checkpoint refers to the session."""


@dataclass(frozen=True, slots=True)
class _ViewPlan:
    """The plan of PySpark's client whose rows a view has, and the server's description of the view."""

    plan: Any
    description: str


def note_view(spark: Any, parts: Sequence[str], plan: Any) -> None:
    """Keep the plan of a temporary view over Delta tables that was just created."""
    entry = server_relation(spark, parts)
    if entry is not None and entry.is_temporary:
        _plans(spark)[_key(parts)] = _ViewPlan(plan, entry.description)


def forget_view(spark: SparkSession, parts: Sequence[str]) -> None:
    """Read a temporary view from the server from now on, which has cached its rows, or another view with its name."""
    _plans(spark).pop(_key(parts), None)


def copy_views(spark: SparkSession, clone: SparkSession) -> None:
    """Follow the temporary views that the clone of a session has."""
    _plans(clone).update(_plans(spark))


def rows_of_view(spark: Any, view: ServerEntry) -> DataFrame | None:
    """Return the newest rows of a temporary view that this client created over Delta tables; None for other views."""
    known = _plans(spark).get(_key(view.parts))
    if known is None or known.description != view.description:
        return None
    # The alias is a new node, so that columns of two uses of the view differ.
    return ConnectDataFrame(known.plan, spark).alias(view.parts[-1])


def _plans(spark: SparkSession) -> dict[tuple[str, ...], _ViewPlan]:
    plans: dict[tuple[str, ...], _ViewPlan] = vars(spark).setdefault(_ATTRIBUTE, {})
    return plans


def _key(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)
