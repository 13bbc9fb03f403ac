"""A process with several chains of two queries, table ``a`` → ``b`` → ``c``; each halts at its own point until it is killed.

Reads one line of JSON: the folder of each chain, the point where it halts, and how often it passes that point before. The points are
between two of the writes that must agree: the offsets in the checkpoint, the data files, the table's commit, and the commit in the
checkpoint. A halted query has done nothing after its point when the signal arrives, so each chain of a process dies at its own point.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

import tahoe
from tahoe.spark.sink import sink
from tahoe.spark.stream.micro_batches import MicroBatches
from tests.spark.conftest import SETTINGS

POINTS: dict[str, tuple[Any, str, bool, Callable[..., str]]] = {
    "before the offsets": (MicroBatches, "latest_offset", False, lambda batches, *_: batches.read.store.url),
    "before the data": (MicroBatches, "batch", False, lambda batches, *_: batches.read.store.url),
    "after the data": (sink, "write_files", True, lambda rows, config, transaction, *_, **__: transaction.store.url),
    "after the commit": (sink, "write_batch", True, lambda table, *_, **__: table.url),
}
"""The function called at the point, whether the query halts after it returns, and the table of the call."""

_WORDS = threading.Lock()


def main() -> None:
    """Start, print ``ready``, then ``halted`` or ``done`` with the chain's number for each; a chain without a point runs to its end."""
    task = json.loads(sys.stdin.readline())
    chains: list[dict[str, Any]] = task["chains"]
    for point in POINTS:
        _halt_at(point, chains)
    builder = SparkSession.builder.master("local[2]").config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    builder = builder.config("spark.local.dir", task["scratch"])
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = tahoe.enable(builder.getOrCreate())
    _say("ready")
    firsts = [_query(spark, chain["folder"], "a", "b") for chain in chains]
    if task["in_turn"]:
        for first in firsts:
            first.awaitTermination()
    # Else both run side by side, and the second goes as far as the first has come when it starts.
    running = [(first, _query(spark, chain["folder"], "b", "c")) for first, chain in zip(firsts, chains, strict=True)]
    left = dict(enumerate(running))
    while left:
        for number in [number for number, queries in left.items() if not any(query.isActive for query in queries)]:
            for query in left.pop(number):
                query.awaitTermination()  # raises the error of the query
            _say(f"done {number}")
        time.sleep(0.02)


def _say(word: str) -> None:
    with _WORDS:
        sys.stdout.write(word + "\n")
        sys.stdout.flush()


def _query(spark: SparkSession, folder: str, source: str, target: str) -> Any:
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}/{source}")
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/at-{target}")
    return writer.trigger(availableNow=True).start(f"{folder}/{target}")


def _halt_at(point: str, chains: list[dict[str, Any]]) -> None:
    owner, name, after, url_of = POINTS[point]
    original: Callable[..., Any] = getattr(owner, name)
    seen, lock = Counter[int](), threading.Lock()

    def counted(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named) if after else None
        url = url_of(*arguments, **named)
        number = next(number for number, chain in enumerate(chains) if f"{chain['folder']}/" in url)
        chain = chains[number]
        if chain["point"] == point:
            with lock:
                seen[number] += 1
                times = seen[number]
            if times == chain["times"]:
                _say(f"halted {number}")
            if times >= chain["times"]:
                threading.Event().wait()
        return result if after else original(*arguments, **named)

    setattr(owner, name, counted)


if __name__ == "__main__":
    main()
