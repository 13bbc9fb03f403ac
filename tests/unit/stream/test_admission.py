"""The number of files in a batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.stream.admission import UNLIMITED, Limits

SIZES = st.lists(st.integers(0, 50), max_size=30)
LIMITS = st.builds(Limits, st.none() | st.integers(1, 6), st.none() | st.integers(1, 90))


@pytest.mark.parametrize(
    ("limits", "sizes", "taken"),
    [
        (Limits(2), [1, 1, 1], 2),
        (Limits(None, 10), [4, 4, 4, 4], 3),  # there is room before the third, so it is taken
        (Limits(None, 10), [500, 1], 1),  # too large for any batch, but first: it is taken
        (Limits(2, 10), [20, 1], 1),
        (Limits(2, 1000), [20, 1, 1], 2),
        (UNLIMITED, [1] * 5, 5),
    ],
)
def test_files_are_taken_while_there_is_room(limits: Limits, sizes: list[int], taken: int) -> None:
    assert limits.room.take(sizes)[0] == taken


@given(SIZES, LIMITS)
def test_batches_contain_all_files_once_and_are_never_empty(sizes: list[int], limits: Limits) -> None:
    batches, rest = [], sizes
    while rest:
        taken, _ = limits.room.take(rest)
        assert taken > 0
        batches.append(rest[:taken])
        rest = rest[taken:]
    assert [size for batch in batches for size in batch] == sizes
    for batch in batches:
        assert limits.files is None or len(batch) <= limits.files
        assert limits.bytes is None or sum(batch[:-1]) < limits.bytes


@given(SIZES, st.integers(0, 30), LIMITS)
def test_taking_in_two_parts_equals_taking_at_once(sizes: list[int], cut: int, limits: Limits) -> None:
    first, room = limits.room.take(sizes[:cut])
    second = room.take(sizes[cut:])[0] if first == len(sizes[:cut]) else 0
    assert first + second == limits.room.take(sizes)[0]


def test_no_unnecessary_sizes_are_read() -> None:
    asked = []

    def sizes():
        for size in range(100):
            asked.append(size)
            yield size

    Limits(3).room.take(sizes())
    assert len(asked) <= 4


def test_files_that_belong_together_are_taken_together_or_not_at_all() -> None:
    empty = Limits(2, 10).room
    assert empty.take_together([5, 5, 5])[0], "nothing is too large for every batch"
    _, begun = empty.take([1])
    assert begun.take_together([9]) == (True, empty.take([1, 9])[1])
    assert begun.take_together([5, 5]) == (False, begun)
    assert begun.take_together([10]) == (False, begun)
    assert empty.take_together([]) == (True, empty), "a commit without files leaves the room unchanged"
