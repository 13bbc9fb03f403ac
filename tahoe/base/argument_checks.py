"""Arguments of the public API, checked by the annotations of their parameters.

`checked_arguments` marks a class or a function of the public API. Each call then compares its arguments with the annotations, converts
values with one clear meaning (``"id"`` to a list of one name, ``False`` to the property ``"false"``), and raises `WrongArgument` for the
rest. Lists of names are therefore checked only here, and a new parameter is checked without further code. An annotation that is not in
`_KINDS` is the name of a class: the argument must be an instance of a class of that name. A test reads all annotations of the public API.

Errors of methods name the table if the object has the attribute `_url_in_errors`, the table's URL.
"""

from __future__ import annotations

import ast
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import wraps
from inspect import Parameter, isfunction, signature
from typing import Any, TypeVar

from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.base.tracebacks import shortened
from tahoe.base.wording import suggestion

Target = TypeVar("Target")
_WRONG = object()
"""Result of a kind's conversion for a value that is not of that kind."""


class WrongArgument(InvalidRequest, TypeError):
    """An argument of the wrong type. It is a `TypeError` and a `ValueError`, because delta-spark raises either."""

    default_code = "TAHOE_WRONG_ARGUMENT"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value that an annotation accepts.

    Args:
        words: its name in error messages, in the singular.
        converted: converts a value to the one that the function gets, or returns `_WRONG`.
    """

    words: str
    converted: Callable[[Any], Any]


def checked_arguments(target: Target) -> Target:
    """Decorate a function to check its arguments; for a class, its public methods and the constructor that it defines itself."""
    if not isinstance(target, type):
        return _checked(target)  # type: ignore[arg-type, return-value]
    for name, member in list(vars(target).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(target, name, type(member)(_checked(member.__func__)))
        elif isfunction(member):
            setattr(target, name, _checked(member))
    return target


def kinds_of(annotation: str) -> tuple[Kind, ...]:
    """Return the kinds of value that a parameter accepts by its annotation: one for each part between ``|``."""
    return tuple(_kind(part) for part in parts_of(annotation))


def parts_of(annotation: str) -> list[str]:
    """Return the parts of an annotation between ``|`` outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(annotation):
        depth += (sign in "[(") - (sign in "])")
        if sign == "|" and depth == 0:
            parts.append(annotation[start:place].strip())
            start = place + 1
    return [*parts, annotation[start:].strip()]


def is_known_kind(part: str) -> bool:
    """Whether a part of an annotation has its own check, and is not taken for the name of a class."""
    generic = ("Literal[", "Sequence[", "Iterable[", "list[", "tuple[", "Mapping[", "Callable[")
    return part in _KINDS or part.startswith(generic) or _class_name(part) in _PROTOCOLS


def shown_value(value: object) -> str:
    """Return the text of a value in error messages, with its type."""
    return f"{repr(value)[:80]} ({type(value).__name__})"


@dataclass(frozen=True, slots=True)
class _Check:
    """The check of one parameter."""

    function: str
    parameter: str
    kinds: tuple[Kind, ...]
    plain: frozenset[type]
    """Types whose values are taken as they are, so that most arguments cost one look-up."""

    def converted(self, value: object) -> object:
        """Return the value as the function gets it. Raises `WrongArgument`."""
        if type(value) in self.plain:
            return value
        for kind in self.kinds:
            converted = kind.converted(value)
            if converted is not _WRONG:
                return converted
        expected = " or ".join(dict.fromkeys(kind.words for kind in self.kinds if kind.words))
        hint = ""
        if hasattr(value, "collect") and any(kind is _ARROW_DATA for kind in self.kinds):
            hint = " Collect a lazy frame first."
        if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and _INTEGER in self.kinds:
            hint = f" Write {self.parameter}={value.strip()}, without quotes."
        raise WrongArgument(
            f"{self.function}(): '{self.parameter}' must be {expected}, found {shown_value(value)}.{hint}",
            function=self.function,
            parameter=self.parameter,
        )


@dataclass(frozen=True, slots=True)
class _Checks:
    """The checks of a function's parameters.

    Args:
        by_name: of parameters that may be passed by name.
        in_order: of parameters that may be passed by position.
        more: of each further positional argument.
        known: the names of all parameters; None if there may be others.
    """

    by_name: dict[str, _Check]
    in_order: list[_Check | None]
    more: _Check | None
    known: tuple[str, ...] | None

    def positional(self, args: tuple[object, ...]) -> tuple[Any, ...]:
        """Return the positional arguments as the function gets them."""
        checks = (*self.in_order, *[self.more] * (len(args) - len(self.in_order)))
        return tuple(value if check is None else check.converted(value) for value, check in zip(args, checks, strict=False))


def _checked(function: Callable[..., object]) -> Callable[..., Any]:
    names = function.__code__.co_varnames
    is_method = names[:1] == ("self",)
    checks: _Checks | None = None

    def converted(args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, ...]:
        nonlocal checks
        if checks is None:  # reading the signatures of all methods would take longer than opening a table
            checks = _checks_of(function)
        if is_method and args and isinstance(args[0], str | os.PathLike):
            raise _called_on_class(function, args[0])
        for name, value in kwargs.items():
            if name in checks.by_name:
                kwargs[name] = checks.by_name[name].converted(value)
            elif checks.known is not None and name not in checks.known:
                raise _unknown_argument(function, name, checks.known)
        return checks.positional(args) if args else args

    @wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            if len(args) != 1 or kwargs or not is_method or isinstance(args[0], str):
                args = converted(args, kwargs)
            return function(*args, **kwargs)
        except TahoeError as error:
            raise shortened(_located(error, args[0] if is_method and args else None)) from error.__cause__

    return call


def _located(error: TahoeError, owner: object) -> TahoeError:
    """Return the error with the table's URL in its message if its owner has one for errors."""
    url: str = getattr(owner, "_url_in_errors", "")
    return error.located_in(url) if url and not isinstance(error, WrongArgument) else error


def _called_on_class(function: Callable[..., object], path: str | os.PathLike[str]) -> TypeError:
    return TypeError(
        f"{function.__name__}() is a method of a table, and got a path first: write Table({path!r}).{function.__name__}(…)."
    )


def _unknown_argument(function: Callable[..., object], name: str, known: tuple[str, ...]) -> TypeError:
    return TypeError(
        f"{function.__qualname__}() got an unexpected keyword argument '{name}'.{suggestion(name, known)} Its arguments are: "
        f"{', '.join(known) or 'none'}."
    )


def _checks_of(function: Callable[..., object]) -> _Checks:
    by_name: dict[str, _Check] = {}
    in_order: list[_Check | None] = []
    more: _Check | None = None
    for parameter in signature(function).parameters.values():
        check, annotation = None, parameter.annotation
        if annotation is not Parameter.empty and parameter.name != "self" and parameter.kind != Parameter.VAR_KEYWORD:
            parts = parts_of(str(annotation))
            plain = frozenset(_PLAIN[part] for part in parts if part in _PLAIN)
            check = _Check(function.__name__, parameter.name, tuple(map(_kind, parts)), plain)
        if parameter.kind == Parameter.VAR_POSITIONAL:
            more = check
        elif parameter.kind != Parameter.VAR_KEYWORD:
            if check is not None:
                by_name[parameter.name] = check
            if parameter.kind != Parameter.KEYWORD_ONLY:
                in_order.append(check)
    kinds = {parameter.kind for parameter in signature(function).parameters.values()}
    known = tuple(name for name in signature(function).parameters if name not in ("self", "cls"))
    return _Checks(by_name, in_order, more, None if Parameter.VAR_KEYWORD in kinds else known)


# ---- annotations


def _kind(annotation: str) -> Kind:
    kind = _KINDS.get(annotation)
    if kind is not None:
        return kind
    if annotation.startswith("Literal["):
        values = ast.literal_eval(f"({annotation[len('Literal[') : -1]},)")
        return Kind(f"one of {', '.join(map(repr, values))}", lambda value: value if value in values else _WRONG)
    if annotation.startswith(("Sequence[", "Iterable[", "list[", "tuple[")):
        return Kind(f"a list of {_class_name(annotation.partition('[')[2].rstrip(']'))}", _listed)
    if annotation.startswith("Mapping["):
        return Kind("a mapping", lambda value: value if isinstance(value, Mapping) else _WRONG)
    if annotation.startswith("Callable["):
        return _FUNCTION
    name = _class_name(annotation)
    return _with(name, _PROTOCOLS[name]) if name in _PROTOCOLS else _instance_of(name, annotation.replace("pa.", "pyarrow."))


def _class_name(annotation: str) -> str:
    return re.split(r"[\[,]", annotation)[0].rpartition(".")[2]


def _instance_of(name: str, description: str) -> Kind:
    """Accept instances of a class of this name or of its subclasses. The check by name needs no import."""

    def converted(value: object) -> object:
        return value if any(base.__name__ == name for base in type(value).__mro__) else _WRONG

    return Kind(f"{'an' if description[0] in 'AEIOU' else 'a'} {description}", converted)


def _with(name: str, attribute: str) -> Kind:
    """Accept values with an attribute: classes need not inherit from a protocol."""
    return Kind(f"a {name}", lambda value: value if hasattr(value, attribute) and not isinstance(value, type) else _WRONG)


# ---- kinds


def _text(value: object) -> object:
    return value if isinstance(value, str) else _WRONG


def _truth(value: object) -> object:
    if isinstance(value, bool):
        return value
    return bool(value) if type(value).__module__ == "numpy" and type(value).__name__.startswith("bool") else _WRONG


def _whole_number(value: object) -> object:
    if isinstance(value, bool) or _truth(value) is not _WRONG:
        return _WRONG
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return _WRONG


def _number(value: object) -> object:
    whole = _whole_number(value)
    if whole is not _WRONG:
        return whole
    return float(value) if isinstance(value, float | Decimal) else _WRONG


def _day_or_moment(value: object) -> object:
    return value if isinstance(value, date) else _WRONG


def _path(value: object) -> object:
    return value if isinstance(value, os.PathLike) else _WRONG


def _names(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        return _WRONG
    names = tuple(value)
    return names if all(isinstance(name, str) for name in names) else _WRONG


def _list_of_names(value: object) -> object:
    names = _names(value)
    return list(names) if isinstance(names, tuple) else _WRONG


def _listed(value: object) -> object:
    return value if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else _WRONG


def _texts(value: object) -> object:
    """Accept a mapping of strings; a truth value or a number is converted to a string."""
    if not isinstance(value, Mapping):
        return _WRONG
    texts = {}
    for key, item in value.items():
        text = _plain_text(item)
        if not isinstance(key, str) or text is None:
            return _WRONG
        texts[key] = text
    return texts


def _plain_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | Decimal) else None


def _by_name(value: object) -> object:
    return value if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) else _WRONG


def _application(value: object) -> object:
    match value:
        case (str(), bool()):
            return _WRONG
        case (str(), int()):
            return value
    return _WRONG


def _arrow_data(value: object) -> object:
    """Accept the values that `tahoe.ops.write.arrow_data.in_hand` accepts."""
    return value if hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_batches") else _WRONG


def _schema(value: object) -> object:
    """Accept the values that `tahoe.schema.schema_forms.schema_of` accepts."""
    if hasattr(value, "__arrow_c_schema__") or isinstance(value, Mapping):
        return value
    return value if any(base.__name__ == "StructType" for base in type(value).__mro__) else _WRONG


def _type(value: object) -> object:
    """Accept the values that `tahoe.schema.schema_forms.type_of` accepts."""
    names = {base.__name__ for base in type(value).__mro__}
    return value if isinstance(value, str) or names & _TYPES else _WRONG


def _condition(value: object) -> object:
    """Accept the values that `tahoe.expr.row_condition.row_condition` accepts."""
    if isinstance(value, str | bool | list | tuple):
        return value
    return value if type(value).__name__ in (*_PREDICATES, "Expression") else _WRONG


def _predicate(value: object) -> object:
    return value if type(value).__name__ in _PREDICATES else _WRONG


def _expression(value: object) -> object:
    return value if type(value).__name__ in _EXPRESSIONS else _WRONG


_TYPES = {"PrimitiveType", "DecimalType", "ArrayType", "MapType", "StructType", "DataType"}
_PREDICATES = ("Comparison", "In", "IsNull", "IsNotNull", "StartsWith", "And", "Or", "Not", "Constant")
_EXPRESSIONS = ("Literal", "Reference", "Cast", "Call", "Case")
_PROTOCOLS = {
    "Catalog": "commit",
    "Clock": "now_ms",
    "Coordinator": "ratify",
    "LogStore": "put_if_absent",
    "OnAnEngine": "_plain_table",
    "WritableTable": "begin",
}
"""Protocols of the public API, each by an attribute that all of their classes have."""
_FUNCTION = Kind("a function", lambda value: value if callable(value) and not isinstance(value, type) else _WRONG)
_PLAIN: Mapping[str, type] = {"None": type(None), "str": str, "bool": bool, "int": int, "float": float}
_INTEGER = Kind("a whole number", _whole_number)
_ANY = Kind("anything", lambda value: value)
_ARROW_DATA = Kind(
    "Arrow data: a pyarrow Table or RecordBatchReader, a frame of pandas (2.2 or newer) or Polars, or what has __arrow_c_stream__",
    _arrow_data,
)
_NAMES = Kind("a name or a list of names", _names)
_KINDS: Mapping[str, Kind] = {
    "None": Kind("", lambda value: None if value is None else _WRONG),
    "Any": _ANY,
    "object": _ANY,
    "str": Kind("a text", _text),
    "bool": Kind("True or False", _truth),
    "int": _INTEGER,
    "float": Kind("a number", _number),
    "date": Kind("a date", _day_or_moment),
    "datetime": Kind("a date with its time", _day_or_moment),
    "os.PathLike[str]": Kind("a path", _path),
    "Sequence[str]": _NAMES,
    "tuple[str, ...]": _NAMES,
    "list[str]": Kind(_NAMES.words, _list_of_names),
    "Mapping[str, str]": Kind("a mapping of texts to texts", _texts),
    "dict[str, str]": Kind("a mapping of texts to texts", _texts),
    "tuple[str, int]": Kind("an application id (a text) and a version (a whole number)", _application),
    "ArrowData": _ARROW_DATA,
    "SchemaLike": Kind("a schema: of pyarrow, of Delta, or a mapping of column names to types", _schema),
    "SqlValues": Kind("a mapping of column names to SQL texts or values", _by_name),
    "TypeLike": Kind("a type: a name such as 'long', or a type of pyarrow or Delta", _type),
    "Append": _FUNCTION,
    "Hook": _FUNCTION,
    "Progress": _FUNCTION,
    "Rewrite": _FUNCTION,
    "Predicate": Kind("a predicate of tahoe.expr.tree.predicate", _predicate),
    "Expression": Kind("an expression of tahoe.expr.tree.expression", _expression),
    "Condition": Kind(
        "SQL text, a pyarrow expression, or a list of comparisons such as ('id', '>', 1)",
        _condition,
    ),
}
