"""Find versions in the log that use a feature, and that readers without it would read incorrectly. Reads every commit in the log."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.base.progress import Progress, silent, tracked
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint
from tahoe.log.files.commits import read_commit
from tahoe.log.files.listing import Checkpoint, Listing
from tahoe.log.replay import add_files
from tahoe.ops.features.removals import Removal
from tahoe.protocol.actions import Action, CheckpointMetadata, SidecarFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

__all__ = ["depends_on_v2_checkpoint", "is_truncated_before", "oldest_use"]


def oldest_use(store: LogStore, removal: Removal, version: int, progress: Progress = silent) -> int | None:
    """Return the oldest version in the log, up to `version`, in which readers need a feature; None if there is none.

    In the earliest checkpoint, live files count and tombstones do not: no version in the log reads these removed files.

    Args:
        removal: the removal of the feature.
    """
    if removal.uses is None:
        return None
    listing = Listing.read(store, None)
    uses = [_in_commits(store, removal, listing, version, progress)]
    checkpoints = sorted(number for number in listing.complete_checkpoints if number <= version)
    if removal.is_of_checkpoint:
        uses += [number for number in checkpoints if any(_is_v2(store, part) for part in listing.complete_checkpoints[number])]
    elif checkpoints:
        earliest = Snapshot.at(store, checkpoints[0])
        state: list[Action] = [earliest.metadata, *add_files(earliest.files())]
        uses += [earliest.version] if any(map(removal.uses, state)) else []
    return min((use for use in uses if use is not None), default=None)


def _in_commits(store: LogStore, removal: Removal, listing: Listing, version: int, progress: Progress) -> int | None:
    assert removal.uses is not None
    versions = sorted(number for number in listing.commits if number <= version)
    for number in tracked(versions, progress, "commits read", len(versions)):
        if any(map(removal.uses, read_commit(store, number))):
            return number
    return None


def depends_on_v2_checkpoint(snapshot: Snapshot) -> bool:
    """Whether a version is read from a V2 checkpoint, regardless of the checkpoint's file name."""
    checkpoint = Snapshot.at(snapshot.store, snapshot.version).segment.checkpoint
    return checkpoint is not None and _is_v2(snapshot.store, checkpoint)


def _is_v2(store: LogStore, checkpoint: Checkpoint) -> bool:
    if checkpoint.kind == "uuid":
        return True
    actions = _v2_actions(store, checkpoint) if checkpoint.kind == "classic" else iter(())
    return next(actions, None) is not None


def _v2_actions(store: LogStore, checkpoint: Checkpoint) -> Iterator[Action]:
    return (
        action
        for action in open_checkpoint(store, checkpoint).single_actions
        if isinstance(action, CheckpointMetadata | SidecarFile)
    )


def is_truncated_before(store: LogStore, version: int) -> bool:
    """Whether the log has no commit before `version`, and its first checkpoint is of `version` or later."""
    if version <= 0:
        return True
    listing = Listing.read(store, None)
    return all(number >= version for number in listing.commits) and min(listing.complete_checkpoints, default=-1) >= version
