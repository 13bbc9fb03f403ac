"""Spark's executors as the `ShardEncoder` of large conversions (`tahoe.uniform.convert.shards`).

Bytes are sent and returned: as an RDD, or on Spark Connect, which has none, by `mapInArrow`. The driver stores some shards and their
manifests at a time. The tasks include the code (`tahoe.spark.executors.shipped`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeError
from tahoe.spark.executors.shipped import raised, run_each, run_each_by_arrow
from tahoe.spark.jvm.bridge import is_classic
from tahoe.uniform.convert.shards import EncodedManifest, Shard, encode_shard

LEAST_FILES = 100_000
"""One process encodes a smaller table in a few seconds."""

_SLICES_AT_ONCE = 32
_MOST_SLICES_AT_ONCE = 256


class SparkShards:
    """Encodes shards in a session's Python workers.

    Args:
        least_files: the minimum number of files for a Spark job.
    """

    def __init__(self, spark: SparkSession, least_files: int = LEAST_FILES) -> None:
        self._spark = spark
        self._least_files = least_files

    @property
    def least_files(self) -> int:
        """The minimum number of files for a Spark job."""
        return self._least_files

    def encode(self, order: str, shards: Iterable[Shard]) -> Iterator[EncodedManifest]:
        """Yield the result of `encode_shard` for each shard, in order; Spark processes some shards at a time."""
        waiting = iter(shards)
        while some := list(islice(waiting, self._shards_at_once())):
            yield from (encoded for of_shard in raised(self._answers(order, some)) for encoded in of_shard)

    def _answers(self, order: str, some: list[Shard]) -> list[list[EncodedManifest] | TahoeError]:
        if not is_classic(self._spark):
            return run_each_by_arrow(self._spark, encode_shard, some, order)
        # Takes a third of the processor time that `mapInArrow` takes around a task.
        return run_each(self._spark.sparkContext, encode_shard, some, order, tasks=len(some))

    def _shards_at_once(self) -> int:
        if not is_classic(self._spark):
            return _SLICES_AT_ONCE
        return min(max(2 * self._spark.sparkContext.defaultParallelism, _SLICES_AT_ONCE), _MOST_SLICES_AT_ONCE)
