"""Sends commits to several tables so that all are in their logs, or none: one question to the coordinator ratifies them.

Conflicts are decided for each table as for one alone (`tahoe.txn.commit`). Where one of the commits has lost, it is moved past its winners,
and all are staged and proposed anew. The commits share one ``txnId``, so that the log says what belongs together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tahoe.clock import Clock
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import Coordinator, StagedCommit
from tahoe.exceptions import ConcurrentWriteException, StorageFailure
from tahoe.log.files.paths import commit_name
from tahoe.store.log_store import Created, Exists, PutOutcome, Refused, Unanswered
from tahoe.txn.commit import Committed, Race, RetryPolicy, race_of, read_back, transaction_id_in, unknown
from tahoe.txn.prepare import PreparedCommit

__all__ = ["commit_together"]


def commit_together(
    stores: Sequence[CoordinatedStore],
    prepared: Sequence[PreparedCommit],
    unchanged: Mapping[str, int],
    clock: Clock,
    policy: RetryPolicy,
) -> list[Committed]:
    """Put all of the commits into their logs, or none.

    Args:
        stores: of the tables, which one coordinator manages; in the order of `prepared`.
        unchanged: tables that were read and not written, by URL: the version that must still be their last.

    Raises:
        DeltaConcurrentModificationException: a winner did what one of the commits may not be moved past, or changed a table that was read
            alone; nothing was committed.
        StorageFailure: storage or the coordinator refused; nothing was committed.
        CommitStateUnknown: the commits were sent, and it cannot be found out whether they are in the logs: all of them, or none.
    """
    shared = prepared[0].transaction_id
    mine = [replace(one, commit_info={**one.commit_info, "txnId": shared}) for one in prepared]
    races = [race_of(store, one, clock, policy) for store, one in zip(stores, mine, strict=True)]
    try:
        return _Together(races, dict(unchanged), stores[0].coordinator, clock, policy).run(mine)
    finally:
        for race in races:
            race.turn.withdraw()


class _Together:
    """The commits on their way, a race for each."""

    def __init__(
        self, races: Sequence[Race], unchanged: Mapping[str, int], coordinator: Coordinator, clock: Clock, policy: RetryPolicy
    ) -> None:
        self._races = races
        self._unchanged = unchanged
        self._coordinator = coordinator
        self._clock = clock
        self._policy = policy
        self._may_be_there = False

    def run(self, prepared: Sequence[PreparedCommit]) -> list[Committed]:
        started = tried_since = self._clock.now_ms()
        mine = [race.begun(one) for race, one in zip(self._races, prepared, strict=True)]
        longest_try, in_vain = 0.0, 0
        while True:
            outcome = self._sent(mine)
            if isinstance(outcome, Created) or (isinstance(outcome, Unanswered) and self._is_there(mine)):
                return self._committed(mine)
            longest_try = max(longest_try, (self._clock.now_ms() - tried_since) / 1000)
            for race in self._races:
                race.attempts += 1
            self._races[-1].wait(longest_try)
            tried_since = self._clock.now_ms()
            moved = self._moved(mine)
            if moved is None:
                return self._committed(mine)
            self._check_unchanged()
            in_vain += all(one.version == other.version for one, other in zip(moved, mine, strict=True))
            if in_vain >= self._policy.storage_attempts:
                raise self._in_vain(mine, outcome)
            if self._clock.now_ms() - started > self._policy.deadline_seconds * 1000:
                raise self._races[0].given_up(moved[0])
            mine = moved

    def _sent(self, mine: Sequence[PreparedCommit]) -> PutOutcome:
        """Stage all, have all ratified, and publish them, or delete what was staged in vain."""
        staged: list[tuple[CoordinatedStore, StagedCommit]] = []
        outcome: PutOutcome
        try:
            for race, one in zip(self._races, mine, strict=True):
                assert isinstance(race.store, CoordinatedStore)
                staged.append((race.store, race.store.stage(one.version, one.to_bytes())))
            outcome = self._coordinator.ratify([commit for _, commit in staged], self._unchanged)
        except StorageFailure as error:
            outcome = Refused(error.message)
        self._may_be_there |= isinstance(outcome, Unanswered)
        for store, commit in staged:
            store.follow_up(commit, outcome)
        return outcome

    def _is_there(self, mine: Sequence[PreparedCommit]) -> bool:
        """Whether an attempt that got no answer has happened: the first of its commits tells it for all."""
        store, first = self._races[0].store, mine[0]
        body = read_back(store, first, self._clock, self._policy)
        return body is not None and transaction_id_in(store, commit_name(first.version), body) == first.transaction_id

    def _moved(self, mine: Sequence[PreparedCommit]) -> list[PreparedCommit] | None:
        """The commits moved past what has won, each in its table; None where they are in the logs themselves."""
        moved = []
        for race, one in zip(self._races, mine, strict=True):
            caught_up = race.caught_up(one, sent=True)
            if caught_up is None:
                return None
            moved.append(caught_up)
        return moved

    def _check_unchanged(self) -> None:
        if not self._unchanged:
            return
        known = self._coordinator.managed(sorted(self._unchanged))
        for table, version in self._unchanged.items():
            now = known[table].last_version if table in known else None
            if now != version:
                raise ConcurrentWriteException(
                    f"Table {table} was read at version {version} by a transaction that writes others, and is at version {now} now; nothing "
                    "was committed. Run the transaction again.",
                    code="DELTA_CONCURRENT_WRITE",
                    table=table,
                    version=version,
                )

    def _in_vain(self, mine: Sequence[PreparedCommit], outcome: PutOutcome) -> StorageFailure:
        tables = ", ".join(race.store.url for race in self._races)
        if self._may_be_there or isinstance(outcome, Exists):
            return unknown(self._races[0].store, mine[0])
        error = outcome.error if isinstance(outcome, Refused) else str(outcome)
        return StorageFailure(
            f"The commits to the tables {tables} were refused {self._policy.storage_attempts} times ({error}); nothing was committed. "
            "Try again.",
            table=tables,
        )

    def _committed(self, mine: Sequence[PreparedCommit]) -> list[Committed]:
        return [race.committed(one) for race, one in zip(self._races, mine, strict=True)]
