"""`Coordinator`: the port of what says that a version exists (PROTOCOL.md, "Catalog-managed tables").

It holds no content, only names: of each table the last version that it has ratified, and the staged files of those that are not published
yet. A table is known by its URL. Everything that takes more than one step can be done again by anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tahoe.store.log_store import PutOutcome

__all__ = ["Coordinator", "Managed", "StagedCommit"]


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """A commit in ``_delta_log/_staged_commits``: proposed, or ratified and not published yet.

    Args:
        table: the URL of its table.
        file: the name of the file in that folder, ``<version>.<uuid>.json``.
        size, modified_ms: of that file, so that a listing needs no question to storage.
    """

    table: str
    version: int
    file: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Managed:
    """What a coordinator knows of a table.

    Args:
        last_version: the newest version there is; None while no commit has put the table under the coordinator.
        commits: those that are ratified and may not be published yet, by version.
        expected: where `last_version` is None, the commits by which writers wanted to put the table under the coordinator, each with its
            version and its `txnId`; one of them may be in the log.
    """

    last_version: int | None
    commits: Mapping[int, StagedCommit] = field(default_factory=dict)
    expected: tuple[tuple[int, str], ...] = ()


class Coordinator(Protocol):
    """What Tahoe needs of whoever ratifies commits. Where nobody answers, that is `tahoe.exceptions.StorageFailure`."""

    def managed(self, tables: Sequence[str]) -> Mapping[str, Managed]:
        """What is known of tables, all of one moment; one that is not known is not in the answer."""

    def expect(self, table: str, version: int, transaction_id: str) -> None:
        """Note that a commit is about to put the table under this coordinator. A table that is managed stays as it is."""

    def adopt(self, table: str, version: int) -> None:
        """The commit that was expected at `version` is in the log: from now on this coordinator says what follows.

        A table that is managed stays as it is.
        """

    def ratify(self, proposed: Sequence[StagedCommit], unchanged: Mapping[str, int] | None = None) -> PutOutcome:
        """Ratify all of the commits or none: each must be the next version of its table.

        Args:
            proposed: at most one for each table.
            unchanged: tables that must still have just this last version.

        Returns:
            `Created`; `Exists` where a version is taken, or a table is not at the version that is asked for, and nothing is ratified;
            `Refused` where certainly nothing is; `Unanswered` where that is not known.
        """

    def published(self, table: str, version: int) -> None:
        """Forget the staged files of the commits up to `version`, which are in the log by now."""

    def forget(self, table: str) -> None:
        """Forget the table: after it was deleted. One that is not known is no error."""

    def move(self, table: str, to: str) -> None:
        """The table is at another place, with its log: what is known of it goes by the other URL. One that is not known is no error.

        What is known of a table that was at the other place is an error, and nothing is changed then.
        """
