"""Auto compaction: a commit that leaves many small files in a partition is followed by an OPTIMIZE of that partition.

    commit ─ new files in partitions ─► partitions with at least `min_files` small files ─► OPTIMIZE of these, to files of a moderate size

It runs as a hook after the commit was acknowledged, so an error is logged and fails no write. Its own commit adds no rows, so it
triggers no further compaction. It does not delay other writers: it never requests priority, and is rebased like any OPTIMIZE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import And, Column, Comparison, Literal, Predicate, any_of
from tahoe.ops.layout.optimize_plan import OptimizeRequest
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.partition import deserialize
from tahoe.schema.types import StructField
from tahoe.txn.commit import Committed, RetryPolicy

Partition: TypeAlias = tuple[tuple[str, str | None], ...]
"""The serialized values of a partition with their columns' physical names, sorted by name."""

GENTLE = RetryPolicy(deadline_seconds=60.0, losses_before_asking=1_000_000)
"""The retry policy of its commit: it never asks other writers to wait, and gives up early."""

_MEGABYTE = 1024 * 1024
_OF_FILES_THAT_WERE_THERE = ("RESTORE", "CLONE", "CONVERT")


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """The settings of auto compaction. The defaults are delta-spark's; a session may override them.

    Args:
        enabled: whether it is on; None to use the table's properties.
        target: the size of a new file in bytes.
        least: files with fewer bytes are small; None for half of the target.
        min_files: the number of small files from which a partition is compacted.
        modified_only: compact only partitions to which the commit added files.
        most_partitions: the greatest number of partitions in one run; those with the most small files come first.
        not_after_appends: do not compact after blind appends.
    """

    enabled: bool | None = None
    target: int = 128 * _MEGABYTE
    least: int | None = None
    min_files: int = 50
    modified_only: bool = True
    most_partitions: int = 128
    not_after_appends: bool = False

    @property
    def small(self) -> int:
        """The size in bytes below which a file is small."""
        return self.target // 2 if self.least is None else self.least

    def is_on(self, config: TableConfig) -> bool:
        """Whether commits to the table trigger compaction: the session's setting, else the table's properties."""
        return config.properties.auto_compacts if self.enabled is None else self.enabled


@dataclass
class PartitionReservations:
    """The partitions that this process is compacting, so that two writers do not compact the same partition."""

    taken: set[tuple[str, Partition]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def of(self, table: str, partitions: Iterable[Partition]) -> Iterator[list[Partition]]:
        """Reserve those of the partitions that are free, and release them at the end of the `with` block."""
        with self.lock:
            free = [partition for partition in partitions if (table, partition) not in self.taken]
            mine = {(table, partition) for partition in free}
            self.taken |= mine
        try:
            yield free
        finally:
            with self.lock:
                self.taken -= mine


def compaction_after(
    committed: Committed, settings: AutoCompaction, reserved: PartitionReservations, run: Callable[[OptimizeRequest], object]
) -> None:
    """Compact small files after a commit if auto compaction is on and there are enough of them.

    Args:
        reserved: the reservations of this process.
        run: runs an OPTIMIZE of the table with the retry policy `GENTLE`.

    Raises: the errors of `run`.
    """
    if not settings.is_on(committed.snapshot.config) or not _is_followed(committed, settings):
        return
    with reserved.of(committed.snapshot.store.url, _worth_it(committed, settings)) as partitions:
        if partitions:
            run(_request(committed.snapshot.config, partitions if settings.modified_only else [], settings))


def _is_followed(committed: Committed, settings: AutoCompaction) -> bool:
    """Whether a commit added rows in new files, so that compaction may follow."""
    if settings.not_after_appends and committed.prepared.is_blind_append:
        return False
    return committed.prepared.commit_info.get("operation") not in _OF_FILES_THAT_WERE_THERE and bool(_touched(committed))


def _touched(committed: Committed) -> set[Partition]:
    """Return the partitions to which the commit added rows. An existing file with a new deletion vector does not count."""
    there = {action.path for action in committed.actions if isinstance(action, RemoveFile)}
    adds = (action for action in committed.actions if isinstance(action, AddFile) and action.data_change)
    return {_partition(add.partition_values) for add in adds if add.path not in there}


def _worth_it(committed: Committed, settings: AutoCompaction) -> list[Partition]:
    """Return the partitions with enough small files, those with the most small files first."""
    files = committed.snapshot.files()
    small = files.filter(pc.less(files["size"], settings.small))
    if small.num_rows < settings.min_files:
        return []
    touched = _touched(committed)
    counts = Counter(_partition(dict(values)) for values in small["partitionValues"].to_pylist())
    counted = [(partition, count) for partition, count in counts.most_common() if count >= settings.min_files]
    if not settings.modified_only:
        return [partition for partition, _ in counted]
    return [partition for partition, _ in counted if partition in touched][: settings.most_partitions]


def _partition(values: Mapping[str, str | None]) -> Partition:
    return tuple(sorted(values.items()))


def _request(config: TableConfig, partitions: list[Partition], settings: AutoCompaction) -> OptimizeRequest:
    where = _condition(config, partitions)
    return OptimizeRequest(where, target_file_size=settings.target, min_file_size=settings.small, is_auto=True)


def _condition(config: TableConfig, partitions: list[Partition]) -> Predicate | None:
    """Return a predicate that selects these partitions; None for the whole table."""
    columns = config.partition_schema.fields
    if not partitions or not columns:
        return None
    return any_of(_is_partition(columns, dict(partition)) for partition in partitions)


def _is_partition(columns: Sequence[StructField], values: Mapping[str, str | None]) -> Predicate:
    literals = [Literal(deserialize(values[column.physical_name], column.data_type), column.data_type) for column in columns]
    return And(tuple(Comparison("<=>", Column((column.name,)), value) for column, value in zip(columns, literals, strict=True)))
