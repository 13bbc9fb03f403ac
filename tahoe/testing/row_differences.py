"""The difference of two lists of rows as readable lines: as multisets, or row by row with a key; floats with a tolerance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

Value: TypeAlias = object
Row: TypeAlias = Mapping[str, Value]

MOST_LINES = 20
"""Lines shown of each kind of difference."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How rows are compared.

    Args:
        key: columns that identify a row; without any, the rows are compared as a multiset.
        tolerance: the greatest difference of two floats that are equal, relative to the greater one or, near zero, absolute.
    """

    key: Sequence[str] = ()
    tolerance: float = 0.0

    def is_equal(self, first: Value, other: Value) -> bool:
        """Whether two values are equal; NaN equals NaN, and so in structs, arrays and maps."""
        if isinstance(first, float) and isinstance(other, float):
            both_nan = math.isnan(first) and math.isnan(other)
            return both_nan or first == other or math.isclose(first, other, rel_tol=self.tolerance, abs_tol=self.tolerance)
        if isinstance(first, Mapping) and isinstance(other, Mapping):
            return first.keys() == other.keys() and all(self.is_equal(value, other[name]) for name, value in first.items())
        if isinstance(first, list | tuple) and isinstance(other, list | tuple):
            return len(first) == len(other) and all(map(self.is_equal, first, other))
        return first == other


def differences(actual: Sequence[Row], expected: Sequence[Row], comparison: Comparison) -> list[str]:
    """Return the differences as lines; none if the rows are the same.

    Raises `ValueError` if the expected rows repeat a key.
    """
    if comparison.key:
        return _by_key(actual, expected, comparison)
    missing, unexpected = _unmatched(actual, expected, comparison)
    return [*_listed("missing", "-", missing), *_listed("not expected", "+", unexpected)]


def _by_key(actual: Sequence[Row], expected: Sequence[Row], comparison: Comparison) -> list[str]:
    expected_rows, repeated = _keyed(expected, comparison.key)
    if repeated:
        raise ValueError(f"the expected rows have the key {_shown_key(repeated[0], comparison.key)} more than once")
    actual_rows, doubled = _keyed(actual, comparison.key)
    missing = [row for key, row in expected_rows.items() if key not in actual_rows]
    unexpected = [row for key, row in actual_rows.items() if key not in expected_rows]
    changed = [
        line for key, row in expected_rows.items() if key in actual_rows for line in _changed(actual_rows[key], row, comparison)
    ]
    return [
        *_listed("missing", "-", missing),
        *_listed("not expected", "+", unexpected),
        *_listed("with a key that another row has", "+", doubled),
        *_headed("different", changed),
    ]


def _keyed(rows: Sequence[Row], key: Sequence[str]) -> tuple[dict[Hashable, Row], list[Row]]:
    """Return the first row of each key, and the other rows."""
    first: dict[Hashable, Row] = {}
    others: list[Row] = []
    for row in rows:
        values = tuple(_hashable(row[name]) for name in key)
        if values in first:
            others.append(row)
        else:
            first[values] = row
    return first, others


def _changed(actual: Row, expected: Row, comparison: Comparison) -> Iterator[str]:
    for name, value in expected.items():
        if not comparison.is_equal(value, actual[name]):
            yield f"{_shown_key(expected, comparison.key)}: {name} is {actual[name]!r}, expected {value!r}"


def _unmatched(actual: Sequence[Row], expected: Sequence[Row], comparison: Comparison) -> tuple[list[Row], list[Row]]:
    """Return the expected and the actual rows without a partner in the other list."""
    buckets: dict[Hashable, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    with_floats = not comparison.tolerance
    for side, rows in enumerate((expected, actual)):
        for row in rows:
            buckets[_hashable(row, with_floats=with_floats)][side].append(row)
    missing: list[Row] = []
    unexpected: list[Row] = []
    for expected_rows, actual_rows in buckets.values():
        partners = _Matching(expected_rows, actual_rows, comparison).partners()
        missing += [row for place, row in enumerate(expected_rows) if place not in partners.values()]
        unexpected += [row for place, row in enumerate(actual_rows) if place not in partners]
    return missing, unexpected


@dataclass(slots=True)
class _Matching:
    """A maximum matching of rows that are equal within the tolerance: a greedy choice could leave two rows that have no partner."""

    expected: Sequence[Row]
    actual: Sequence[Row]
    comparison: Comparison
    partner: dict[int, int] = field(default_factory=dict)

    def partners(self) -> dict[int, int]:
        """Return the place of an expected row for the place of each actual row that has a partner."""
        if not self.comparison.tolerance:  # the rows of a bucket are equal
            return {place: place for place in range(min(len(self.expected), len(self.actual)))}
        for place in range(len(self.expected)):
            self._find(place, set())
        return self.partner

    def _find(self, place: int, seen: set[int]) -> bool:
        for other, row in enumerate(self.actual):
            if other not in seen and self.comparison.is_equal(self.expected[place], row):
                seen.add(other)
                if other not in self.partner or self._find(self.partner[other], seen):
                    self.partner[other] = place
                    return True
        return False


def _hashable(value: Value, *, with_floats: bool = True) -> Hashable:
    """Return a value that is equal for equal rows; without floats, for rows that differ in floats only."""
    if isinstance(value, float):
        return ("NaN" if math.isnan(value) else value) if with_floats else "float"
    if isinstance(value, Mapping):
        return tuple(sorted((name, _hashable(item, with_floats=with_floats)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_hashable(item, with_floats=with_floats) for item in value)
    assert isinstance(value, Hashable)
    return value


def _listed(kind: str, sign: str, rows: Sequence[Row]) -> list[str]:
    return _headed(kind, [f"{sign} {dict(row)}" for row in rows], "row")


def _headed(kind: str, lines: Sequence[str], unit: str = "value") -> list[str]:
    if not lines:
        return []
    more = len(lines) - MOST_LINES
    count = f"{len(lines)} {unit}{'' if len(lines) == 1 else 's'} {kind}:"
    return [count, *(f"  {line}" for line in islice(lines, MOST_LINES)), *([f"  … and {more} more"] if more > 0 else [])]


def _shown_key(row: Row, key: Sequence[str]) -> str:
    return ", ".join(f"{name}={row[name]!r}" for name in key)
