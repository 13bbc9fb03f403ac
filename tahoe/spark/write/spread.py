"""One bin rewritten by many tasks of Spark: each reads some of its files, and others write what these have read.

    to cluster it: files ─► tasks: rows ─ cell of each ─► blobs of Arrow, by cell ─ Spark's shuffle ─► tasks: the blobs of a cell ─► a file
    to join it:    files ─► tasks: rows in their order ─► blobs of Arrow, by part  ─ Spark's shuffle ─► one task: part after part ─► a file

Where the cells lie is decided once, from a sample (`tahoe.ops.layout.clustered.placement_of`); so any part of the rows can be placed by
itself. Rows go through the shuffle as Arrow has them, some megabytes at a time, and never to the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tahoe.exceptions import TahoeError
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.clustered import placement_of
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.scan import BareVersion
from tahoe.spark.executors import worker
from tahoe.spark.executors.bin_tasks import files_of_rows, rows_of_cells, rows_of_parts
from tahoe.spark.executors.shipped import sent

__all__ = ["clustered_by_tasks", "is_worth_joining", "is_worth_spreading", "joined_by_tasks"]

_LEAST_BYTES = 64 * 1024 * 1024
"""A smaller bin is clustered by one task: to part it costs more than it gains."""
_TASKS_A_CORE = 3
_LEAST_FILES = 1_000
_LEAST_FILES_OF_A_PART = 250
_BYTES_OF_A_TINY_FILE = 64 * 1024
"""Of files as small as this the number costs, not the bytes: reading them in several tasks gains more than the shuffle of rows costs."""


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
    reading = sent(context, worker.stream, rows_of_parts, version)
    return _written(context, list(enumerate(parts)), reading, version, one, cells=1, in_parts=True)


def clustered_by_tasks(spark: SparkSession, version: BareVersion, one: Bin, plan: OptimizePlan) -> list[AddFile | TahoeError]:
    """Write a bin anew, laid out by the plan's columns; the actions that add the new files, or errors among them. Nothing is committed."""
    cells, context = plan.files_of(one), spark.sparkContext
    where = placement_of(version, one.adds, plan.paths, cells, plan.request.curve)
    parts = _parts(one.adds, context.defaultParallelism * _TASKS_A_CORE)
    parting = sent(context, worker.stream, rows_of_cells, version, plan.paths, where)
    return _written(context, parts, parting, version, one, cells=cells)


def _written(
    context: SparkContext,
    parts: Sequence[Any],
    reading: Callable[[Any], Any],
    version: BareVersion,
    one: Bin,
    *,
    cells: int,
    in_parts: bool = False,
) -> list[AddFile | TahoeError]:
    """The files, one for each cell, of rows that tasks read and Spark's shuffle brings together.

    Args:
        parts: what each of these tasks reads.
        reading: made by `sent`; yields the number of a cell or a part, and rows of it.
    """
    writing = sent(context, worker.stream, files_of_rows, version, dict(one.adds[0].partition_values), in_parts)
    read = context.parallelize([pickle.dumps(part) for part in parts], len(parts)).mapPartitions(reading)
    return [pickle.loads(answer) for answer in read.partitionBy(cells, int).mapPartitions(writing).collect()]


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
