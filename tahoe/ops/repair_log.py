"""Repair of the log's derived files: checkpoint, checksum and hint of the newest version, rebuilt from its commits and intact checkpoints.

A repair never changes the contents of a version. If the log contradicts itself, so that the contents are ambiguous, the table cannot be
read, and nothing is repaired: the error says which file to restore.
"""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable
from tahoe.base.html import ShownAsText
from tahoe.base.progress import Progress, silent
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint, read_through
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.checksum import read_checksum
from tahoe.log.files.last_checkpoint import parse_last_checkpoint, write_last_checkpoint
from tahoe.log.files.listing import Checkpoint
from tahoe.log.files.paths import LAST_CHECKPOINT, LOG_FOLDER, checksum_name
from tahoe.log.segment import checkpoints_in
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.hooks import checkpoint_snapshot, rewrite_checksum


@dataclass(frozen=True, slots=True)
class LogRepair(ShownAsText):
    """The result of a repair of a log, or of its dry run.

    Args:
        table: its URL.
        version: the newest one.
        findings: a sentence for each fault; checkpoints of older versions are checked too.
        deleted: corrupt checkpoint files of the newest version that were, or would be, deleted.
        dry_run: whether nothing was done.
    """

    table: str
    version: int
    findings: tuple[str, ...]
    deleted: tuple[str, ...]
    dry_run: bool

    def __str__(self) -> str:
        done = "would be" if self.dry_run else "were"
        gone = [f"{name} {'would be' if self.dry_run else 'was'} deleted." for name in self.deleted]
        summary = f"{self.table}: checkpoint and checksum of version {self.version} {done} rewritten."
        return "\n".join([*self.findings, *gone, summary])


def repair_log(store: LogStore, clock: Clock, *, dry_run: bool = False, progress: Progress = silent) -> LogRepair:
    """Rewrite the checkpoint, the checksum and the hint of the newest version, without building on the existing ones.

    Corrupt checkpoints of older versions are reported and stay: delete them once the versions that begin with them are not needed.

    Args:
        dry_run: report the faults and the files that would be written, and do nothing.

    Raises:
        NotFound: no table.
        CorruptTable: the newest version cannot be replayed from the log, or its checksum contradicts the log.
        Unsupported: the table needs features that this version of Tahoe lacks.
    """
    snapshot = Snapshot.at(store)
    version, is_v2 = snapshot.version, snapshot.config.writes_v2_checkpoints
    findings = [*_fault_of_hint(store), *_fault_of_checksum(store, version)]
    damaged: list[str] = []
    for checkpoint in [each for of_one in checkpoints_in(store.list_from(LOG_FOLDER)).values() for each in of_one]:
        fault = _fault_of(store, checkpoint)
        findings += fault
        # A classic checkpoint is overwritten; beside a V2 checkpoint readers would choose it first.
        if fault and checkpoint.version == version and (is_v2 or checkpoint.kind != "classic"):
            damaged += checkpoint.names
    if not dry_run:
        hint = checkpoint_snapshot(snapshot, clock, progress, from_scratch=True)
        write_last_checkpoint(store, hint)  # the old hint may name a missing version
        rewrite_checksum(snapshot)
        for name in damaged:
            store.delete(name)
    return LogRepair(store.url, version, tuple(findings), tuple(damaged), dry_run)


def _fault_of(store: LogStore, checkpoint: Checkpoint) -> list[str]:
    try:
        read_through(open_checkpoint(store, checkpoint))
    except DamagedCheckpoint as error:
        return [error.message]
    return []


def _fault_of_checksum(store: LogStore, version: int) -> list[str]:
    try:
        checksum = read_checksum(store, version)
    except CorruptTable as error:
        return [error.message]
    return [] if checksum is not None else [f"Table {store.url}: version {version} has no checksum {checksum_name(version)}."]


def _fault_of_hint(store: LogStore) -> list[str]:
    if store.head(LAST_CHECKPOINT) is None:
        return []
    try:
        parse_last_checkpoint(store.get(LAST_CHECKPOINT))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return [f"Table {store.url}: {LAST_CHECKPOINT} is damaged: {error}."]
    return []
