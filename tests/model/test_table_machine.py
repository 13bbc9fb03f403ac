"""Histories of a table against those of a list of rows."""

from __future__ import annotations

import random

import pytest

from tahoe.testing.table_machine import TableMachine, run_histories


@pytest.mark.timeout(900)
def test_a_table_does_what_a_list_of_rows_does() -> None:
    """The same 100 histories each time; `make soak` runs many more."""
    run_histories(TableMachine, range(100))


class ThoroughMachine(TableMachine):
    most_pairs = 10_000


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_table_does_what_a_list_of_rows_does_for_long() -> None:
    """Others each time, and the feed from every version to every other."""
    run_histories(ThoroughMachine, (random.getrandbits(64) for _ in range(1_000)))
