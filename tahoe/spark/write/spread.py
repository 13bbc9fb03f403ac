"""One bin clustered by many tasks of Spark: each reads some of its files and parts their rows by cells, and others write the cells.

    files ─► tasks: rows ─ cell of each ─► blobs of Arrow, by cell ─ Spark's shuffle ─► tasks: the blobs of a cell ─► a file

Where the cells lie is decided once, from a sample (`tahoe.ops.layout.clustered.placement_of`); so any part of the rows can be placed by
itself. Rows go through the shuffle as Arrow has them, some megabytes at a time, and never to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import TahoeError
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.clustered import MOST_BYTES_IN_MEMORY, part_by_cells, placement_of
from tahoe.ops.layout.curves import Placement
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.rewrite import written_anew
from tahoe.ops.write.spill import Spill
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path
from tahoe.snapshot.scan import BareVersion

__all__ = ["clustered_by_tasks", "is_worth_spreading"]

_LEAST_BYTES = 64 * 1024 * 1024
"""A smaller bin is clustered by one task: to part it costs more than it gains."""
_TASKS_A_CORE = 3

Blob = tuple[int, bytes | TahoeError]
"""Rows of a cell; or what went wrong, which is an answer too, so that it comes back as it is."""


def is_worth_spreading(spark: SparkSession, one: Bin, plan: OptimizePlan) -> bool:
    """Whether a bin is to be clustered by many tasks."""
    several = len(one.adds) > 1 and plan.files_of(one) > 1 and spark.sparkContext.defaultParallelism > 1
    return plan.clusters and several and one.size >= _LEAST_BYTES


def clustered_by_tasks(spark: SparkSession, version: BareVersion, one: Bin, plan: OptimizePlan) -> list[AddFile | TahoeError]:
    """Write a bin anew, laid out by the plan's columns; the actions that add the new files, or errors among them. Nothing is committed."""
    cells, context = plan.files_of(one), spark.sparkContext
    where = placement_of(version, one.adds, plan.paths, cells, plan.request.curve)
    parts = _parts(one.adds, context.defaultParallelism * _TASKS_A_CORE)
    rows = context.parallelize(parts, len(parts)).flatMap(_Parting(version, plan.paths, where))
    writing = _Writing(version, dict(one.adds[0].partition_values))
    found: list[AddFile | TahoeError] = rows.partitionBy(cells, int).mapPartitions(writing).collect()
    return found


def _parts(adds: Sequence[AddFile], count: int) -> list[list[AddFile]]:
    """The files in so many parts of about the same size, the largest files first."""
    parts: list[list[AddFile]] = [[] for _ in range(min(count, len(adds)))]
    sizes = [0] * len(parts)
    for add in sorted(adds, key=lambda one: -one.size):
        least = sizes.index(min(sizes))
        parts[least].append(add)
        sizes[least] += add.size
    return parts


@dataclass(frozen=True, slots=True)
class _Parting:
    """Reads files, and parts their rows by cells."""

    version: BareVersion
    paths: Sequence[Path]
    where: Placement

    def __call__(self, adds: list[AddFile]) -> Iterator[Blob]:
        try:
            with Spill(MOST_BYTES_IN_MEMORY) as spill:
                part_by_cells(self.version, adds, self.paths, self.where, spill)
                for cell in spill.groups:
                    for batch in spill.take(cell):
                        yield cell, _bytes_of(batch)
        except TahoeError as error:
            yield 0, error


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes the rows of a cell as a file."""

    version: BareVersion
    partition_values: dict[str, str | None]

    def __call__(self, blobs: Iterable[Blob]) -> Iterator[AddFile | TahoeError]:
        name = new_name(self.version.config, SYSTEM_CLOCK, self.partition_values)
        try:
            new = written_anew(self.version, _rows(blobs), SYSTEM_CLOCK, name, self.partition_values)
        except TahoeError as error:
            yield error
        else:
            if new is not None:
                yield new


def _rows(blobs: Iterable[Blob]) -> Iterator[pa.RecordBatch]:
    for _, blob in blobs:
        if isinstance(blob, TahoeError):
            raise blob
        with pa.ipc.open_stream(blob) as reader:
            yield from reader


def _bytes_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
