"""What every error carries, and as what it can be caught."""

from __future__ import annotations

import pytest

from tahoe import exceptions
from tahoe.exceptions import CommitStateUnknown, InvalidRequest, NotFound, SchemaMismatch, StorageFailure, TahoeError


@pytest.mark.parametrize("name", [name for name in exceptions.__all__ if name != "CommitStateUnknown"])
def test_an_error_has_a_code_of_its_own_unless_told_and_the_message_begins_with_it(name: str) -> None:
    kind = getattr(exceptions, name)
    error = kind("what is wrong.", table="t")
    assert isinstance(error, TahoeError) and error.code == kind.default_code == error.getErrorClass()
    assert str(error) == f"[{error.code}] what is wrong." and error.facts == {"table": "t"}
    assert kind("…", code="TAHOE_SOME").code == "TAHOE_SOME"


def test_errors_are_caught_as_pythons_own_too() -> None:
    assert issubclass(SchemaMismatch, InvalidRequest) and issubclass(InvalidRequest, ValueError)
    assert issubclass(NotFound, LookupError) and issubclass(StorageFailure, OSError)


def test_a_place_is_told_once_and_only_where_the_message_lacks_it() -> None:
    error = NotFound("It is gone.", file="f")
    assert error.located(table="memory://t", version=3, file="f") is error
    assert error.message == "Table memory://t, version 3, file 'f': It is gone."
    assert error.facts == {"file": "f", "table": "memory://t", "version": 3}
    assert error.located(table="memory://t", version=3).message == "Table memory://t, version 3, file 'f': It is gone."
    assert str(NotFound("Gone.").located(version=1)) == "[DELTA_TABLE_NOT_FOUND] Version 1: Gone."
    assert NotFound("Gone.").located(file="a").message == "File 'a': Gone."


def test_a_commit_whose_state_is_unknown_can_be_asked_for() -> None:
    answers = iter([False, True])
    error = CommitStateUnknown("No answer.", transaction_id="x", version=4, resolve=lambda: next(answers), table="t")
    assert [error.resolve(), error.resolve()] == [False, True]
    assert (error.version, error.transaction_id) == (4, "x")
    assert error.facts == {"transaction_id": "x", "version": 4, "table": "t"}
