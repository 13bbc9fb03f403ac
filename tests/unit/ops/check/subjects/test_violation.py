"""Every failure while a table is checked becomes a finding."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of

pytestmark = pytest.mark.damages_tables


def test_an_error_of_tahoes_own_is_reported_in_its_words_with_its_code_and_file() -> None:
    error = CorruptTable("The file is damaged.", code="TAHOE_CORRUPT_VECTOR", file="f")
    assert violation_of(error, "vector", "it", 3) == Violation("vector", "The file is damaged.", 3, "f", "TAHOE_CORRUPT_VECTOR")
    assert violation_of(error, "vector", "it", file="mine").file == "mine"


def test_another_error_is_reported_with_its_subject_and_cut() -> None:
    actual = violation_of(ValueError("x" * 5000), "data", "The file 'f'", file="f")
    assert actual.message.startswith("The file 'f' cannot be checked (ValueError: xxx") and len(actual.message) < 700
    assert actual.error is None and str(actual) == f"data: {actual.message}"


def test_an_error_in_a_block_is_reported_and_other_exceptions_pass() -> None:
    reported: list[Violation] = []
    with Reported(reported.append, "commit", "Version 1", 1):
        raise KeyError("a")
    with Reported(reported.append, "commit", "Version 2", 2):
        pass
    assert [(actual.code, actual.version) for actual in reported] == [("commit", 1)]
    with pytest.raises(KeyboardInterrupt), Reported(reported.append, "commit", "Version 3"):
        raise KeyboardInterrupt
    assert len(reported) == 1
