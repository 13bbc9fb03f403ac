"""Numbers of tasks that know nothing of each other: none is given twice, however many tasks there are, and few tasks leave small gaps."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.protocol.column_values.task_numbers import numbers_of_task

TASKS = st.integers(0, 200) | st.integers(0, 2**31)


@settings(deadline=None)
@given(st.lists(TASKS, min_size=2, max_size=30, unique=True), st.integers(1, 40))
def test_no_two_tasks_give_one_number(tasks, rows):
    words = [numbers_of_task(task, 0, 1) for task in tasks]
    actual = [number for task in tasks for number in numbers_of_task(task, 0, rows)]
    assert len(set(actual)) == len(tasks) * rows
    # Not only the first rows: where the lesser stride divides the distance of two words, they would collide.
    for item, other in pairwise(words):
        assert (item[0] - other[0]) % min(item.step, other.step) != 0


def test_the_rows_of_a_task_continue():
    assert [*numbers_of_task(3, 0, 4), *numbers_of_task(3, 4, 2)] == [*numbers_of_task(3, 0, 6)]
    assert list(numbers_of_task(7, 5, 0)) == []


def test_few_tasks_leave_small_gaps():
    assert list(numbers_of_task(0, 0, 3)) == [0, 2, 4]
    assert [list(numbers_of_task(task, 0, 2)) for task in (1, 4)] == [[1, 17], [13, 29]]
    assert numbers_of_task(200, 0, 2).step == 1 << 15
    assert numbers_of_task(2**31, 0, 2).step == 1 << 37
