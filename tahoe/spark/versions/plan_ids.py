"""The ids by which columns refer to plans in PySpark's Connect client; the attribute was renamed in Spark 4.1 or later."""

from __future__ import annotations

from typing import Any


def stands_for(plan: Any, original: Any) -> None:
    """Make the columns that were taken from `original` refer to `plan`, which has the same columns."""
    name = "_root_plan_id" if hasattr(plan, "_root_plan_id") else "_plan_id"
    setattr(plan, name, original._plan_id)
