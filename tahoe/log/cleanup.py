"""Deletes files of the log that are older than the table's retention (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tahoe.base.events import happened
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint, read_through, sidecars_of
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.files.listing import Checkpoint
from tahoe.log.files.paths import LOG_FOLDER, SIDECAR_FOLDER, STAGED_FOLDER, ParsedLogPath, parse, staged_version
from tahoe.log.intents import notice
from tahoe.log.segment import checkpoints_in
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import COORDINATED, Feature
from tahoe.settings.warn_once import warn_once
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.side_by_side import each
from tahoe.store.stream_records import streams_of

_DAY_MS = 86_400_000
_READ_AT_ONCE = 16


def clean_up_log(
    store: LogStore, config: TableConfig, now_ms: int, *, retention_ms: int | None = None, granularity_ms: int = _DAY_MS
) -> list[str]:
    """Delete expired commits (staged ones too), checkpoints, checksums, compactions and sidecars; return the deleted names.

    The newest complete checkpoint that is not newer than the newest expired commit stays, with its commit and everything after it. If it
    shares sidecars with other checkpoints, it is read completely before the files that it replaces are deleted: corruption in a shared
    sidecar affects all of them.

    A table with the feature ``checkpointProtection`` keeps all files before ``delta.requireCheckpointProtectionBeforeVersion`` until all of
    them can be deleted at once (checkpoint-protection.md of the protocol's proposals, "Writer Requirements").

    Args:
        retention_ms: the retention of commits; None for the table's ``delta.logRetentionDuration``.
        granularity_ms: the boundary is a multiple of this since the epoch: midnight UTC by default, so that versions of one day are
            deleted together.

    Raises:
        DamagedCheckpoint: that checkpoint, or another that stays, cannot be read.
    """
    entries = store.list_from(LOG_FOLDER)
    if not store.asks_cheaply:
        notice(store, entries)  # a writer that never loses a race makes no other listing
    parsed = [(entry, path) for entry in entries if (path := parse(entry.name)) is not None]
    retention_ms = config.properties.log_retention_ms if retention_ms is None else retention_ms
    cut_off_ms = (now_ms - retention_ms) // granularity_ms * granularity_ms
    checkpoints = checkpoints_in(entries)
    oldest_kept, names = expired(parsed, set(checkpoints), cut_off_ms)
    if not names or oldest_kept is None or oldest_kept < _protected_before(config):
        return []
    _look_through(store, checkpoints[oldest_kept])
    _warn_of_late_streams(store, oldest_kept)
    if config.features & COORDINATED:
        names += [
            entry.name
            for entry in store.list_from(STAGED_FOLDER)
            if (version := staged_version(entry.name)) is not None and version <= oldest_kept
        ]
    # The oldest commit first, then the others together but started in order: after a crash, no version can be read without its start.
    store.delete(names[0])
    each(store, store.delete, names[1:])
    # This comes last: a writer that still saw the previous checkpoint after naming its sidecars again has a checkpoint that is listed here.
    orphans = _orphaned_sidecars(store, now_ms)
    each(store, store.delete, orphans)
    happened("log_cleanup", store.url, files_deleted=len(names) + len(orphans))
    return names + orphans


def _warn_of_late_streams(store: LogStore, oldest_kept: int) -> None:
    for stream in streams_of(store):
        if stream.version < oldest_kept:
            warn_once(
                f"{store.url} {stream.name} log",
                f"The log of table {store.url} loses its commits before version {oldest_kept}, and the stream with the checkpoint "
                f"{stream.checkpoint} had read only those before {stream.version} when it was last heard of. It can go on with "
                f"what comes after them alone (failOnDataLoss = false). Let delta.logRetentionDuration be longer; if there is "
                f"no such query, delete {stream.name}.",
            )


def expired(
    parsed: list[tuple[Entry, ParsedLogPath]], complete_checkpoints: set[int], cut_off_ms: int
) -> tuple[int | None, list[str]]:
    """Return the version of the checkpoint that stays, and the names that may be deleted, commits first. Pure.

    Args:
        parsed: the log's listing.
        complete_checkpoints: versions that have a complete checkpoint.
        cut_off_ms: commits up to this time are not needed for time travel.
    """
    old = [path.version for entry, path in parsed if path.kind == "commit" and entry.modified_ms <= cut_off_ms]
    oldest_kept = max((version for version in complete_checkpoints if old and version <= max(old)), default=None)
    if oldest_kept is None:
        return None, []
    going = []
    for entry, path in parsed:
        compacted = path.kind == "compaction" and path.version <= oldest_kept
        older = path.kind in ("commit", "checkpoint", "checksum") and path.version < oldest_kept
        if older or compacted:
            going.append((path.kind != "commit", entry.name))
    return oldest_kept, [name for _, name in sorted(going)]


def _protected_before(config: TableConfig) -> int:
    return config.properties.checkpoints_protected_before if Feature.CHECKPOINT_PROTECTION in config.features else 0


def _look_through(store: LogStore, checkpoints: Sequence[Checkpoint]) -> None:
    """Read all of a checkpoint that has sidecars, with the checksums of its pages; raise if no checkpoint of the version is intact."""
    damage: DamagedCheckpoint | None = None
    for checkpoint in checkpoints:
        try:
            if checkpoint.kind != "multi-part" and any(sidecars_of(store, entry) for entry in checkpoint.entries):
                read_through(open_checkpoint(store, checkpoint))
        except DamagedCheckpoint as error:
            damage = damage or error
        else:
            return
    if damage is not None:
        raise damage


def _orphaned_sidecars(store: LogStore, now_ms: int) -> list[str]:
    """Return the sidecars that no checkpoint names, except those younger than a day, which may belong to a checkpoint being written."""
    midnight = now_ms // _DAY_MS * _DAY_MS
    old = [entry.name for entry in store.list_from(SIDECAR_FOLDER) if entry.modified_ms < midnight - _DAY_MS]
    if not old:
        return []
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        used = set().union(*pool.map(lambda entry: sidecars_of(store, entry), store.list_from(LOG_FOLDER)))
    return [name for name in old if name not in used]
