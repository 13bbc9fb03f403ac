"""The two databases that `SqlCoordinator` speaks to: SQLite of the standard library, and PostgreSQL by psycopg.

A statement is the same text for both. One connection serves a process; it is made anew after a failure, and after a fork. What an error
says never holds the password of the URL.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from tahoe.exceptions import InvalidRequest, StorageFailure
from tahoe.store.log_store import Created, PutOutcome, Refused, Unanswered

__all__ = ["Database", "Statement", "open_database"]

Statement = tuple[str, tuple[object, ...]]
"""SQL with a question mark for each value, and the values."""

_LONGEST_WAIT_SECONDS = 10
"""For a database that is reached and does not answer, or whose rows another client holds. After that, what is certain is told: nothing was
ratified, or it is not known."""
_SECRET_KEYS = ("password", "sslpassword")


class Database:
    """One database, and this process's connection to it.

    Args:
        url: names the database; two values of one URL are the same.
        shown_url: the URL without its secrets.
        secrets: texts that no error may hold.
        connect: makes a connection (PEP 249) in which nothing is committed by itself.
        errors: what the driver raises.
        begin: the statement that opens a transaction; '' where the driver does it.
        mark: what stands for a value in a statement.
    """

    def __init__(
        self,
        url: str,
        shown_url: str,
        secrets: Sequence[str],
        connect: Callable[[], Any],
        *,
        errors: type[Exception],
        begin: str,
        mark: str,
    ) -> None:
        self.url, self.shown_url = url, shown_url
        self._secrets, self._errors = secrets, errors
        self._connect, self._begin, self._mark = connect, begin, mark
        self._connection: Any = None
        self._process = 0
        self._lock = threading.Lock()

    @property
    def holds_secret(self) -> bool:
        """Whether the URL has a password in it."""
        return bool(self._secrets)

    def rows(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """What a query gives. Raises `StorageFailure` where the database does not answer."""
        with self._lock:
            try:
                cursor = self._execute((sql, values))
                found = cursor.fetchall()
                self._connection.commit()  # a reader holds nothing open
            except self._errors as error:
                raise self._failure(error) from None
            return [tuple(row) for row in found]

    def run(self, *statements: Statement) -> None:
        """Run statements in one transaction. Raises `StorageFailure` where that is not known to have happened."""
        with self._lock:
            try:
                self._open()
                for statement in statements:
                    self._execute(statement)
                self._connection.commit()
            except self._errors as error:
                raise self._failure(error) from None

    def make(self, statements: Sequence[Statement]) -> None:
        """Run statements that create what is not there yet; where another process does the same just now, it is done once more."""
        try:
            self.run(*statements)
        except StorageFailure:
            self.run(*statements)

    def commit(self, statements: Sequence[Statement]) -> PutOutcome | None:
        """Run statements in one transaction, each of which must change one row: None where one does not, and nothing is changed."""
        with self._lock:
            try:
                self._open()
                for statement in statements:
                    if self._execute(statement).rowcount != 1:
                        self._connection.rollback()
                        return None
            except self._errors as error:
                return Refused(self._failure(error).message)  # no COMMIT was sent, and the connection is closed
            try:
                self._connection.commit()
            except self._errors as error:
                return Unanswered(self._failure(error).message)
            return Created()

    def __del__(self) -> None:
        # A forked child has the parent's socket: closing the connection there would end the parent's session.
        if self._connection is not None and self._process == os.getpid():
            with suppress(self._errors):
                self._connection.close()

    def _open(self) -> None:
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = self._connect(), os.getpid()
        if self._begin:
            self._connection.execute(self._begin)

    def _execute(self, statement: Statement) -> Any:
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = self._connect(), os.getpid()
        cursor = self._connection.cursor()
        cursor.execute(statement[0].replace("?", self._mark), statement[1])
        return cursor

    def _failure(self, error: Exception) -> StorageFailure:
        """The error as it may be shown; the connection is given up."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            try:
                connection.close()
            except self._errors as closing:  # it is broken already; what broke it is told
                error.add_note(str(closing))
        text = " ".join(str(error).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return StorageFailure(
            f"The coordinator's database {self.shown_url} failed ({type(error).__name__}: {text}). Try again, or see to the database.",
            code="TAHOE_COORDINATOR_UNAVAILABLE",
        )


def open_database(url: str) -> Database:
    """The database of a URL; nothing is asked of it yet. Raises `InvalidRequest` for one that is none of the two."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _no_database("It cannot be read as a URL.") from None
    if parts.scheme == "sqlite":
        return _sqlite(parts)
    if parts.scheme in ("postgresql", "postgres"):
        return _postgresql(url, parts)
    raise _no_database(f"'{parts.scheme}' is none of the two.")


def _sqlite(parts: SplitResult) -> Database:
    if parts.netloc or len(parts.path) < 2 or parts.query or parts.fragment:
        raise _no_database("After sqlite:/// stands a path, and nothing else.")
    path = os.path.abspath(unquote(parts.path[1:]))

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=_LONGEST_WAIT_SECONDS, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")  # what was ratified outlives the machine
        return connection

    url = f"sqlite:///{path}"
    return Database(url, url, (), connect, errors=sqlite3.Error, begin="BEGIN IMMEDIATE", mark="?")


def _postgresql(url: str, parts: SplitResult) -> Database:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise InvalidRequest(
            "A coordinator over PostgreSQL needs psycopg: pip install 'tahoe-delta[coordinator]'.",
            code="TAHOE_COORDINATOR_URL",
        ) from error
    user_info, _, place = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    query = parse_qsl(parts.query)
    secrets = {password, quote(unquote(password)), unquote(password), *(value for key, value in query if key in _SECRET_KEYS)} - {
        ""
    }
    socket = urlencode([(key, value) for key, value in query if key == "host"], safe="/")
    shown = parts._replace(netloc=f"{user}@{place}" if user else place, query=socket).geturl()
    for secret in secrets:  # a URL with a slip may have it in a place that is none for it
        shown = shown.replace(secret, "***")

    def connect() -> Any:
        milliseconds = _LONGEST_WAIT_SECONDS * 1000
        # The network may swallow an answer: what is sent must be acknowledged, and a connection that waits is looked at.
        network = {"connect_timeout": _LONGEST_WAIT_SECONDS, "tcp_user_timeout": milliseconds}
        network |= {"keepalives_idle": _LONGEST_WAIT_SECONDS, "keepalives_interval": 1, "keepalives_count": 3}
        named = conninfo_to_dict(url)
        defaults: dict[str, Any] = {key: value for key, value in network.items() if key not in named}
        # A pooler between the two, such as PgBouncer, may not support prepared statements.
        connection = psycopg.connect(url, prepare_threshold=None, **defaults)
        if "options" not in named:  # else whoever named the database says how long is waited
            with connection.cursor() as cursor:  # a client that stands still within a transaction gives its rows free
                cursor.execute(
                    f"SET statement_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}"
                )
            connection.commit()
        return connection

    return Database(url, shown, sorted(secrets, key=len, reverse=True), connect, errors=psycopg.Error, begin="", mark="%s")


def _no_database(what: str) -> InvalidRequest:
    # The URL itself may hold a password, so no part of it is told.
    return InvalidRequest(
        "A coordinator's database is named as sqlite:///relative/path.db, sqlite:////path/from/the/root.db or "
        f"postgresql://user@host/database. {what}",
        code="TAHOE_COORDINATOR_URL",
    )
