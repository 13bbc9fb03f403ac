"""Auto compaction: a commit that leaves many small files in a partition is followed by an OPTIMIZE of that partition.

    commit ─ new files in partitions ─► those with at least so many small files ─► OPTIMIZE of these, to files of a moderate size

It runs as a hook, after the commit was acknowledged, so whatever it meets is told and fails nobody. Its own commit brings no new rows and so
is followed by none. Other writers neither wait for it nor lose to it: it asks nobody to wait, and is rebased as any OPTIMIZE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

from tahoe.expr.tree.predicate import And, Column, Comparison, Literal, Predicate, any_of
from tahoe.lazy import pc
from tahoe.ops.layout.optimize_plan import OptimizeRequest
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.partition import deserialize
from tahoe.schema.types import StructField
from tahoe.txn.commit import Committed, RetryPolicy

__all__ = ["GENTLE", "AutoCompaction", "Partition", "Reserved", "compaction_after"]

Partition: TypeAlias = tuple[tuple[str, str | None], ...]
"""The values of a partition as the log writes them, by physical name, sorted."""

GENTLE = RetryPolicy(deadline_seconds=60.0, losses_before_asking=1_000_000)
"""How its commit tries: it never asks other writers to wait, and gives up soon."""

_MEGABYTE = 1024 * 1024
_OF_FILES_THAT_WERE_THERE = ("RESTORE", "CLONE", "CONVERT")


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """When small files are compacted after a commit. The defaults are the reference's; a session may say otherwise.

    Args:
        enabled: None for what the table's properties say.
        target: bytes that a new file is to have.
        least: files of fewer bytes are small; None for half of the target.
        min_files: so many small files in a partition are enough.
        modified_only: compact only partitions to which the commit added files.
        most_partitions: at most so many of them at once, those with most small files first.
        not_after_appends: leave commits alone that only append without looking.
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
        """Files of fewer bytes are small."""
        return self.target // 2 if self.least is None else self.least

    def is_on(self, config: TableConfig) -> bool:
        """Whether commits to the table are followed by compaction: by the session, else by the table's properties."""
        return config.properties.auto_compacts if self.enabled is None else self.enabled


@dataclass
class Reserved:
    """Partitions that are being compacted in this process, so that two writers do not both do it."""

    taken: set[tuple[str, Partition]] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def of(self, table: str, wanted: Iterable[Partition]) -> Iterator[list[Partition]]:
        """Inside, those of the partitions that nobody else has, and nobody else will get."""
        with self.lock:
            free = [one for one in wanted if (table, one) not in self.taken]
            mine = {(table, one) for one in free}
            self.taken |= mine
        try:
            yield free
        finally:
            with self.lock:
                self.taken -= mine


def compaction_after(
    committed: Committed, settings: AutoCompaction, reserved: Reserved, run: Callable[[OptimizeRequest], object]
) -> None:
    """Compact what a commit has left, where that is asked for and worth it.

    Args:
        reserved: of this process.
        run: an OPTIMIZE of the table, by `GENTLE`.

    Raises: what `run` raises.
    """
    if not settings.is_on(committed.snapshot.config) or not _is_followed(committed, settings):
        return
    with reserved.of(committed.snapshot.store.url, _worth_it(committed, settings)) as partitions:
        if partitions:
            run(_request(committed.snapshot.config, partitions if settings.modified_only else [], settings))


def _is_followed(committed: Committed, settings: AutoCompaction) -> bool:
    """Whether a commit brought rows in files that it wrote itself."""
    if settings.not_after_appends and committed.prepared.is_blind_append:
        return False
    return committed.prepared.commit_info.get("operation") not in _OF_FILES_THAT_WERE_THERE and bool(_touched(committed))


def _touched(committed: Committed) -> set[Partition]:
    """The partitions to which the commit added rows. (A file with another deletion vector is none that it added.)"""
    there = {action.path for action in committed.actions if isinstance(action, RemoveFile)}
    adds = (action for action in committed.actions if isinstance(action, AddFile) and action.data_change)
    return {_partition(add.partition_values) for add in adds if add.path not in there}


def _worth_it(committed: Committed, settings: AutoCompaction) -> list[Partition]:
    """The partitions with enough small files, those with most of them first."""
    files = committed.snapshot.files()
    small = files.filter(pc.less(files["size"], settings.small))
    if small.num_rows < settings.min_files:
        return []
    touched = _touched(committed)
    counts = Counter(_partition(dict(values)) for values in small["partitionValues"].to_pylist())
    found = [(partition, count) for partition, count in counts.most_common() if count >= settings.min_files]
    if not settings.modified_only:
        return [partition for partition, _ in found]
    return [partition for partition, _ in found if partition in touched][: settings.most_partitions]


def _partition(values: Mapping[str, str | None]) -> Partition:
    return tuple(sorted(values.items()))


def _request(config: TableConfig, partitions: list[Partition], settings: AutoCompaction) -> OptimizeRequest:
    where = _condition(config, partitions)
    return OptimizeRequest(where, target_file_size=settings.target, min_file_size=settings.small, is_auto=True)


def _condition(config: TableConfig, partitions: list[Partition]) -> Predicate | None:
    """True in these partitions; None for all of them."""
    columns = config.partition_schema.fields
    if not partitions or not columns:
        return None
    return any_of(_is_partition(columns, dict(one)) for one in partitions)


def _is_partition(columns: Sequence[StructField], values: Mapping[str, str | None]) -> Predicate:
    literals = [Literal(deserialize(values[column.physical_name], column.data_type), column.data_type) for column in columns]
    return And(tuple(Comparison("<=>", Column((column.name,)), value) for column, value in zip(columns, literals, strict=True)))
