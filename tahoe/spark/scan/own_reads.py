"""What a query reads of the table that its rows are written to, which is part of the write's transaction.

``INSERT INTO t … WHERE id NOT IN (SELECT id FROM t)`` reads the version that the transaction is based on, and a concurrent commit that
adds or removes rows it has read conflicts: two such statements never both insert a row. A version that the query names is not recorded.

Spark optimizes the query on the thread that runs the write, but may call Python on another one. So the transaction's number is in a local
property of the JVM's thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock

import pyarrow as pa
from pyspark.sql import SparkSession

from tahoe.expr.tree.predicate import Predicate
from tahoe.log.replay import add_files
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import is_classic
from tahoe.txn.transaction import Transaction

PROPERTY = "tahoe.transaction"


class OwnReads:
    """Records what queries read of a transaction's table.

    Args:
        number: of the transaction in this process.
        snapshot: the version that it is based on.
    """

    def __init__(self, number: str, transaction: Transaction, snapshot: Snapshot) -> None:
        self.number, self.snapshot = number, snapshot
        self._transaction, self._lock = transaction, Lock()

    def record(self, predicate: Predicate | None, files: pa.Table) -> None:
        """Record that a query has read these files.

        Args:
            predicate: true for all rows that it needs; None if it needs all.
        """
        with self._lock:
            if predicate is None:
                self._transaction.read_all_rows()
            else:
                self._transaction.read(predicate)
                self._transaction.read_files(add.key for add in add_files(files))


_NUMBERS = count(1)
_WRITES: dict[str, OwnReads] = {}


@contextmanager
def recorded_reads(spark: SparkSession, transaction: Transaction) -> Iterator[None]:
    """Record what queries of the block read of the transaction's table, and let them read the transaction's version of it."""
    if transaction.snapshot is None or not is_classic(spark):
        yield
        return
    number, context = str(next(_NUMBERS)), spark.sparkContext
    _WRITES[number] = OwnReads(number, transaction, transaction.snapshot)
    context.setLocalProperty(PROPERTY, number)
    try:
        yield
    finally:
        context.setLocalProperty(PROPERTY, None)  # type: ignore[arg-type]  # removes it
        del _WRITES[number]


def own_reads(number: str | None) -> OwnReads | None:
    """Return the reads of the write that a query belongs to; None for another query.

    Args:
        number: the local property of the query's thread, which a thread of Spark may still have after the write.
    """
    return None if number is None else _WRITES.get(number)
