"""OPTIMIZE: rewrite small files and files with many deleted rows as few large files. A concurrent write does not discard the whole work.

    plan ─► bins ─► batches: bins rewritten concurrently ─► one commit per batch, dataChange = false
                      ▲                                       │ another writer committed first
                      ├── files of a bin are removed: rewrite it again ◄─┤
                      └── rows were deleted: mark these in the new files, which are kept, as are those of all other bins

The rewriting function is an argument: `rewritten_here` in this process, or Spark's executors. Each batch has its own transaction, so a
committed batch stays even if a later one fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.events import Fields, observed
from tahoe.base.exceptions import CommitStateUnknown, DeltaConcurrentModificationException, StorageFailure, TahoeError
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.log.replay import add_files
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.carried import RewrittenBin, carried
from tahoe.ops.layout.clustered import clustered
from tahoe.ops.layout.curves import NAMES_OF_CURVES
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest, plan_optimize
from tahoe.ops.layout.optimize_report import Optimized, operation_of
from tahoe.ops.rows.row_changes import files_with_vectors, physical_rows, snapshot_to_change
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.rewrite import rewritten, stage_replacement
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Cube, with_cube
from tahoe.protocol.dv import file_name
from tahoe.schema.arrow_values import array
from tahoe.snapshot.scan import ScannedVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Rewrite", "RewrittenBin", "optimize", "rewritten_here", "written_as_cube"]

_ROUNDS = 10
"""The number of attempts to commit a batch; after the third one, bins whose files other writers changed are left out."""
_ROUNDS_OF_REDOING = 3


Rewrite: TypeAlias = Callable[[Snapshot, Sequence[Bin], OptimizePlan], Iterator[RewrittenBin]]
"""Rewrites bins and yields the results in the order of the bins. If it fails, it deletes at least the files that it has not yielded."""


def optimize(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    request: OptimizeRequest,
    rewrite: Rewrite,
    progress: Progress = silent,
) -> Optimized:
    """Rewrite files according to the request, and return the result.

    Args:
        begin: starts a transaction on the newest version.
        commit: commits a transaction.
        progress: called with the number of rewritten files.

    Raises:
        NotFound: there is no table.
        InvalidRequest: the condition uses other columns than partition columns; a clustering column does not exist, is a partition column,
            or has no statistics.
        DeltaConcurrentModificationException: other writers committed first ten times in a row; earlier batches stay committed.
    """
    transaction = begin()
    clock, moment = transaction.clock, transaction.moment()
    with observed("optimize", transaction.store.url) as observation:
        plan = plan_optimize(snapshot_to_change(transaction), request, moment)
        run = _Run(begin, commit, plan, rewrite, _ProgressReporter(progress, sum(len(files.adds) for files in plan.bins)))
        if not request.dry_run:
            for batch in plan.batches():
                run.batch(batch)
        observation.record(run.version, lambda: _fields(run))
    return Optimized(plan, run.version, tuple(run.removed), tuple(run.added), run.bins, run.batches, moment.ms, clock.now_ms())


def _fields(run: _Run) -> Fields:
    return {
        "dry_run": run.plan.request.dry_run,
        "batches": run.batches,
        "files_added": len(run.added),
        "files_removed": len(run.removed),
        "bytes_added": sum(add.size for add in run.added),
        "bytes_removed": sum(add.size for add in run.removed),
    }


def rewritten_here(clock: Clock, version: ScannedVersion, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[RewrittenBin]:
    """Rewrite bins in this process, at most one per processor at a time, because each needs memory for some row groups."""
    threads = max(1, min(plan.request.threads, os.cpu_count() or 1))
    if plan.clusters:
        return (_clustered(clock, version, files, plan, threads) for files in bins)
    names = [new_name(version.config, clock, files.adds[0].partition_values, number) for number, files in enumerate(bins)]
    alone = min(threads, len(bins)) == 1
    jobs = [partial(_compacted, version, files, clock, name, alone) for files, name in zip(bins, names, strict=True)]
    if alone:
        return (job() for job in jobs)
    return _side_by_side(version, jobs, names, threads)


def _clustered(clock: Clock, version: ScannedVersion, files: Bin, plan: OptimizePlan, threads: int) -> RewrittenBin:
    added = clustered(version, files, plan, clock, threads)
    return replace(written_as_cube(files, added, plan, clock), has_known_places=True)


def written_as_cube(files: Bin, added: Sequence[AddFile], plan: OptimizePlan, clock: Clock) -> RewrittenBin:
    """Return the result of clustering a bin; in a clustered table, the new files form a cube."""
    if plan.cluster_by:
        added = with_cube(added, Cube(clock.uuid(), plan.cluster_by, NAMES_OF_CURVES[plan.request.curve]))
    return RewrittenBin(files, tuple(added))


def _side_by_side(
    version: ScannedVersion, jobs: Sequence[Callable[[], RewrittenBin]], names: Sequence[str], threads: int
) -> Iterator[RewrittenBin]:
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-optimize") as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            _delete(version, (name for future, name in zip(futures, names, strict=True) if not future.cancelled()))
            raise


def _compacted(version: ScannedVersion, files: Bin, clock: Clock, name: str, alone: bool) -> RewrittenBin:
    new = rewritten(version, files.adds, clock, name, ahead=alone)
    return RewrittenBin(files, () if new is None else (new,), has_known_places=True)


@dataclass
class _Run:
    """A run of OPTIMIZE, with the results so far."""

    begin: Callable[[], Transaction]
    commit: Callable[[Transaction, Operation], Committed]
    plan: OptimizePlan
    rewrite: Rewrite
    reporter: _ProgressReporter
    version: int | None = None
    bins: int = 0
    batches: int = 0
    removed: list[AddFile] = field(default_factory=list)
    added: list[AddFile] = field(default_factory=list)

    def batch(self, bins: Sequence[Bin]) -> None:
        """Rewrite bins and commit them together; rewrite a bin again if another writer changed its files meanwhile."""
        transaction = self.begin()
        snapshot = transaction.existing()
        waiting, done = self._remaining_bins(bins, snapshot), list[RewrittenBin]()
        for attempt in range(1, _ROUNDS + 1):
            done += self._rewritten(snapshot, waiting, done)
            if not done:
                return
            vectors = list[str]()
            try:
                self._commit(transaction, done, vectors)
                return
            except CommitStateUnknown:
                raise  # the commit may exist and need its files
            except TahoeError as error:
                _delete(snapshot, vectors)
                if attempt == _ROUNDS or not isinstance(error, DeltaConcurrentModificationException):
                    _discard(snapshot, done)
                    raise
            transaction, done, lost = self._after_losing(snapshot, done)
            fresh = transaction.existing()
            waiting = self._remaining_bins(lost, fresh) if attempt <= _ROUNDS_OF_REDOING else []
            transaction.looks_for, snapshot = "all", fresh  # the reused files are older than the transaction

    def _rewritten(self, snapshot: Snapshot, bins: Sequence[Bin], before: Sequence[RewrittenBin]) -> list[RewrittenBin]:
        written: list[RewrittenBin] = []
        try:
            for rewritten in self.rewrite(snapshot, bins, self.plan) if bins else ():
                written.append(rewritten)
                self.reporter.more(len(rewritten.bin.adds))
        except BaseException:
            _discard(snapshot, [*before, *written])
            raise
        return written

    def _after_losing(
        self, snapshot: Snapshot, done: Sequence[RewrittenBin]
    ) -> tuple[Transaction, list[RewrittenBin], list[Bin]]:
        """Start a transaction on the newest version; return it, the rewritten bins that can be used for it, and the other bins."""
        try:
            transaction = self.begin()
            return transaction, *_still_valid(done, snapshot, self.plan, transaction.existing())
        except BaseException:
            _discard(snapshot, done)
            raise

    def _commit(self, transaction: Transaction, done: Sequence[RewrittenBin], vectors: list[str]) -> None:
        """Commit the rewritten bins; append the names of the new deletion vector files to `vectors`."""
        removed = [add for written in done for add in written.replaced]
        added = _with_dead_rows(transaction, done, vectors)
        stage_replacement(transaction, removed, added)
        committed = self.commit(transaction, operation_of(self.plan, removed, added))
        added_paths = {add.path for add in added}
        _delete(
            committed.snapshot,
            _names(committed.snapshot, (add for written in done for add in written.added if add.path not in added_paths)),
        )
        self.version = committed.version
        self.batches += 1
        self.bins += len(done)
        self.removed += removed
        self.added += added

    def _remaining_bins(self, bins: Sequence[Bin], snapshot: Snapshot) -> list[Bin]:
        """Return the bins as of a version: without removed files, and with the current deletion vectors."""
        if snapshot.version == self.plan.version:
            return list(bins)
        live = _live(snapshot, bins)
        live_files = (tuple(live[add.path] for add in files.adds if add.path in live) for files in bins)
        return [Bin(adds) for adds in live_files if self.plan.is_worth_it(adds)]


@dataclass
class _ProgressReporter:
    """Reports the number of rewritten files."""

    progress: Progress
    total: int
    done: int = 0

    def more(self, files: int) -> None:
        self.done += files
        self.progress("files rewritten", self.done, max(self.total, self.done))


def _still_valid(
    done: Sequence[RewrittenBin], snapshot: Snapshot, plan: OptimizePlan, fresh: Snapshot
) -> tuple[list[RewrittenBin], list[Bin]]:
    """Return the rewritten bins that can be used for a newer version, and the other bins, whose new files are deleted."""
    live = _live(fresh, [written.bin for written in done])
    # The content of the files depends on the table's metadata: schema, column names, codec.
    same = (snapshot.metadata, snapshot.protocol) == (fresh.metadata, fresh.protocol)
    carried_bins = [(written, carried(written, snapshot, plan, live, fresh) if same else None) for written in done]
    lost = [written for written, now in carried_bins if now is None]
    _discard(snapshot, lost)
    return [now for _, now in carried_bins if now is not None], [written.bin for written in lost]


def _with_dead_rows(transaction: Transaction, done: Sequence[RewrittenBin], vectors: list[str]) -> list[AddFile]:
    """Return the new files, with deletion vectors for rows deleted meanwhile; files without live rows are left out."""
    config, url = transaction.existing().config, transaction.store.url
    new = [(add, written.dead.get(place)) for written in done for place, add in enumerate(written.added)]
    marked = [(add, dead) for add, dead in new if dead is not None and len(dead) < physical_rows(transaction.store, add)]
    with_vectors = files_with_vectors(transaction, config, [add for add, _ in marked], [dead for _, dead in marked])
    vectors += {name for add in with_vectors if add.deletion_vector and (name := file_name(add.deletion_vector, url))}
    by_path = {add.path: add for add in with_vectors}
    return [by_path.get(add.path, add) for add, dead in new if dead is None or add.path in by_path]


def _live(snapshot: Snapshot, bins: Sequence[Bin]) -> dict[str, AddFile]:
    """Return those of the bins' files that are live in the version, by path."""
    paths = array([add.path for group in bins for add in group.adds], pa.string())
    files = snapshot.files()
    return {add.path: add for add in add_files(files.filter(pc.is_in(files["path"], value_set=paths)))}


def _discard(snapshot: ScannedVersion, written: Iterable[RewrittenBin]) -> None:
    _delete(snapshot, _names(snapshot, (add for rewritten in written for add in rewritten.added)))


def _names(snapshot: ScannedVersion, adds: Iterable[AddFile]) -> Iterator[str]:
    return (decode_path(add.path, snapshot.store.url) for add in adds)


def _delete(snapshot: ScannedVersion, names: Iterable[str]) -> None:
    """Delete files that no version references; if a deletion fails, VACUUM deletes the file later."""
    for name in names:
        with suppress(StorageFailure):
            snapshot.store.delete(name)
