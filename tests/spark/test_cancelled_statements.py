"""Statements whose Spark jobs are cancelled, as by a notebook: an error, no commit, and a session that works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tahoe.api.table import Table

GROUP = "cancelled-by-a-test"


@contextmanager
def cancelled(spark: SparkSession, delay: Path) -> Iterator[None]:
    """Cancel the jobs of the block as soon as a task runs, and then delete the file for which its rows wait."""
    context, is_over = spark.sparkContext, Event()

    def cancel() -> None:
        tracker = context.statusTracker()
        while not is_over.wait(0.05):
            stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
            if any(stage is not None and stage.numActiveTasks for stage in stages):
                context.cancelJobGroup(GROUP)
                delay.unlink(missing_ok=True)

    thread = Thread(target=cancel)
    context.setJobGroup(GROUP, "a statement", interruptOnCancel=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # removes it


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} SELECT slowly(id), v FROM {t}",
        "UPDATE {t} SET v = slowly(id)",
        "DELETE FROM {t} WHERE slowly(id) > 1",
        "MERGE INTO {t} AS t USING (SELECT slowly(id) AS id FROM {t}) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7",
    ],
    ids=lambda text: text.split(maxsplit=1)[0],
)
def test_a_cancelled_statement_commits_nothing_and_can_be_repeated(spark: SparkSession, tmp_path: Path, statement: str) -> None:
    delay = tmp_path / "delay"
    delay.touch()
    name = str(delay)

    def slowly(value: int) -> int:
        while Path(name).exists():
            time.sleep(0.05)
        return value

    spark.udf.register("slowly", slowly, "int")
    path = str(tmp_path / "table")
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT CAST(id AS INT) AS id, 0 AS v FROM range(0, 4, 1, 2)")
    before = Table(path).to_arrow()
    with cancelled(spark, delay), pytest.raises(Py4JJavaError, match="SPARK_JOB_CANCELLED"):
        spark.sql(statement.format(t=f"delta.`{path}`"))
    assert Table(path).version() == 0
    assert Table(path).to_arrow() == before
    spark.sql(statement.format(t=f"delta.`{path}`"))
    assert Table(path).version() == 1
