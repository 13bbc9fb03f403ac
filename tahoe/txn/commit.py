"""Sends a `PreparedCommit` to the log until it is there, or may not be, or nobody can tell.

A commit is one put-if-absent of ``<version>.json``. Its body holds a unique ``txnId``, so that reading the name back tells
whether a commit that got no answer, or the answer "taken", was our own. Losing the name means reading every winner and asking
`tahoe.txn.conflict.rebase`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.clock import Clock
from tahoe.exceptions import (
    CommitStateUnknown,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    NotFound,
    StorageFailure,
)
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import Action, CommitInfo
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Created, Entry, Exists, InFlight, LogStore, Refused, Unanswered
from tahoe.txn.conflict import rebase
from tahoe.txn.evidence import gather, store_large_vectors
from tahoe.txn.prepare import PreparedCommit
from tahoe.txn.row_level import questions
from tahoe.txn.winner import Winner

__all__ = ["Committed", "RetryPolicy", "commit"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a commit tries.

    Args:
        deadline_seconds: after this long without success the commit gives up.
        first_wait_seconds, longest_wait_seconds: the wait before a further try is a random part of a bound that doubles from the one
            to the other.
        storage_attempts: how often in a row storage may refuse, or leave unanswered, before it counts as down.
    """

    deadline_seconds: float = 600.0
    first_wait_seconds: float = 0.002
    longest_wait_seconds: float = 2.0
    storage_attempts: int = 8


@dataclass(frozen=True)
class Committed:
    """A commit that is in the log.

    Args:
        actions: as written, commitInfo first.
        attempts: how many versions were tried.
        winners: the commits that it was moved past, oldest first.
    """

    version: int
    snapshot: Snapshot
    actions: tuple[Action, ...]
    attempts: int
    prepared: PreparedCommit
    winners: tuple[Winner, ...] = ()


def commit(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> Committed:
    """Put the commit into the log, moving it past winners that it does not meet.

    Raises:
        DeltaConcurrentModificationException: a winner did what this commit may not be moved past; nothing was written.
        StorageFailure: storage refused; nothing was written.
        CommitStateUnknown: the commit was sent and the log cannot be read back.
    """
    deadline = clock.now_ms() + policy.deadline_seconds * 1000
    won: list[Winner] = []
    attempts = 0
    while True:
        attempts += 1
        taken_by = _put(store, prepared, clock, policy)
        if taken_by is None:
            actions = prepared.full_actions()
            return Committed(prepared.version, _snapshot(store, prepared, won), actions, attempts, prepared, tuple(won))
        winners = _winners(store, prepared.version, taken_by)
        moved = _moved(store, prepared, winners, clock)
        if clock.now_ms() > deadline:
            raise StorageFailure(
                f"The commit to table {store.url} lost {attempts} races in {policy.deadline_seconds:.0f} seconds and gave up at "
                f"version {prepared.version}; nothing was written. Run it again when fewer writers are at work.",
                code="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
                table=store.url,
            )
        won += winners
        prepared = store_large_vectors(store, moved, clock)
        _wait(clock, policy, attempts)


def _moved(store: LogStore, prepared: PreparedCommit, winners: Sequence[Winner], clock: Clock) -> PreparedCommit:
    """The commit past the winners; where files conflict, after a look at the rows. Raises the conflict that stays."""
    moved = rebase(prepared, winners, clock.now_ms())
    if isinstance(moved, _DECIDED_BY_ROWS) and (asked := questions(prepared, winners)):
        moved = rebase(prepared, winners, clock.now_ms(), gather(store, prepared, asked))
    if isinstance(moved, DeltaConcurrentModificationException):
        raise moved
    return moved


_DECIDED_BY_ROWS = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)


def _put(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> bytes | None:
    """None when the commit is in the log, else the bytes of the commit that holds its name."""
    name, data = commit_name(prepared.version), prepared.to_bytes()
    sent_without_answer = False
    error = ""
    for attempt in range(1, policy.storage_attempts + 1):
        outcome = store.put_if_absent(name, data)
        match outcome:
            case Created():
                return None
            case Exists() | Unanswered():
                sent_without_answer |= isinstance(outcome, Unanswered)
                found = _read_back(store, prepared, clock, policy)
                if found is not None:
                    return None if _transaction_id(store, name, found) == prepared.transaction_id else found
            case InFlight() | Refused():
                error = outcome.error
        _wait(clock, policy, attempt)
    if sent_without_answer:
        raise _unknown(store, prepared)
    raise StorageFailure(
        f"Storage refused the commit of version {prepared.version} to table {store.url} {policy.storage_attempts} times ({error}); "
        "nothing was written. Try again later.",
        table=store.url,
        version=prepared.version,
    )


def _read_back(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> bytes | None:
    """What the name holds now, None for nothing.

    Even the answer "taken" may speak of our own bytes: clients below the store try again when an answer is lost. So where the name
    cannot be read, the state is unknown, never "not written".
    """
    for attempt in range(1, policy.storage_attempts + 1):
        try:
            return store.get(commit_name(prepared.version))
        except NotFound:
            return None
        except StorageFailure as error:
            logger.warning("reading back version %d of %s failed: %s", prepared.version, store.url, error)
            _wait(clock, policy, attempt)
    raise _unknown(store, prepared)


def _unknown(store: LogStore, prepared: PreparedCommit) -> CommitStateUnknown:
    def resolve() -> bool:
        try:
            found = store.get(commit_name(prepared.version))
        except NotFound:
            return False
        return _transaction_id(store, commit_name(prepared.version), found) == prepared.transaction_id

    return CommitStateUnknown(
        f"The commit of version {prepared.version} to table {store.url} was sent, and neither an answer came nor can the log be "
        "read back: it may or may not have happened. Its data files are kept. Call resolve() on this error before trying again.",
        transaction_id=prepared.transaction_id,
        version=prepared.version,
        resolve=resolve,
        table=store.url,
    )


def _transaction_id(store: LogStore, name: str, data: bytes) -> str | None:
    # A torn or foreign commit is not ours; what is wrong with it is told where it is read as a winner.
    first_line = data.split(b"\n", 1)[0]
    if b'"commitInfo"' not in first_line:
        return next((a.transaction_id for a in parse_commit(name, data, store.url) if isinstance(a, CommitInfo)), None)
    info = parse_commit(name, first_line, store.url)[0]
    return info.transaction_id if isinstance(info, CommitInfo) else None


def _winners(store: LogStore, version: int, first: bytes) -> Sequence[Winner]:
    bodies = [first]
    entries = store.list_from("_delta_log", commit_name(version + 1).rpartition("/")[2])
    names = {entry.name for entry in entries}
    following: list[str] = []
    while commit_name(version + len(following) + 1) in names:
        following.append(commit_name(version + len(following) + 1))
    bodies += store.get_many(following)
    return [Winner(version + i, parse_commit(commit_name(version + i), body, store.url)) for i, body in enumerate(bodies)]


def _snapshot(store: LogStore, prepared: PreparedCommit, won: Sequence[Winner]) -> Snapshot:
    """The version just committed, made of what is at hand. Never fails: the commit is in the log, whatever storage does now."""
    actions, size = prepared.full_actions(), len(prepared.to_bytes())
    found = prepared.snapshot
    if found is None:
        return Snapshot.first(store, actions, _entry(store, prepared.version, size, prepared.timestamp))
    for winner in won:
        found = found.after(winner.actions, _entry(store, winner.version, 0, prepared.timestamp))
    return found.after(actions, _entry(store, prepared.version, size, prepared.timestamp))


def _entry(store: LogStore, version: int, size: int, timestamp: int) -> Entry:
    """The commit's file; while storage does not tell, what is known of it. A refresh notices the difference and reads afresh."""
    name = commit_name(version)
    try:
        found = store.head(name)
    except StorageFailure as error:
        logger.warning("version %d of %s is committed, but its file cannot be looked at now: %s", version, store.url, error)
        found = None
    return found or Entry(name, size, timestamp)


def _wait(clock: Clock, policy: RetryPolicy, attempt: int) -> None:
    bound = min(policy.longest_wait_seconds, policy.first_wait_seconds * 2 ** min(attempt - 1, 20))
    clock.sleep(clock.random() * bound)
