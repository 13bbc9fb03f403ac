"""Identity columns: which value comes next, and how the mark moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.protocol.column_values.identity import (
    check_new_identity,
    identity_columns,
    identity_metadata,
    identity_of,
    refuse_explicit,
    refuse_update,
    with_marks,
    without_marks,
)
from tahoe.schema.types import PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")
STEPS = st.integers(-50, 50).filter(bool)


def column(start=1, step=1, mark=None, *, explicit=False, **more):
    marked = {} if mark is None else {"delta.identity.highWaterMark": mark}
    return StructField("id", LONG, True, {**identity_metadata(start, step, allow_explicit=explicit), **marked, **more})


def moved(start, step, mark, value, *, may_lower=False):
    schema = with_marks(StructType((column(start, step, mark),)), {"id": value}, "t", may_lower=may_lower)
    return schema.field("id").metadata.get("delta.identity.highWaterMark")


@given(st.integers(-99, 99), STEPS, st.none() | st.integers(-999, 999), st.integers(0, 9))
def test_every_value_is_one_of_the_columns_own_and_beyond_the_mark(start, step, mark, number):
    value = identity_of(column(start, step, mark), "t").value(number, "t")
    assert (value - start) % step == 0
    assert (value - start) // step >= number
    assert mark is None or (value - mark) * step > 0
    assert number or mark is None or (value - step - mark) * step <= 0 or value == start


@given(st.integers(-99, 99), STEPS, st.none() | st.integers(-999, 999), st.integers(-999, 999), st.booleans())
def test_a_mark_that_moves_covers_the_value_and_does_not_go_back(start, step, mark, value, may_lower):
    after = moved(start, step, mark, value, may_lower=may_lower)
    if (value - start) * step < 0:
        assert after == mark
        return
    assert (after - value) * step >= 0
    assert may_lower or mark is None or (after - mark) * step >= 0
    following = identity_of(column(start, step, after), "t").base
    assert (following - value) * step > 0


def test_lowering_takes_the_mark_back_to_the_rows():
    assert moved(1, 1, 90, 7) == 90
    assert moved(1, 1, 90, 7, may_lower=True) == 7


@pytest.mark.parametrize(("step", "mark"), [(1, 2**63 - 1), (-1, -(2**63)), (2**62, 2**62)])
def test_values_beyond_a_bigint_are_an_error(step, mark):
    with pytest.raises(InvalidRequest) as caught:
        identity_of(column(0, step, mark), "t").value(1, "t")
    assert caught.value.code == "ARITHMETIC_OVERFLOW"


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.identity.start": 1},
        {"delta.identity.highWaterMark": 1},
        {**identity_metadata(1, 0, allow_explicit=True)},
        {**identity_metadata(1, 1, allow_explicit=True), "delta.identity.start": "1"},
        {**identity_metadata(1, 1, allow_explicit=True), "delta.identity.step": True},
        {**identity_metadata(1, 1, allow_explicit=True), "delta.identity.highWaterMark": 2**63},
        {**identity_metadata(1, 1, allow_explicit=True), "delta.identity.allowExplicitInsert": "true"},
    ],
)
def test_metadata_that_contradicts_itself_is_named(metadata):
    with pytest.raises(CorruptTable) as caught:
        identity_columns(StructType((StructField("id", LONG, True, metadata),)), "t")
    assert caught.value.code == "DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA"


@pytest.mark.parametrize(
    ("field", "partitioned", "code"),
    [
        (
            StructField("id", PrimitiveType("integer"), True, identity_metadata(1, 1, allow_explicit=False)),
            (),
            "UNSUPPORTED_DATA_TYPE",
        ),
        (column(step=0), (), "ILLEGAL_STEP"),
        (column(), ("ID",), "PARTITION_NOT_SUPPORTED"),
        (column(**{"delta.generationExpression": "1"}), (), "WITH_GENERATED_EXPRESSION"),
    ],
)
def test_identity_columns_that_no_new_table_may_have(field, partitioned, code):
    with pytest.raises(InvalidRequest) as caught:
        check_new_identity(StructType((field,)), partitioned, "t")
    assert caught.value.code == f"DELTA_IDENTITY_COLUMNS_{code}"


def test_who_may_give_values():
    always, default = StructType((column(),)), StructType((column(explicit=True),))
    refuse_explicit(default, ["ID"], "t")
    refuse_explicit(always, ["other"], "t")
    with pytest.raises(InvalidRequest, match="EXPLICIT_INSERT_NOT_SUPPORTED"):
        refuse_explicit(always, ["ID"], "t")
    for schema in (always, default):
        with pytest.raises(InvalidRequest, match="IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
            refuse_update(schema, ["Id"], "t")


def test_schemas_that_differ_in_marks_alone_are_one_without_them():
    assert without_marks(StructType((column(mark=4),))) == StructType((column(),))
