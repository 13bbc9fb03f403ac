"""Random histories of tables that Tahoe and deltalake change by turns.

After each step every reader sees the same rows, and `check` reports nothing.

Partitions are not ASCII, floats are NaN, both write checkpoints, and logs are cleaned. `make test` runs the first few seeds, `make soak`
all of `TAHOE_TURNS` (300); `TAHOE_TURNS_SEED` runs one seed alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.turns import Turns

QUICK = 5
STEPS = 8
HISTORIES = int(os.environ.get("TAHOE_TURNS", "300"))


def seeds() -> Iterator[object]:
    if "TAHOE_TURNS_SEED" in os.environ:
        yield int(os.environ["TAHOE_TURNS_SEED"])
        return
    for seed in range(HISTORIES):
        yield pytest.param(seed, marks=[pytest.mark.soak] if seed >= QUICK else [])


@pytest.mark.parametrize("seed", list(seeds()))
def test_a_history_is_read_equal_after_each_step(tmp_path: Path, seed: int) -> None:
    turns = Turns(tmp_path / "table", seed)
    for _ in range(STEPS):
        turns.step()
        turns.check()
