"""Row numbers for tasks that do not know how many tasks there are nor how many rows the others have. Pure.

    task 0: 0, 2, 4, …      task 1: 1, 17, 33, …      task 2: 5, 21, 37, …

The lowest bits of a number identify its task by a prefix-free code, so that no two tasks use the same number, however many tasks there
are. The first code words are the shortest: few tasks leave small gaps.
"""

from __future__ import annotations

_WIDTHS = (0, 2, 4, 7, 10, 31)
"""The number of bits that identify a task within its class: one task, then 4, 16, 128 and 1,024 more, and all that Spark can have."""


def numbers_of_task(task: int, first: int, count: int) -> range:
    """Return the numbers of some rows of a task.

    Args:
        task: its number from 0.
        first: the number of the first row within the task, from 0.
        count: the number of consecutive rows.
    """
    word, bits = _word(task)
    stride = 1 << bits
    return range(word + first * stride, word + (first + count) * stride, stride)


def _word(task: int) -> tuple[int, int]:
    """Return the lowest bits of a task's numbers, and how many: a one for each class before its own, a zero, and its place in the class."""
    before = 0
    for ones, width in enumerate(_WIDTHS):
        place = task - before
        if place < 1 << width:
            return place << (ones + 1) | (1 << ones) - 1, ones + 1 + width
        before += 1 << width
    raise AssertionError(f"Spark has no task {task}")
