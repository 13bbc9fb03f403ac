"""The meaning of a predicate, row by row in plain Python, independent of the library; and values that are hard to order."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tahoe.expr.tree.predicate import (
    OPERATORS,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

EPOCH = datetime(1970, 1, 1)
_MICROSECONDS = [
    0,
    1,
    999,
    1000,
    1001,
    -1,
    -999,
    -1000,
    -1001,
    1_600_000_000_123_456,
    1_600_000_000_123_000,
    -62_135_596_800_000_000,
]
_MOMENTS = [EPOCH + timedelta(microseconds=each) for each in _MICROSECONDS]
_LAST = "\U0010ffff"

POOLS: dict[str, tuple[DataType, list[Any]]] = {
    "byte": (PrimitiveType("byte"), [-128, -1, 0, 1, 127]),
    "short": (PrimitiveType("short"), [-32768, 0, 7, 32767]),
    "integer": (PrimitiveType("integer"), [-(2**31), -1, 0, 1, 2, 2**31 - 1]),
    "long": (PrimitiveType("long"), [-(2**63), -(2**53) - 1, 0, 1, 2**53 + 1, 2**63 - 1]),
    "float": (
        PrimitiveType("float"),
        [-math.inf, -1.5, -0.0, 0.0, 0.10000000149011612, 1.5, 3.4028234663852886e38, math.inf, math.nan],
    ),
    "double": (PrimitiveType("double"), [-math.inf, -1e300, -0.0, 0.0, 5e-324, 0.1, 1.5, 1e300, math.inf, math.nan]),
    "decimal": (
        DecimalType(7, 2),
        [Decimal("-99999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("1.10"), Decimal("99999.99")],
    ),
    "wide": (
        DecimalType(38, 10),
        [Decimal(10**28 - 1).scaleb(0), Decimal("-1.0000000001"), Decimal("0.0000000001"), Decimal("1E-9")],
    ),
    "string": (
        PrimitiveType("string"),
        [
            *("", "a", "b", "\x00", "z\nq'\"\\", "a" * 31, "a" * 32, "a" * 33, "é" * 33, _LAST * 40),
            *("a" * 31 + "😀b", "a" * 31 + "😀😀", "a" * 31 + "\ue000z", "a" * 32 + "é", "a" * 32 + "\x7e", "a" * 32 + "\x7f"),
            *("a" * 32 + _LAST + "b", "a" * 32 + _LAST),
        ],
    ),
    "binary": (PrimitiveType("binary"), [b"", b"\x00", b"a", b"\xff", b"a" * 40]),
    "boolean": (PrimitiveType("boolean"), [True, False]),
    "date": (PrimitiveType("date"), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "timestamp": (PrimitiveType("timestamp"), [each.replace(tzinfo=UTC) for each in _MOMENTS]),
    "timestamp_ntz": (PrimitiveType("timestamp_ntz"), _MOMENTS),
}
"""For each kind of column its type, and a few values next to the edges of statistics: two rows often meet in one of them."""


def answer(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    """TRUE, FALSE or NULL for one row; nested structs are nested dictionaries."""
    match predicate:
        case Constant(value):
            return value
        case Not(part):
            inner = answer(part, row)
            return None if inner is None else not inner
        case And(parts):
            answers = [answer(part, row) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [answer(part, row) for part in parts]
            return True if True in answers else None if None in answers else False
        case IsNull(column):
            return value_of(column, row) is None
        case IsNotNull(column):
            return value_of(column, row) is not None
        case StartsWith(column, prefix):
            text = value_of(column, row)
            return None if text is None else text.startswith(prefix)
        case In(column, literals):
            answers = [_compared("=", value_of(column, row), literal.value) for literal in literals]
            return True if True in answers else None if None in answers else False
        case Comparison(op, column, literal):
            return _compared(op, value_of(column, row), literal.value)
    raise AssertionError(predicate)


def value_of(column: Column, row: dict[str, Any]) -> Any:
    actual: Any = row
    for name in column.path:
        actual = None if actual is None else actual[name]
    return actual


def schema_of(kinds: list[str], nested: list[str]) -> StructType:
    """Columns ``c0``, ``c1``, … of these kinds, and a struct ``s`` of the nested ones where there are any."""
    columns = [StructField(f"c{i}", POOLS[kind][0]) for i, kind in enumerate(kinds)]
    if nested:
        columns.append(StructField("s", StructType(tuple(StructField(f"n{i}", POOLS[kind][0]) for i, kind in enumerate(nested)))))
    return StructType(tuple(columns))


def columns_of(kinds: list[str], nested: list[str]) -> list[tuple[Column, str]]:
    """Each leaf with its kind."""
    return [(Column((f"c{i}",)), kind) for i, kind in enumerate(kinds)] + [
        (Column(("s", f"n{i}")), kind) for i, kind in enumerate(nested)
    ]


def values(kind: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *POOLS[kind][1]])


@st.composite
def rows(draw: st.DrawFn, kinds: list[str], nested: list[str], max_size: int) -> list[dict[str, Any]]:
    first = st.fixed_dictionaries(
        {f"c{i}": values(kind) for i, kind in enumerate(kinds)}
        | ({"s": st.none() | st.fixed_dictionaries({f"n{i}": values(kind) for i, kind in enumerate(nested)})} if nested else {})
    )
    return draw(st.lists(first, max_size=max_size))


def predicates(columns: list[tuple[Column, str]]) -> st.SearchStrategy[Predicate]:
    """Trees of comparisons whose literals are the values that rows have, and NULL."""
    return st.recursive(
        st.sampled_from(columns).flatmap(_leaf),
        lambda inner: st.one_of(
            st.builds(lambda parts: And(tuple(parts)), st.lists(inner, min_size=2, max_size=3)),
            st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, min_size=2, max_size=3)),
            st.builds(Not, inner),
        ),
        max_leaves=4,
    )


def _leaf(target: tuple[Column, str]) -> st.SearchStrategy[Predicate]:
    column, kind = target
    data_type = POOLS[kind][0]
    literals = st.builds(lambda value: Literal(value, data_type), values(kind))
    options: list[st.SearchStrategy[Predicate]] = [
        st.builds(lambda op, literal: Comparison(op, column, literal), st.sampled_from(OPERATORS), literals),
        st.builds(lambda found: In(column, tuple(found)), st.lists(literals, min_size=1, max_size=4)),
        st.sampled_from([IsNull(column), IsNotNull(column)]),
    ]
    if kind == "string":
        prefixes = st.builds(lambda text, length: text[:length], st.sampled_from(POOLS[kind][1]), st.integers(0, 34))
        options.append(st.builds(lambda prefix: StartsWith(column, prefix), prefixes))
    return st.one_of(options)


def random_rows(chance: random.Random, kinds: list[str], nested: list[str], max_size: int) -> list[dict[str, Any]]:
    """As `rows`, from a seed and much faster."""

    def value(kind: str) -> Any:
        return None if chance.random() < 0.2 else chance.choice(POOLS[kind][1])

    def row() -> dict[str, Any]:
        actual = {f"c{i}": value(kind) for i, kind in enumerate(kinds)}
        inner = {f"n{i}": value(kind) for i, kind in enumerate(nested)}
        return actual | ({"s": None if chance.random() < 0.2 else inner} if nested else {})

    return [row() for _ in range(chance.randint(0, max_size))]


def random_predicate(chance: random.Random, columns: list[tuple[Column, str]], depth: int = 2) -> Predicate:
    """As `predicates`, from a seed and much faster."""
    if depth and chance.random() < 0.5:
        if chance.random() < 0.3:
            return Not(random_predicate(chance, columns, depth - 1))
        parts = tuple(random_predicate(chance, columns, depth - 1) for _ in range(2))
        return And(parts) if chance.random() < 0.5 else Or(parts)
    column, kind = chance.choice(columns)
    data_type, pool = POOLS[kind]

    def literal() -> Literal:
        return Literal(None if chance.random() < 0.1 else chance.choice(pool), data_type)

    choice = chance.random()
    if choice < 0.1:
        return IsNull(column) if choice < 0.05 else IsNotNull(column)
    if choice < 0.3:
        return In(column, tuple(literal() for _ in range(chance.choice([1, 2, 3, 40]))))
    if choice < 0.45 and kind == "string":
        return StartsWith(column, chance.choice(pool)[: chance.randint(0, 34)])
    return Comparison(chance.choice(OPERATORS), column, literal())


def _compared(op: str, left: Any, right: Any) -> bool | None:
    if op == "<=>":
        return left is None and right is None if left is None or right is None else order(left) == order(right)
    if left is None or right is None:
        return None
    a, b = order(left), order(right)
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def order(value: Any) -> Any:
    """NaN is one value, greater than all others; texts are ordered by their UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode("utf-8") if isinstance(value, str) else value
