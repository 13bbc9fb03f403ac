"""Samples of long lists of similar cases: `make test` runs a sample, `make soak` the rest."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import pytest
from _pytest.mark import ParameterSet

__all__ = ["FIRST_OR_ALL", "sampled"]

SEED = int(os.environ.get("TAHOE_SAMPLE_SEED", "0"))
"""Another seed selects other cases."""

FIRST_OR_ALL = [pytest.param(True, id="first of each kind"), pytest.param(False, id="all", marks=pytest.mark.soak)]
"""Values of a parameter that limits a loop inside a test."""


def sampled(cases: Iterable[object], one_in: int, always: Collection[object] = ()) -> list[ParameterSet]:
    """Values of a parameter: one case in `one_in`, evenly spaced, runs in `make test`; the rest has the mark `soak`.

    Args:
        always: cases that run in `make test` whatever the seed.
    """
    return [
        pytest.param(case, marks=() if number % one_in == SEED % one_in or case in always else pytest.mark.soak)
        for number, case in enumerate(cases)
    ]
