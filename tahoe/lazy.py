"""`cached_property` without a lock.

Python 3.11's own holds one lock for a property of *all* instances while it is computed, so that reading the files of one table
would make every other table of the process wait (python/cpython#87634; 3.12 dropped the lock). Here two threads that ask
one object at once may both compute; the values are equal, and one of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["cached_property"]

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - stands in for functools.cached_property
    """A property that is computed on first use and kept in the instance's ``__dict__``."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[Value] | Value:
        if instance is None:
            return self
        kept = instance.__dict__
        if self._name not in kept:
            kept[self._name] = self._compute(instance)
        return cast(Value, kept[self._name])
