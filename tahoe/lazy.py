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
from functools import wraps
from importlib import import_module
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["cached_property", "kept_by_identity", "pc", "pq"]

Value = TypeVar("Value")
Argument = TypeVar("Argument")


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


def kept_by_identity(function: Callable[[Argument], Value]) -> Callable[[Argument], Value]:
    """The function, which keeps its last few answers: for frozen values that are asked about again and again, and whose hash would take
    as long as the answer. Another value that is equal is asked about anew."""
    kept: dict[int, tuple[Argument, Value]] = {}

    @wraps(function)
    def asked(argument: Argument) -> Value:
        known = kept.get(id(argument))
        # What is kept holds its argument, so that no other can have its identity.
        if known is not None and known[0] is argument:
            return known[1]
        answer = function(argument)
        if len(kept) >= _ANSWERS_KEPT:
            kept.clear()
        kept[id(argument)] = argument, answer
        return answer

    return asked


_ANSWERS_KEPT = 8


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
