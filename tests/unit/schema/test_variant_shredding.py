"""Shredded variants are read back unchanged; violations of the specification raise errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.schema.variant_bytes import MalformedVariant
from tahoe.schema.variant_shredding import is_shredded, unshredded
from tests.variant_values import PRIMITIVES, Style, apart, decoded, metadata_of, value_of

NAMES = ("a", "b", "ä.b", "", "\U0001f600", "\uffee", "z" * 70)


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def decimals(digits: int) -> st.SearchStrategy[Decimal]:
    return whole(1 - 10**digits, 10**digits - 1).map(lambda number: Decimal(number).scaleb(-2, None))


LONG = whole(-(2**63), 2**63 - 1)
MOMENT = whole(-(2**45), 2**45)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int8": whole(-128, 127),
    "int16": whole(-(2**15), 2**15 - 1),
    "int32": whole(-(2**31), 2**31 - 1),
    "int64": LONG,
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "decimal4": decimals(9),
    "decimal8": decimals(18),
    "decimal16": decimals(25),
    "date": whole(-(2**20), 2**20),
    "time": whole(0, 86_399_999_999),
    "binary": st.binary(max_size=5),
    "string": st.sampled_from(["", "x", "é" * 31, "y" * 63, "y" * 64, "w" * 300]),
    "uuid": st.binary(min_size=16, max_size=16),
} | dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_nanos", "timestamp_ntz_nanos"), MOMENT)
LEAVES = st.one_of(
    st.just(("null",)),
    st.tuples(st.just("boolean"), st.booleans()),
    *(st.tuples(st.just(tag), values) for tag, values in VALUES.items()),
)
TREES = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        st.tuples(st.just("array"), st.lists(inside, max_size=4)),
        st.tuples(st.just("object"), st.dictionaries(st.sampled_from(NAMES), inside, max_size=4)),
    ),
    max_leaves=12,
)
SHAPES = st.recursive(
    st.sampled_from([None, "boolean", *PRIMITIVES]),
    lambda inside: st.one_of(
        st.tuples(st.just("array"), inside),
        st.tuples(st.just("object"), st.dictionaries(st.sampled_from(NAMES), inside, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


def shaped(shape: Any) -> st.SearchStrategy[Any]:
    """Trees that the shape fits, now and then."""
    match shape:
        case ("array", inside):
            fitting = st.tuples(st.just("array"), st.lists(shaped(inside), max_size=3))
        case ("object", fields):
            some = st.fixed_dictionaries({}, optional={name: shaped(one) for name, one in fields.items()})
            more = st.dictionaries(st.sampled_from(NAMES), LEAVES, max_size=2)
            fitting = st.tuples(st.just("object"), st.builds(lambda one, other: other | one, some, more))
        case None:
            return TREES
        case "boolean":
            fitting = st.tuples(st.just("boolean"), st.booleans())
        case _:
            fitting = st.tuples(st.just(shape), VALUES[shape])
    return st.one_of(fitting, fitting, TREES)


def reported(array: pa.StructArray) -> list[Any]:
    return [None if item is None else decoded(item["metadata"], item["value"]) for item in unshredded(array).to_pylist()]


@given(st.data(), SHAPES.filter(lambda shape: shape is not None), st.builds(Style, st.booleans(), st.booleans(), st.booleans()))
def test_shredded_values_equal_their_originals(data: Any, shape: Any, style: Style) -> None:
    trees = data.draw(st.lists(st.one_of(st.none(), shaped(shape)), min_size=1, max_size=5))
    array = apart(trees, shape, NAMES, style)
    assert is_shredded(array.type)
    assert reported(array) == trees
    # A slice, as of a batch that was cut, is looked at from where it begins.
    assert reported(array[1:]) == trees[1:]


def test_many_fields_and_elements_take_wider_numbers() -> None:
    names = [f"n{number:03}" for number in range(400)]
    tree = ("object", {name: ("array", [("int8", 1)] * 300) if name == "n001" else ("string", name * 20) for name in names})
    shape = ("object", {"n001": ("array", "int8"), "n399": "string"})
    assert reported(apart([tree], shape, names)) == [tree]


def group(typed: Any, kind: pa.DataType, value: bytes | None = None, names: tuple[str, ...] = ("a",)) -> pa.StructArray:
    fields = [pa.field("metadata", pa.binary()), pa.field("value", pa.binary()), pa.field("typed_value", kind)]
    return pa.array([{"metadata": metadata_of(names), "value": value, "typed_value": typed}], pa.struct(fields))


ONE = value_of(("int8", 1), [])
FIELD = pa.struct([("value", pa.binary()), ("typed_value", pa.int8())])


def test_a_missing_required_value_is_the_null_of_a_variant() -> None:
    assert reported(group(None, pa.int8())) == [("null",)]
    assert reported(group([{"value": None, "typed_value": None}], pa.list_(FIELD))) == [("array", [("null",)])]
    assert reported(group({"a": {"value": None, "typed_value": None}}, pa.struct([("a", FIELD)]))) == [("object", {})]
    # Writers should give a field's group even where the field is missing; one that does not means the same.
    assert reported(group({"a": None}, pa.struct([("a", FIELD)]))) == [("object", {})]


def test_columns_may_lack_the_one_part_or_the_other() -> None:
    kind = pa.struct([("a", pa.struct([("typed_value", pa.int8())])), ("b", pa.struct([("value", pa.binary())]))])
    array = group({"a": {"typed_value": 1}, "b": {"value": ONE}}, kind, names=("a", "b"))
    assert reported(array) == [("object", {"a": ("int8", 1), "b": ("int8", 1)})]
    bare = pa.array([{"metadata": metadata_of(()), "typed_value": True}])
    assert reported(bare) == [("boolean", True)]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (group(1, pa.int8(), ONE), "both a value and a typed_value"),
        (group({"a": {"value": ONE, "typed_value": 1}}, pa.struct([("a", FIELD)])), "both a value and a typed_value"),
        (group({"a": {"value": None, "typed_value": 1}}, pa.struct([("a", FIELD)]), ONE), "no object"),
        (
            group({"a": None}, pa.struct([("a", FIELD)]), value_of(("object", {"a": ("null",)}), ["a"])),
            "in the value beside it too",
        ),
        (group({"b": {"value": None, "typed_value": 1}}, pa.struct([("b", FIELD)])), "lacks the name of its field 'b'"),
        (group(1, pa.uint32()), "uint32, which is no type of a variant"),
        (group(b"1234", pa.binary(4)), "no type of a variant"),
        (group(1, pa.timestamp("ms")), "no type of a variant"),
        (group({"a": 1}, pa.struct([("a", pa.int8())])), "neither value nor typed_value"),
        (group({"a": {"value": "x"}}, pa.struct([("a", pa.struct([("value", pa.string())]))])), "not binary"),
        (group({"a": None}, pa.struct([("a", FIELD)]), b"\x02\x01\x00\x00\x05\x0c"), "ends early"),
        (group({"a": None}, pa.struct([("a", FIELD)]), b"\x02\x01\x07\x00\x01\x00"), "does not name"),
        (group({"a": None}, pa.struct([("a", FIELD)]), b"\x02\xff"), "ends early"),
        (pa.array([{"metadata": b"\x02", "typed_value": 1}]), "version 1"),
        (pa.array([{"metadata": b"\x01\x02\x00", "typed_value": 1}]), "ends early"),
        (pa.array([{"metadata": b"\x01\x01\x00\x09a", "typed_value": 1}]), "beyond its own end"),
        (
            pa.array([{"metadata": None, "typed_value": 1}], pa.struct([("metadata", pa.binary()), ("typed_value", pa.int8())])),
            "has no metadata",
        ),
        (pa.array([{"metadata": "x", "typed_value": 1}]), "metadata is not binary"),
    ],
)
def test_forbidden_shredding_is_reported(array: pa.StructArray, reason: str) -> None:
    with pytest.raises(MalformedVariant, match=reason):
        unshredded(array)


def test_a_text_that_is_not_utf_8_is_reported() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    metadata = pa.array([metadata_of(())], pa.binary())
    with pytest.raises(MalformedVariant, match="UTF-8"):
        unshredded(pa.StructArray.from_arrays([metadata, text], ["metadata", "typed_value"]))
