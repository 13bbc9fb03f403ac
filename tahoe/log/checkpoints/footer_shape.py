"""The common shape of the footers of many small files of one writer, which verifies further footers quickly.

    one footer ─ walked member by member (`fault_in_footer`) ─► its shape ─► further footers: the same bytes except for numbers and bounds

A footer with the shape of a valid footer differs from it only in values that Arrow never trusts blindly: counts, sizes, offsets, and bounds
of the same length (for strings, of the length that precedes them). All other bytes, in particular those of the schema, are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.statistics.thrift import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    end_of_value,
    field_at,
    read_integer,
    read_list_head,
)

FooterValues: TypeAlias = list[bytes]
"""The variable values of a footer that are read, as bytes; `FooterShape.rows` and `FooterShape.bounds` are their indexes."""

_BYTE_ARRAY = 6

_NUMBER, _ROWS, _KIND, _LEAST, _GREATEST, _OLD_BOUND = range(6)
# Members by their numbers in parquet.thrift, with their variable parts; all other members are the same in all files of a shape.
_STATISTICS = {1: _OLD_BOUND, 2: _OLD_BOUND, 3: _NUMBER, 4: _NUMBER, 5: _GREATEST, 6: _LEAST}
_SIZE_STATISTICS = {1: _NUMBER, 2: [_NUMBER], 3: [_NUMBER]}
_COLUMN_METADATA = {
    1: _KIND,
    **dict.fromkeys((5, 6, 7, 9, 10, 11, 14, 15), _NUMBER),
    12: _STATISTICS,
    13: [{3: _NUMBER}],
    16: _SIZE_STATISTICS,
}
_COLUMN = {**dict.fromkeys((2, 4, 5, 6, 7), _NUMBER), 3: _COLUMN_METADATA}
_ROW_GROUP = {1: [_COLUMN], **dict.fromkeys((2, 3, 5, 6, 7), _NUMBER)}
_FOOTER: dict[int, Any] = {3: _ROWS, 4: [_ROW_GROUP]}


@dataclass(frozen=True, slots=True)
class FooterShape:
    """The shape of a footer with one row group.

    Args:
        parts: patterns of bytes, separated by strings that are preceded by their length.
        layout: the bytes before the number of rows and after the row group: the schema and the writer. Files with the same layout have
            the same columns.
        rows: the index in `FooterValues` of the number of rows.
        bounds: the indexes of the least and the greatest value, by the number of the leaf column; only of columns that have both.
    """

    parts: tuple[re.Pattern[bytes], ...]
    layout: bytes
    rows: int
    bounds: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, footer: bytes) -> FooterShape | None:
        """The shape of a footer in which `fault_in_footer` finds nothing; None where it has other than one row group."""
        recorder = _LayoutRecorder(footer)
        try:
            end = recorder.struct(0, _FOOTER)
        except (CorruptTable, IndexError, ValueError, RecursionError):
            return None
        if end != len(footer) or recorder.row_groups != 1:
            return None
        parts = tuple(re.compile(part, re.DOTALL) for part in recorder.parts)
        layout = footer[: recorder.before] + footer[recorder.after :]
        return cls(
            parts, layout, recorder.rows, {leaf: (low, high) for leaf, (low, high) in recorder.bounds.items() if low >= 0 <= high}
        )

    def values_in(self, footer: bytes) -> FooterValues | None:
        """Return the variable values of a footer of this shape; None if it has another shape."""
        at = 0
        values: FooterValues = []
        for number, part in enumerate(self.parts):
            if number:
                length = footer[at] if at < len(footer) else 0x80
                if length >= 0x80:
                    return None  # a text of more than 127 bytes
                values.append(footer[at + 1 : at + 1 + length])
                at += 1 + length
            matched = part.match(footer, at)
            if matched is None:
                return None
            values += matched.groups()
            at = matched.end()
        return values if at == len(footer) else None


_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"


@dataclass
class _LayoutRecorder:
    """Records the layout of a footer as patterns of its bytes."""

    data: bytes
    parts: list[bytes] = field(default_factory=lambda: [b""])
    num_values: int = 0
    leaf: int = -1
    kind: int = -1
    rows: int = -1
    row_groups: int = 0
    before: int = 0
    after: int = 0
    bounds: dict[int, list[int]] = field(default_factory=dict)

    def struct(self, at: int, rules: dict[int, Any]) -> int:
        """Record the layout of the Thrift struct at an offset; return the offset after it."""
        number = 0
        if rules is _COLUMN:
            self.leaf += 1
            self.bounds[self.leaf] = [-1, -1]
        while self.data[at]:
            begin = at
            number, kind, at = field_at(self.data, at, number)
            self._same(begin, at)
            at = self._value(at, kind, rules.get(number))
        self._same(at, at + 1)
        return at + 1

    def _value(self, at: int, kind: int, rule: object) -> int:
        if isinstance(rule, dict) and kind == STRUCT:
            return self.struct(at, rule)
        if isinstance(rule, list) and kind == LIST:
            return self._list(at, rule[0])
        end = end_of_value(self.data, at, kind)
        if rule in (_NUMBER, _ROWS) and I16 <= kind <= I64:
            self._number(at, is_rows=rule == _ROWS)
        elif rule in (_LEAST, _GREATEST, _OLD_BOUND) and kind == BINARY:
            self._bound(at, end, rule)
        else:
            if rule == _KIND and kind == I32:
                self.kind = read_integer(self.data, at)
            self._same(at, end)
        return end

    def _list(self, at: int, rule: object) -> int:
        kind, count, begin = read_list_head(self.data, at)
        if rule is _ROW_GROUP:
            self.row_groups = count
        self._same(at, begin)
        for _ in range(count):
            begin = self._value(begin, kind, rule)
        if rule is _ROW_GROUP:
            self.after = begin
        return begin

    def _number(self, at: int, *, is_rows: bool) -> None:
        if is_rows:
            self.before, self.rows = at, self._place()
        self.parts[-1] += b"(" + _VARINT + b")" if is_rows else _VARINT

    def _bound(self, at: int, end: int, rule: int) -> None:
        place = self._place()
        if rule != _OLD_BOUND:
            self.bounds[self.leaf][rule == _GREATEST] = place
        if self.kind == _BYTE_ARRAY:
            self.parts.append(b"")
        else:
            # One byte says the length, for no value of a fixed size is longer than 127 bytes in any type of Delta.
            self._same(at, at + 1)
            self.parts[-1] += b"(.{%d})" % (end - at - 1)

    def _place(self) -> int:
        self.num_values += 1
        return self.num_values - 1

    def _same(self, begin: int, end: int) -> None:
        self.parts[-1] += re.escape(self.data[begin:end])
