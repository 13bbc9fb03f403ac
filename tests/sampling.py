"""Samples of long lists of similar cases: `make test` runs a sample, `make soak` the rest."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Kind = TypeVar("Kind")

__all__ = ["FIRST_OR_ALL", "SAMPLE_OR_ALL", "examples", "left_out", "sampled"]

SEED = int(os.environ.get("TAHOE_SAMPLE_SEED", "0"))
"""Another seed selects other cases."""

FEW_CASES, ONE_CASE_IN = 2, 12
"""A test with more cases than the former runs one in the latter in `make test`."""

ONE_ON_SPARK_IN = 12
"""The same for tests that start Spark, of any number of cases: a case takes about a second, a hundred times that of other tests."""

ONE_TEST_ON_SPARK_IN = 5
"""The same for the tests of a module that use the shared Spark session, for any number of cases."""

ONE_OF_SAMPLE_IN, ONE_OF_SAMPLE_ON_SPARK_IN = 2, 3
"""The same for the cases that `sampled` or a mark `soak` left, which are long."""

SAMPLE_OR_ALL = [pytest.param(4, id="sample"), pytest.param(1, id="all", marks=pytest.mark.long)]
"""Values of a parameter: the step at which a test takes entries of a list."""

FIRST_OR_ALL = [pytest.param(True, id="first of each kind"), pytest.param(False, id="all", marks=pytest.mark.soak)]
"""Values of a parameter that limits a loop inside a test."""


def sampled(cases: Iterable[object], one_in: int, always: Collection[object] = ()) -> list[ParameterSet]:
    """Values of a parameter: one case in `one_in`, evenly spaced, is in the sample; the rest has the mark `soak`.

    Args:
        always: cases that are in every sample.
    """
    return [
        pytest.param(case, marks=() if number % one_in == SEED % one_in or case in always else pytest.mark.soak)
        for number, case in enumerate(cases)
    ]


def examples(count: int) -> int:
    """The number of examples that Hypothesis draws for a test: `count` in `make test-nightly`, a third in `make test`."""
    return count if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else count // 3


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases that `make test` leaves to `make soak`: most cases of each parametrized test with many, and all with the mark `long`.

    The mark `every_case` exempts a test. Only with the variable TAHOE_SAMPLE_CASES, which both commands set: pytest itself leaves out
    none of these, and neither do `make test-versions` and `make test-versions-sample`, which runs each case on Spark in one of eight
    successive commits. The sample itself is the same for all commits, so that no commit fails by a case that has never run before.
    """
    if not os.environ.get("TAHOE_SAMPLE_CASES"):
        return []
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    on_spark: dict[Path, list[list[pytest.Item]]] = defaultdict(list)
    for item in items:
        if not any(map(item.get_closest_marker, ("every_case", "long"))):
            cases[item.nodeid.partition("[")[0]].append(item)
    for group in cases.values():
        if group[0].get_closest_marker("spark") and not group[0].get_closest_marker("own_jvm") and not _are_soak(group):
            on_spark[group[0].path].append(group)
    beyond = [item for group in cases.values() if hasattr(group[0], "callspec") for item in _beyond_sample(group)]
    beyond += [item for tests in on_spark.values() for group in _all_but_one_in(ONE_TEST_ON_SPARK_IN, tests) for item in group]
    return [*beyond, *(item for item in items if item.get_closest_marker("long"))]


def _are_soak(cases: Sequence[pytest.Item]) -> bool:
    return all(case.get_closest_marker("soak") for case in cases)


def _beyond_sample(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases of one test that are not in its sample."""
    remaining = [case for case in cases if not case.get_closest_marker("soak")]
    has_sample = len(remaining) < len(cases)
    if cases[0].get_closest_marker("spark"):
        one_in = ONE_OF_SAMPLE_ON_SPARK_IN if has_sample else ONE_ON_SPARK_IN
    elif has_sample:
        one_in = ONE_OF_SAMPLE_IN
    else:
        one_in = ONE_CASE_IN if len(remaining) > FEW_CASES else 1
    return _all_but_one_in(one_in, remaining)


def _all_but_one_in(count: int, items: Sequence[Kind]) -> list[Kind]:
    return [item for number, item in enumerate(items) if number % count != SEED % min(count, len(items))]
