"""`SqlCoordinator`: ratifies commits in a SQL database, for several tables at once if requested.

It uses two database tables, ``tahoe_tables`` and ``tahoe_commits``, created on first use. Ratifying is one database transaction:
the last version of each table moves from ``v - 1`` to ``v``, or nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import StorageFailure
from tahoe.coordinator.coordinator import Managed, StagedCommit
from tahoe.coordinator.sql_database import Database, Statement, open_database
from tahoe.store.log_store import Exists, PutOutcome

_NOT_YET = -1

_TABLES: tuple[Statement, ...] = (
    ("CREATE TABLE IF NOT EXISTS tahoe_tables (url TEXT PRIMARY KEY, last_version BIGINT NOT NULL)", ()),
    (
        "CREATE TABLE IF NOT EXISTS tahoe_commits (url TEXT, version BIGINT, file TEXT NOT NULL, size BIGINT NOT NULL, "
        "modified_ms BIGINT NOT NULL, PRIMARY KEY (url, version, file))",
        (),
    ),
)


@checked_arguments
class SqlCoordinator:
    """A coordinator that stores its state in a SQL database: a SQLite file, or PostgreSQL.

    Args:
        url: ``sqlite:////var/lib/tahoe.db`` (SQLAlchemy's form: a path from the root has four slashes), or
            ``postgresql://user:password@host/database`` (needs ``pip install 'tahoe-delta[coordinator]'``). A password in the URL, unlike one
            in libpq's own places (``PGPASSWORD``, ``~/.pgpass``), is never shown.

    A table is identified by its URL: call `move` after moving a table, and `forget` after deleting it.
    """

    def __init__(self, url: str) -> None:
        self._database: Database = open_database(url)
        self._has_tables = False

    def __repr__(self) -> str:
        return f"SqlCoordinator({self.shown_url!r})"

    @property
    def shown_url(self) -> str:
        """The URL without a password."""
        return self._database.shown_url

    @property
    def holds_secret(self) -> bool:
        """Whether the URL contains a password."""
        return self._database.holds_secret

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlCoordinator) and other._database.url == self._database.url

    def __hash__(self) -> int:
        return hash(self._database.url)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            f"{self!r} may contain a password and cannot be sent to another process. Create another from its URL there."
        )

    def managed(self, tables: Sequence[str]) -> Mapping[str, Managed]:
        """See `Coordinator.managed`: one statement, so that the answer is consistent."""
        self._make_tables()
        rows = self._database.rows(
            "SELECT t.url, t.last_version, c.version, c.file, c.size, c.modified_ms FROM tahoe_tables t "
            f"LEFT JOIN tahoe_commits c ON c.url = t.url WHERE t.url IN ({', '.join('?' * len(tables))}) ORDER BY c.version, c.file",
            tuple(tables),
        )
        last = {url: version for url, version, *_ in rows}
        commits: dict[str, list[StagedCommit]] = {url: [] for url in last}
        for url, _, version, file, size, modified_ms in rows:
            if version is not None:
                commits[url].append(StagedCommit(url, version, file, size, modified_ms))
        return {url: _managed(version, commits[url]) for url, version in last.items()}

    def expect(self, table: str, version: int, transaction_id: str) -> None:
        """See `Coordinator.expect`. Expected commits are stored among the commits, with the id in place of the file."""
        self._make_tables()
        self._database.run(
            ("INSERT INTO tahoe_tables VALUES (?, ?) ON CONFLICT DO NOTHING", (table, _NOT_YET)),
            (
                "INSERT INTO tahoe_commits SELECT url, CAST(? AS BIGINT), CAST(? AS TEXT), 0, 0 FROM tahoe_tables "
                "WHERE url = ? AND last_version = ? "
                "ON CONFLICT DO NOTHING",
                (version, transaction_id, table, _NOT_YET),
            ),
        )

    def adopt(self, table: str, version: int) -> None:
        """See `Coordinator.adopt`."""
        self._database.run(
            (
                "DELETE FROM tahoe_commits WHERE url = ? AND EXISTS "
                "(SELECT 1 FROM tahoe_tables t WHERE t.url = tahoe_commits.url AND t.last_version = ?)",
                (table, _NOT_YET),
            ),
            ("UPDATE tahoe_tables SET last_version = ? WHERE url = ? AND last_version = ?", (version, table, _NOT_YET)),
        )

    def ratify(self, proposed: Sequence[StagedCommit], unchanged: Mapping[str, int] | None = None) -> PutOutcome:
        """See `Coordinator.ratify`. The rows of the tables are locked in the order of their names, which prevents deadlocks."""
        moves = {commit.table: (commit.version, commit.version - 1) for commit in proposed}
        moves |= {table: (version, version) for table, version in (unchanged or {}).items()}
        steps: list[Statement] = [
            ("UPDATE tahoe_tables SET last_version = ? WHERE url = ? AND last_version = ?", (after, table, before))
            for table, (after, before) in sorted(moves.items())
        ]
        rows: list[Statement] = [
            ("INSERT INTO tahoe_commits VALUES (?, ?, ?, ?, ?)", (c.table, c.version, c.file, c.size, c.modified_ms))
            for c in proposed
        ]
        return self._database.commit([*steps, *rows]) or Exists()

    def published(self, table: str, version: int) -> None:
        """See `Coordinator.published`."""
        self._database.run(
            (
                "DELETE FROM tahoe_commits WHERE url = ? AND version <= ? AND EXISTS "
                "(SELECT 1 FROM tahoe_tables t WHERE t.url = tahoe_commits.url AND t.last_version >= ?)",
                (table, version, version),
            )
        )

    def forget(self, table: str) -> None:
        """See `Coordinator.forget`. The name is `Table.url`."""
        self._make_tables()
        self._database.run(
            ("DELETE FROM tahoe_commits WHERE url = ?", (table,)), ("DELETE FROM tahoe_tables WHERE url = ?", (table,))
        )

    def move(self, table: str, to: str) -> None:
        """See `Coordinator.move`; both names are `Table.url`. Raises `StorageFailure` if a table is known at the new URL."""
        self._make_tables()
        self._database.run(
            ("UPDATE tahoe_tables SET url = ? WHERE url = ?", (to, table)),
            ("UPDATE tahoe_commits SET url = ? WHERE url = ?", (to, table)),
        )

    def _make_tables(self) -> None:
        if self._has_tables:
            return
        try:  # a client with read access alone cannot create them
            self._database.rows("SELECT version FROM tahoe_commits WHERE 1 = 0", ())
        except StorageFailure:
            self._database.make(_TABLES)
        self._has_tables = True


def _managed(last_version: int, commits: Sequence[StagedCommit]) -> Managed:
    if last_version == _NOT_YET:
        return Managed(None, expected=tuple((commit.version, commit.file) for commit in commits))
    return Managed(last_version, {commit.version: commit for commit in commits})
