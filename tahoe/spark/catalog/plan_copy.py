"""Copies a logical plan with new columns, so that one query can use a cached plan twice.

Spark's own copies lose the hidden output of a projection, which provides `_metadata`. So this module copies the plan node by node from the
leaves: each scan gets new columns, each alias a new id, and references are updated.
"""

from __future__ import annotations

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["with_new_columns"]


def with_new_columns(jvm: Jvm, plan: JavaObject) -> JavaObject:
    """Return a copy of an analyzed plan of file scans, projections and filters, with columns that differ from the original's.

    An alias surrounds it, so that Spark never takes a bare relation for a folder of Parquet files to write into.
    """
    return jvm.cached("PlanCopy", lambda: compiled_object(jvm, "PlanCopy")).copy(plan)
