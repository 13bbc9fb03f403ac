"""Private fields of Spark's objects, which contain state that is available nowhere else. An unsupported Spark version raises an error that
names the missing field.
"""

from __future__ import annotations

from typing import Any

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject

__all__ = ["other_spark", "private_field", "private_value"]


def private_field(owner: JavaObject, name: str) -> JavaObject | None:
    """Return the accessible field with this name of the object's class or a superclass, or None."""
    kind = owner.getClass()
    while kind is not None:
        field = next((field for field in kind.getDeclaredFields() if field.getName() == name), None)
        if field is not None:
            field.setAccessible(True)
            return field
        kind = kind.getSuperclass()
    return None


def private_value(owner: JavaObject, name: str, use: str) -> Any:
    """Return the value of a private field.

    Args:
        use: the purpose, for the message of `other_spark`.

    Raises `Unsupported` (``TAHOE_SPARK_VERSION``) if there is no such field.
    """
    field = private_field(owner, name)
    if field is None:
        raise other_spark(use, f"{owner.getClass().getName()} has no {name}")
    return field.get(owner)


def other_spark(use: str, reason: str) -> Unsupported:
    """Return the error for a Spark whose private members differ from the expected ones.

    Args:
        use: the unavailable feature, after "cannot" in the message.
    """
    from pyspark import __version__

    return Unsupported(
        f"This version of Spark ({__version__}) is one with which Tahoe cannot {use}: {reason}. Use PySpark 4.0 to 4.3; tables by path "
        "through tahoe.Table work with any.",
        code="TAHOE_SPARK_VERSION",
    )
