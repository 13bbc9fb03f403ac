"""The fields of a JSON object that a client sent, each read with its expected type. An error names the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import JsonMapping

_Kind = TypeVar("_Kind")

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_NAMES = {str: "a text", int: "a whole number of 64 bits", bool: "true or false", dict: "an object", list: "a list"}


def invalid(message: str) -> InvalidRequest:
    """Return the error for a request that the specification does not allow."""
    return InvalidRequest(message, code="TAHOE_ICEBERG_REQUEST")


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object of a request.

    Args:
        value: the object.
        path: its position in the request, for messages: ``updates[0].snapshot``.
    """

    value: JsonMapping
    path: str = ""

    @classmethod
    def of(cls, value: object, path: str) -> Fields:
        """Return the fields of a JSON value. Raises `InvalidRequest` if it is no object."""
        if not isinstance(value, dict):
            raise invalid(f"'{path}' of the request must be an object.")
        return cls(value, path)

    def text(self, name: str) -> str:
        """Return a text that must be there."""
        return self._required(name, str)

    def number(self, name: str) -> int:
        """Return a whole number that must be there."""
        return self._required(name, int)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts that must be there."""
        values = self._required(name, list)
        if not all(isinstance(value, str) for value in values):
            raise invalid(f"'{self._at(name)}' of the request must be a list of texts.")
        return tuple(values)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers that must be there."""
        values = self._required(name, list)
        if not all(_is(value, int) for value in values):
            raise invalid(f"'{self._at(name)}' of the request must be a list of whole numbers.")
        return tuple(values)

    def inner(self, name: str) -> Fields:
        """Return the fields of an object that must be there."""
        return Fields(self._required(name, dict), self._at(name))

    def each(self, name: str) -> list[Fields]:
        """Return the objects of a list, which is empty if it is missing."""
        values = self.optional(name, list) or []
        return [Fields.of(value, f"{self._at(name)}[{position}]") for position, value in enumerate(values)]

    def properties(self, name: str) -> dict[str, str]:
        """Return an object whose values are texts; empty if it is missing."""
        values: Mapping[str, object] = self.optional(name, dict) or {}
        for key, value in values.items():
            if not isinstance(value, str):
                raise invalid(f"'{self._at(name)}.{key}' of the request must be a text.")
        return cast("dict[str, str]", dict(values))

    def optional(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """Return a value of a type; None if it is missing or null."""
        value = self.value.get(name)
        if value is None:
            return None
        if not _is(value, kind):
            raise invalid(f"'{self._at(name)}' of the request must be {_NAMES[kind]}.")
        return cast(_Kind, value)

    def _required(self, name: str, kind: type[_Kind]) -> _Kind:
        value = self.optional(name, kind)
        if value is None:
            raise invalid(f"'{self._at(name)}' is missing in the request.")
        return value

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def _is(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) and (kind is not int or _LEAST <= cast(int, value) <= _GREATEST)
