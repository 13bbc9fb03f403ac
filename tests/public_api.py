"""The public API by introspection: the classes that callers get, their methods, and values that a parameter does not take."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import tahoe
from tahoe.base.argument_checks import kinds_of

PACKAGE = Path(tahoe.__file__).parent
WRONG = (object(), 2.5, b"bytes", {1: 2}, [1, object()], print, True, "text", 7, None)
"""Values of every kind; a parameter takes few of them."""


@dataclass(frozen=True)
class Method:
    """A public function, or a method of a public class."""

    owner: type | None
    name: str
    function: Callable[..., Any]

    def __str__(self) -> str:
        return self.name if self.owner is None else f"{self.owner.__name__}.{self.name}"

    @property
    def is_checked(self) -> bool:
        """Whether its arguments are checked by `tahoe.base.argument_checks`."""
        return hasattr(self.function, "__wrapped__")

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Its parameters, without `self`."""
        actual = list(inspect.signature(self.function).parameters.values())
        return [item for item in actual if item.name not in ("self", "cls")]


@cache
def modules_of_classes() -> dict[str, str]:
    """The module of each class at the top of a module of the package, by its name."""
    actual = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(("tahoe", *path.relative_to(PACKAGE).with_suffix("").parts))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                actual.setdefault(node.name, module)
    return actual


def reached(roots: Iterable[Any]) -> list[type]:
    """The classes that a caller gets from these functions and classes: the types of returned values."""
    actual: dict[type, None] = {}
    pending = list(roots)
    while pending:
        root = pending.pop()
        if isinstance(root, type):
            if root in actual:
                continue
            actual[root] = None
        functions = [method.function for method in methods(root)] if isinstance(root, type) else [root]
        for function in functions:
            for name in re.findall(r"\b[A-Z]\w+", str(inspect.signature(function).return_annotation)):
                if name in modules_of_classes():
                    pending.append(getattr(import_module(modules_of_classes()[name]), name))
    return list(actual)


def methods(owner: type) -> Iterator[Method]:
    """The public methods of a class that the package defines, its constructor included where it is no dataclass."""
    for name in dir(owner):
        member = inspect.getattr_static(owner, name)
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(function, property):
            continue
        is_public = not name.startswith("_") or (name == "__init__" and not hasattr(owner, "__dataclass_fields__"))
        if is_public and inspect.isfunction(function) and function.__module__.startswith(("tahoe", "pyspark_delta")):
            yield Method(owner, name, function)


def wrong_values(parameter: inspect.Parameter) -> list[Any]:
    """Values that the annotation of a parameter excludes."""
    kinds = kinds_of(str(parameter.annotation))
    return [value for value in WRONG if not any(_is_of(kind, value) for kind in kinds)]


def _is_of(kind: Any, value: Any) -> bool:
    return type(kind.converted(value)) is not object or kind.converted(value) is value
