"""Commits to several tables atomically: one request to the coordinator ratifies all of them or none.

Conflicts are resolved for each table separately (`tahoe.txn.commit`). If one of the commits loses a race, it is rebased, and all are
staged and proposed again. The commits share one ``txnId``, which shows in the log that they belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from tahoe.base.clock import Clock
from tahoe.base.events import happened, observed
from tahoe.base.exceptions import ConcurrentWriteException, StorageFailure
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import Coordinator, StagedCommit
from tahoe.log.files.paths import commit_name
from tahoe.store.log_store import Created, Exists, PutOutcome, Refused, Unanswered
from tahoe.txn.commit import Committed, Race, RetryPolicy, race_of, read_back, transaction_id_in, unknown
from tahoe.txn.commit_summary import record_commit
from tahoe.txn.prepare import PreparedCommit


def commit_together(
    stores: Sequence[CoordinatedStore],
    prepared: Sequence[PreparedCommit],
    unchanged: Mapping[str, int],
    clock: Clock,
    policy: RetryPolicy,
) -> list[Committed]:
    """Put all of the commits into their logs, or none.

    Args:
        stores: the tables' stores, with one coordinator; in the order of `prepared`.
        unchanged: tables that were read and not written, by URL: the version that must still be their last.

    Raises:
        DeltaConcurrentModificationException: a concurrent commit conflicts with one of the commits, or changed a table that was only
            read; nothing was committed.
        StorageFailure: storage or the coordinator refused; nothing was committed.
        CommitStateUnknown: the commits were sent, and whether they are in the logs is unknown: all of them are, or none.
    """
    shared = prepared[0].transaction_id
    mine = [replace(each, commit_info={**each.commit_info, "txnId": shared}) for each in prepared]
    races = [race_of(store, each, clock, policy) for store, each in zip(stores, mine, strict=True)]
    try:
        with ExitStack() as stack:
            observations = [stack.enter_context(observed("commit", store.url)) for store in stores]
            done = _Together(races, dict(unchanged), stores[0].coordinator, clock, policy).run(mine)
            for observation, committed in zip(observations, done, strict=True):
                record_commit(observation, committed)
        return done
    finally:
        for race in races:
            race.turn.withdraw()


class _Together:
    """Several commits in progress, with a race for each."""

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
        mine = [race.started_commit(commit) for race, commit in zip(self._races, prepared, strict=True)]
        longest_try, in_vain = 0.0, 0
        while True:
            outcome = self._propose(mine)
            if isinstance(outcome, Created) or (isinstance(outcome, Unanswered) and self._is_there(mine)):
                return self._committed(mine)
            longest_try = max(longest_try, (self._clock.now_ms() - tried_since) / 1000)
            for race, commit in zip(self._races, mine, strict=True):
                race.attempts += 1
                happened("retry", race.store.url, commit.version, operation="commit", attempts=race.attempts)
            self._races[-1].wait(longest_try)
            tried_since = self._clock.now_ms()
            moved = self._moved(mine)
            if moved is None:
                return self._committed(mine)
            self._check_unchanged()
            in_vain += all(commit.version == former.version for commit, former in zip(moved, mine, strict=True))
            if in_vain >= self._policy.storage_attempts:
                raise self._in_vain(mine, outcome)
            if self._clock.now_ms() - started > self._policy.deadline_seconds * 1000:
                raise self._races[0].timed_out(moved[0])
            mine = moved

    def _propose(self, mine: Sequence[PreparedCommit]) -> PutOutcome:
        """Stage all commits, have all ratified, and publish them, or delete the staged files after a failure."""
        staged: list[tuple[CoordinatedStore, StagedCommit]] = []
        outcome: PutOutcome
        try:
            for race, prepared in zip(self._races, mine, strict=True):
                assert isinstance(race.store, CoordinatedStore)
                staged.append((race.store, race.store.stage(prepared.version, prepared.to_bytes())))
            outcome = self._coordinator.ratify([commit for _, commit in staged], self._unchanged)
        except StorageFailure as error:
            outcome = Refused(error.message)
        self._may_be_there |= isinstance(outcome, Unanswered)
        for store, commit in staged:
            store.follow_up(commit, outcome)
        return outcome

    def _is_there(self, mine: Sequence[PreparedCommit]) -> bool:
        """Whether an attempt without an answer was committed: the first of its commits shows it for all."""
        store, first = self._races[0].store, mine[0]
        body = read_back(store, first, self._clock, self._policy)
        return body is not None and transaction_id_in(store, commit_name(first.version), body) == first.transaction_id

    def _moved(self, mine: Sequence[PreparedCommit]) -> list[PreparedCommit] | None:
        """Rebase each commit in its table; None if they are themselves in the logs."""
        moved = []
        for race, commit in zip(self._races, mine, strict=True):
            rebased = race.rebased(commit, sent=True)
            if rebased is None:
                return None
            moved.append(rebased)
        return moved

    def _check_unchanged(self) -> None:
        if not self._unchanged:
            return
        states = self._coordinator.managed(sorted(self._unchanged))
        for table, version in self._unchanged.items():
            now = states[table].last_version if table in states else None
            if now != version:
                raise ConcurrentWriteException(
                    f"Table {table} was read at version {version} by a transaction that writes other tables, and is now at version {now}; "
                    "nothing was committed. Run the transaction again.",
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
        return [race.committed(commit) for race, commit in zip(self._races, mine, strict=True)]
