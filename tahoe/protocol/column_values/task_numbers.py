"""Numbers for tasks that know of each other neither how many they are nor how many rows they have. Pure.

    task 0: 0, 2, 4, …      task 1: 1, 17, 33, …      task 2: 5, 21, 37, …

The lowest bits of a number say which task gave it, by a code of which no word begins another one, so that no two tasks give one number,
however many there are. The first words are the shortest: few tasks leave small gaps.
"""

from __future__ import annotations

__all__ = ["numbers_of_task"]

_WIDTHS = (0, 2, 4, 7, 10, 31)
"""The number of bits that identify a task within its class: one task, then 4, 16, 128 and 1,024 more, and all that Spark can have."""


def numbers_of_task(task: int, first: int, count: int) -> range:
    """The numbers of some rows of a task.

    Args:
        task: its number from 0.
        first: the number of the first row within the task, from 0.
        count: how many rows follow each other from there.
    """
    word, bits = _word(task)
    stride = 1 << bits
    return range(word + first * stride, word + (first + count) * stride, stride)


def _word(task: int) -> tuple[int, int]:
    """The lowest bits of a task's numbers, and how many they are: so many ones as its class has before it, a zero, and its place there."""
    before = 0
    for ones, width in enumerate(_WIDTHS):
        place = task - before
        if place < 1 << width:
            return place << (ones + 1) | (1 << ones) - 1, ones + 1 + width
        before += 1 << width
    raise AssertionError(f"Spark has no task {task}")
