"""Every failure while a table is checked becomes a finding."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of

pytestmark = pytest.mark.damages_tables


def test_an_error_of_tahoes_own_is_told_in_its_words_with_its_code_and_file() -> None:
    error = CorruptTable("The file is damaged.", code="TAHOE_CORRUPT_VECTOR", file="f")
    assert violation_of(error, "vector", "it", 3) == Violation("vector", "The file is damaged.", 3, "f", "TAHOE_CORRUPT_VECTOR")
    assert violation_of(error, "vector", "it", file="mine").file == "mine"


def test_another_error_is_told_by_what_was_looked_at_and_not_at_any_length() -> None:
    found = violation_of(ValueError("x" * 5000), "data", "The file 'f'", file="f")
    assert found.message.startswith("The file 'f' cannot be checked (ValueError: xxx") and len(found.message) < 700
    assert found.error is None and str(found) == f"data: {found.message}"


def test_an_error_in_a_block_is_reported_and_what_is_no_error_goes_through() -> None:
    told: list[Violation] = []
    with Reported(told.append, "commit", "Version 1", 1):
        raise KeyError("a")
    with Reported(told.append, "commit", "Version 2", 2):
        pass
    assert [(found.code, found.version) for found in told] == [("commit", 1)]
    with pytest.raises(KeyboardInterrupt), Reported(told.append, "commit", "Version 3"):
        raise KeyboardInterrupt
    assert len(told) == 1
