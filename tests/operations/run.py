"""Run operations in a session of one kind, on tables of one store, and print their outcomes: one line of JSON each.

The only argument is a JSON object: ``master`` or ``remote`` of the session, its ``settings``, which process reaches its ``storage``, the URL
``root`` of the tables, the storage ``options`` of Tahoe's own reads, and the ``names`` of the operations.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

import tahoe
from tests.operations.operations import OPERATIONS, outcome

BASE = {
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}


def main() -> None:
    """Run the operations in their order."""
    task = json.loads(sys.argv[1])
    spark = session(task)
    sys.stdout.write("started\n")
    for number, operation in enumerate(OPERATIONS):
        if operation.name in task["names"]:
            try:
                actual = outcome(operation, spark, f"{task['root']}/{number}", task["options"] or None)
            except Exception as error:  # noqa: BLE001 - it is the outcome, and the others still run
                actual = f"{type(error).__name__}: {error}"[:2000]
            sys.stdout.write(json.dumps([operation.name, actual]) + "\n")
            sys.stdout.flush()
    with contextlib.suppress(Exception):
        spark.stop()


def session(task: Mapping[str, Any]) -> Any:
    """Return the session with Delta enabled."""
    if "remote" in task:
        spark = SparkSession.builder.remote(task["remote"]).getOrCreate()
    else:
        builder = SparkSession.builder.master(task["master"])
        for name, value in {**BASE, **task["settings"]}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    return tahoe.enable(spark, storage=task.get("storage", "client"))


if __name__ == "__main__":
    main()
