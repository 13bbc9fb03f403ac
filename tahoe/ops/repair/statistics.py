"""ANALYZE TABLE … COMPUTE DELTA STATISTICS: the statistics of every file made anew of its rows, as the properties ask for them now.

Wanted after CONVERT TO DELTA without statistics, after a change of ``delta.dataSkippingNumIndexedCols`` or ``…StatsColumns``, where
`tahoe check --deep` finds wrong ones, and for greatest floats of other writers, which are not used (`tahoe.protocol.nan_bounds`). Files
stay as they are; one commit, with ``dataChange`` false, gives those another text that need one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tahoe.exceptions import DeltaConcurrentModificationException
from tahoe.expr.condition_forms import Condition, stated
from tahoe.ops.rows.conditions import partition_files
from tahoe.ops.write.stored_layout import Layout
from tahoe.progress import Progress, silent
from tahoe.protocol.actions import AddFile
from tahoe.protocol.enforced import ENFORCED
from tahoe.protocol.nan_bounds import has_greatest_float, is_nan_counted, with_stats_text
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.scan import BareVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction
from tahoe.wording import counted

__all__ = ["Analyzed", "Collect", "collected_here", "compute_statistics", "statistics_of_file"]

Collect = Callable[[Snapshot, Sequence[AddFile]], Iterator[str]]
"""The statistics of files of a version, in their order."""

_THREADS = 4
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What an ANALYZE did, or would do. `print` shows it.

    Args:
        table: its URL.
        version: the commit; None of a dry run, and where all statistics were right.
        files: how many were looked at.
        changed: how many have got other statistics.
    """

    table: str
    version: int | None
    files: int
    changed: int

    def __str__(self) -> str:
        has = "have got" if self.version is not None else "need"
        return f"Of {counted(self.files, 'file')} of {self.table} {self.changed:,} {has} other statistics."


def compute_statistics(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    collect: Collect,
    where: Condition | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Analyzed:
    """Give the files statistics of their rows.

    Args:
        begin: a transaction on the newest version.
        commit: commits one.
        collect: reads the files.
        where: on partition columns; only these partitions.
        dry_run: read the files, tell how many need other statistics, and commit nothing.
        progress: told of the files read.

    Raises:
        NotFound: there is no table, or a file is gone.
        InvalidRequest: a predicate on other columns (``DELTA_NON_PARTITION_COLUMN_REFERENCE``).
    """
    for left in reversed(range(_TRIES)):
        transaction = begin()
        snapshot = transaction.existing()
        adds, changed = partition_files(snapshot, where), list[AddFile]()
        config = snapshot.config
        indexed = indexed_columns(config.schema, config.partition_columns, config.metadata.configuration)
        for done, (add, stats) in enumerate(zip(adds, collect(snapshot, adds), strict=True), start=1):
            nan_counted = has_greatest_float(FileStatistics.from_json(stats), indexed)
            if not _same(add.stats, stats) or (nan_counted and not is_nan_counted(add.tags)):
                changed.append(replace(with_stats_text(add, stats, nan_counted=nan_counted), data_change=False))
            progress("files read", done, len(adds))
        told = Analyzed(snapshot.store.url, None, len(adds), len(changed))
        if dry_run or not changed:
            return told
        transaction.read_files(add.key for add in changed)
        transaction.enforces = ENFORCED  # no row comes
        transaction.row_ids_kept = True
        transaction.stage(*changed)
        shown = json.dumps([] if where is None else [str(stated(where, snapshot.schema))], separators=(",", ":"))
        try:
            return replace(told, version=commit(transaction, Operation("COMPUTE STATS", {"predicate": shown})).version)
        except DeltaConcurrentModificationException:
            if not left:
                raise  # else another writer changed these files: look again
    raise AssertionError


def collected_here(snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[str]:
    """A `Collect` by threads of this process."""
    version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-statistics") as pool:
        yield from pool.map(partial(statistics_of_file, version), adds)


def statistics_of_file(version: BareVersion, add: AddFile) -> str:
    """The statistics of all rows of a file, dead ones included, whose bounds are then not tight (PROTOCOL.md, "Per-file Statistics")."""
    config, store = version.config, version.store
    layout, configuration = Layout.of(config), config.metadata.configuration
    indexed = indexed_columns(config.schema, config.partition_columns, configuration)
    collected = StatisticsCollector(indexed, string_prefix_length(configuration))
    task = ReadTask(decode_path(add.path, store.url, outside=True), add.size, dict(add.partition_values))
    for batch in DataFiles(store, config).read(task):
        if batch.num_rows:
            collected.add(layout.conformed(pa.Table.from_batches([batch])).select(layout.file_columns))
    found = collected.statistics()
    return (found if add.deletion_vector is None else found.widened()).to_json()


def _same(before: str | None, after: str) -> bool:
    try:
        return before is not None and json.loads(before) == json.loads(after)
    except (ValueError, RecursionError):
        return False
