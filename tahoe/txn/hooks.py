"""What runs after a commit: nothing here can fail or undo it (PROTOCOL.md asks for none of it).

A hook that fails is logged with the table and version, and the commit stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.log.checksum import VersionChecksum
from tahoe.log.checksum_writer import write_checksum_after
from tahoe.log.files.last_checkpoint import LastCheckpoint
from tahoe.progress import Progress, silent
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.commit import Committed, RetryPolicy, commit
from tahoe.txn.prepare import prepare
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Hook", "checkpoint_snapshot", "commit_transaction", "default_hooks", "run_hooks", "write_checksum_anew"]

Hook = Callable[[Committed], None]


def default_hooks(clock: Clock) -> list[Hook]:
    """Checksum, checkpoint every ``delta.checkpointInterval`` versions, and with it the cleaning of the log."""

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
    tags: Mapping[str, str] | None = None,
) -> Committed:
    """Prepare, commit, run the hooks: the one way into the log of one table."""
    prepared = prepare(transaction, operation, user_metadata=user_metadata, tags=tags)
    committed = commit(transaction.store, prepared, transaction.clock, policy or RetryPolicy())
    run_hooks(hooks, committed)
    return committed


def checkpoint_snapshot(snapshot: Snapshot, clock: Clock, progress: Progress = silent, *, anew: bool = False) -> LastCheckpoint:
    """Write the checkpoint of a version as its table asks for it, classic or V2, and ``_last_checkpoint``.

    Args:
        anew: build on no older checkpoint.
    """
    from tahoe.txn.next_checkpoint import write_next_checkpoint  # most commits of a process write none

    return write_next_checkpoint(
        snapshot.store,
        snapshot.version,
        snapshot.state,
        snapshot.config,
        lambda: (snapshot.files(), snapshot.tombstones()),
        clock=clock,
        progress=progress,
        anew=anew,
    )


def write_checksum_anew(snapshot: Snapshot) -> None:
    """Write the checksum of a version of its live files, whatever is known of the versions before it."""
    from tahoe.log.checksum import encode_checksum
    from tahoe.log.checksum_writer import checksum_of
    from tahoe.log.files.paths import checksum_name

    checksum = checksum_of(snapshot.state, snapshot.files(), snapshot.config)
    snapshot.store.put(checksum_name(snapshot.version), encode_checksum(snapshot.version, checksum))


def run_hooks(hooks: Sequence[Hook], committed: Committed) -> None:
    """Run what follows a commit, in order. A hook that fails is told in the log and fails nobody: the commit is made."""
    for hook in hooks:
        # What a hook leaves undone, a later commit's hook does.
        with logged_after_commit(
            "after version %d of %s: a post-commit hook failed", committed.version, committed.snapshot.store.url
        ):
            hook(committed)


def _asks_for_checkpoint(committed: Committed) -> bool:
    snapshot = committed.snapshot
    due = committed.version > 0 and committed.version % snapshot.config.properties.checkpoint_interval == 0
    return due and snapshot.version == committed.version


def _checksum(committed: Committed) -> None:
    snapshot = committed.snapshot
    asked = _asks_for_checkpoint(committed)
    # A classic checkpoint needs the live files anyway. With them the chain of checksums is checked, and begins anew where it was broken.
    with_files = asked and (snapshot.has_files_in_memory or not snapshot.config.writes_v2_checkpoints)
    checksum = _write_checksum(committed, snapshot.files() if with_files else None)
    if asked and not with_files and checksum is None:
        _write_checksum(committed, snapshot.files())


def _write_checksum(committed: Committed, files: pa.Table | None) -> VersionChecksum | None:
    snapshot = committed.snapshot
    return write_checksum_after(snapshot.store, committed.version, snapshot.state, committed.actions, files)
