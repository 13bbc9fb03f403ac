"""One bin rewritten by many tasks of Spark: each reads some of its files, and others write what these have read.

    to cluster it: files ─► tasks: rows ─ cell of each ─► blobs of Arrow, by cell ─ Spark's shuffle ─► tasks: the blobs of a cell ─► a file
    to join it:    files ─► tasks: rows in their order ─► blobs of Arrow, by part  ─ Spark's shuffle ─► one task: part after part ─► a file

Where the cells lie is decided once, from a sample (`tahoe.ops.layout.clustered.placement_of`); so any part of the rows can be placed by
itself. Rows go through the shuffle as Arrow has them, some megabytes at a time, and never to the driver.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise

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
from tahoe.snapshot.scan import BareVersion, Scan

__all__ = ["clustered_by_tasks", "is_worth_joining", "is_worth_spreading", "joined_by_tasks"]

_LEAST_BYTES = 64 * 1024 * 1024
"""A smaller bin is clustered by one task: to part it costs more than it gains."""
_TASKS_A_CORE = 3
_LEAST_FILES = 1_000
_LEAST_FILES_OF_A_PART = 250
_BYTES_OF_A_TINY_FILE = 64 * 1024
"""Of files as small as this the number costs, not the bytes: to read them in several tasks gains more than the shuffle of their rows costs."""

Blob = tuple[int, bytes | TahoeError]
"""Rows of a cell or of a part; or what went wrong, which is an answer too, so that it comes back as it is."""


def is_worth_spreading(spark: SparkSession, one: Bin, plan: OptimizePlan) -> bool:
    """Whether a bin is to be clustered by many tasks."""
    several = len(one.adds) > 1 and plan.files_of(one) > 1 and spark.sparkContext.defaultParallelism > 1
    return plan.clusters and several and one.size >= _LEAST_BYTES


def is_worth_joining(spark: SparkSession, one: Bin, bins: int) -> bool:
    """Whether the files of a bin that is only compacted are to be read by many tasks: they are many and tiny, and cores would be idle.

    Args:
        bins: so many are written anew side by side.
    """
    many = len(one.adds) >= _LEAST_FILES and one.size <= len(one.adds) * _BYTES_OF_A_TINY_FILE
    return many and bins < spark.sparkContext.defaultParallelism


def joined_by_tasks(spark: SparkSession, version: BareVersion, one: Bin) -> list[AddFile | TahoeError]:
    """Write the living rows of a bin as one file, in the order of its files; the action that adds it, if it has rows, or errors. Nothing
    is committed."""
    context = spark.sparkContext
    parts = _runs(one.adds, min(context.defaultParallelism, len(one.adds) // _LEAST_FILES_OF_A_PART))
    rows = context.parallelize(list(enumerate(parts)), len(parts)).flatMap(_Reading(version))
    writing = _Writing(version, dict(one.adds[0].partition_values), in_parts=True)
    found: list[AddFile | TahoeError] = rows.partitionBy(1, int).mapPartitions(writing).collect()
    return found


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


def _runs(adds: Sequence[AddFile], count: int) -> list[Sequence[AddFile]]:
    """The files in so many runs of about as many each, in their order."""
    ends = [len(adds) * part // count for part in range(count + 1)]
    return [adds[start:end] for start, end in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads a part of the files of a bin, in their order."""

    version: BareVersion

    def __call__(self, part: tuple[int, Sequence[AddFile]]) -> Iterator[Blob]:
        number, adds = part
        try:
            with closing(Scan(self.version).read_to_move(adds, ahead=False)) as rows:
                for batch in rows:
                    yield number, _bytes_of(batch)
        except TahoeError as error:
            yield number, error


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
    """Writes the rows of a cell, or of all parts, as a file.

    Args:
        in_parts: whether rows are written part by part, in whatever order these come.
    """

    version: BareVersion
    partition_values: dict[str, str | None]
    in_parts: bool = False

    def __call__(self, blobs: Iterable[Blob]) -> Iterator[AddFile | TahoeError]:
        name = new_name(self.version.config, SYSTEM_CLOCK, self.partition_values)
        rows = _in_parts(blobs) if self.in_parts else (batch for _, batch in _rows(blobs))
        try:
            with closing(rows):
                new = written_anew(self.version, rows, SYSTEM_CLOCK, name, self.partition_values)
        except TahoeError as error:
            yield error
        else:
            if new is not None:
                yield new


def _rows(blobs: Iterable[Blob]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for number, blob in blobs:
        if isinstance(blob, TahoeError):
            raise blob
        with pa.ipc.open_stream(blob) as reader:
            for batch in reader:
                yield number, batch


def _in_parts(blobs: Iterable[Blob]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of all parts, in the order of the parts; what is too much for memory waits on disk."""
    with Spill(MOST_BYTES_IN_MEMORY) as spill:
        for number, batch in _rows(blobs):
            spill.add_to(number, batch)
        for number in spill.groups:
            yield from spill.take(number)


def _bytes_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
