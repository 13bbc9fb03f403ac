"""A logical plan once more, with columns of its own: what two uses of one kept plan in one query need.

Spark makes such copies by itself, but forgets the hidden output of a projection in them, by which `_metadata` is found. So the plan is
copied here, node by node from the leaves: each scan gets new columns, each alias a new id, and what refers to them follows.
"""

from __future__ import annotations

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["with_new_columns"]


def with_new_columns(jvm: Jvm, plan: JavaObject) -> JavaObject:
    """A copy of an analysed plan that is made of scans of files, projections and filters, whose columns are none of the other's.

    An alias stands around it, so that no way of Spark's takes a bare relation for a folder of Parquet files to write into.
    """
    return jvm.kept("PlanCopy", lambda: compiled_object(jvm, "PlanCopy")).anew(plan)
