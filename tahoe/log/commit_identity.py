"""Checks that the commits of a log without an embedded checksum (`tahoe.log.files.commit_checksum`) are at their own versions.

Commits of other writers contain less: the version that was read, the transaction id, and the time. A commit cannot have read its own
version or a later one, no transaction id occurs twice, and in-commit timestamps increase.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.commit_checksum import has_commit_checksum
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import CommitInfo
from tahoe.protocol.config import TableConfig


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """The evidence in a commit without an embedded checksum for its version.

    Args:
        read_version: the version that its writer had read.
        content: size and CRC-32 of a file that states a time and adds or removes files, so that no other can be equal to it.
    """

    version: int
    transaction_id: str | None = None
    read_version: int | None = None
    in_commit_timestamp: int | None = None
    content: tuple[int, int] | None = None


def identity_of(version: int, body: bytes) -> CommitIdentity | None:
    """Return the evidence in a commit's bytes for its version; None if the commit has an embedded checksum, which proves more."""
    if has_commit_checksum(body):
        return None
    info = _commit_info(body)
    read_version = info.values.get("readVersion")
    unique = "timestamp" in info.values and (b'{"add"' in body or b'{"remove"' in body)
    return CommitIdentity(
        version,
        info.transaction_id,
        read_version if isinstance(read_version, int) and not isinstance(read_version, bool) else None,
        info.in_commit_timestamp,
        (len(body), crc32(body)) if unique else None,
    )


class CommitIdentityCheck:
    """Checks the commits of one log, oldest first, and remembers the values that must be unique."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._transactions: dict[str, int] = {}
        self._contents: dict[tuple[int, int], int] = {}

    def check(self, identity: CommitIdentity) -> None:
        """Raise `CorruptTable` if the next commit cannot have been written as its version."""
        if identity.read_version is not None and identity.read_version >= identity.version:
            raise _misplaced(identity.version, self._url, f"it says that its writer had read version {identity.read_version}")
        if identity.transaction_id is not None:
            other = self._transactions.setdefault(identity.transaction_id, identity.version)
            if other != identity.version:
                fault = f"its txnId {identity.transaction_id} is that of {commit_name(other)} too, so one is a copy of the other"
                raise _misplaced(identity.version, self._url, fault)
        if identity.content is not None:
            other = self._contents.setdefault(identity.content, identity.version)
            if other != identity.version:
                fault = f"it has the same bytes as {commit_name(other)}, so one is a copy of the other"
                raise _misplaced(identity.version, self._url, fault)


def check_identities(identities: Iterable[CommitIdentity], url: str) -> None:
    """Raise `CorruptTable` if a commit cannot have been written as its version.

    Args:
        identities: of some commits of one log, oldest first.
    """
    check = CommitIdentityCheck(url)
    for identity in identities:
        check.check(identity)


def check_times(identities: Sequence[CommitIdentity], config: TableConfig) -> None:
    """Raise `CorruptTable` if in-commit timestamps do not increase (PROTOCOL.md, "In-Commit Timestamps"), and nothing else proves the order
    of the commits.

    Args:
        identities: of some commits of one log, oldest first.
        config: of the version that they lead to.
    """
    if not config.in_commit_timestamps:
        return
    noted = config.metadata.configuration.get("delta.inCommitTimestampEnablementVersion", "0")
    enabled_at = int(noted) if noted.isdecimal() else 0
    for before, after in pairwise(identity for identity in identities if identity.version >= enabled_at):
        earlier, later = before.in_commit_timestamp, after.in_commit_timestamp
        # A wrong clock can cause such times too: a commit that has read the version before its own is in the right position.
        if earlier is not None and later is not None and later <= earlier and after.read_version != before.version:
            fault = f"its in-commit timestamp {later} is not after {earlier}, that of {commit_name(before.version)}"
            raise _misplaced(after.version, config.table, fault)


def no_in_commit_timestamp(url: str, version: int) -> CorruptTable:
    """Return the error for a commit without an in-commit timestamp if those are enabled: another time could select other versions."""
    name = commit_name(version)
    return CorruptTable(
        f"Table {url}: the commit {name} of version {version} has no commitInfo with an inCommitTimestamp, which "
        "delta.enableInCommitTimestamps demands. Restore the commit from a backup.",
        code="DELTA_MISSING_COMMIT_TIMESTAMP",
        table=url,
        version=version,
        file=name,
    )


def _commit_info(body: bytes) -> CommitInfo:
    """Return the `commitInfo` of a commit; an empty one if it is missing or invalid, for which the parser of its actions raises the error."""
    start = body.find(b'{"commitInfo"')
    end = body.find(b"\n", start)
    try:
        value = json.loads(body[start : end if end >= 0 else None]) if start >= 0 else {}
    except (ValueError, RecursionError):
        value = {}
    info = value.get("commitInfo") if isinstance(value, dict) else None
    return CommitInfo(info if isinstance(info, dict) else {})


def _misplaced(version: int, url: str, fault: str) -> CorruptTable:
    name = commit_name(version)
    return CorruptTable(
        f"Table {url}: the commit {name} is not in its place, or the one before it is not: {fault}. Commits were swapped, copied or "
        "restored under other names: restore the log's files from a backup.",
        code="DELTA_TXN_LOG_FAILED_INTEGRITY",
        table=url,
        version=version,
        file=name,
    )
