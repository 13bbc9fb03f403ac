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
from tahoe.base.exceptions import CommitStateUnknown, DeltaConcurrentModificationException, StorageFailure, TahoeError
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.log.replay import add_files
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.carried import Written, carried
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

__all__ = ["Rewrite", "Written", "optimize", "rewritten_here", "written_as_cube"]

_ROUNDS = 10
"""The number of attempts to commit a batch; after the third one, bins whose files other writers changed are left out."""
_ROUNDS_OF_REDOING = 3


Rewrite: TypeAlias = Callable[[Snapshot, Sequence[Bin], OptimizePlan], Iterator[Written]]
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
    clock, started = transaction.clock, transaction.clock.now_ms()
    plan = plan_optimize(snapshot_to_change(transaction), request)
    run = _Run(begin, commit, plan, rewrite, _Told(progress, sum(len(one.adds) for one in plan.bins)))
    if not request.dry_run:
        for batch in plan.batches():
            run.batch(batch)
    return Optimized(plan, run.version, tuple(run.removed), tuple(run.added), run.bins, run.batches, started, clock.now_ms())


def rewritten_here(clock: Clock, version: ScannedVersion, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[Written]:
    """Rewrite bins in this process, at most one per processor at a time, because each needs memory for some row groups."""
    threads = max(1, min(plan.request.threads, os.cpu_count() or 1))
    if plan.clusters:
        return (_clustered(clock, version, one, plan, threads) for one in bins)
    names = [new_name(version.config, clock, one.adds[0].partition_values, number) for number, one in enumerate(bins)]
    alone = min(threads, len(bins)) == 1
    jobs = [partial(_compacted, version, one, clock, name, alone) for one, name in zip(bins, names, strict=True)]
    if alone:
        return (job() for job in jobs)
    return _side_by_side(version, jobs, names, threads)


def _clustered(clock: Clock, version: ScannedVersion, one: Bin, plan: OptimizePlan, threads: int) -> Written:
    curve = plan.request.curve
    added = clustered(version, one.adds, plan.paths, plan.files_of(one), curve, clock, threads)
    return replace(written_as_cube(one, added, plan, clock), has_known_places=True)


def written_as_cube(one: Bin, added: Sequence[AddFile], plan: OptimizePlan, clock: Clock) -> Written:
    """Return the result of clustering a bin; in a clustered table, the new files form a cube."""
    if plan.cluster_by:
        added = with_cube(added, Cube(clock.uuid(), plan.cluster_by, NAMES_OF_CURVES[plan.request.curve]))
    return Written(one, tuple(added))


def _side_by_side(
    version: ScannedVersion, jobs: Sequence[Callable[[], Written]], names: Sequence[str], threads: int
) -> Iterator[Written]:
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-optimize") as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            _delete(version, (name for future, name in zip(futures, names, strict=True) if not future.cancelled()))
            raise


def _compacted(version: ScannedVersion, one: Bin, clock: Clock, name: str, alone: bool) -> Written:
    new = rewritten(version, one.adds, clock, name, ahead=alone)
    return Written(one, () if new is None else (new,), has_known_places=True)


@dataclass
class _Run:
    """A run of OPTIMIZE, with the results so far."""

    begin: Callable[[], Transaction]
    commit: Callable[[Transaction, Operation], Committed]
    plan: OptimizePlan
    rewrite: Rewrite
    told: _Told
    version: int | None = None
    bins: int = 0
    batches: int = 0
    removed: list[AddFile] = field(default_factory=list)
    added: list[AddFile] = field(default_factory=list)

    def batch(self, bins: Sequence[Bin]) -> None:
        """Rewrite bins and commit them together; rewrite a bin again if another writer changed its files meanwhile."""
        transaction = self.begin()
        snapshot = transaction.existing()
        waiting, done = self._still_there(bins, snapshot), list[Written]()
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
            waiting = self._still_there(lost, fresh) if attempt <= _ROUNDS_OF_REDOING else []
            transaction.looks_for, snapshot = "all", fresh  # the reused files are older than the transaction

    def _rewritten(self, snapshot: Snapshot, bins: Sequence[Bin], before: Sequence[Written]) -> list[Written]:
        written: list[Written] = []
        try:
            for one in self.rewrite(snapshot, bins, self.plan) if bins else ():
                written.append(one)
                self.told.more(len(one.bin.adds))
        except BaseException:
            _discard(snapshot, [*before, *written])
            raise
        return written

    def _after_losing(self, snapshot: Snapshot, done: Sequence[Written]) -> tuple[Transaction, list[Written], list[Bin]]:
        """Start a transaction on the newest version; return it, the rewritten bins that can be used for it, and the other bins."""
        try:
            transaction = self.begin()
            return transaction, *_kept(done, snapshot, self.plan, transaction.existing())
        except BaseException:
            _discard(snapshot, done)
            raise

    def _commit(self, transaction: Transaction, done: Sequence[Written], vectors: list[str]) -> None:
        """Commit the rewritten bins; append the names of the new deletion vector files to `vectors`."""
        removed = [add for one in done for add in one.replaced]
        added = _with_dead_rows(transaction, done, vectors)
        stage_replacement(transaction, removed, added)
        committed = self.commit(transaction, operation_of(self.plan, removed, added))
        kept = {add.path for add in added}
        _delete(
            committed.snapshot, _names(committed.snapshot, (add for one in done for add in one.added if add.path not in kept))
        )
        self.version = committed.version
        self.batches += 1
        self.bins += len(done)
        self.removed += removed
        self.added += added

    def _still_there(self, bins: Sequence[Bin], snapshot: Snapshot) -> list[Bin]:
        """Return the bins as of a version: without removed files, and with the current deletion vectors."""
        if snapshot.version == self.plan.version:
            return list(bins)
        live = _live(snapshot, bins)
        found = (tuple(live[add.path] for add in one.adds if add.path in live) for one in bins)
        return [Bin(adds) for adds in found if self.plan.is_worth_it(adds)]


@dataclass
class _Told:
    """Reports the number of rewritten files."""

    progress: Progress
    total: int
    done: int = 0

    def more(self, files: int) -> None:
        self.done += files
        self.progress("files rewritten", self.done, max(self.total, self.done))


def _kept(done: Sequence[Written], snapshot: Snapshot, plan: OptimizePlan, fresh: Snapshot) -> tuple[list[Written], list[Bin]]:
    """Return the rewritten bins that can be used for a newer version, and the other bins, whose new files are deleted."""
    live = _live(fresh, [one.bin for one in done])
    # The content of the files depends on the table's metadata: schema, column names, codec.
    same = (snapshot.metadata, snapshot.protocol) == (fresh.metadata, fresh.protocol)
    found = [(one, carried(one, snapshot, plan, live, fresh) if same else None) for one in done]
    lost = [one for one, now in found if now is None]
    _discard(snapshot, lost)
    return [now for _, now in found if now is not None], [one.bin for one in lost]


def _with_dead_rows(transaction: Transaction, done: Sequence[Written], vectors: list[str]) -> list[AddFile]:
    """Return the new files, with deletion vectors for rows deleted meanwhile; files without live rows are left out."""
    config, url = transaction.existing().config, transaction.store.url
    new = [(add, one.dead.get(place)) for one in done for place, add in enumerate(one.added)]
    marked = [(add, dead) for add, dead in new if dead is not None and len(dead) < physical_rows(transaction.store, add)]
    with_vectors = files_with_vectors(transaction, config, [add for add, _ in marked], [dead for _, dead in marked])
    vectors += {name for add in with_vectors if add.deletion_vector and (name := file_name(add.deletion_vector, url))}
    by_path = {add.path: add for add in with_vectors}
    return [by_path.get(add.path, add) for add, dead in new if dead is None or add.path in by_path]


def _live(snapshot: Snapshot, bins: Sequence[Bin]) -> dict[str, AddFile]:
    """Return those of the bins' files that are live in the version, by path."""
    paths = array([add.path for one in bins for add in one.adds], pa.string())
    files = snapshot.files()
    return {add.path: add for add in add_files(files.filter(pc.is_in(files["path"], value_set=paths)))}


def _discard(snapshot: ScannedVersion, written: Iterable[Written]) -> None:
    _delete(snapshot, _names(snapshot, (add for one in written for add in one.added)))


def _names(snapshot: ScannedVersion, adds: Iterable[AddFile]) -> Iterator[str]:
    return (decode_path(add.path, snapshot.store.url) for add in adds)


def _delete(snapshot: ScannedVersion, names: Iterable[str]) -> None:
    """Delete files that no version references; if a deletion fails, VACUUM deletes the file later."""
    for name in names:
        with suppress(StorageFailure):
            snapshot.store.delete(name)
