"""A process with two queries in a chain, table ``a`` → ``b`` → ``c``, that dies of SIGKILL at a chosen point, its JVM with it.

Told by one line of JSON: the folder of the tables, the point, and how often it is come by before. The points are those between two of the
things that must agree: the offsets in the checkpoint, the data files, the table's commit, and the commit in the checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

import tahoe
from tahoe.spark.sink import batches, sink
from tahoe.spark.stream.micro_batches import MicroBatches
from tests.spark.conftest import SETTINGS

POINTS = {
    "before the offsets": (MicroBatches, "latest_offset", False),
    "before the data": (MicroBatches, "batch", False),
    "after the data": (batches, "write_files", True),
    "after the commit": (sink, "write_batch", True),
}
"""What is called there, and whether the process dies when it has returned."""


def main() -> None:
    """Start, tell ``ready``, and run until all rows are through or the point is reached."""
    task = json.loads(sys.stdin.readline())
    folder = task["folder"]
    if task["point"] is not None:
        _die_at(task["point"], task["times"])
    builder = SparkSession.builder.master("local[2]").config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = tahoe.enable(builder.getOrCreate())
    _say("ready")
    first = _query(spark, folder, "a", "b")
    if task["point"] is None and task["until"] == "end":
        first.awaitTermination()
    # Else both run side by side, and the second goes as far as the first has come when it starts.
    _query(spark, folder, "b", "c").awaitTermination()
    first.awaitTermination()
    _say("done")


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def _query(spark: SparkSession, folder: str, source: str, target: str) -> Any:
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}/{source}")
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/at-{target}")
    return writer.trigger(availableNow=True).start(f"{folder}/{target}")


def _die_at(point: str, times: int) -> None:
    owner, name, after = POINTS[point]
    original: Callable[..., Any] = getattr(owner, name)
    seen = []

    def counted(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named) if after else None
        seen.append(None)
        if len(seen) >= times:
            os.killpg(0, signal.SIGKILL)
        return result if after else original(*arguments, **named)

    setattr(owner, name, counted)


if __name__ == "__main__":
    main()
