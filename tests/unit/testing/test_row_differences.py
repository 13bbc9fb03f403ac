"""Differences of rows, as multisets and by key."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.testing.row_differences import MOST_LINES, Comparison, differences

PLAIN = Comparison()


def test_the_order_does_not_count_and_the_number_of_equal_rows_does() -> None:
    first, two = {"id": 1}, {"id": 2}
    assert differences([first, two, first], [first, first, two], PLAIN) == []
    assert differences([first, two], [first, first, two], PLAIN) == ["1 row missing:", "  - {'id': 1}"]
    assert differences([first, first, two], [first, two], PLAIN) == ["1 row not expected:", "  + {'id': 1}"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (math.nan, math.nan, True),
        (0.0, -0.0, True),
        (None, math.nan, False),
        (None, 0.0, False),
        ([1.0, math.nan], [1.0, math.nan], True),
        ({"a": [None]}, {"a": [None]}, True),
        ({"a": 1}, {"a": 2}, False),
        ([1], [1, 1], False),
        ("1", 1, False),
        (b"\x00", b"\x00", True),
    ],
)
@pytest.mark.parametrize("comparison", [PLAIN, Comparison(tolerance=1e-9), Comparison(key=("id",))], ids=["exact", "near", "key"])
def test_values_are_equal_as_in_a_table(one: Any, other: Any, equal: bool, comparison: Comparison) -> None:
    actual = differences([{"id": 1, "v": one}], [{"id": 1, "v": other}], comparison)
    assert (actual == []) is equal


def test_a_tolerance_is_relative_and_near_zero_absolute() -> None:
    near = Comparison(tolerance=1e-3)
    for item, other, equal in [(1000.0, 1000.5, True), (1000.0, 1002.0, False), (0.0, 0.0005, True), (0.0, 0.002, False)]:
        assert (differences([{"v": item}], [{"v": other}], near) == []) is equal
    assert differences([{"v": 1}], [{"v": 2}], near) != []  # of floats alone
    assert differences([{"v": 1.0000001}], [{"v": 1.0}], PLAIN) != []


def test_rows_within_the_tolerance_are_matched_so_that_most_have_a_partner() -> None:
    # The first expected row fits both; greedily paired with the first actual one, it would leave the second without a partner.
    near = Comparison(tolerance=0.11)
    assert differences([{"v": 1.0}, {"v": 1.2}], [{"v": 1.1}, {"v": 0.9}], near) == []


@given(st.lists(st.floats(0, 10)), st.randoms(use_true_random=False), st.floats(-1e-4, 1e-4))
def test_rows_in_another_order_and_within_the_tolerance_are_the_same(values: list[float], chance: Any, shift: float) -> None:
    rows = [{"v": value} for value in values]
    moved = [{"v": value + shift} for value in values]
    chance.shuffle(moved)
    assert differences(moved, rows, Comparison(tolerance=1e-3)) == []


def test_with_a_key_the_differing_columns_are_shown() -> None:
    actual = [{"id": 1, "a": "x", "b": 1}, {"id": 2, "a": "y", "b": 2}, {"id": 2, "a": "z", "b": 2}]
    expected = [{"id": 1, "a": "x", "b": 5}, {"id": 3, "a": "w", "b": 3}]
    assert differences(actual, expected, Comparison(key=("id",))) == [
        "1 row missing:",
        "  - {'id': 3, 'a': 'w', 'b': 3}",
        "1 row not expected:",
        "  + {'id': 2, 'a': 'y', 'b': 2}",
        "1 row with a key that another row has:",
        "  + {'id': 2, 'a': 'z', 'b': 2}",
        "1 value different:",
        "  id=1: b is 1, expected 5",
    ]


def test_expected_rows_that_repeat_a_key_are_an_error_of_the_test() -> None:
    rows = [{"a": 1, "b": None, "v": 1}, {"a": 1, "b": None, "v": 2}]
    with pytest.raises(ValueError, match="the key a=1, b=None more than once"):
        differences([], rows, Comparison(key=("a", "b")))


def test_long_differences_are_shortened() -> None:
    lines = differences([], [{"id": n} for n in range(MOST_LINES + 5)], PLAIN)
    assert lines[0] == f"{MOST_LINES + 5} rows missing:" and lines[-1] == "  … and 5 more"
    assert len(lines) == MOST_LINES + 2
