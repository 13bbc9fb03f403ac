"""An operation is repeated after conflicts, and only after these."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import ConcurrentAppendException, InvalidRequest, TahoeError
from tahoe.txn.retries import ATTEMPTS, retried


@pytest.mark.parametrize("conflicts", range(ATTEMPTS))
def test_conflicts_are_followed_by_another_attempt(conflicts: int) -> None:
    outcomes = iter([*[ConcurrentAppendException("another writer")] * conflicts, None])
    assert retried(lambda: outcome(next(outcomes))) == "done"
    assert list(outcomes) == []


@pytest.mark.parametrize(("error", "attempts"), [(ConcurrentAppendException, ATTEMPTS), (InvalidRequest, 1)])
def test_the_last_conflict_and_other_errors_are_raised(error: type[TahoeError], attempts: int) -> None:
    calls = []
    with pytest.raises(error):
        retried(lambda: (calls.append(1), outcome(error("it fails", code="TAHOE_TEST"))))
    assert len(calls) == attempts


def outcome(error: TahoeError | None) -> str:
    if error is not None:
        raise error
    return "done"
