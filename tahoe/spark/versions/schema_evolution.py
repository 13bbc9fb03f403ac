"""``INSERT WITH SCHEMA EVOLUTION``, since Spark 4.2, and the same for writers, which no PySpark up to 4.3 offers.

Obsolete for statements when PySpark 4.2 is the oldest supported release.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaObject

from tahoe.spark.versions.members import has_field


def plan_evolves(plan: JavaObject) -> bool:
    """Return whether the plan of a write adds new columns to its table."""
    return has_field(plan, "withSchemaEvolution") and bool(plan.withSchemaEvolution())


def writer_evolves(writer: Any) -> bool:
    """Return whether a ``DataFrameWriter`` adds new columns to its table."""
    return hasattr(writer, "withSchemaEvolution") and bool(writer._jwrite._withSchemaEvolution())
