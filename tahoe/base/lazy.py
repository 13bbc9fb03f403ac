"""Lazy evaluation: properties computed on first use, and modules imported on first use.

`cached_property` works without a lock. Python 3.11's own version locks a property of *all* instances while it is computed, so that reading
the files of one table would block every other table of the process (python/cpython#87634; 3.12 removed the lock). Here two threads that
read a property at the same time may both compute it; the values are equal, and one of them is kept.

`pc` and `pq` are `pyarrow.compute` and `pyarrow.parquet`, imported at their first use: they cost 0.05 s of processor time each, compared
with 0.25 s for all other imports needed to open a table. Every module must import them from here (ruff's TID253): a single direct import
would lose the gain for all. `late_modules` imports other modules at their first use: a process that only reads a table loads no writer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["cached_property", "kept_by_identity", "late_modules", "pc", "pq"]

Value = TypeVar("Value")
Argument = TypeVar("Argument")


class cached_property(Generic[Value]):  # noqa: N801 - replaces functools.cached_property
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
        values = instance.__dict__
        if self._name not in values:
            values[self._name] = self._compute(instance)
        return cast(Value, values[self._name])


def kept_by_identity(function: Callable[[Argument], Value]) -> Callable[[Argument], Value]:
    """Cache the last few results of a function by the identity of its argument.

    For frozen values that are passed repeatedly and whose hash would take as long as the result. An equal value with another identity is
    computed again.
    """
    results: dict[int, tuple[Argument, Value]] = {}

    @wraps(function)
    def cached(argument: Argument) -> Value:
        entry = results.get(id(argument))
        # An entry references its argument, so no other object can have the same identity.
        if entry is not None and entry[0] is argument:
            return entry[1]
        result = function(argument)
        if len(results) >= _CACHED_RESULTS:
            results.clear()
        results[id(argument)] = argument, result
        return result

    return cached


_CACHED_RESULTS = 8


def late_modules(package: str, *names: str) -> list[_LateModule]:
    """Return proxies of a package's modules, which are imported at the first access to one of their names.

    For type checkers, import the same modules under ``TYPE_CHECKING``; a test compares both.
    """
    return [_LateModule(f"{package}.{name}") for name in names]


class _LateModule:
    """A proxy that imports a module at the first access to one of its names."""

    def __init__(self, name: str) -> None:
        self._module_name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module_name), name)


class _LateArrowModule(_LateModule):
    """A proxy for a module of Arrow, whose functions are called for each batch: it caches the names."""

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        self.__dict__[name] = value
        return value


pc: Any = _LateArrowModule("pyarrow.compute")
pq: Any = _LateArrowModule("pyarrow.parquet")
