"""Options of an operation, defined once: the fields of a frozen dataclass.

`arguments_of` makes them the arguments of a method, for type checkers and for `help`. Fields that are defined with `option` are also options
of the command line (`tahoe.cli.shell.flags`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from tahoe.base.exceptions import InvalidRequest

Arguments = ParamSpec("Arguments")
Options = TypeVar("Options")
Owner = TypeVar("Owner")
Result = TypeVar("Result")
Value = TypeVar("Value")

FLAG = "flag"
"""The key of a `Flag` in the metadata of a field."""


@dataclass(frozen=True, slots=True)
class Flag:
    """An option of the command line.

    Args:
        names: such as ``--where`` and ``-w``. A first name that begins with ``--no-`` sets a field that is True by default to False.
        help: one sentence.
        metavar: the name of the value in the help.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None = None


def option(default: Value, *names: str, help: str, metavar: str | None = None) -> Value:
    """Return a field of a dataclass that is also an option of the command line, with the arguments of `Flag`."""
    return field(default=default, metadata={FLAG: Flag(names, help, metavar)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """The options of every operation that commits.

    Args:
        dry_run: report the effect and commit nothing.
        user_metadata: a text for the table's history.
    """

    dry_run: bool = option(False, "--dry-run", help="Report the changes without making them.")
    user_metadata: str | None = None


def arguments_of(
    options: Callable[Arguments, Options],
) -> Callable[[Callable[[Owner, Options], Result]], Callable[Concatenate[Owner, Arguments], Result]]:
    """Decorate a method with one parameter, a frozen dataclass: callers pass the fields as arguments.

    The method gets the signature of the dataclass, and the "Args:" section of its docstring.
    """

    def decorate(method: Callable[[Owner, Options], Result]) -> Callable[Concatenate[Owner, Arguments], Result]:
        assert isinstance(options, type)

        @wraps(method)
        def call(self: Owner, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            try:
                request = options(*args, **kwargs)
            except TypeError as error:
                if isinstance(error, InvalidRequest):
                    raise
                # The message of Python names the dataclass, which the caller has not seen.
                raise TypeError(f"{method.__qualname__}{str(error).partition('__init__')[2]}") from None
            return method(self, request)

        call.__signature__ = _signature(method, options)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\nArgs:\n{_documented(options)}"
        return call  # type: ignore[return-value]  # `self` is always passed by position

    return decorate


def _signature(method: Callable[..., object], options: type) -> inspect.Signature:
    """Return the signature of a method with the fields of a dataclass: first those that may be positional, last the inherited ones."""
    undecorated = signature(method)
    first = next(iter(undecorated.parameters.values()))
    fields_of_class = [*signature(options.__init__).parameters.values()][1:]  # type: ignore[misc]
    inherited = {name for base in options.__mro__[1:] for name in vars(base).get("__annotations__", ())}
    ordered = sorted(fields_of_class, key=lambda parameter: (parameter.kind, parameter.name in inherited))
    return inspect.Signature([first, *ordered], return_annotation=undecorated.return_annotation)


def _documented(options: type) -> str:
    """Return the descriptions of the fields, those of base classes last."""
    sections = (inspect.cleandoc(base.__doc__ or "").partition("Args:\n")[2] for base in options.__mro__)
    return "\n".join(section.partition("\n\n")[0].rstrip() for section in sections if section)


def values_of(options: object, kind: type) -> dict[str, Any]:
    """Return the values of the fields that a dataclass shares with its base class `kind`, by name."""
    return {item.name: getattr(options, item.name) for item in fields(kind)}
