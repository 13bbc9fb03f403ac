"""Sidecars that lost nothing stay, as long as there are few."""

from __future__ import annotations

import random

import pytest

from tahoe.log.checkpoints.v2_writer import ROWS_IN_SIDECAR, Written, plan_sidecars, rows_in_sidecar


@pytest.mark.parametrize(
    ("rows", "changed", "new", "expected"),
    [
        ([100, 100], [], 0, [0, 1]),
        ([100, 100], [], 10, [0, 1, Written((), True)]),
        ([100, 10, 10], [], 10, [0, Written((1, 2), True)]),
        ([100, 20, 50], [], 10, [0, 1, 2, Written((), True)]),
        ([100, 90, 100], [1], 0, [0, Written((1,), False), 2]),
        ([100, 40, 45, 100], [1, 2], 0, [0, Written((1, 2), False), 3]),
        ([100, 0, 100], [1], 0, [0, 2]),
        ([100, 30, 20, 100], [2], 0, [0, Written((1, 2), False), 3]),
        ([100, 30, 20, 100], [1], 0, [0, Written((1, 2), False), 3]),
        ([], [], 500, [Written((), True)]),
        ([], [], 0, []),
    ],
)
def test_changed_sidecars_and_their_small_neighbours_are_written(
    rows: list[int], changed: list[int], new: int, expected: list[object]
) -> None:
    assert plan_sidecars(rows, [number in changed for number in range(len(rows))], new, 100) == expected


def test_each_row_is_named_once_and_in_order() -> None:
    chance = random.Random(7)
    for _ in range(2_000):
        rows = [chance.randrange(0, 120) for _ in range(chance.randrange(12))]
        changed = [chance.random() < 0.3 for _ in rows]
        new = chance.choice([0, 1, 30, 250])
        planned = plan_sidecars(rows, changed, new, 100)
        assert planned is not None
        named = [number for part in planned for number in (part.members if isinstance(part, Written) else (part,))]
        assert named == [number for number, count in enumerate(rows) if count]
        assert not any(changed[part] for part in planned if not isinstance(part, Written))
        assert [part for part in planned if isinstance(part, Written) and part.takes_new] == (planned[-1:] if new else [])


def test_a_table_that_grows_has_few_sidecars_and_each_row_is_written_a_few_times() -> None:
    sidecars: list[int] = []
    written = 0
    for _ in range(5_000):
        planned = plan_sidecars(sidecars, [False] * len(sidecars), 10, 5_000)
        assert planned is not None
        after = []
        for part in planned:
            if isinstance(part, Written):
                after.append(sum(sidecars[number] for number in part.members) + 10)
                written += after[-1]
            else:
                after.append(sidecars[part])
        sidecars = after
    assert sum(sidecars) == 50_000
    assert len(sidecars) < 30
    assert written < 10 * 50_000


def test_where_too_many_would_be_left_all_is_written_again() -> None:
    assert plan_sidecars([3] * 100, [False] * 100, 0, 100) is None


def test_a_full_sidecar_is_a_twentieth_of_a_large_table() -> None:
    assert [rows_in_sidecar(rows) for rows in (0, 10**6, 5 * 10**6, 10**9)] == [50_000, ROWS_IN_SIDECAR, 250_000, 500_000]
