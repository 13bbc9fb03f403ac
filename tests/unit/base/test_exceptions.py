"""The contract for programs that catch errors: classes, codes, SQL states, texts, and PySpark's own classes where PySpark is loaded."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tahoe
from tahoe.base import exceptions
from tahoe.base.exceptions import (
    CommitStateUnknown,
    ConcurrentAppendException,
    InvalidRequest,
    NotFound,
    SchemaMismatch,
    StorageFailure,
    TahoeError,
)

ROOT = Path(__file__).parents[3]

IN_PYSPARK = """
import pickle
import pyspark.errors as theirs
from tahoe.base import exceptions as ours

def is_caught(error, name):
    try:
        raise error
    except getattr(theirs, name) as caught:
        assert isinstance(caught, theirs.PySparkException)
        assert caught is error
        return True

assert is_caught(ours.SchemaMismatch("a column is missing"), "AnalysisException")
assert is_caught(ours.NotFound("no table", code="DELTA_TABLE_NOT_FOUND"), "AnalysisException")
assert is_caught(ours.InvalidRequest("a mark", code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"), "IllegalArgumentException")
assert is_caught(ours.InvalidRequest("no parse", code="PARSE_SYNTAX_ERROR"), "ParseException")
assert is_caught(ours.InvalidRequest("our own", code="TAHOE_ADDRESS"), "IllegalArgumentException")
assert is_caught(ours.Unsupported("not yet", code="TAHOE_NOT_IN_THIS_VERSION"), "UnsupportedOperationException")
assert is_caught(ours.StorageFailure("no answer"), "PySparkException")
assert is_caught(ours.CommitStateUnknown("?", transaction_id="t", version=1, resolve=bool), "PySparkException")
assert not isinstance(ours.InvalidRequest("a mark", code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"), theirs.AnalysisException)
for name in ours.__all__:
    error_class = getattr(ours, name)
    if name not in ("CommitStateUnknown", "TahoeWarning"):
        error = error_class("said so", code="DELTA_VERSION_NOT_FOUND", version=3)
        assert is_caught(error, "AnalysisException") and isinstance(error, error_class)
        assert str(error) == error.getMessage() == "[DELTA_VERSION_NOT_FOUND] said so" == error.args[0]
        assert error.getCondition() == error.getErrorClass() == "DELTA_VERSION_NOT_FOUND"
        assert error.getSqlState() == "22003" and error.getMessageParameters() == {"version": "3"}
        assert error.getQueryContext() == [] and error.getBreakingChangeInfo() is None
        assert type(error).__name__ == name and type(error).__module__ == "tahoe.exceptions"
        again = pickle.loads(pickle.dumps(error))
        assert is_caught(again, "AnalysisException") and str(again) == str(error) and again.facts == {"version": 3}
        assert isinstance(again, error_class)
print("caught")
"""


def test_where_pyspark_is_loaded_every_error_is_one_of_its_exceptions_too() -> None:
    done = subprocess.run([sys.executable, "-c", IN_PYSPARK], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "caught"


def test_errors_are_raised_and_read_without_loading_pyspark() -> None:
    program = (
        "import sys; from tahoe.base.exceptions import *; error = SchemaMismatch('no', column='a'); "
        "print(error.getSqlState(), error.getMessageParameters(), isinstance(error, ValueError), 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "42KDG {'column': 'a'} True False"


@pytest.mark.parametrize("name", sorted({*exceptions.__all__} - {"TahoeWarning"}))
def test_an_error_is_pickled_and_copied_whole(name: str) -> None:
    error_class = getattr(exceptions, name)
    more = {"transaction_id": "t", "version": 3, "resolve": bool} if error_class is CommitStateUnknown else {"version": 3}
    error = error_class("said so", **more).located(table="memory:///t")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(again, error_class)
        assert (str(again), again.args, again.facts, again.code) == (str(error), error.args, error.facts, error.code)


def test_classes_keep_the_meaning_that_python_gives_them() -> None:
    assert (
        isinstance(InvalidRequest("x"), ValueError)
        and isinstance(NotFound("x"), LookupError)
        and isinstance(StorageFailure("x"), OSError)
    )
    assert issubclass(ConcurrentAppendException, tahoe.DeltaConcurrentModificationException)


def test_a_code_of_our_own_has_the_sql_state_of_its_class() -> None:
    assert InvalidRequest("x", code="TAHOE_ADDRESS").getSqlState() == "22023"
    assert StorageFailure("x").getSqlState() == "58030"
    assert SchemaMismatch("x", code="DELTA_DUPLICATE_COLUMNS_FOUND").getSqlState() == "42711"


@pytest.mark.parametrize("name", [name for name in exceptions.__all__ if name not in ("CommitStateUnknown", "TahoeWarning")])
def test_an_error_has_a_code_of_its_own_unless_given_and_the_message_begins_with_it(name: str) -> None:
    kind = getattr(exceptions, name)
    error = kind("what is wrong.", table="t")
    assert isinstance(error, TahoeError) and error.code == kind.default_code == error.getErrorClass()
    assert str(error) == f"[{error.code}] what is wrong." and error.facts == {"table": "t"}
    assert kind("…", code="TAHOE_SOME").code == "TAHOE_SOME"


def test_errors_are_caught_as_pythons_own_too() -> None:
    assert issubclass(SchemaMismatch, InvalidRequest) and issubclass(InvalidRequest, ValueError)
    assert issubclass(NotFound, LookupError) and issubclass(StorageFailure, OSError)


def test_a_place_is_reported_once_and_only_where_the_message_lacks_it() -> None:
    error = NotFound("It is gone.", file="f")
    assert error.located(table="memory://t", version=3, file="f") is error
    assert error.message == "Table memory://t, version 3, file 'f': It is gone."
    assert error.facts == {"file": "f", "table": "memory://t", "version": 3}
    assert error.located(table="memory://t", version=3).message == "Table memory://t, version 3, file 'f': It is gone."
    assert str(NotFound("Gone.").located(version=1)) == "[DELTA_TABLE_NOT_FOUND] Version 1: Gone."
    assert NotFound("Gone.").located(file="a").message == "File 'a': Gone."


def test_an_error_gets_another_class_and_keeps_all_else() -> None:
    before = NotFound("There is no table.", table="file:///t")
    after = before.recoded("PATH_NOT_FOUND")
    assert type(after) is type(before) and str(after) == "[PATH_NOT_FOUND] There is no table." and after.args == (str(after),)
    assert (after.code, after.facts, before.code) == ("PATH_NOT_FOUND", {"table": "file:///t"}, "DELTA_TABLE_NOT_FOUND")
    assert after.getSqlState() == "42K03"


def test_a_commit_whose_state_is_unknown_can_be_asked_for() -> None:
    answers = iter([False, True])
    error = CommitStateUnknown("No answer.", transaction_id="x", version=4, resolve=lambda: next(answers), table="t")
    assert [error.resolve(), error.resolve()] == [False, True]
    assert (error.version, error.transaction_id) == (4, "x")
    assert error.facts == {"transaction_id": "x", "version": 4, "table": "t"}
