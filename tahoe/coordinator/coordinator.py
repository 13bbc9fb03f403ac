"""`Coordinator`: the interface to the authority on which versions exist (PROTOCOL.md, "Catalog-managed tables").

It stores no content, only names: for each table the last ratified version, and the staged files of commits that are not yet published.
A table is identified by its URL. Any writer can repeat an operation of several steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tahoe.store.log_store import PutOutcome


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """A commit in ``_delta_log/_staged_commits``: proposed, or ratified but not yet published.

    Args:
        table: the URL of its table.
        file: the name of the file in that folder, ``<version>.<uuid>.json``.
        size, modified_ms: of that file, so that a listing needs no request to storage.
    """

    table: str
    version: int
    file: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Managed:
    """A coordinator's state of a table.

    Args:
        last_version: the newest version; None while no commit has put the table under the coordinator.
        commits: ratified commits that may not be published yet, by version.
        expected: while `last_version` is None, the commits by which writers intended to put the table under the coordinator, each with
            its version and its `txnId`; one of them may be in the log.
    """

    last_version: int | None
    commits: Mapping[int, StagedCommit] = field(default_factory=dict)
    expected: tuple[tuple[int, str], ...] = ()


class Coordinator(Protocol):
    """The operations that Tahoe needs of a commit coordinator. They raise `tahoe.base.exceptions.StorageFailure` if it does not answer."""

    def managed(self, tables: Sequence[str]) -> Mapping[str, Managed]:
        """Return the state of tables, all at one point in time; unknown tables are omitted."""

    def expect(self, table: str, version: int, transaction_id: str) -> None:
        """Announce a commit that will put the table under this coordinator. Does nothing if the table is already managed."""

    def adopt(self, table: str, version: int) -> None:
        """Confirm that the commit expected at `version` is in the log: from now on this coordinator ratifies the table's commits.

        Does nothing if the table is already managed.
        """

    def ratify(self, proposed: Sequence[StagedCommit], unchanged: Mapping[str, int] | None = None) -> PutOutcome:
        """Ratify all of the commits or none: each must be the next version of its table.

        Args:
            proposed: at most one per table.
            unchanged: tables whose last version must still be this one.

        Returns:
            `Created`; `Exists` if a version is taken, or a table is not at the required version, and nothing is ratified; `Refused` if
            certainly nothing is; `Unanswered` if that is unknown.
        """

    def published(self, table: str, version: int) -> None:
        """Forget the staged files of the commits up to `version`, which are now in the log."""

    def forget(self, table: str) -> None:
        """Forget a deleted table. An unknown table is not an error."""

    def move(self, table: str, to: str) -> None:
        """Record that the table has moved to another URL, together with its log. An unknown table is not an error.

        Raises an error, and changes nothing, if a table is known at the new URL.
        """
