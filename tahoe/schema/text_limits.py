"""The length limits of ``char(n)`` and ``varchar(n)``.

Delta has neither type. Such a column is a string, and its metadata has the declared type, as Spark writes it:
``__CHAR_VARCHAR_TYPE_STRING`` = ``array<varchar(3)>``. Writers check strings against it: trailing spaces beyond the limit are removed, a
``char`` is padded with spaces, and a string that is still too long is rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import CorruptTable, InvariantViolation
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True, slots=True)
class TextLimit:
    """The length limit of one string.

    Args:
        most: the greatest number of characters.
        padded: True for ``char``: shorter strings are padded with spaces.
    """

    most: int
    padded: bool

    def __str__(self) -> str:
        return f"{'char' if self.padded else 'varchar'}({self.most})"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the parts of a type in their order: a struct's fields, an array's element, a map's key and value. None where there is none."""

    parts: tuple[TextLimit | Limits | None, ...]


def limits_of(column: StructField) -> TextLimit | Limits | None:
    """Return the limits of the strings in a column; None if it has none.

    Raises:
        CorruptTable: the declared type cannot be parsed, or does not fit the column's type.
    """
    declared = column.metadata.get(DECLARED_TYPE)
    return _limits(None if declared is None else _Reader(column, str(declared)).whole(), column.data_type, column)


def has_char(column: StructField) -> bool:
    """Whether a text in the column is a ``char(n)``, which compares as if it were filled up with blanks."""
    declared = str(column.metadata.get(DECLARED_TYPE, ""))
    return _CHAR.search(declared) is not None


def may_become(old: str | None, new: str | None) -> bool:
    """Whether every text of one declared type is one of another already; None is a plain string."""
    if new is None or old == new:
        return True
    before, after = (_leaf(text or "") for text in (old, new))
    return before is not None and after is not None and not after.padded and before.most <= after.most


def too_long(table: str, path: str, limit: TextLimit, value: object) -> InvariantViolation:
    """The error for a text that does not fit."""
    return InvariantViolation(
        f"Value \"{str(value)[:200]}\" exceeds char/varchar type length limitation. Failed check: column '{path}' of table {table} is "
        f"{limit}. Nothing was committed. Shorten the text, or change the column to a longer varchar or to string.",
        code="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        table=table,
        column=path,
    )


_CHAR = re.compile(r"(?i)(?<![a-z0-9_`])char\s*\(")
_LEAF = re.compile(r"(?i)\s*(var)?char\s*\(\s*(\d{1,10})\s*\)\s*")
_Declared = str | list[Any] | dict[str, Any] | tuple[Any, Any]


def _leaf(text: str) -> TextLimit | None:
    match = _LEAF.fullmatch(text)
    return None if match is None else TextLimit(int(match[2]), match[1] is None)


def _limits(declared: _Declared | None, data_type: DataType, column: StructField) -> TextLimit | Limits | None:
    parts: list[TextLimit | Limits | None]
    match data_type, declared:
        case StructType(fields), None | dict():
            below = _by_field(declared or {}, data_type, column)
            parts = [
                limits_of(field) if inner is None else _limits(inner, field.data_type, column)
                for field, inner in zip(fields, below, strict=True)
            ]
        case ArrayType(element), None | [_]:
            parts = [_limits(declared[0] if declared else None, element, column)]
        case MapType(key, value), None | (_, _):
            inner_key, inner_value = declared or (None, None)
            parts = [_limits(inner_key, key, column), _limits(inner_value, value, column)]
        case PrimitiveType("string"), str(text):
            return _leaf(text)
        case _, None:
            return None
        case _, str(text) if _leaf(text) is None:
            return None
        case _:
            raise _unreadable(column)
    return Limits(tuple(parts)) if any(parts) else None


def _by_field(declared: dict[str, Any], struct: StructType, column: StructField) -> list[Any]:
    """Return the declaration of each field: by name, or by position if fields were renamed since."""
    if not declared:
        return [None] * len(struct)
    by_name = {name.lower(): inner for name, inner in declared.items()}
    names = [field.name.lower() for field in struct]
    if set(by_name) <= set(names):
        return [by_name.get(name) for name in names]
    if len(declared) == len(struct):
        return list(declared.values())
    raise _unreadable(column)


def _unreadable(column: StructField) -> CorruptTable:
    declared = str(column.metadata.get(DECLARED_TYPE))[:200]
    return CorruptTable(
        f"Column '{column.name}' is declared as {declared} ({DECLARED_TYPE}), which does not fit its type "
        f"{str(column.data_type)[:200]}, so how long its texts may be is not known. Restore the metaData action of the log.",
        code="TAHOE_CORRUPT_SCHEMA",
        column=column.name,
    )


class _Reader:
    """Reads a type as Spark's ``catalogString`` writes it: a struct as a dict, an array as a list, a map as a pair, others as their text."""

    _WORD = re.compile(r"[^<>,:`()]+(\([^()]*\))?")
    _QUOTED = re.compile(r"`((?:[^`]|``)*)`")

    def __init__(self, column: StructField, text: str) -> None:
        self._column, self._text, self._place = column, text, 0

    def whole(self) -> _Declared:
        try:
            data_type = self._type()
        except RecursionError as error:
            raise _unreadable(self._column) from error
        if self._place != len(self._text):
            raise _unreadable(self._column)
        return data_type

    def _type(self) -> _Declared:
        match = self._WORD.match(self._text, self._place)
        if match is None:
            raise _unreadable(self._column)
        self._place = match.end()
        word = match[0].strip()
        if not self._comes("<"):
            return word
        made: _Declared
        match word.lower():
            case "struct":
                made = self._fields()
            case "array":
                made = [self._type()]
            case "map":
                key = self._type()
                self._demand(",")
                made = (key, self._type())
            case _:
                raise _unreadable(self._column)
        self._demand(">")
        return made

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._text[self._place : self._place + 1] == ">":
            return fields
        while True:
            quoted = self._QUOTED.match(self._text, self._place)
            end = quoted.end() if quoted else self._text.find(":", self._place)
            if end < 0:
                raise _unreadable(self._column)
            name = quoted[1].replace("``", "`") if quoted else self._text[self._place : end]
            self._place = end
            self._demand(":")
            fields[name.strip()] = self._type()
            if not self._comes(","):
                return fields

    def _comes(self, sign: str) -> bool:
        here = self._text[self._place : self._place + 1] == sign
        self._place += here
        return here

    def _demand(self, sign: str) -> None:
        if not self._comes(sign):
            raise _unreadable(self._column)
