"""The number of files that predicates match, compared with counting one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tahoe.ops.layout.boxes import Box, Interval, measured, spread


def boxes(intervals: list[Interval]) -> list[Box]:
    return [Box(10, 100, (item,)) for item in intervals]


def test_files_apart_are_read_one_at_a_time_and_files_over_each_other_all() -> None:
    apart = measured(boxes([(0, 1), (2, 3), (4, 5)]), 0, 5)
    assert apart is not None
    assert (apart.point_files, apart.point_bytes, apart.deepest) == (1, 10, 1)
    over = measured(boxes([(0, 5)] * 4), 0, 5)
    assert over is not None
    assert (over.point_files, over.point_bytes, over.range_files, over.deepest) == (4, 40, 4, 4)


def test_files_without_a_value_are_not_read_and_a_column_without_one_is_not_measured() -> None:
    actual = measured(boxes([(0, 1), None]), 0, 1)
    assert actual is not None
    assert actual.point_files == 1
    assert measured(boxes([None, None]), 0, 1) is None
    assert measured([], 0, 1) is None


places = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (float(min(pair)), float(max(pair))))


@given(st.lists(places, min_size=1, max_size=12))
def test_files_per_point_equal_a_count(intervals: list[tuple[float, float]]) -> None:
    actual = measured(boxes(list(intervals)), 0, 20)
    assert actual is not None
    known = [item for item in intervals if item != (0.0, 20.0)] or intervals
    each = min(50, 2000 // len(known))
    points = [low + (high - low) * (n + 0.5) / each for low, high in known for n in range(each)]
    counts = [sum(low <= place <= high for low, high in intervals) for place in points]
    assert abs(actual.point_files - sum(counts) / len(counts)) < 1e-9
    assert actual.deepest == max(counts)
    wide = [sum(low <= place + 1 and high >= place - 1 for low, high in intervals) for place in points]
    assert abs(actual.range_files - sum(wide) / len(wide)) < 1e-9


def test_rows_are_spread_over_the_box() -> None:
    rows = spread(Box(1, 1, ((0.0, 10.0), None, (5.0, 5.0))), 100, 0)
    assert len(rows) == 100
    assert {row[1:] for row in rows} == {(None, 5.0)}
    tenths = {int(row[0] or 0) for row in rows}
    assert tenths == set(range(10))
