"""The next checkpoint of a table: classic or V2, by its properties, reusing parts of the previous one.

A V2 checkpoint is made from the newest earlier V2 checkpoint and the commits since. The live files are read only if there is no such
checkpoint by Tahoe, if it is corrupt, or if the result contradicts the version's checksum.
"""

from __future__ import annotations

import logging

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint
from tahoe.log.checkpoints.checkpoint_writer import write_checkpoint
from tahoe.log.checkpoints.v2_writer import Changes, V2Writer
from tahoe.log.consistency import check_checkpoint
from tahoe.log.files.last_checkpoint import LastCheckpoint, publish
from tahoe.log.segment import segment_for
from tahoe.log.tail import read_tail
from tahoe.protocol.actions import SidecarFile
from tahoe.snapshot.snapshot import Snapshot

logger = logging.getLogger(__name__)


def write_next_checkpoint(
    snapshot: Snapshot, clock: Clock, progress: Progress = silent, *, from_scratch: bool = False
) -> LastCheckpoint:
    """Write the checkpoint of a version, and ``_last_checkpoint`` unless that names a newer one.

    Args:
        progress: receives the number of row groups or sidecars.
        from_scratch: reuse no sidecar of an older checkpoint.
    """
    now_ms = clock.now_ms()
    store, version, state, config = snapshot.store, snapshot.version, snapshot.state, snapshot.config
    if not config.writes_v2_checkpoints:
        files, tombstones = snapshot.files(), snapshot.tombstones()
        return write_checkpoint(store, version, state, files, tombstones, config, now_ms=now_ms, progress=progress)
    writer = V2Writer(store, version, state, config, clock, now_ms, progress)
    hint = None if from_scratch else _from_previous_checkpoint(writer)
    if hint is None:
        hint = writer.write(snapshot.files(), snapshot.tombstones())
    publish(store, hint)
    return hint


def _from_previous_checkpoint(writer: V2Writer) -> LastCheckpoint | None:
    """Return the checkpoint made from the previous one; None if that is not possible, and the live files must be read."""
    store, version = writer.store, writer.version
    try:
        segment = segment_for(store, version)
        checkpoint = segment.checkpoint
        if checkpoint is None or checkpoint.version == version or checkpoint.kind == "multi-part":
            return None
        tail = read_tail(store, segment)
        before = open_checkpoint(store, checkpoint, segment.hint)
        check_checkpoint(store, before, segment.hint, tail)
        sidecars = [action for action in before.single_actions if isinstance(action, SidecarFile)]
        if not sidecars:
            return None
        checksum = tail.checksum
        totals = None if checksum is None else (checksum.num_files, checksum.table_size_bytes)
        return writer.after(before, sidecars, Changes(tail.adds, tail.removes, tail.keys, totals))
    except (CorruptTable, NotFound) as error:
        message = "%s The checkpoint of version %d is rebuilt from the live files."
        logger.warning(message, error.message, version, extra=about(store.url, version))
        return None
