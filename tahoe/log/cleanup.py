"""Removes what of the log is older than the table's retention (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

import logging

from tahoe.log.checkpoints.checkpoint_reader import sidecars_of
from tahoe.log.files.paths import ParsedLogPath, parse
from tahoe.log.intents import notice
from tahoe.log.segment import checkpoints_in
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import Entry, LogStore

__all__ = ["clean_up_log", "expired"]

logger = logging.getLogger(__name__)

_DAY_MS = 86_400_000


def clean_up_log(store: LogStore, config: TableConfig, now_ms: int) -> list[str]:
    """Delete expired commits, checkpoints, checksums, compactions and sidecars; the names deleted.

    The newest complete checkpoint that is not newer than the newest expired commit stays, with its commit and everything after it.
    A table with the feature ``checkpointProtection`` is left alone.
    """
    if "checkpointProtection" in config.features:
        return []
    entries = store.list_from("_delta_log")
    if not store.asks_cheaply:
        notice(store, entries)  # who never loses a race sees no other listing
    parsed = [(entry, path) for entry in entries if (path := parse(entry.name)) is not None]
    # The boundary falls on midnight UTC, so that versions of one day go together.
    cut_off_ms = (now_ms - config.properties.log_retention_ms) // _DAY_MS * _DAY_MS
    names = expired(parsed, set(checkpoints_in(entries)), cut_off_ms)
    if names:
        names += _orphaned_sidecars(store, set(names), now_ms)
    for name in names:
        store.delete(name)
    if names:
        logger.info("removed %d expired files from the log of %s", len(names), store.url)
    return names


def expired(parsed: list[tuple[Entry, ParsedLogPath]], complete_checkpoints: set[int], cut_off_ms: int) -> list[str]:
    """The names that may go. Pure.

    Args:
        parsed: the log's listing.
        complete_checkpoints: versions that have a complete checkpoint.
        cut_off_ms: commits up to this time are not needed for time travel.
    """
    old = [path.version for entry, path in parsed if path.kind == "commit" and entry.modified_ms <= cut_off_ms]
    if not old:
        return []
    kept_checkpoint = max((version for version in complete_checkpoints if version <= max(old)), default=None)
    if kept_checkpoint is None:
        return []
    names = []
    for entry, path in parsed:
        compacted = path.kind == "compaction" and path.version <= kept_checkpoint
        older = path.kind in ("commit", "checkpoint", "checksum") and path.version < kept_checkpoint
        if older or compacted:
            names.append(entry.name)
    return names


def _orphaned_sidecars(store: LogStore, going: set[str], now_ms: int) -> list[str]:
    """Sidecars that no remaining checkpoint names; those younger than a day may belong to a checkpoint being written."""
    sidecars = store.list_from("_delta_log/_sidecars")
    if not sidecars:
        return []
    remaining = [e for e in store.list_from("_delta_log") if e.name not in going]
    used = {name for entry in remaining for name in sidecars_of(store, entry)}
    midnight = now_ms // _DAY_MS * _DAY_MS
    return [e.name for e in sidecars if e.name not in used and e.modified_ms < midnight - _DAY_MS]
