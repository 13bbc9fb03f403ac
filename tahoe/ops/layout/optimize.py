"""OPTIMIZE: small files and files with many dead rows become few large ones, with the same rows. Nothing that others write is in its way.

    plan ─► bins ─► batches: each bin rewritten, side by side ─► one commit a batch, dataChange = false
                      ▲                                            │ another writer won
                      ├── files of a bin are gone: it is done anew ◄─┤
                      └── files lost rows: these are marked dead in what was written for it, and all others keep what they have

Who rewrites is an argument: `rewritten_here` in this process, or Spark's executors. Each batch is a transaction of its own, so what was
committed stays whatever becomes of the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.exceptions import CommitStateUnknown, DeltaConcurrentModificationException, StorageFailure, TahoeError
from tahoe.lazy import pc
from tahoe.log.replay import add_files
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.carried import Written, carried
from tahoe.ops.layout.clustered import clustered
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest, plan_optimize
from tahoe.ops.layout.optimize_report import Optimized, operation_of
from tahoe.ops.rows.row_changes import files_with_vectors, physical_rows, snapshot_to_change
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.rewrite import rewritten, stage_replacement
from tahoe.progress import Progress, silent
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import file_name
from tahoe.snapshot.scan import ScannedVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Rewrite", "Written", "optimize", "rewritten_here"]

_ROUNDS = 10
"""So often a batch is tried again when others won; after the third time bins whose files others changed are left as they are."""
_ROUNDS_OF_REDOING = 3


Rewrite: TypeAlias = Callable[[Snapshot, Sequence[Bin], OptimizePlan], Iterator[Written]]
"""Writes bins anew, and hands them over in their order. When it fails, it takes back what it has not handed over, at the least."""


def optimize(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    request: OptimizeRequest,
    rewrite: Rewrite,
    progress: Progress = silent,
) -> Optimized:
    """Write files anew as the request says, and tell what was done.

    Args:
        begin: a transaction on the newest version.
        commit: commits one.
        progress: told of the files that are rewritten.

    Raises:
        NotFound: there is no table.
        InvalidRequest: a condition on other than partition columns; columns to cluster by that are not there, partition the table, or
            have no statistics.
        DeltaConcurrentModificationException: others won ten times in a row; what was committed before stays.
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
    """Bins written anew in this process, a few files side by side: as many as there are processors, since each holds some row groups."""
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
    added = clustered(version, one.adds, plan.paths, plan.files_of(one), plan.request.curve, clock, threads)
    return Written(one, tuple(added), has_known_places=True)


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
    """What has been done so far."""

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
        """Rewrite bins and commit them together, anew where others changed their files meanwhile."""
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
                raise  # the commit may be there, and need its files
            except TahoeError as error:
                _delete(snapshot, vectors)
                if attempt == _ROUNDS or not isinstance(error, DeltaConcurrentModificationException):
                    _discard(snapshot, done)
                    raise
            transaction, done, lost = self._after_losing(snapshot, done)
            fresh = transaction.existing()
            waiting = self._still_there(lost, fresh) if attempt <= _ROUNDS_OF_REDOING else []
            transaction.looks_for, snapshot = "all", fresh  # what is kept was written before it

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
        """A transaction on the newest version, what was written that stands for it, and the bins of the rest."""
        try:
            transaction = self.begin()
            return transaction, *_kept(done, snapshot, self.plan, transaction.existing())
        except BaseException:
            _discard(snapshot, done)
            raise

    def _commit(self, transaction: Transaction, done: Sequence[Written], vectors: list[str]) -> None:
        """Commit what was written; the names of files of deletion vectors that are written for it are put into `vectors`."""
        removed = [add for one in done for add in one.replaced]
        added = _with_dead_rows(transaction, done, vectors)
        stage_replacement(transaction, removed, added)
        committed = self.commit(transaction, operation_of(self.plan.request, removed, added))
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
        """The bins as they are at a version: without files that are gone, and with the vectors that files have now."""
        live = _live(snapshot, bins)
        found = (tuple(live[add.path] for add in one.adds if add.path in live) for one in bins)
        return [Bin(adds) for adds in found if self.plan.is_worth_it(adds)]


@dataclass
class _Told:
    """Tells how many files are rewritten."""

    progress: Progress
    total: int
    done: int = 0

    def more(self, files: int) -> None:
        self.done += files
        self.progress("files rewritten", self.done, max(self.total, self.done))


def _kept(done: Sequence[Written], snapshot: Snapshot, plan: OptimizePlan, fresh: Snapshot) -> tuple[list[Written], list[Bin]]:
    """What was written that stands for files of a newer version, and the bins of the rest, whose new files are deleted."""
    live = _live(fresh, [one.bin for one in done])
    # Files are written by the table's metadata: by its schema, its names of columns, its codec.
    same = (snapshot.metadata, snapshot.protocol) == (fresh.metadata, fresh.protocol)
    found = [(one, carried(one, snapshot, plan, live, fresh) if same else None) for one in done]
    lost = [one for one, now in found if now is None]
    _discard(snapshot, lost)
    return [now for _, now in found if now is not None], [one.bin for one in lost]


def _with_dead_rows(transaction: Transaction, done: Sequence[Written], vectors: list[str]) -> list[AddFile]:
    """The new files, with deletion vectors for rows that died meanwhile; files of which no row lives are left out."""
    config, url = transaction.existing().config, transaction.store.url
    new = [(add, one.dead.get(place)) for one in done for place, add in enumerate(one.added)]
    marked = [(add, dead) for add, dead in new if dead is not None and len(dead) < physical_rows(transaction.store, add)]
    with_vectors = files_with_vectors(transaction, config, [add for add, _ in marked], [dead for _, dead in marked])
    vectors += {name for add in with_vectors if add.deletion_vector and (name := file_name(add.deletion_vector, url))}
    by_path = {add.path: add for add in with_vectors}
    return [by_path.get(add.path, add) for add, dead in new if dead is None or add.path in by_path]


def _live(snapshot: Snapshot, bins: Sequence[Bin]) -> dict[str, AddFile]:
    """By path, those of the bins' files that the version has."""
    paths = pa.array([add.path for one in bins for add in one.adds], pa.string())
    files = snapshot.files()
    return {add.path: add for add in add_files(files.filter(pc.is_in(files["path"], value_set=paths)))}


def _discard(snapshot: ScannedVersion, written: Iterable[Written]) -> None:
    _delete(snapshot, _names(snapshot, (add for one in written for add in one.added)))


def _names(snapshot: ScannedVersion, adds: Iterable[AddFile]) -> Iterator[str]:
    return (decode_path(add.path, snapshot.store.url) for add in adds)


def _delete(snapshot: ScannedVersion, names: Iterable[str]) -> None:
    """Take back files that no version has; those that storage keeps are left for VACUUM."""
    for name in names:
        with suppress(StorageFailure):
            snapshot.store.delete(name)
