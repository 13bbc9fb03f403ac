"""A process that runs the same query as another one, with the same checkpoint: table ``a`` → ``b``.

Its first batch halts when the data is written, until a line arrives. It prints the error of the query, and runs the query once more until
it stops or another line arrives.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from pyspark.sql import SparkSession

import tahoe
from tahoe.spark.sink import sink
from tests.spark.conftest import SETTINGS

GO_ON = threading.Semaphore(0)


def main() -> None:
    """Reads the folder of the tables and of scratch files, in one line of JSON."""
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=lambda: [GO_ON.release() for _ in sys.stdin], daemon=True).start()
    builder = SparkSession.builder.master("local[1]").config("spark.local.dir", task["scratch"])
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = tahoe.enable(builder.getOrCreate())
    write_files = sink.write_files

    def halting(*arguments: Any, **named: Any) -> Any:
        written = write_files(*arguments, **named)
        sink.write_files = write_files
        tell("halted")
        GO_ON.acquire()
        return written

    sink.write_files = halting
    first = query(spark, task["folder"])
    while first.isActive:
        time.sleep(0.05)
    tell(str(first.exception()))
    second = query(spark, task["folder"])
    second.processAllAvailable()
    tell("running")
    while second.isActive and not GO_ON.acquire(timeout=0.1):
        pass
    second.stop()
    tell(str(second.exception()))


def query(spark: SparkSession, folder: str) -> Any:
    rows = spark.readStream.format("delta").load(f"{folder}/a")
    return rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/at").start(f"{folder}/b")


def tell(text: str) -> None:
    sys.stdout.write(json.dumps(text) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
