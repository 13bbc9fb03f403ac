"""Members of JVM objects by name: private fields and methods, and the fields of case classes.

Private members contain state that is available nowhere else; a Spark version without one raises an error that names it. Case classes get new
fields in new versions, so code asks whether a field exists.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import __version__

from tahoe.base.exceptions import Unsupported

_FIELD_NAMES: dict[str, tuple[str, ...]] = {}
# By the name of the class and of the member. A lookup takes a call for each member of the class.
_FIELDS: dict[tuple[str, str], JavaObject | None] = {}
_METHODS: dict[tuple[str, str], JavaObject] = {}


def private_field(owner: JavaObject, name: str) -> JavaObject | None:
    """Return the accessible field with this name of the object's class or a superclass, or None."""
    kind = owner.getClass()
    key = str(kind.getName()), name
    if key not in _FIELDS:
        field = None
        while field is None and kind is not None:
            field = next((field for field in kind.getDeclaredFields() if field.getName() == name), None)
            kind = kind.getSuperclass()
        if field is not None:
            field.setAccessible(True)
        _FIELDS[key] = field
    return _FIELDS[key]


def private_value(owner: JavaObject, name: str, use: str) -> Any:
    """Return the value of a private field.

    Args:
        use: the purpose, for the message of `unsupported_spark`.

    Raises `Unsupported` (``TAHOE_SPARK_VERSION``) if there is no such field.
    """
    field = private_field(owner, name)
    if field is None:
        raise unsupported_spark(use, f"{owner.getClass().getName()} has no {name}")
    return field.get(owner)


def private_method(owner: JavaObject, name: str, parameters: int, use: str) -> JavaObject:
    """Return the accessible ``java.lang.reflect.Method`` with this name and number of parameters of the object's class.

    Args:
        use: the purpose, for the message of `unsupported_spark`.

    Raises `Unsupported` (``TAHOE_SPARK_VERSION``) if there is no such method.
    """
    kind = owner.getClass()
    key = str(kind.getName()), name
    if key not in _METHODS:
        methods = (method for method in kind.getDeclaredMethods() if method.getName() == name)
        method = next((method for method in methods if method.getParameterCount() == parameters), None)
        if method is None:
            raise unsupported_spark(use, f"{key[0]} has no {name} with {parameters} parameters")
        method.setAccessible(True)
        _METHODS[key] = method
    return _METHODS[key]


def unsupported_spark(use: str, reason: str) -> Unsupported:
    """Return the error for a Spark whose private members differ from the expected ones.

    Args:
        use: the unavailable feature, after "cannot" in the message.
    """
    return Unsupported(
        f"This version of Spark ({__version__}) is one with which Tahoe cannot {use}: {reason}. Use PySpark 4.0 to 4.3; tables by path "
        "through tahoe.Table work with any.",
        code="TAHOE_SPARK_VERSION",
    )


def has_field(record: JavaObject, name: str) -> bool:
    """Return whether a case class has a parameter with this name in this Spark version."""
    return name in field_names(record)


def field_names(record: JavaObject) -> tuple[str, ...]:
    """Return the names of a case class's parameters, in order; a case object has none."""
    kind = str(record.getClass().getName())
    if kind not in _FIELD_NAMES:
        names = str(record.productElementNames().mkString(","))
        _FIELD_NAMES[kind] = tuple(names.split(",")) if names else ()
    return _FIELD_NAMES[kind]
