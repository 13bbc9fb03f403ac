"""Steps after a commit: they can neither fail nor undo it (PROTOCOL.md requires none of them).

A failing hook is logged with the table and version, and the commit remains valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.events import observed
from tahoe.base.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent
from tahoe.log.checksum import VersionChecksum, encode_checksum, read_checksum
from tahoe.log.checksum_writer import checksum_of, write_checksum_after, write_checksum_from
from tahoe.log.files.commits import read_commit
from tahoe.log.files.last_checkpoint import LastCheckpoint
from tahoe.log.files.paths import checksum_name
from tahoe.protocol.table_state import advance_state
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.commit import Committed, RetryPolicy, commit
from tahoe.txn.commit_summary import record_commit
from tahoe.txn.prepare import PreparedCommit, prepare
from tahoe.txn.transaction import Operation, Transaction

Hook = Callable[[Committed], None]


def default_hooks(clock: Clock) -> list[Hook]:
    """Return the hooks for the checksum, for a checkpoint every ``delta.checkpointInterval`` versions, and for log cleanup with it."""

    def checkpoint(committed: Committed) -> None:
        snapshot = committed.snapshot
        if not _asks_for_checkpoint(committed):
            return
        checkpoint_snapshot(snapshot, clock)
        if snapshot.config.properties.enable_expired_log_cleanup:
            from tahoe.log.cleanup import clean_up_log

            clean_up_log(snapshot.store, snapshot.config, clock.now_ms())

    return [_checksum, checkpoint]


def commit_transaction(
    transaction: Transaction,
    operation: Operation,
    policy: RetryPolicy | None,
    hooks: Sequence[Hook],
    *,
    user_metadata: str | None = None,
) -> Committed:
    """Prepare, commit, and run the hooks: the only way into the log of a single table."""
    checksum = _ChecksumBeside()
    beside = checksum if _checksum in hooks else None
    with observed("commit", transaction.store.url) as observation:
        prepared = prepare(transaction, operation, user_metadata=user_metadata)
        committed = commit(transaction.store, prepared, transaction.clock, policy or RetryPolicy(), beside)
        record_commit(observation, committed)
    run_hooks([hook for hook in hooks if hook is not _checksum or not checksum.is_written], committed)
    return committed


def checkpoint_snapshot(
    snapshot: Snapshot, clock: Clock, progress: Progress = silent, *, from_scratch: bool = False
) -> LastCheckpoint:
    """Write the checkpoint of a version in its table's format, classic or V2, and ``_last_checkpoint``.

    Args:
        from_scratch: reuse no older checkpoint.
    """
    from tahoe.txn.next_checkpoint import write_next_checkpoint  # most commits write no checkpoint

    with observed("checkpoint", snapshot.store.url) as observation:
        written = write_next_checkpoint(snapshot, clock, progress, from_scratch=from_scratch)
        observation.record(snapshot.version)
    return written


def rewrite_checksum(snapshot: Snapshot) -> None:
    """Write the checksum of a version from its live files, ignoring the checksums of earlier versions."""
    state = snapshot.state
    with suppress(NotFound):  # a checkpoint has neither the commit's timestamp nor its id
        state = advance_state(state, read_commit(snapshot.store, snapshot.version))
    checksum = checksum_of(state, snapshot.files(), snapshot.config)
    snapshot.store.put(checksum_name(snapshot.version), encode_checksum(snapshot.version, checksum))


def run_hooks(hooks: Sequence[Hook], committed: Committed) -> None:
    """Run the hooks of a commit, in order. A failing hook is logged and affects nobody: the commit is made."""
    for hook in hooks:
        # A later commit's hook completes the work of a failed one.
        version, url = committed.version, committed.snapshot.store.url
        with logged_after_commit("after version %d of %s: a post-commit hook failed", version, url, extra=about(url, version)):
            hook(committed)


def _asks_for_checkpoint(committed: Committed) -> bool:
    snapshot = committed.snapshot
    due = committed.version > 0 and committed.version % snapshot.config.properties.checkpoint_interval == 0
    return due and snapshot.version == committed.version


def _checksum(committed: Committed) -> None:
    snapshot = committed.snapshot
    writes_checkpoint = _asks_for_checkpoint(committed)
    has_files = writes_checkpoint and snapshot.has_files_in_memory
    # Files that are not in memory are read with the checkpoint, after this checksum: they are checked against it, so that no checkpoint
    # takes over the loss of a commit's lines.
    checksum = _write_checksum(committed, snapshot.files() if has_files else None)
    if writes_checkpoint and not has_files and checksum is None:
        _write_checksum(committed, snapshot.files())  # starts a new chain of checksums


class _ChecksumBeside:
    """The checksum of one commit, with its requests sent beside the commit's own (`tahoe.txn.commit.WorkBeside`).

    If a step does not succeed, or a checkpoint is due, the hook writes the checksum.
    """

    def __init__(self) -> None:
        self.is_written = False
        self._previous: tuple[int, VersionChecksum] | None = None

    def while_sent(self, prepared: PreparedCommit) -> None:
        """Read the checksum of the version before."""
        store, before = prepared.snapshot.store if prepared.snapshot else None, prepared.version - 1
        if store is None:
            return
        step = "the checksum before version %d of %s could not be read while the commit was sent"
        with logged_after_commit(step, prepared.version, store.url, extra=about(store.url, prepared.version)):
            try:
                checksum = read_checksum(store, before)
            except (CorruptTable, StorageFailure):
                return  # the hook reads it again, and reports the error
            if checksum is not None:
                self._previous = before, checksum

    def while_looked_up(self, committed: Committed) -> None:
        """Write the checksum, if it follows from the one that was read."""
        version, store, state = committed.version, committed.snapshot.store, committed.snapshot.state
        follows = self._previous is not None and self._previous[0] == version - 1
        if _asks_for_checkpoint(committed) or (version and not follows):
            return
        with logged_after_commit(
            "after version %d of %s: no checksum was written", version, store.url, extra=about(store.url, version)
        ):
            actions, again = committed.actions, committed.prepared.adds_again
            if self._previous is None:
                written = write_checksum_after(store, version, state, actions, adds_again=again)
            else:
                written = write_checksum_from(store, self._previous[1], version, state, actions, adds_again=again)
            self.is_written = written is not None


def _write_checksum(committed: Committed, files: pa.Table | None) -> VersionChecksum | None:
    snapshot, again = committed.snapshot, committed.prepared.adds_again
    return write_checksum_after(snapshot.store, committed.version, snapshot.state, committed.actions, files, adds_again=again)
