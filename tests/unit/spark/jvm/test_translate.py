"""Catalyst's filters as predicates, from the JSON that crosses the border: without a JVM, so that trees of any depth can be made."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.tree.predicate import And, Column, Comparison, In, Literal, Not, Or, Predicate, conjuncts
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.jvm.translate import Names, to_column, to_predicate

LONG = PrimitiveType("long")
NAMES = Names(StructType((StructField("id", LONG), StructField("at", PrimitiveType("timestamp")))))


class Catalyst:
    """An expression as the bridge passes it: its JSON, and its parts for the members that the JSON lacks."""

    def __init__(self, kind: str, *parts: Catalyst, value: Any = None, **values: Any) -> None:
        self.kind, self.parts, self.values, self.of_jvm = kind, parts, values, value

    def node(self) -> dict[str, Any]:
        return {"class": f"org.apache.spark.sql.catalyst.expressions.{self.kind}", "num-children": len(self.parts), **self.values}

    def toJSON(self) -> str:  # noqa: N802 - the JVM's name
        nodes, pending = [], [self]
        while pending:
            first = pending.pop()
            nodes.append(first.node())
            pending += reversed(first.parts)
        return json.dumps(nodes)

    def children(self) -> Catalyst:
        return self

    def apply(self, position: int) -> Catalyst:
        return self.parts[position]

    def value(self) -> Any:
        return self.of_jvm


def column(name: str = "id") -> Catalyst:
    return Catalyst("AttributeReference", name=name)


def equal(number: int) -> Catalyst:
    return Catalyst("EqualTo", column(), long(number))


def long(number: int) -> Catalyst:
    made = Catalyst("Literal", value=number, dataType="long")
    made.values["value"] = str(number)
    return made


def moment(microseconds: int) -> Catalyst:
    made = Catalyst("Literal", value=microseconds, dataType="timestamp")
    made.values["value"] = "in the session's zone"
    return made


def chain(kind: str, parts: list[Catalyst], *, left: bool = True) -> Catalyst:
    actual = parts[0] if left else parts[-1]
    for part in parts[1:] if left else reversed(parts[:-1]):
        actual = Catalyst(kind, actual, part) if left else Catalyst(kind, part, actual)
    return actual


def compared(op: str, number: int) -> Comparison:
    return Comparison(op, Column(("id",)), Literal(number, LONG))


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("terms", [2, 5, 300, 5_000])
def test_a_chain_of_any_length_is_read(terms: int, left: bool) -> None:
    anyone = to_predicate(chain("Or", [equal(n) for n in range(terms)], left=left), NAMES, exact=True)
    expected = tuple(Literal(n, LONG) for n in range(terms))
    assert anyone == (In(Column(("id",)), expected) if terms > 16 else Or(tuple(compared("=", n) for n in range(terms))))
    bounds = [Catalyst("GreaterThan" if n % 2 else "LessThan", column(), long(n)) for n in range(terms)]
    every = to_predicate(chain("And", bounds, left=left), NAMES, exact=True)
    assert every == And(tuple(compared(">" if n % 2 else "<", n) for n in range(terms)))


@pytest.mark.parametrize("depth", [5, 60, 300, 5_000])
def test_too_deeply_nested_expressions_are_not_translated(depth: int) -> None:
    actual = equal(0)
    for n in range(1, depth):
        actual = Catalyst(
            "Or" if n % 2 else "And",
            Catalyst("Not", actual) if n % 3 == 0 else actual,
            Catalyst("GreaterThan", column(), long(-n)),
        )
    predicate = to_predicate(actual, NAMES, exact=False)
    if depth <= 60:
        assert predicate is not None
    # The rest implies less, and reading it ends.
    for part in () if predicate is None else conjuncts(predicate):
        assert evaluate(part, pa.table({"id": [depth - 1]})).to_pylist() == [True]


def test_untranslatable_parts_are_left_out_unless_they_must_be_exact() -> None:
    unknown = Catalyst("Rand")
    some = Catalyst("And", equal(1), unknown)
    assert to_predicate(some, NAMES, exact=False) == compared("=", 1)
    assert to_predicate(some, NAMES, exact=True) is None
    assert to_predicate(Catalyst("Not", some), NAMES, exact=False) is None
    assert to_predicate(Catalyst("Or", equal(1), unknown), NAMES, exact=False) is None
    denied: Predicate | None = to_predicate(Catalyst("Not", equal(1)), NAMES, exact=True)
    assert denied == Not(compared("=", 1))


def test_values_missing_from_the_json_are_read_from_the_node_at_any_depth() -> None:
    late = Catalyst("LessThan", column("at"), moment(1_000_000))
    actual = to_predicate(chain("And", [late, *(equal(n) for n in range(2_000))]), NAMES, exact=False)
    assert isinstance(actual, And)
    assert str(actual.parts[0]) == "`at` < TIMESTAMP '1970-01-01 00:00:01Z'"
    assert to_column(column(), NAMES) == (Column(("id",)), LONG)
