"""Files that the text of statistics excludes are excluded by their parsed values too; and it excludes most of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tahoe.expr.tree.predicate import And, Column, Comparison, In, Literal, Or, Predicate, StartsWith
from tahoe.log.text_filter import text_filter
from tahoe.protocol.skipping import keep, stats_predicate
from tahoe.protocol.statistics.bounds import NAN_COUNTED
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

TYPES: dict[str, DataType] = {
    "i": PrimitiveType("long"),
    "s": PrimitiveType("string"),
    "f": PrimitiveType("double"),
    "g": PrimitiveType("float"),
    "d": PrimitiveType("date"),
    "t": PrimitiveType("timestamp"),
    "n": PrimitiveType("timestamp_ntz"),
    "c": DecimalType(10, 2),
}
NESTED = StructType((StructField("x", PrimitiveType("integer")), StructField("i", PrimitiveType("long"))))
SCHEMA = StructType((*(StructField(name, kind) for name, kind in TYPES.items()), StructField("st", NESTED)))
# Braces, quotes, escapes, and the last characters by order: all that could look like structure.
CHARACTERS = 'ab{}"\\,:é😀zA0 \u0001\x7f\U0010ffff'
NOW = datetime(2020, 1, 1, tzinfo=UTC)


class Chance(random.Random):
    def value(self, name: str) -> Any:
        make: dict[str, Callable[[], Any]] = {
            "i": lambda: self.choice([0, 1, -1, 9, 10, -10, 99, self.randint(-200, 200), self.randint(-(10**12), 10**12)]),
            "s": lambda: "".join(self.choice(CHARACTERS) for _ in range(self.randint(0, 4))),
            "f": lambda: self.choice([0.0, -0.0, 9.99, self.uniform(-50, 50), self.uniform(-1e6, 1e6), 1e20, -1e-9, 2.0**52]),
            "g": lambda: self.choice([0.5, -0.5, 3.0, self.randint(-100, 100) + 0.25]),
            "d": lambda: date(2020, 1, 1) + timedelta(days=self.randint(-400, 400)),
            "t": lambda: NOW + timedelta(milliseconds=self.choice([self.randint(-3000, 3000), self.randint(-(10**9), 10**9)])),
            "n": lambda: self.value("t").replace(tzinfo=None),
            "c": lambda: Decimal(self.randint(-(10**4), 10**4)) / 100,
        }
        return make[name]()

    def text(self) -> str | None:
        """The statistics of one file, written in one of the ways that JSON allows."""
        least: dict[str, Any] = {}
        greatest: dict[str, Any] = {}
        names = self.sample(list(TYPES), len(TYPES))
        for name in names:
            low, high = sorted((self.value(name), self.value(name)), key=lambda v: v.encode() if isinstance(v, str) else v)
            if self.random() < 0.9:
                least[name] = self._json(low)
            if self.random() < 0.9:
                greatest[name] = self._json(high)
        if self.random() < 0.5:
            position = self.randint(0, 2)
            least = dict([*list(least.items())[:position], ("st", {"x": -9, "i": -9}), *list(least.items())[position:]])
            greatest = dict([*list(greatest.items())[:position], ("st", {"x": 9, "i": 19}), *list(greatest.items())[position:]])
        value = {"numRecords": 10, "minValues": least, "maxValues": greatest, "nullCount": dict.fromkeys(TYPES, 0)}
        separators = self.choice([(",", ":"), (", ", ": ")])
        return json.dumps(value, ensure_ascii=self.random() < 0.3, separators=separators) if self.random() < 0.98 else None

    def _json(self, value: Any) -> Any:
        match value:
            case datetime():
                text = value.isoformat(timespec="milliseconds")
                return text.replace("+00:00", "Z") if self.random() < 0.9 else text
            case date():
                return value.isoformat()
            case Decimal():
                return float(value)
        return value

    def predicate(self) -> Predicate:
        name = self.choice(list(TYPES))
        path, kind = ((name,), TYPES[name]) if self.random() < 0.85 else (("st", "i"), TYPES["i"])
        column, kind_of_value = Column(path), name if len(path) == 1 else "i"

        def literal() -> Literal:
            return Literal(self.value(kind_of_value), kind)

        match self.randrange(10):
            case 0:
                return And((Comparison(">=", column, literal()), Comparison("<", column, literal())))
            case 1:
                return In(column, tuple(literal() for _ in range(self.randint(1, 3))))
            case 2 if kind_of_value == "s":
                return StartsWith(column, self.value("s"))
        return Comparison(self.choice(["=", "<", "<=", ">", ">=", "!=", "<=>"]), column, literal())


TAGGED = pa.array([[(NAN_COUNTED, "true")]] * 150, pa.map_(pa.string(), pa.string()))
"""The text alone does not prove that greatest floats count NaN."""


@pytest.mark.parametrize("seed", range(4))
def test_files_refuted_by_text_are_refuted_by_values_too(seed: int) -> None:
    chance = Chance(seed)
    refuted = refutable = 0
    for _ in range(4):
        texts = pa.array([chance.text() for _ in range(150)], pa.string())
        for _ in range(10):
            predicate = chance.predicate()
            if chance.random() < 0.3:
                predicate = chance.choice([And, Or])((predicate, chance.predicate()))
            actual = text_filter(stats_predicate(predicate, SCHEMA, ()), SCHEMA)
            if actual is None:
                continue
            selected = keep(predicate, pa.table({"stats": texts, "tags": TAGGED}), SCHEMA, ()).to_pylist()
            by_text = actual.refuted(texts).to_pylist()
            wrong = [texts[i].as_py() for i in range(len(texts)) if selected[i] and by_text[i]]
            assert not wrong, (str(predicate), wrong[:3])
            refuted += sum(bool(each) for each in by_text)
            refutable += selected.count(False)
    assert refuted > 0.8 * refutable, "it must be worth its while"


def test_a_column_named_as_a_member_of_the_statistics_leaves_texts_alone() -> None:
    schema = StructType((StructField("i", PrimitiveType("long")), StructField("minValues", PrimitiveType("long"))))
    condition = stats_predicate(Comparison("=", Column(("i",)), Literal(5, PrimitiveType("long"))), schema, ())
    assert text_filter(condition, schema) is None


def test_a_predicate_that_bounds_do_not_decide_has_no_filter() -> None:
    condition = stats_predicate(StartsWith(Column(("s",)), "a"), SCHEMA, ())
    assert text_filter(condition, SCHEMA) is not None
    assert text_filter(None, SCHEMA) is None


def test_a_long_text_is_compared_by_its_beginning_alone() -> None:
    bound = "x" * 500
    actual = text_filter(stats_predicate(Comparison("=", Column(("s",)), Literal(bound, TYPES["s"])), SCHEMA, ()), SCHEMA)
    assert actual is not None
    texts = [
        f'{{"minValues":{{"s":"{low}"}},"maxValues":{{"s":"{high}"}}}}' for low, high in (("y", "z"), ("a", "b"), ("a", "xy"))
    ]
    assert actual.refuted(pa.array(texts)).to_pylist() == [True, True, False]
    long = [f'{{"minValues":{{"s":"{"x" * 100}y"}},"maxValues":{{"s":"z"}}}}']
    assert actual.refuted(pa.array(long)).to_pylist() == [False]
