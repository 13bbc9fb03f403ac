"""ANALYZE TABLE … COMPUTE DELTA STATISTICS: recompute the statistics of every file from its rows, according to the current properties.

Useful after CONVERT TO DELTA without statistics, after a change of ``delta.dataSkippingNumIndexedCols`` or ``…StatsColumns``, if
`tahoe check --deep` reports wrong statistics, and for float maximums of other writers, which are not used (`tahoe.protocol.nan_bounds`).
Data files stay unchanged; a single commit, with ``dataChange`` false, updates the statistics that differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tahoe.base.html import ShownAsText
from tahoe.base.progress import Progress, silent
from tahoe.base.wording import counted
from tahoe.expr.condition_forms import Condition
from tahoe.ops.rows.conditions import select_partitions
from tahoe.ops.write.stored_layout import Layout
from tahoe.protocol.actions import AddFile
from tahoe.protocol.features import ENFORCED
from tahoe.protocol.nan_bounds import has_greatest_float, is_nan_counted, with_stats_text
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.scan import BareVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.commit import Committed
from tahoe.txn.retries import retried
from tahoe.txn.transaction import Operation, Transaction

Collect = Callable[[Snapshot, Sequence[AddFile]], Iterator[str]]
"""Computes the statistics of files of a version, in their order."""

_THREADS = 4


@dataclass(frozen=True, slots=True)
class Analyzed(ShownAsText):
    """The result of an ANALYZE or of its dry run; `str` gives a readable summary.

    Args:
        table: the URL of the table.
        version: the version of the commit; None for a dry run, and if all statistics were correct.
        files: the number of files that were read.
        changed: the number of files whose statistics changed.
    """

    table: str
    version: int | None
    files: int
    changed: int

    def __str__(self) -> str:
        verb = "were given" if self.version is not None else "need"
        return f"Of {counted(self.files, 'file')} of {self.table}, {self.changed:,} {verb} new statistics."


def compute_statistics(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    collect: Collect,
    where: Condition | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Analyzed:
    """Recompute the statistics of the files from their rows.

    Args:
        begin: starts a transaction on the newest version.
        commit: commits a transaction.
        collect: reads the files and computes their statistics.
        where: a condition on partition columns that selects partitions.
        dry_run: read the files and report how many need other statistics, but commit nothing.
        progress: called after each file.

    Raises:
        NotFound: there is no table, or a file is missing.
        InvalidRequest: the condition uses other columns (``DELTA_NON_PARTITION_COLUMN_REFERENCE``).
    """

    def attempt() -> Analyzed:
        transaction = begin()
        snapshot = transaction.existing()
        selected, changed = select_partitions(snapshot, where, transaction.moment()), list[AddFile]()
        adds = selected.adds
        config = snapshot.config
        indexed = indexed_columns(config.schema, config.partition_columns, config.metadata.configuration)
        for done, (add, stats) in enumerate(zip(adds, collect(snapshot, adds), strict=True), start=1):
            nan_counted = has_greatest_float(FileStatistics.from_json(stats), indexed)
            if not _same(add.stats, stats) or (nan_counted and not is_nan_counted(add.tags)):
                changed.append(replace(with_stats_text(add, stats, nan_counted=nan_counted), data_change=False))
            progress("files read", done, len(adds))
        result = Analyzed(snapshot.store.url, None, len(adds), len(changed))
        if dry_run or not changed:
            return result
        transaction.read_files(add.key for add in changed)
        transaction.enforces = ENFORCED  # adds no rows
        transaction.row_ids_kept = True
        transaction.stage(*changed)
        shown = json.dumps([] if selected.condition is None else [selected.condition], separators=(",", ":"))
        return replace(result, version=commit(transaction, Operation("COMPUTE STATS", {"predicate": shown})).version)

    return retried(attempt)


def collected_here(snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[str]:
    """A `Collect` that uses threads of this process."""
    version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-statistics") as pool:
        yield from pool.map(partial(statistics_of_file, version), adds)


def statistics_of_file(version: BareVersion, add: AddFile) -> str:
    """Return the statistics of all rows of a file, including deleted ones; then the bounds are wide (PROTOCOL.md, "Per-file Statistics")."""
    config, store = version.config, version.store
    layout, configuration = Layout.of(config), config.metadata.configuration
    indexed = indexed_columns(config.schema, config.partition_columns, configuration)
    collected = StatisticsCollector(indexed, string_prefix_length(configuration))
    task = ReadTask(decode_path(add.path, store.url, outside=True), add.size, dict(add.partition_values))
    for batch in DataFiles(store, config).read(task):
        if batch.num_rows:
            collected.add(layout.conformed(pa.Table.from_batches([batch])).select(layout.file_columns))
    statistics = collected.statistics()
    return (statistics if add.deletion_vector is None else statistics.widened()).to_json()


def _same(before: str | None, after: str) -> bool:
    try:
        return before is not None and json.loads(before) == json.loads(after)
    except (ValueError, RecursionError):
        return False
