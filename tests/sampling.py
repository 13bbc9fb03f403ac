"""Samples of long lists of similar cases: `make test` runs a sample, `make soak` the rest."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

__all__ = ["FIRST_OR_ALL", "left_out", "sampled"]

SEED = int(os.environ.get("TAHOE_SAMPLE_SEED", "0"))
"""Another seed selects other cases."""

FEW_CASES, ONE_CASE_IN = 3, 4
"""A test with more cases than the former runs one in the latter in `make test`."""

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


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases that `make test` leaves to `make soak`: of each parametrized test with many cases, all but one in `ONE_CASE_IN`.

    A test with a sample of its own (`sampled`) keeps it, and the mark `every_case` exempts a test. Only with the variable
    TAHOE_SAMPLE_CASES, which both commands set: pytest itself runs all cases.
    """
    if not os.environ.get("TAHOE_SAMPLE_CASES"):
        return []
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("every_case"):
            cases[item.nodeid.partition("[")[0]].append(item)
    return [
        item
        for group in cases.values()
        if len(group) > FEW_CASES and not any(item.get_closest_marker("soak") for item in group)
        for number, item in enumerate(group)
        if number % ONE_CASE_IN != SEED % ONE_CASE_IN
    ]
