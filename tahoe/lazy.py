"""What is only made when it is asked for: properties, and the modules that half of all programs never use.

`cached_property` is one without a lock. Python 3.11's own holds one lock for a property of *all* instances while it is computed, so that
reading the files of one table would make every other table of the process wait (python/cpython#87634; 3.12 dropped the lock). Here two
threads that ask one object at once may both compute; the values are equal, and one of them is kept.

`pc` and `pq` are `pyarrow.compute` and `pyarrow.parquet`, imported at their first use: they cost 0.05 s of processor time each, beside
0.25 s for all that opens a table. Every module takes them from here (ruff's TID253 says so): one that imports them itself takes the gain
from all others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["cached_property", "pc", "pq"]

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


class _LateModule:
    """Stands for a module until one of its names is asked for; what was asked for once is found without it."""

    def __init__(self, name: str) -> None:
        self._module_name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module_name), name)
        self.__dict__[name] = value
        return value


pc: Any = _LateModule("pyarrow.compute")
pq: Any = _LateModule("pyarrow.parquet")
