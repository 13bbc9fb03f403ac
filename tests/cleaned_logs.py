"""Logs without their first commits, as log cleanup leaves them."""

from __future__ import annotations

from pathlib import Path

from tahoe.log.files.paths import LOG_FOLDER, parse
from tahoe.log.segment import checkpoints_in
from tahoe.store.local_store import LocalLogStore

__all__ = ["start_at_the_checkpoint"]


def start_at_the_checkpoint(root: Path, *, with_its_commit: bool = True) -> int:
    """Delete every commit, checksum and checkpoint before the newest checkpoint; the checkpoint's version.

    Args:
        root: the table's folder.
        with_its_commit: the commit of the checkpoint's version stays.
    """
    entries = LocalLogStore(root).list_from(LOG_FOLDER)
    first = max(checkpoints_in(entries))
    for entry in entries:
        parsed = parse(entry.name)
        if parsed is None:
            continue
        is_its_commit = parsed.kind == "commit" and parsed.version == first
        if parsed.version < first or (is_its_commit and not with_its_commit):
            (root / entry.name).unlink()
    return first
