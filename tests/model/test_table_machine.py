"""Histories of a table against those of a list of rows, and streams beside them."""

from __future__ import annotations

import random

import pytest

from tahoe.testing.table_machine import run_histories
from tests.model.followed_table import FollowedTable


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 50), marks=pytest.mark.soak)], ids=str)
def test_a_table_equals_a_list_of_rows(seeds: range) -> None:
    """The same histories each time; each reads its table at every step and every version again. `make soak` also runs 1,000 others, and
    checks at every step."""
    run_histories(FollowedTable, seeds)


class ThoroughMachine(FollowedTable):
    most_pairs = 10_000
    steps_of_a_check = 1


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_table_equals_a_list_of_rows_after_many_operations() -> None:
    """Others each time, and the feed from every version to every other."""
    run_histories(ThoroughMachine, (random.getrandbits(64) for _ in range(1_000)))
