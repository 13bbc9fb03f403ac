"""Replaces long chains of tests on one column by one list of values, which takes one look-up regardless of its length."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.expr.tree.common_types import BOOLEAN
from tahoe.expr.tree.expression import Call, Expression, Literal, Reference
from tahoe.expr.tree.predicate import LONGEST_CHAIN
from tahoe.schema.types import DecimalType, PrimitiveType

_TESTS = frozenset({"=", "!=", "<=>", "<", "<=", ">", ">=", "is null", "is not null"})


def without_chains(function: str, parts: Sequence[Expression]) -> Sequence[Expression]:
    """Replace long chains of ``a = 1`` in OR by ``a IN (1, …)``, and long chains of ``a != 1`` in AND by ``NOT (a IN (1, …))``.

    A list replaces the first test of its chain. Operands that may fail end a chain, so the same rows fail as before.

    Args:
        function: ``or`` or ``and``.
    """
    if len(parts) <= LONGEST_CHAIN:
        return parts
    comparison = "=" if function == "or" else "!="
    shortened: list[Expression] = []
    run: list[Expression] = []
    for part in parts:
        if _is_test(part):
            run.append(part)
        else:
            shortened += [*_listed(run, comparison), part]
            run = []
    return [*shortened, *_listed(run, comparison)]


def _is_test(part: Expression) -> bool:
    """Whether the part asks for the value of a column alone, which cannot fail."""
    if not isinstance(part, Call) or part.function not in _TESTS:
        return False
    return all(isinstance(argument, Literal | Reference) for argument in part.arguments)


def _listed(parts: Sequence[Expression], comparison: str) -> list[Expression]:
    chains: dict[Reference, list[Call]] = {}
    for part in parts:
        column = _column_of(part, comparison)
        if column is not None and isinstance(part, Call):
            chains.setdefault(column, []).append(part)
    shortened: list[Expression] = []
    for part in parts:
        column = _column_of(part, comparison)
        chain = [] if column is None else chains[column]
        if column is None or len(chain) <= LONGEST_CHAIN:
            shortened.append(part)
        elif part is chain[0]:
            values = (next(argument for argument in test.arguments if isinstance(argument, Literal)) for test in chain)
            listed = Call("in", (column, *values), BOOLEAN, chain[0].time_zone)
            shortened.append(listed if comparison == "=" else Call("not", (listed,), BOOLEAN, listed.time_zone))
    return shortened


def _column_of(part: Expression, comparison: str) -> Reference | None:
    """Return the column of a comparison with a constant of the same type; None for any other test."""
    if not isinstance(part, Call) or part.function != comparison or len(part.arguments) != 2:
        return None
    left, right = part.arguments
    column, value = (left, right) if isinstance(left, Reference) else (right, left)
    if not isinstance(column, Reference) or not isinstance(value, Literal):
        return None
    return column if isinstance(column.data_type, PrimitiveType | DecimalType) and column.data_type == value.data_type else None
