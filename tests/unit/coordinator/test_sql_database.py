"""The two databases: URLs, secrets, and the outcomes of failures."""

from __future__ import annotations

import os
import sqlite3
import traceback
from pathlib import Path
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.coordinator.sql_database import Database, open_database
from tahoe.store.log_store import Created, Refused, Unanswered

SECRET = "s3cr3t!p"
MAKE = ("CREATE TABLE IF NOT EXISTS numbers (n BIGINT PRIMARY KEY)", ())


def insert(number: int) -> tuple[str, tuple[object, ...]]:
    return "INSERT INTO numbers VALUES (?)", (number,)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{SECRET}@host/db",
        f"me:{SECRET}@host/db",
        f"http://[::1:{SECRET}@host",
        "sqlite://",
        "sqlite:///",
        f"sqlite://me:{SECRET}@host/x.db",
        f"sqlite:///x.db?password={SECRET}",
        "",
    ],
)
def test_a_url_of_no_database_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidRequest, match="sqlite:///") as caught:
        open_database(url)
    assert caught.value.code == "TAHOE_COORDINATOR_URL"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        "postgresql://me:s3cr3t%21p@127.0.0.1:1/db",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}",
        f"postgresql://me:{SECRET}@127.0.0.1:{SECRET}/db",  # libpq's error includes the text it parsed as the port
        f"postgresql://127.0.0.1:1/db?nonsense={SECRET}&password={SECRET}",
    ],
)
def test_a_password_is_never_shown(url: str, caplog: pytest.LogCaptureFixture) -> None:
    database = open_database(url)
    with pytest.raises(StorageFailure) as caught:
        database.rows("SELECT 1", ())
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + database.shown_url
    assert SECRET not in shown and "s3cr3t%21p" not in shown
    assert caught.value.code == "TAHOE_COORDINATOR_UNAVAILABLE"


def test_a_path_of_sqlite_is_relative_with_three_slashes_and_absolute_with_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_database("sqlite:///a%20b.db").url == open_database(f"sqlite:///{tmp_path}/a b.db").url
    open_database("sqlite:///a%20b.db").run(MAKE)
    assert (tmp_path / "a b.db").exists()


class Failing:
    """A SQLite connection with one failing method, which fails before or after the call."""

    def __init__(self, inner: sqlite3.Connection, method: str, *, after: bool) -> None:
        self._inner, self._method, self._after = inner, method, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def failing(*arguments: Any) -> Any:
            if self._after:
                method(*arguments)
            raise sqlite3.OperationalError("gone")

        return failing if name == self._method else method


def failing_once(path: Path, method: str, *, after: bool) -> Database:
    database = open_database(f"sqlite:///{path}")
    connect = database._connect
    made: list[Any] = []

    def first_fails() -> Any:
        made.append(connect())
        return Failing(made[0], method, after=after) if len(made) == 1 else made[-1]

    database._connect = first_fails
    return database


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_without_an_answer_is_unanswered_and_the_next_reconnects(tmp_path: Path, after: bool) -> None:
    open_database(f"sqlite:///{tmp_path}/n.db").run(MAKE)
    database = failing_once(tmp_path / "n.db", "commit", after=after)
    assert isinstance(database.commit([insert(1)]), Unanswered)
    assert database.rows("SELECT n FROM numbers", ()) == ([(1,)] if after else [])
    assert isinstance(database.commit([insert(2)]), Created)


def test_a_failure_before_the_commit_is_a_refusal(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/n.db")
    database.run(MAKE)
    assert isinstance(database.commit([insert(1), insert(1)]), Refused)
    assert database.rows("SELECT n FROM numbers", ()) == []
    assert database.commit([insert(1), ("UPDATE numbers SET n = 5 WHERE n = ?", (4,))]) is None
    assert database.rows("SELECT n FROM numbers", ()) == []


def test_a_child_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/n.db")
    database.run(MAKE)
    mine = database._connection
    database._process = os.getpid() + 1  # as in a child process
    database.run(insert(1))
    assert database._connection is not mine
    mine.close()
