"""Rewrites one bin with many Spark tasks: some read its files, others write the rows.

    to cluster it: files ─► tasks: rows ─ cell of each ─► Arrow blobs, by cell ─ Spark's shuffle ─► tasks: the blobs of a cell ─► a file
    to join it:    files ─► tasks: rows in their order ─► Arrow blobs, by part ─ Spark's shuffle ─► one task: part after part ─► a file

A sample determines the cells once (`tahoe.ops.layout.clustered.placement_of`), so any subset of the rows can be assigned to cells
separately. Rows are shuffled in Arrow format, some megabytes at a time, and never sent to the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeError
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.clustered import placement_of
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.scan import BareVersion
from tahoe.spark.executors import worker
from tahoe.spark.executors.bin_tasks import files_of_rows, rows_of_cells, rows_of_parts
from tahoe.spark.executors.shipped import sent

_LEAST_BYTES = 64 * 1024 * 1024
"""A smaller bin is clustered by one task: splitting it costs more than it saves."""
_TASKS_A_CORE = 3
_LEAST_FILES = 1_000
_LEAST_FILES_OF_A_PART = 250
_BYTES_OF_A_TINY_FILE = 64 * 1024
"""For files up to this size the number dominates the cost, not the bytes: reading them in several tasks saves more than the shuffle costs."""


_Task = Callable[[Any], Any]


def is_worth_spreading(spark: SparkSession, group: Bin, plan: OptimizePlan) -> bool:
    """Return whether many tasks should cluster a bin."""
    several = len(group.adds) > 1 and plan.files_of(group) > 1 and spark.sparkContext.defaultParallelism > 1
    return plan.clusters and several and group.size >= _LEAST_BYTES


def is_worth_joining(spark: SparkSession, group: Bin, bins: int) -> bool:
    """Return whether many tasks should read a bin that is only compacted: it has many tiny files, and cores would be idle.

    Args:
        bins: the number of bins that are rewritten in parallel.
    """
    many = len(group.adds) >= _LEAST_FILES and group.size <= len(group.adds) * _BYTES_OF_A_TINY_FILE
    return many and bins < spark.sparkContext.defaultParallelism


def joined_by_tasks(spark: SparkSession, version: BareVersion, group: Bin) -> list[AddFile | TahoeError]:
    """Write the live rows of a bin to one file, in the order of its files; return the action that adds it, if it has rows, or errors.
    Nothing is committed.
    """
    context = spark.sparkContext
    parts = _runs(group.adds, min(context.defaultParallelism, len(group.adds) // _LEAST_FILES_OF_A_PART))
    reading = sent(context, worker.stream, rows_of_parts, version)
    writing = sent(context, worker.stream, files_of_rows, version, dict(group.adds[0].partition_values), True)
    return _written(context, list(enumerate(parts)), reading, writing, 1)


def clustered_by_tasks(spark: SparkSession, version: BareVersion, group: Bin, plan: OptimizePlan) -> list[AddFile | TahoeError]:
    """Rewrite a bin, clustered by the plan's columns; return the actions that add the new files, or errors. Nothing is committed."""
    cells, context = plan.files_of(group), spark.sparkContext
    where = placement_of(version, group.adds, plan.paths, cells, plan.request.curve)
    parts = _parts(group.adds, context.defaultParallelism * _TASKS_A_CORE)
    parting = sent(context, worker.stream, rows_of_cells, version, plan.paths, where)
    writing = sent(context, worker.stream, files_of_rows, version, dict(group.adds[0].partition_values), False)
    return _written(context, parts, parting, writing, cells)


def _written(
    context: SparkContext,
    parts: Sequence[object],
    reading: _Task,
    writing: _Task,
    cells: int,
) -> list[AddFile | TahoeError]:
    """Write one file for each cell, from rows that tasks read and Spark's shuffle groups.

    Args:
        parts: the input of each reading task.
        reading: created by `sent`; yields the number of a cell or a part, and rows of it.
        writing: created by `sent`; yields the action that adds a cell's file, or an error.
    """
    read = context.parallelize([pickle.dumps(part) for part in parts], len(parts)).mapPartitions(reading)
    return [pickle.loads(answer) for answer in read.partitionBy(cells, int).mapPartitions(writing).collect()]


def _parts(adds: Sequence[AddFile], count: int) -> list[list[AddFile]]:
    """Split the files into this many parts of similar size, the largest files first."""
    parts: list[list[AddFile]] = [[] for _ in range(min(count, len(adds)))]
    sizes = [0] * len(parts)
    for add in sorted(adds, key=lambda file: -file.size):
        least = sizes.index(min(sizes))
        parts[least].append(add)
        sizes[least] += add.size
    return parts


def _runs(adds: Sequence[AddFile], count: int) -> list[Sequence[AddFile]]:
    """Split the files into this many runs of similar length, in their order."""
    ends = [len(adds) * part // count for part in range(count + 1)]
    return [adds[start:end] for start, end in pairwise(ends)]
