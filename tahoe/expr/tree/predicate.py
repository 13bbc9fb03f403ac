"""Filters as frozen values with SQL's three-valued meaning: TRUE, FALSE or NULL for a row, and only TRUE keeps the row.

A predicate compares one column with constants, or joins such comparisons with AND, OR and NOT. Nothing in it can run code.
`str(predicate)` is SQL that Spark and `tahoe.expr.row_condition` read back with the same meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.types import DataType, PrimitiveType

OPERATORS = ("=", "<=>", "<", "<=", ">", ">=", "!=")


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its logical name, a nested field by the names that lead to it."""

    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(quote_identifier(name) for name in self.path)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a Delta type; None is NULL.

    Args:
        value: int, float, `Decimal`, str, bytes, bool, `date`; a ``timestamp`` is a `datetime` with a time zone, a
            ``timestamp_ntz`` one without.
        data_type: the Delta type of the value; a comparison's literal has its column's type.
    """

    value: Any
    data_type: DataType

    def __str__(self) -> str:
        return quote_literal(self)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op literal`. NULL if either side is NULL, except for ``<=>``, which is never NULL.

    As on Spark, NaN equals NaN and is greater than every other number.
    """

    op: str
    column: Column
    literal: Literal

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            message = f"There is no comparison '{self.op}'; use one of {' '.join(OPERATORS)}."
            raise InvalidRequest(message, code="TAHOE_COMPARISON", operator=self.op)

    def __str__(self) -> str:
        return f"{self.column} {self.op} {self.literal}"


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (literals)`: NULL if the column is NULL, or if nothing matches and one of the literals is NULL."""

    column: Column
    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(map(str, self.literals))})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE if the column is NULL; never NULL itself."""

    column: Column

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """TRUE if the column is not NULL; never NULL itself."""

    column: Column

    def __str__(self) -> str:
        return f"{self.column} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A string column begins with `prefix`, character by character."""

    column: Column
    prefix: str

    def __str__(self) -> str:
        return f"startswith({self.column}, {quote_literal(Literal(self.prefix, PrimitiveType('string')))})"


@dataclass(frozen=True, slots=True)
class And:
    """FALSE if a part is FALSE, else NULL if a part is NULL, else TRUE; TRUE without parts."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(_inside(part) for part in self.parts) if self.parts else "true"


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE if a part is TRUE, else NULL if a part is NULL, else FALSE; FALSE without parts."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(_inside(part) for part in self.parts) if self.parts else "false"


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE for FALSE and FALSE for TRUE; NULL stays NULL."""

    part: Predicate

    def __str__(self) -> str:
        return f"NOT ({self.part})"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same result for every row; None is SQL's NULL (unknown)."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).lower()


Predicate = Comparison | In | IsNull | IsNotNull | StartsWith | And | Or | Not | Constant

TRUE = Constant(True)
FALSE = Constant(False)
UNKNOWN = Constant(None)

LONGEST_CHAIN = 16
"""Longer chains of `a = 1 OR a = 2 OR …`, and of `a != 1 AND a != 2 AND …`, become one list of values."""


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """Join the parts by AND: nested ANDs are flattened, TRUE and repetitions are dropped; FALSE if any part is FALSE."""
    distinct = _distinct(And, parts, TRUE)
    return FALSE if FALSE in distinct else _joined(And, _lists_of_values(distinct, "!=", lambda test: Not(test)), TRUE)


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """Join the parts by OR: nested ORs are flattened, FALSE and repetitions are dropped; TRUE if any part is TRUE."""
    distinct = _distinct(Or, parts, FALSE)
    return TRUE if TRUE in distinct else _joined(Or, _lists_of_values(distinct, "=", lambda test: test), FALSE)


def _distinct(kind: type[And] | type[Or], parts: Iterable[Predicate], neutral: Predicate) -> tuple[Predicate, ...]:
    flat = (inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))
    return tuple(dict.fromkeys(inner for inner in flat if inner != neutral))


def normalise(predicate: Predicate) -> Predicate:
    """Return an equivalent predicate with NOT pushed down to the leaves, and AND and OR flattened.

    NOT remains only on `In` and `StartsWith`, which have no opposite predicate.
    """
    match predicate:
        case And(parts):
            return all_of(normalise(part) for part in parts)
        case Or(parts):
            return any_of(normalise(part) for part in parts)
        case Not(part):
            return _negated(part)
        case Comparison(op, column, literal) if literal.value is None:
            return IsNull(column) if op == "<=>" else UNKNOWN
        case In(_, ()):
            return FALSE
    return predicate


def leaves_of(predicate: Predicate) -> Iterator[Comparison | In | IsNull | IsNotNull | StartsWith]:
    """Yield the predicates over single columns of which the predicate consists."""
    pending = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Not(part):
                pending.append(part)
            case Constant():
                pass
            case leaf:
                yield leaf


def references(predicate: Predicate) -> frozenset[tuple[str, ...]]:
    """Return the paths of all columns that the predicate reads."""
    return frozenset(leaf.column.path for leaf in leaves_of(predicate))


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the parts that must all be TRUE, after `normalise`; none for TRUE."""
    flat = normalise(predicate)
    if flat == TRUE:
        return ()
    return flat.parts if isinstance(flat, And) else (flat,)


def split_by_columns(predicate: Predicate, partition_columns: Iterable[str]) -> tuple[Predicate | None, Predicate | None]:
    """Split the predicate into a conjunction of two: one over partition columns alone, and the rest; None for an empty one.

    A part without columns (a constant) goes with the partition columns, where it is decided exactly.
    """
    names = set(partition_columns)
    inside: list[Predicate] = []
    rest: list[Predicate] = []
    for part in conjuncts(predicate):
        (inside if all(path[0] in names for path in references(part)) else rest).append(part)
    return all_of(inside) if inside else None, all_of(rest) if rest else None


def quote_identifier(name: str) -> str:
    """Return a name as an SQL identifier: in back-ticks, with those inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(value: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")
    return f"'{escaped}'"


def quoted_if_needed(name: str) -> str:
    """Return a name as it is if it is an identifier, otherwise in back-ticks."""
    return name if name.isidentifier() else quote_identifier(name)


def quote_literal(literal: Literal) -> str:
    """Return a constant as an SQL literal that Spark parses to the same value."""
    value = literal.value
    if value is None:
        return "NULL"
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return _quote_float(value, literal.data_type)
        case Decimal():
            return f"{value:f}BD"
        case str():
            return "'" + "".join(_ESCAPES.get(character, character) for character in value) + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            if value.tzinfo is None:
                return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
            return f"TIMESTAMP '{value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}Z'"
        case date():
            return f"DATE '{value.isoformat()}'"
    kind = type(value).__name__
    raise InvalidRequest(f"A value of type {kind} cannot be written as an SQL literal.", code="TAHOE_LITERAL_TYPE", type=kind)


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _inside(part: Predicate) -> str:
    return f"({part})" if isinstance(part, And | Or) else str(part)


def _lists_of_values(parts: tuple[Predicate, ...], op: str, made: Callable[[In], Predicate]) -> tuple[Predicate, ...]:
    """Replace long chains of `column op literal` on one column by one list, which takes one look-up regardless of its length."""
    if len(parts) <= LONGEST_CHAIN:
        return parts
    chains: dict[tuple[Column, DataType], list[Literal]] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.op == op:
            chains.setdefault((part.column, part.literal.data_type), []).append(part.literal)
    shortened: dict[Predicate, None] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.op == op:
            chain = chains[part.column, part.literal.data_type]
            if len(chain) > LONGEST_CHAIN:
                # Every part of a chain leads to the same list; only the first adds it, because comparing long lists is slow.
                if chain[0] is part.literal:
                    shortened[made(In(part.column, tuple(chain)))] = None
                continue
        shortened[part] = None
    return tuple(shortened)


def _joined(kind: type[And] | type[Or], parts: tuple[Predicate, ...], empty: Predicate) -> Predicate:
    if not parts:
        return empty
    return parts[0] if len(parts) == 1 else kind(parts)


def _negated(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts):
            return any_of(_negated(part) for part in parts)
        case Or(parts):
            return all_of(_negated(part) for part in parts)
        case Not(part):
            return normalise(part)
        case Comparison(op, column, literal):
            if literal.value is None:
                return IsNotNull(column) if op == "<=>" else UNKNOWN
            if op == "<=>":
                return Or((IsNull(column), Comparison("!=", column, literal)))
            return Comparison(_OPPOSITE[op], column, literal)
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
        case Constant(value):
            return UNKNOWN if value is None else Constant(not value)
        case In(_, ()):
            return TRUE
    return Not(predicate)


def _quote_float(value: float, data_type: DataType) -> str:
    if data_type == PrimitiveType("float") or not math.isfinite(value):
        text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN" if math.isnan(value) else repr(value))
        return f"CAST('{text}' AS {str(data_type).upper()})"
    return f"{value!r}D"
