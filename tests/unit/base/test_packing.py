"""Groups of limited size."""

from __future__ import annotations

from tahoe.base.packing import packed


def test_groups_keep_the_order_and_the_limits() -> None:
    assert list(packed([1, 2, 3, 9, 1], int, 3)) == [[1, 2], [3], [9], [1]]
    assert list(packed("abcde", len, 100, most_items=2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(packed([], int, 3)) == []
