"""Histories of all operations of a table against those of a list of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.all_operations import History

STEPS = 25


@pytest.mark.every_case
@pytest.mark.breaks_rules("iceberg-allows-no-vectors")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 200))])
def test_every_operation_equals_the_one_on_a_list_of_rows(seed: int, tmp_path: Path) -> None:
    History(tmp_path, seed).run(STEPS)
