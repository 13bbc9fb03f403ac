"""Arrow arrays made without pandas are those that pyarrow makes."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.schema import arrow_values
from tahoe.schema.arrow_values import array, scalar


@pytest.fixture(autouse=True)
def without_pandas(monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)


INNER = pa.struct([("a", pa.int64()), ("b", pa.map_(pa.string(), pa.string())), ("c", pa.list_(pa.string()))])
VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(1 << 15), (1 << 15) - 1),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.uint64(): st.integers(0, (1 << 64) - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(),
    pa.binary(): st.binary(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7, minutes=-30))])),
    pa.decimal128(38, 10): st.decimals(-(10**20), 10**20, places=10),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=1),
    INNER: st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 9)},
        optional={
            "b": st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.text(max_size=3)), max_size=3),
            "c": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
            "unknown": st.integers(),
        },
    ),
}


@pytest.mark.parametrize("data_type", VALUES, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_values_become_the_array_that_pyarrow_makes(data_type, data):
    values = data.draw(st.lists(st.none() | VALUES[data_type], max_size=20))
    actual = array(values, data_type)
    actual.validate(full=True)
    assert actual.type == data_type
    assert actual.equals(pa.array(values, data_type))


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (1 << 63, pa.int64()),
        (300, pa.int8()),
        ("a", pa.int64()),
        (5, pa.string()),
        ("\ud800", pa.string()),
        (Decimal("1.23456"), pa.decimal128(5, 2)),
        (Decimal("NaN"), pa.decimal128(5, 2)),
        ({"b": [(None, "x")]}, INNER),
    ],
)
def test_values_that_do_not_fit_are_reported_as_by_pyarrow(value, data_type):
    with pytest.raises(Exception) as ours:  # noqa: PT011 - which it is, is pyarrow's business
        array([value], data_type)
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        pa.array([value], data_type)
    assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (True, pa.int64()),
        (1.5, pa.int64()),
        (1, pa.float64()),
        (1, pa.bool_()),
        (datetime(2020, 1, 1), pa.timestamp("us", "UTC")),
        (datetime(2020, 1, 1, 5), pa.date32()),
        (date(2020, 1, 1), pa.timestamp("us")),
        (b"x", pa.string()),
        ({"x": "y"}, pa.map_(pa.string(), pa.string())),
        ("long", pa.large_string()),
        (None, pa.null()),
    ],
)
def test_values_of_a_neighbouring_type_are_taken_or_refused_as_pyarrow_does(value, data_type):
    def outcome(make):
        try:
            return make([value], data_type).to_pylist()
        except Exception as error:  # noqa: BLE001
            return type(error), str(error)

    assert outcome(array) == outcome(pa.array)


@pytest.mark.parametrize("value", [True, 5, 1.5, "text", b"bytes", date(2020, 1, 1), None, 1 << 64])
def test_a_scalar_without_a_type_has_the_one_that_pyarrow_gives(value):
    try:
        expected = pa.scalar(value)
    except pa.ArrowException as error:
        with pytest.raises(type(error)):
            scalar(value)
        return
    except OverflowError:
        with pytest.raises(OverflowError):
            scalar(value)
        return
    assert scalar(value).equals(expected) and scalar(value).type == expected.type


def test_many_values_are_left_to_pyarrow():
    many = list(range(arrow_values._FEW + 1))
    assert array(many, pa.int64()).equals(pa.array(many, pa.int64()))


def test_pandas_is_not_imported():
    program = (
        "import sys; from tahoe.schema.arrow_values import array, scalar; import pyarrow as pa;"
        "array([None, {'a': [('k', 'v')]}], pa.struct([('a', pa.map_(pa.string(), pa.string()))])); scalar(5); scalar('a', pa.string());"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
