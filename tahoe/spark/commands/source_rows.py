"""Rows of a query that a command reads more than once: computed once, and kept by the executors until the command is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tahoe.spark.jvm.bridge import JavaObject

__all__ = ["Held", "held", "sent_to_all"]

# Larger sides are shuffled, unless the session's own threshold is higher.
_MOST_BYTES_BROADCAST = 64 * 1024 * 1024


@dataclass(frozen=True)
class Held:
    """Rows that were computed once and are kept by the executors; they are never computed anew: should they be lost, the query fails."""

    frame: DataFrame
    blocks: JavaObject

    def count(self) -> int:
        """How many rows there are; one job, of one stage, computes them if none has yet."""
        return int(self.blocks.count())

    @property
    def bytes(self) -> int:
        """What the rows take up, in memory and on disk."""
        number = self.blocks.id()
        stored = self.frame.sparkSession.sparkContext._jsc.sc().getRDDStorageInfo()
        return sum(int(one.memSize()) + int(one.diskSize()) for one in stored if one.id() == number)


@contextmanager
def held(frame: DataFrame) -> Iterator[Held]:
    """The rows of a query, kept until the end of the block; they are computed by the first query that reads them."""
    kept = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK_DESER)
    blocks = kept._jdf.queryExecution().logical().rdd()
    try:
        yield Held(kept, blocks)
    finally:
        # Not by the RDD's own method, which warns of each that is a checkpoint that it cannot be computed again; these never are.
        frame.sparkSession.sparkContext._jsc.sc().unpersistRDD(blocks.id(), False)


def sent_to_all(rows: Held) -> DataFrame:
    """The rows, marked to be sent to all executors where they are few enough."""
    threshold = int(rows.frame.sparkSession._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    if threshold < 0 or rows.bytes > max(threshold, _MOST_BYTES_BROADCAST):
        return rows.frame
    return sf.broadcast(rows.frame)
