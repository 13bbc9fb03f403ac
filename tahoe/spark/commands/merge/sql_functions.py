"""Functions of SQL (``CREATE FUNCTION … RETURN``) in the expressions of a MERGE.

Spark computes the arguments of such a function in a projection below the one that calls it. A MERGE needs expressions of columns.
"""

from __future__ import annotations

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied, created


def with_arguments(jvm: Jvm, plan: JavaObject, seen: JavaObject) -> JavaObject:
    """Return a projection whose expressions contain the arguments of functions; the same plan if none are computed below it.

    Args:
        plan: a ``Project``.
        seen: the ``AttributeSet`` of the columns that the expressions may use.
    """
    above: list[JavaObject] = []
    below = plan
    while str(below.nodeName()) == "Project" and not (above and below.outputSet().subsetOf(seen)):
        above.append(below)
        below = below.child()
    if len(above) < 2:
        return plan
    # Without this leaf, Spark would go on to the projections that made the columns.
    inlined = created(jvm, "plans.logical.LocalRelation", below.output())
    for projection in reversed(above):
        inlined = copied(projection, child=inlined)
    return jvm.catalyst("optimizer.CollapseProject").apply(inlined, True)
