"""Private fields of Spark's objects: some of what a user told Spark stands nowhere else. A Spark that has others is refused by name."""

from __future__ import annotations

from typing import Any

from tahoe.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject

__all__ = ["other_spark", "private_field", "private_value"]


def private_field(owner: JavaObject, name: str) -> JavaObject | None:
    """The field of that name of the object's class, or of one that it inherits from, open to `get` and `set`; None where there is none."""
    kind = owner.getClass()
    while kind is not None:
        field = next((field for field in kind.getDeclaredFields() if field.getName() == name), None)
        if field is not None:
            field.setAccessible(True)
            return field
        kind = kind.getSuperclass()
    return None


def private_value(owner: JavaObject, name: str, use: str) -> Any:
    """What a private field holds.

    Args:
        use: what it is looked at for, as `other_spark` says it.

    Raises `Unsupported` (``TAHOE_SPARK_VERSION``) where there is no such field.
    """
    field = private_field(owner, name)
    if field is None:
        raise other_spark(use, f"{owner.getClass().getName()} has no {name}")
    return field.get(owner)


def other_spark(use: str, reason: str) -> Unsupported:
    """The error of a Spark whose private members are not those that Tahoe knows.

    Args:
        use: what Tahoe cannot do there, after "cannot".
    """
    from pyspark import __version__

    return Unsupported(
        f"This version of Spark ({__version__}) is one with which Tahoe cannot {use}: {reason}. Use PySpark 4.0 to 4.3; tables by path "
        "through tahoe.Table work with any.",
        code="TAHOE_SPARK_VERSION",
    )
