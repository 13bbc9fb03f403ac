"""Writes a `PreparedCommit` to the log, until it is there, has failed, or its state is unknown.

A commit is one put-if-absent of ``<version>.json``. Its body contains a unique ``txnId``, so reading the name back shows
whether a commit without an answer, or with the answer "taken", was our own. If the name is taken, the writer reads every concurrent
commit and calls `tahoe.txn.conflict.rebase`.

On a busy log, such reads are outdated at once. So the loser of a race waits first, at most as long as tries take on this table, then
lists, rebases and puts without a pause; if rebasing took longer than listing, it lists again. A writer that keeps losing asks for a turn
(`tahoe.txn.fairness`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

from tahoe.base.clock import Clock
from tahoe.base.events import happened
from tahoe.base.exceptions import (
    CommitStateUnknown,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    NotFound,
    StorageFailure,
)
from tahoe.base.log_fields import about
from tahoe.expr.tree.predicate import any_of, references
from tahoe.log.files.commits import parse_actions, parse_commit
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import LOG_FOLDER, commit_name, file_name
from tahoe.log.intents import notice
from tahoe.protocol.actions import Action, AddFile, CommitInfo, DeletionVectorDescriptor
from tahoe.protocol.dv import descriptor_in_file, new_file_name, pack
from tahoe.snapshot.arrow_reader import ExtraColumns, ReadTask
from tahoe.snapshot.data_reader import DataFiles, VectorReader
from tahoe.snapshot.read_errors import located_batches
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import Created, Entry, Exists, InFlight, LogStore, Refused, Unanswered
from tahoe.store.refusals import remedy_of
from tahoe.store.side_by_side import both, each
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.concurrent_commit import ConcurrentCommit
from tahoe.txn.conflict import rebase
from tahoe.txn.fairness import Turn
from tahoe.txn.prepare import PreparedCommit
from tahoe.txn.row_level import Evidence, Questions, questions
from tahoe.txn.vanished import check_after_vacuum, check_old_files

if TYPE_CHECKING:
    from pyroaring import BitMap64


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a commit is tried.

    Args:
        deadline_seconds: after this long without success the commit gives up.
        first_wait_seconds, longest_wait_seconds: the wait before another try is a random part of a bound that doubles from the first
            to the second. After a lost race it is at most twice the duration of a try on this table.
        storage_attempts: how often in a row storage may refuse, or not answer, before it counts as down.
        losses_before_asking: after this many lost races, and each time after as many more, other writers are asked to wait.
        patience_seconds: the total time for which a commit waits for other writers that asked.
    """

    deadline_seconds: float = 600.0
    first_wait_seconds: float = 0.002
    longest_wait_seconds: float = 2.0
    storage_attempts: int = 8
    losses_before_asking: int = 3
    patience_seconds: float = 0.5


@dataclass(frozen=True)
class Committed:
    """A commit in the log.

    Args:
        actions: as written, commitInfo first.
        attempts: the number of versions tried.
        concurrent: the concurrent commits that it was rebased onto, oldest first.
    """

    version: int
    snapshot: Snapshot
    actions: Sequence[Action]
    attempts: int
    prepared: PreparedCommit
    concurrent: tuple[ConcurrentCommit, ...] = ()


class WorkBeside(Protocol):
    """Work for a new version whose requests are sent at the same time as the commit's own, on stores whose requests take long."""

    def while_sent(self, prepared: PreparedCommit) -> None:
        """Work while the commit is sent for the first time; it may yet lose, or move to another version. Never raises."""

    def while_looked_up(self, committed: Committed) -> None:
        """Work while the committed file is looked up, so the snapshot has only an estimate of that file's entry. Never raises."""


def commit(
    store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy, beside: WorkBeside | None = None
) -> Committed:
    """Put the commit into the log, rebasing it onto concurrent commits that do not conflict.

    Raises:
        DeltaConcurrentModificationException: a concurrent commit conflicts; nothing was written.
        StorageFailure: storage refused; nothing was written.
        CommitStateUnknown: the commit was sent, and the log cannot be read back.
    """
    race = race_of(store, prepared, clock, policy)
    race.beside = None if store.asks_cheaply else beside
    try:
        return race.run(prepared)
    finally:
        race.turn.withdraw()


def race_of(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> Race:
    """Return the race of a commit, not started yet."""
    turn = Turn(store, prepared.transaction_id, clock, policy.patience_seconds, policy.first_wait_seconds)
    return Race(store, clock, policy, turn)


@dataclass(slots=True)
class Race:
    """One commit on its way into the log.

    Args:
        turn: its place among the writers that asked to go first.
        beside: work for the new version; None for none.
    """

    store: LogStore
    clock: Clock
    policy: RetryPolicy
    turn: Turn
    concurrent: list[ConcurrentCommit] = field(default_factory=list)
    attempts: int = 0
    store_time_ms: int = 0
    beside: WorkBeside | None = None

    def run(self, prepared: PreparedCommit) -> Committed:
        """Send the commit until it is in the log; see `commit` for the errors."""
        clock, started = self.clock, self.clock.now_ms()
        current = self.started_commit(prepared)
        tried_since, longest_try, in_vain = started, 0.0, 0
        while True:
            self.attempts += 1
            if self._sent(current):
                return self.committed(current)
            happened("retry", self.store.url, current.version, operation="commit", attempts=self.attempts)
            longest_try = max(longest_try, (clock.now_ms() - tried_since) / 1000)
            self.wait(longest_try)
            tried_since = clock.now_ms()
            moved = self.rebased(current, sent=True)
            if moved is None:
                return self.committed(current)
            in_vain += moved.version == current.version
            if in_vain >= self.policy.storage_attempts:  # storage answers "taken", but nothing is there
                raise unknown(self.store, current)
            if clock.now_ms() - started > self.policy.deadline_seconds * 1000:
                raise self.timed_out(moved)
            current = moved

    def started_commit(self, prepared: PreparedCommit) -> PreparedCommit:
        """Return the commit to send first, after waiting for writers that asked to go first."""
        self.store_time_ms = prepared.snapshot.segment.last_modified_ms if prepared.snapshot else 0
        check_old_files(self.store, prepared, self.clock.now_ms())
        moved = self.rebased(prepared, sent=False) if self.turn.wait_for_others(self.store_time_ms) else prepared
        assert moved is not None, "a commit that was not sent is not in the log"
        return moved

    def _sent(self, prepared: PreparedCommit) -> bool:
        """Send the commit; see `_put`."""

        def put() -> bool:
            return _put(self.store, prepared, self.clock, self.policy)

        beside = self.beside
        if beside is None or self.attempts > 1:
            return put()
        return both(self.store, put, lambda: beside.while_sent(prepared))[0]

    def wait(self, longest_try: float) -> None:
        """Ask for a turn, or wait so that colliding writers do not retry in lockstep."""
        if self.attempts % self.policy.losses_before_asking == 0:
            self.turn.ask()
        if not self.turn.is_asked_for:
            bound = max(self.policy.first_wait_seconds, 2 * longest_try)
            _wait(
                self.clock, replace(self.policy, longest_wait_seconds=min(bound, self.policy.longest_wait_seconds)), self.attempts
            )

    def rebased(self, prepared: PreparedCommit, *, sent: bool) -> PreparedCommit | None:
        """Rebase the commit onto all concurrent commits, ready to be put at once; None if it is itself in the log.

        Args:
            sent: whether its version is taken, possibly by itself. Otherwise nothing is known.
        """
        moved = prepared
        for _ in range(_MOST_LOOKS):
            started = self.clock.now_ms()
            bodies = self._bodies(moved, sent=sent)
            if bodies and sent and transaction_id_in(self.store, commit_name(moved.version), bodies[0]) == moved.transaction_id:
                return None
            sent, looked = False, self.clock.now_ms()
            if bodies:
                concurrent = [_concurrent_commit(self.store, moved.version + i, body) for i, body in enumerate(bodies)]
                check_after_vacuum(self.store, moved, concurrent)
                moved = _moved(self.store, moved, concurrent, self.clock)
                self.concurrent += concurrent
            took_long = self.clock.now_ms() - looked > max(looked - started, _SHORT_MS)
            if not self.turn.wait_for_others(self.store_time_ms) and not took_long:
                break
        return store_large_vectors(self.store, moved, self.clock)

    def _bodies(self, prepared: PreparedCommit, *, sent: bool) -> list[bytes]:
        """Return the commits from the version of `prepared` on; after a storage failure only the first, and the others at the next
        listing."""
        try:
            commits = _commits_from(self.store, prepared.version)
            names = [entry.name for entry in commits] or [commit_name(prepared.version)] * sent
            bodies = self.store.get_many(names)
        except (NotFound, StorageFailure) as error:
            logger.debug(
                "concurrent commits to %s could not be listed at once: %s", self.store.url, error, extra=about(self.store.url)
            )
            first = read_back(self.store, prepared, self.clock, self.policy) if sent else None
            return [] if first is None else [first]
        self.store_time_ms = max([self.store_time_ms, *(entry.modified_ms for entry in commits)])
        return bodies

    def committed(self, prepared: PreparedCommit) -> Committed:
        """Return the result for a commit that is now in the log."""
        version, url = prepared.version, self.store.url
        step = "version %d of %s is committed, but other writers may wait for it"
        with logged_after_commit(step, version, url, extra=about(url, version)):
            self.turn.withdraw()
        beside, versions = self.beside, [*(commit.version for commit in self.concurrent), prepared.version]

        def look_up() -> list[Entry]:
            return each(self.store, partial(self._entry, prepared), versions)

        if beside is None:
            return self._result(prepared, look_up())
        estimated = self._result(prepared, [Entry(commit_name(version), 0, prepared.timestamp) for version in versions])
        entries, _ = both(self.store, look_up, lambda: beside.while_looked_up(estimated))
        return self._result(prepared, entries)

    def _result(self, prepared: PreparedCommit, entries: Sequence[Entry]) -> Committed:
        """Return the version just committed, from data in memory.

        Args:
            entries: of the concurrent commits and of the commit itself.
        """
        actions, snapshot = prepared.full_actions(), prepared.snapshot
        if snapshot is None:
            snapshot = Snapshot.first(self.store, actions, entries[-1])
        else:
            for commit, entry in zip(self.concurrent, entries[:-1], strict=True):
                snapshot = snapshot.after(commit.actions, entry)
            snapshot = snapshot.after(actions, entries[-1])
        return Committed(prepared.version, snapshot, actions, self.attempts, prepared, tuple(self.concurrent))

    def _entry(self, prepared: PreparedCommit, version: int) -> Entry:
        """Return the entry of a commit's file; an estimate if storage fails. A refresh detects the difference and reads the log again.

        Never raises: the commit is in the log, whatever storage does now.
        """
        name, entry = commit_name(version), None
        step = "version %d of %s is committed, but its file cannot be read now"
        with logged_after_commit(step, version, self.store.url, extra=about(self.store.url, version)):
            entry = self.store.head(name)
        if entry is not None:
            return entry
        return Entry(name, len(prepared.to_bytes()) if version == prepared.version else 0, prepared.timestamp)

    def timed_out(self, prepared: PreparedCommit) -> StorageFailure:
        """Return the error of a commit that lost until its deadline."""
        return StorageFailure(
            f"The commit to table {self.store.url} lost {self.attempts} races in {self.policy.deadline_seconds:.0f} seconds and gave up "
            f"at version {prepared.version}; nothing was written. Run it again when there are fewer writers.",
            code="DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
            table=self.store.url,
        )


# A commit is rebased at most this often before it is put, whatever has happened meanwhile.
_MOST_LOOKS = 4
# Rebasing that takes no longer than this is quick, however fast the store is.
_SHORT_MS = 5


def _moved(store: LogStore, prepared: PreparedCommit, concurrent: Sequence[ConcurrentCommit], clock: Clock) -> PreparedCommit:
    """Rebase the commit onto the concurrent ones, reading rows if files conflict. Raises a remaining conflict."""
    moved = rebase(prepared, concurrent, clock.now_ms())
    if isinstance(moved, _DECIDED_BY_ROWS) and (open_questions := questions(prepared, concurrent)):
        moved = rebase(prepared, concurrent, clock.now_ms(), gather(store, prepared, open_questions))
    if isinstance(moved, DeltaConcurrentModificationException):
        raise moved
    return moved


_DECIDED_BY_ROWS = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)


def _put(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> bool:
    """Return True once the commit is in the log; False if its name is taken, possibly by itself."""
    name, data = commit_name(prepared.version), prepared.to_bytes()
    sent_without_answer = False
    error = ""
    for attempt in range(1, policy.storage_attempts + 1):
        outcome = store.put_if_absent(name, data)
        match outcome:
            case Created():
                return True
            case Exists():
                return False
            case Unanswered():
                sent_without_answer = True
                content = read_back(store, prepared, clock, policy)
                if content is not None:
                    return transaction_id_in(store, name, content) == prepared.transaction_id
            case InFlight() | Refused():
                error = outcome.error
        _wait(clock, policy, attempt)
    if sent_without_answer:
        raise unknown(store, prepared)
    raise StorageFailure(
        f"Storage refused the commit of version {prepared.version} to table {store.url} {policy.storage_attempts} times ({error}); "
        f"nothing was written. {remedy_of(error)}",
        table=store.url,
        version=prepared.version,
    )


def read_back(store: LogStore, prepared: PreparedCommit, clock: Clock, policy: RetryPolicy) -> bytes | None:
    """Return the content of the commit's name; None if it is free.

    Even the answer "taken" may refer to our own bytes: clients below the store retry when an answer is lost. So if the name
    cannot be read, the state is unknown, never "not written".
    """
    for attempt in range(1, policy.storage_attempts + 1):
        try:
            return store.get(commit_name(prepared.version))
        except NotFound:
            return None
        except StorageFailure as error:
            record = about(store.url, prepared.version)
            logger.warning("reading back version %d of %s failed: %s", prepared.version, store.url, error, extra=record)
            _wait(clock, policy, attempt)
    raise unknown(store, prepared)


def unknown(store: LogStore, prepared: PreparedCommit) -> CommitStateUnknown:
    """Return the error of a commit that was sent, and may or may not be in the log."""

    def resolve() -> bool:
        try:
            content = store.get(commit_name(prepared.version))
        except NotFound:
            return False
        return transaction_id_in(store, commit_name(prepared.version), content) == prepared.transaction_id

    return CommitStateUnknown(
        f"The commit of version {prepared.version} to table {store.url} was sent, but there was no answer, and the log cannot be "
        "read back: it may or may not have been committed. Its data files are kept. Call resolve() on this error before trying again.",
        transaction_id=prepared.transaction_id,
        version=prepared.version,
        resolve=resolve,
        table=store.url,
    )


def transaction_id_in(store: LogStore, name: str, data: bytes) -> str | None:
    """Return the `txnId` of a commit; None if it has none."""
    # A torn or foreign commit is not ours; its error is raised where it is read as a concurrent commit.
    first_line = data.split(b"\n", 1)[0]
    if b'"commitInfo"' not in first_line:
        return next((a.transaction_id for _, a in parse_actions(name, data, store.url) if isinstance(a, CommitInfo)), None)
    _, info = next(parse_actions(name, first_line, store.url))
    return info.transaction_id if isinstance(info, CommitInfo) else None


def _commits_from(store: LogStore, version: int) -> list[Entry]:
    """Return the commits from a version on, without a gap."""
    if store.asks_cheaply:
        listed: dict[str, Entry] = {}
    else:
        entries = store.list_from(LOG_FOLDER, file_name(commit_name(version)))
        notice(store, entries)
        listed = {entry.name: entry for entry in entries}
    commits: list[Entry] = []
    while True:
        name = commit_name(version + len(commits))
        entry = store.head(name) if store.asks_cheaply else listed.get(name)
        if entry is None:
            return commits
        commits.append(entry)


def _concurrent_commit(store: LogStore, version: int, body: bytes) -> ConcurrentCommit:
    return ConcurrentCommit(version, parse_commit(commit_name(version), body, store.url))


def _wait(clock: Clock, policy: RetryPolicy, attempt: int) -> None:
    bound = min(policy.longest_wait_seconds, policy.first_wait_seconds * 2 ** min(attempt - 1, 20))
    clock.sleep(clock.random() * bound)


logger = logging.getLogger(__name__)

# More of the concurrent commits' data is not read: running the operation again would cost about as much.
MOST_BYTES_READ = 256 << 20
# Larger merged vectors, in bytes, go to a file, so that the log stays small.
LARGEST_INLINE_VECTOR = 1024


def gather(store: LogStore, mine: PreparedCommit, questions: Questions) -> Evidence:
    """Read the requested evidence; if a file is missing, its conflict remains."""
    files = DataFiles(store, mine.config)
    vectors: dict[str, BitMap64] = {}
    matches: dict[str, BitMap64] = {}
    for descriptor in questions.vectors:
        try:
            vectors[descriptor.unique_id] = files.vectors.bitmap(descriptor)
        except NotFound as error:
            logger.warning("a conflict on %s cannot be resolved: %s", store.url, error, extra=about(store.url, mine.version))
    if sum(add.size for add in questions.files) <= MOST_BYTES_READ:
        for add in questions.files:
            try:
                matches[canonical_path(add.path, store.url)] = _matches(files, mine, add)
            except NotFound as error:
                logger.warning("a conflict on %s cannot be resolved: %s", store.url, error, extra=about(store.url, mine.version))
    return Evidence(vectors, matches)


def store_large_vectors(store: LogStore, prepared: PreparedCommit, clock: Clock) -> PreparedCommit:
    """Move the commit's larger inline vectors to one vector file. If the commit fails, VACUUM deletes the file."""
    large = {add.path: vector for add in prepared.actions if isinstance(add, AddFile) and (vector := _large_vector(add))}
    if not large:
        return prepared
    uuid = clock.uuid()
    data, places = pack(map(VectorReader(store).bitmap, large.values()))
    store.put(new_file_name(uuid), data)
    placed = {path: descriptor_in_file(uuid, place) for path, place in zip(large, places, strict=True)}
    return replace(prepared, actions=tuple(_with_vector(action, placed) for action in prepared.actions))


def _large_vector(add: AddFile) -> DeletionVectorDescriptor | None:
    vector = add.deletion_vector
    is_large = vector is not None and vector.storage_type == "i" and vector.size_in_bytes > LARGEST_INLINE_VECTOR
    return vector if is_large else None


def _with_vector(action: Action, placed: Mapping[str, DeletionVectorDescriptor]) -> Action:
    if isinstance(action, AddFile) and action.path in placed:
        return replace(action, deletion_vector=placed[action.path])
    return action


def _matches(files: DataFiles, mine: PreparedCommit, add: AddFile) -> BitMap64:
    """Return the physical positions of all rows of a file, including deleted ones, for which one of the predicates is true."""
    from pyroaring import BitMap64

    config, store, predicate = mine.config, files.store, any_of(mine.reads.predicates)
    columns = sorted({config.schema.field(path[0]).name for path in references(predicate)})
    index = next(name for name in map("_position{}".format, count()) if config.schema.find(name) is None)
    task = ReadTask(decode_path(add.path, store.url, outside=True), add.size, dict(add.partition_values))
    batches = files.read(task, config.schema.select(columns), predicate, ExtraColumns(row_index_column=index))
    positions = BitMap64()
    for batch in located_batches(batches, store.url, None, add.path):
        positions.update(batch.column(index).to_pylist())
    return positions
