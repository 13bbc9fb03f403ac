"""Flags of commands, generated from the options of the operations (`tahoe.base.method_options`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.method_options import FLAG, Flag
from tahoe.cli.shell.arguments import with_parameters

Flags = dict[str, Any]
"""The values of the flags by the names of the options, as keyword arguments of a method of `Table`."""


def with_flags(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: its parameter ``flags`` gets the values of one flag for each option that was defined with one.

    Args:
        options: a dataclass; see `tahoe.base.method_options.option`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        flags = {_parameter_name(field): field for field in _flagged(options)}

        @wraps(command)
        def call(**arguments: object) -> None:
            values = {field.name: _parsed(field, arguments.pop(name)) for name, field in flags.items()}
            command(**arguments, flags=values)

        return with_parameters(call, command, "flags", [_parameter(name, field) for name, field in flags.items()])

    return decorate


def _flagged(options: type) -> list[Field[Any]]:
    """Return the fields with flags, those of base classes last."""
    flagged = [field for field in fields(options) if FLAG in field.metadata]
    inherited = {field.name for base in options.__bases__ if base is not object for field in fields(base)}
    return sorted(flagged, key=lambda field: field.name in inherited)


def _negates(field: Field[Any]) -> bool:
    """Whether the flag sets a field to False."""
    return bool(field.default is True)


def _parameter_name(field: Field[Any]) -> str:
    return f"no_{field.name}" if _negates(field) else field.name


def _parameter(name: str, field: Field[Any]) -> Parameter:
    flag: Flag = field.metadata[FLAG]
    kind = str if flag.metavar in _PARSERS else _KINDS.get(str(field.type).removesuffix(" | None"), str)
    default: Any = False if _negates(field) else field.default
    annotation: Any = kind
    if field.type in _LISTS or flag.metavar == "COLUMN:TYPE":
        annotation, default = list[str], []
    elif default is None:
        annotation = kind | None
    described = Annotated[annotation, typer.Option(*flag.names, metavar=flag.metavar, help=flag.help)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=described)


def _parsed(field: Field[Any], value: object) -> Any:
    """Return the value of an option for the value of its flag."""
    parse = _PARSERS.get(field.metadata[FLAG].metavar)
    if _negates(field):
        return not value
    return value if parse is None or value is None else parse(value)


def bytes_of(text: str) -> int:
    """Parse a size such as ``128mb`` to bytes. Raises `InvalidRequest` for an invalid size."""
    from tahoe.protocol.properties import parse_size  # not loaded by `tahoe --help`

    try:
        return parse_size(text)
    except ValueError as error:
        raise InvalidRequest(
            f"--target-size takes a size such as 134217728, 128mb or 1gb, not '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="target-size",
        ) from error


def _columns(texts: Sequence[str]) -> dict[str, str]:
    return dict(_column(text) for text in texts)


def _column(text: str) -> tuple[str, str]:
    name, colon, kind = text.partition(":")
    if not (name and colon and kind):
        raise InvalidRequest(
            f"--partition-by takes a column and its type, such as day:date, not '{text}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="partition-by",
        )
    return name, kind


_KINDS: Mapping[str, type] = {"bool": bool, "int": int, "float": float}
_LISTS = ("Sequence[str]",)
_PARSERS: Mapping[str | None, Callable[[Any], Any]] = {"SIZE": bytes_of, "COLUMN:TYPE": _columns}
"""By the names of values in the help: parsers of values that have a syntax of their own."""
