"""Samples of long lists of similar cases: `make test` runs a sample, `make soak` the rest."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

__all__ = ["FIRST_OR_ALL", "SAMPLE_OR_ALL", "left_out", "sampled"]

SEED = int(os.environ.get("TAHOE_SAMPLE_SEED", "0"))
"""Another seed selects other cases."""

FEW_CASES, ONE_CASE_IN = 3, 4
"""A test with more cases than the former runs one in the latter in `make test`."""

FEW_ON_SPARK, ONE_ON_SPARK_IN, ONE_OF_SAMPLE_IN = 1, 12, 3
"""The same for tests that start Spark, whose cases take a second each; the last number is for cases that `sampled` left."""

SAMPLE_OR_ALL = [pytest.param(4, id="sample"), pytest.param(1, id="all", marks=pytest.mark.long)]
"""Values of a parameter: the step at which a test takes entries of a list."""

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
    """The cases that `make test` leaves to `make soak`: most cases of each parametrized test with many, and tests marked `long`.

    A test with a sample of its own (`sampled`) keeps it unless it starts Spark, and the mark `every_case` exempts a test. Only with
    the variable TAHOE_SAMPLE_CASES, which both commands set: pytest itself runs all cases, and so do `make test-versions` and the
    eighth of the Spark tests that each commit runs on older releases.
    """
    if not os.environ.get("TAHOE_SAMPLE_CASES"):
        return []
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, ("every_case", "long"))):
            cases[item.nodeid.partition("[")[0]].append(item)
    beyond = [item for group in cases.values() for item in _beyond_sample(group)]
    return [*beyond, *(item for item in items if item.get_closest_marker("long"))]


def _beyond_sample(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases of one test that are not in its sample."""
    kept = [case for case in cases if not case.get_closest_marker("soak")]
    few, one_in = FEW_CASES, ONE_CASE_IN
    if cases[0].get_closest_marker("spark"):
        few, one_in = FEW_ON_SPARK, ONE_ON_SPARK_IN if len(kept) == len(cases) else ONE_OF_SAMPLE_IN
    elif len(kept) < len(cases):
        return []
    if len(kept) <= few:
        return []
    return [case for number, case in enumerate(kept) if number % one_in != SEED % min(one_in, len(kept))]
