"""Query results that a command reads more than once: computed once, and stored on the executors until the command ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.errors import exception_text, origin_of

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# Larger sides are shuffled, unless the session's own threshold is higher.
_MOST_BYTES_BROADCAST = 64 * 1024 * 1024
# As often as Spark runs a task.
_MOST_RUNS = 4
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


@dataclass(frozen=True)
class StoredRows:
    """Rows that were computed once and are stored on the executors. They are never recomputed: if they are lost, the query fails, and
    `retry_if_lost` runs the command again."""

    frame: DataFrame
    blocks: JavaObject

    def count(self) -> int:
        """Return the number of rows; if no query has computed them yet, one job of one stage does."""
        return int(self.blocks.count())

    @property
    def bytes(self) -> int:
        """The size of the rows in memory and on disk."""
        number = self.blocks.id()
        stored = self.frame.sparkSession.sparkContext._jsc.sc().getRDDStorageInfo()
        return sum(int(entry.memSize()) + int(entry.diskSize()) for entry in stored if entry.id() == number)


@contextmanager
def stored(frame: DataFrame) -> Iterator[StoredRows]:
    """Store the rows of a query until the end of the block; the first query that reads them computes them."""
    checkpointed = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK_DESER)
    blocks = checkpointed._jdf.queryExecution().logical().rdd()
    try:
        yield StoredRows(checkpointed, blocks)
    finally:
        # The RDD's own method warns that a checkpoint cannot be recomputed; these rows never are.
        frame.sparkSession.sparkContext._jsc.sc().unpersistRDD(blocks.id(), False)


def retry_if_lost(run: Callable[[], Result]) -> Result:
    """Return the result of a command. It runs again, at most four times in all, if executors that store rows of it are lost.

    Args:
        run: begins a transaction, stages and commits. Nothing is committed when its rows are lost.
    """
    for _ in range(_MOST_RUNS - 1):
        try:
            return run()
        except Exception as error:
            origin = origin_of(error)
            if _LOST not in (str(error) if origin is None else exception_text(origin)):
                raise
            logger.warning(
                "Executors that stored rows of a command are lost. The command starts again; it has committed nothing."
            )
    return run()


def sent_to_all(rows: StoredRows) -> DataFrame:
    """Return the rows, with a broadcast hint if they are small enough."""
    threshold = int(rows.frame.sparkSession._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    if threshold < 0 or rows.bytes > max(threshold, _MOST_BYTES_BROADCAST):
        return rows.frame
    return sf.broadcast(rows.frame)
