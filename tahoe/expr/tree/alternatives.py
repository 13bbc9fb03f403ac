"""Long ORs of ANDs, `(a = 1 AND b > 7) OR (a = 2 AND b > 5) OR …`, as tables: one row an alternative, looked up by the value of one column.

Evaluated term by term, such a condition costs its length for every batch of rows and every file. `split` returns an equivalent form that
looks values up; `outline` returns the conditions that it implies on each single column, which are enough to skip files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.base.lazy import kept_by_identity
from tahoe.expr.tree.predicate import (
    LONGEST_CHAIN,
    And,
    Column,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Or,
    Predicate,
    all_of,
    any_of,
)
from tahoe.schema.types import DataType, PrimitiveType


@dataclass(frozen=True, slots=True)
class Test:
    """A test of one column that every alternative of a table contains.

    Args:
        op: the operator of a comparison; ``is null`` or ``is not null``.
        data_type: the type of the constants; None for the tests for null.
    """

    op: str
    column: Column
    data_type: DataType | None


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`(key = v1 AND tests of row 1) OR (key = v2 AND tests of row 2) OR …`.

    Args:
        key: the column whose value selects the alternative, and the type of the values.
        values: one for each alternative, distinct and not NULL.
        tests: the tests other than that of the key.
        constants: for each alternative the constants of its tests, None for the tests for null.
    """

    key: Column
    key_type: DataType
    values: tuple[Any, ...]
    tests: tuple[Test, ...]
    constants: tuple[tuple[Any, ...], ...]

    def without_key(self) -> Predicate:
        """Return the OR of the tests alone, which decides between FALSE and NULL if the key is NULL."""
        rows = self.constants
        if len(self.tests) == 1 and self.tests[0].op in _WEAKEST:
            rows = ((_weakest(self.tests[0].op, (row[0] for row in rows)),),)
        return any_of(all_of(map(_leaf, self.tests, row)) for row in dict.fromkeys(rows))


def split(parts: Sequence[Predicate]) -> tuple[list[Alternatives], list[Predicate]]:
    """Split the operands of an OR into tables of alternatives and the rest; their OR is equivalent to the whole."""
    alike: dict[tuple[Test, ...], list[tuple[Predicate, tuple[Any, ...]]]] = {}
    rest: list[Predicate] = []
    for part in parts:
        shape = _shape(part)
        if shape is None:
            rest.append(part)
        else:
            alike.setdefault(shape[0], []).append((part, shape[1]))
    tables: list[Alternatives] = []
    for tests, members in alike.items():
        keys = [place for place, test in enumerate(tests) if _may_be_key(test)]
        if not keys or len(members) <= LONGEST_CHAIN:
            rest += [part for part, _ in members]
        else:
            rows = [row for _, row in members]
            tables += _tables(tests, rows, max(keys, key=lambda place: len({row[place] for row in rows})))
    return tables, rest


@kept_by_identity
def outline(predicate: Predicate) -> Predicate:
    """Return a shorter predicate that is TRUE wherever the predicate is: long ORs become conditions on single columns.

    Of `(a = 1 AND b > 7) OR (a = 2 AND b > 5)` that is `a IN (1, 2) AND b > 5`.
    """
    return _outline(predicate)


_WEAKEST = {"<": max, "<=": max, ">": min, ">=": min}
"""Of constants that the same column is compared with in one OR: the one for which the comparison is TRUE most often."""
_FLOATING = (PrimitiveType("float"), PrimitiveType("double"))


def _outline(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts):
            return all_of(_outline(part) for part in parts)
        case Or(parts) if len(parts) > LONGEST_CHAIN:
            tested = [_leaves_by_column(part) for part in parts]
            everywhere = [column for column in tested[0] if all(column in leaves for leaves in tested)]
            return all_of(_outlined([leaves[column] for leaves in tested]) for column in everywhere)
    return predicate


def _weakest(op: str, values: Iterable[object]) -> Any:
    # To SQL NaN is the greatest number, and equal to itself.
    return _WEAKEST[op](values, key=lambda value: (value != value, 0 if value != value else value))


def _shape(part: Predicate) -> tuple[tuple[Test, ...], tuple[Any, ...]] | None:
    """Return the tests of the part and their constants; None for a part that cannot be a row of a table."""
    tests: list[Test] = []
    row: list[Any] = []
    for leaf in part.parts if isinstance(part, And) else (part,):
        match leaf:
            case Comparison(op, column, literal) if op != "<=>" and literal.value is not None:
                tests.append(Test(op, column, literal.data_type))
                row.append(literal.value)
            case IsNull(column):
                tests.append(Test("is null", column, None))
                row.append(None)
            case IsNotNull(column):
                tests.append(Test("is not null", column, None))
                row.append(None)
            case _:
                return None
    return tuple(tests), tuple(row)


def _may_be_key(test: Test) -> bool:
    """Whether its values can be looked up: of floating numbers, NaN and the two zeros could not."""
    return test.op == "=" and test.data_type not in _FLOATING


def _tables(tests: tuple[Test, ...], rows: list[tuple[Any, ...]], key: int) -> Iterator[Alternatives]:
    """Distribute the rows over tables with unique keys: the second alternative of a value goes into a second table, and so on."""
    remaining = tests[:key] + tests[key + 1 :]
    grouped: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        grouped.setdefault(row[key], []).append(row[:key] + row[key + 1 :])
    if len(remaining) == 1 and remaining[0].op in _WEAKEST:
        grouped = {
            value: [(_weakest(remaining[0].op, (row[0] for row in alternatives)),)] for value, alternatives in grouped.items()
        }
    key_type = tests[key].data_type
    assert key_type is not None
    depth = 0
    while grouped:
        yield Alternatives(
            tests[key].column,
            key_type,
            tuple(grouped),
            remaining,
            tuple(alternatives[depth] for alternatives in grouped.values()),
        )
        depth += 1
        grouped = {value: alternatives for value, alternatives in grouped.items() if len(alternatives) > depth}


def _leaf(test: Test, constant: object) -> Predicate:
    if test.data_type is None:
        return IsNull(test.column) if test.op == "is null" else IsNotNull(test.column)
    return Comparison(test.op, test.column, Literal(constant, test.data_type))


def _leaves_by_column(part: Predicate) -> dict[Column, Predicate]:
    """One test of each column that the part demands something of: lists and equalities before others."""
    leaves: dict[Column, Predicate] = {}
    for leaf in part.parts if isinstance(part, And) else (part,):
        match leaf:
            case Comparison("=", column, _) | In(column, _):
                leaves[column] = leaf
            case Comparison(_, column, _) | IsNull(column) | IsNotNull(column):
                leaves.setdefault(column, leaf)
    return leaves


def _outlined(leaves: Sequence[Predicate]) -> Predicate:
    """The OR of tests of one column, in a few; TRUE, for nothing, where it would be long."""
    values: dict[DataType, list[Literal]] = {}
    constants: dict[tuple[str, DataType], list[Any]] = {}
    remaining: dict[Predicate, None] = {}
    for leaf in leaves:
        match leaf:
            case Comparison("=", _, literal):
                values.setdefault(literal.data_type, []).append(literal)
            case In(_, (first, *_) as literals):
                values.setdefault(first.data_type, []).extend(literals)
            case Comparison(op, _, literal) if op in _WEAKEST and literal.value is not None:
                constants.setdefault((op, literal.data_type), []).append(literal.value)
            case _:
                remaining[leaf] = None
    column = next(leaf.column for leaf in leaves if isinstance(leaf, Comparison | In | IsNull | IsNotNull))
    if len(remaining) > LONGEST_CHAIN:
        return all_of(())
    lists: list[Predicate] = [In(column, tuple(dict.fromkeys(literals))) for literals in values.values()]
    weakest = [Comparison(op, column, Literal(_weakest(op, bounds), data_type)) for (op, data_type), bounds in constants.items()]
    return any_of([*lists, *weakest, *remaining])
