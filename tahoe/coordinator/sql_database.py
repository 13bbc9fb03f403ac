"""The databases of `SqlCoordinator`: SQLite through the standard library, and PostgreSQL through psycopg.

A statement has the same text for both. A process has one connection, which is reopened after a failure and after a fork. An error
never contains the password of the URL.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.store.log_store import Created, PutOutcome, Refused, Unanswered

Statement = tuple[str, tuple[object, ...]]
"""SQL with a question mark for each parameter, and the parameters."""

_LONGEST_WAIT_SECONDS = 10
"""The timeout for a database that does not answer, or whose rows another client has locked. The outcome reported then is certain: nothing
was ratified, or that is unknown."""
_SECRET_KEYS = ("password", "sslpassword")


class Database:
    """One database, and this process's connection to it.

    Args:
        url: identifies the database; instances with the same URL are equal.
        shown_url: the URL without its secrets.
        secrets: texts that must not appear in errors.
        connect: opens a connection (PEP 249) without autocommit.
        errors: the driver's exception class.
        begin: the statement that opens a transaction; '' if the driver does.
        mark: the driver's parameter placeholder.
    """

    def __init__(
        self,
        url: str,
        shown_url: str,
        secrets: Sequence[str],
        connect: Callable[[], object],
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
        """Whether the URL contains a password."""
        return bool(self._secrets)

    def rows(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises `StorageFailure` if the database does not answer."""
        with self._lock:
            try:
                cursor = self._execute((sql, values))
                fetched = cursor.fetchall()
                self._connection.commit()  # a reader leaves no transaction open
            except self._errors as error:
                raise self._failure(error) from None
            return [tuple(row) for row in fetched]

    def run(self, *statements: Statement) -> None:
        """Run statements in one transaction. Raises `StorageFailure` if it is not known to have been committed."""
        with self._lock:
            try:
                self._open()
                for statement in statements:
                    self._execute(statement)
                self._connection.commit()
            except self._errors as error:
                raise self._failure(error) from None

    def make(self, statements: Sequence[Statement]) -> None:
        """Run statements that create missing tables, again if the first attempt collides with another process."""
        try:
            self.run(*statements)
        except StorageFailure:
            self.run(*statements)

    def commit(self, statements: Sequence[Statement]) -> PutOutcome | None:
        """Run statements in one transaction, each of which must change one row; None, changing nothing, if one does not."""
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
        # A forked child has the parent's socket: closing it there would end the parent's session.
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
        """Close the connection, and return the error without secrets."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            try:
                connection.close()
            except self._errors as closing:  # it is already broken; the original error is reported
                error.add_note(str(closing))
        text = " ".join(str(error).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return StorageFailure(
            f"The coordinator's database {self.shown_url} failed ({type(error).__name__}: {text}). Try again, or check the database.",
            code="TAHOE_COORDINATOR_UNAVAILABLE",
        )


def open_database(url: str) -> Database:
    """Return the database of a URL, without connecting. Raises `InvalidRequest` for a URL of another kind."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _invalid_url("It cannot be read as a URL.") from None
    if parts.scheme == "sqlite":
        return _sqlite(parts)
    if parts.scheme in ("postgresql", "postgres"):
        return _postgresql(url, parts)
    raise _invalid_url(f"'{parts.scheme}' is not supported.")


def _sqlite(parts: SplitResult) -> Database:
    if parts.netloc or len(parts.path) < 2 or parts.query or parts.fragment:
        raise _invalid_url("sqlite:/// must be followed by a path only.")
    path = os.path.abspath(unquote(parts.path[1:]))

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=_LONGEST_WAIT_SECONDS, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")  # ratified commits survive a crash of the machine
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
    user_info, _, location = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    query = parse_qsl(parts.query)
    secrets = {password, quote(unquote(password)), unquote(password), *(value for key, value in query if key in _SECRET_KEYS)} - {
        ""
    }
    socket = urlencode([(key, value) for key, value in query if key == "host"], safe="/")
    url_shown = parts._replace(netloc=f"{user}@{location}" if user else location, query=socket).geturl()
    for secret in secrets:  # a malformed URL may have it in the wrong place
        url_shown = url_shown.replace(secret, "***")

    def connect() -> Any:
        milliseconds = _LONGEST_WAIT_SECONDS * 1000
        # The network may drop an answer: require acknowledgement of sent data, and probe idle connections.
        network = {"connect_timeout": _LONGEST_WAIT_SECONDS, "tcp_user_timeout": milliseconds}
        network |= {"keepalives_idle": _LONGEST_WAIT_SECONDS, "keepalives_interval": 1, "keepalives_count": 3}
        named = conninfo_to_dict(url)
        defaults: dict[str, Any] = {key: value for key, value in network.items() if key not in named}
        # A connection pooler such as PgBouncer may not support prepared statements.
        connection = psycopg.connect(url, prepare_threshold=None, **defaults)
        if "options" not in named:  # else the URL's own options set the timeouts
            with connection.cursor() as cursor:  # a client that stalls within a transaction releases its rows
                cursor.execute(
                    f"SET statement_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}"
                )
            connection.commit()
        return connection

    return Database(url, url_shown, sorted(secrets, key=len, reverse=True), connect, errors=psycopg.Error, begin="", mark="%s")


def _invalid_url(problem: str) -> InvalidRequest:
    # The URL itself may contain a password, so no part of it is reported.
    return InvalidRequest(
        "A coordinator's database URL is sqlite:///relative/path.db, sqlite:////path/from/the/root.db or "
        f"postgresql://user@host/database. {problem}",
        code="TAHOE_COORDINATOR_URL",
    )
