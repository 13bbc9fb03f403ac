"""The progress of Spark's jobs during a command of Tahoe: Spark's task counts on Tahoe's progress bar.

Spark has its own bar, which makes another unnecessary. It is on in the `pyspark` shell and in plain Python programs, and off under
`spark-submit`; there, on a terminal or in a notebook, a command of more than one second shows this bar.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.base.progress import Progress, shown, silent
from tahoe.spark.jvm.bridge import is_classic

STEP = "tasks of Spark"
"""The unit of the count."""

_SPARK_BAR = "spark.ui.showConsoleProgress"
_SECONDS = 0.5  # between two polls; each takes a few calls into the JVM


@contextmanager
def job_progress(spark: SparkSession, clock: Clock = SYSTEM_CLOCK) -> Iterator[None]:
    """Show the progress of the jobs of the block. Nothing is shown if the setting of Spark's own bar is set: with ``true``, Spark shows its
    bar, and with ``false``, the user wants none. PySpark shows the progress of a Spark Connect session itself.
    """
    if not is_classic(spark):
        yield
        return
    with shown(clock) as progress, jobs_shown_by(spark, progress):
        yield


@contextmanager
def jobs_shown_by(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Show the progress of the jobs of the block as `job_progress` does, on a bar that the command has opened already."""
    # Poll Spark only if the progress is displayed.
    # getConf() would copy every setting, with one call into the JVM each.
    if progress is silent or not is_classic(spark) or spark.sparkContext._conf.get(_SPARK_BAR) is not None:
        yield
        return
    with reporting_jobs(spark.sparkContext, progress):
        yield


@contextmanager
def reporting_jobs(context: SparkContext, progress: Progress) -> Iterator[None]:
    """Report the tasks of all active stages to `progress`, from a separate thread, because the block waits for Spark."""
    if progress is silent:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_poll, args=(context, progress, over), name="tahoe-job-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _poll(context: SparkContext, progress: Progress, over: threading.Event) -> None:
    tracker = context.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    while not over.wait(_SECONDS):
        try:
            stages = [
                stage_info for stage in tracker.getActiveStageIds() if (stage_info := tracker.getStageInfo(stage)) is not None
            ]
        except Py4JError:
            return  # Spark was stopped; the command itself will raise an error
        # A stage that is no longer active is done.
        seen = {stage: (total, total) for stage, (_, total) in seen.items()}
        seen |= {stage.stageId: (stage.numCompletedTasks, stage.numTasks) for stage in stages}
        if seen:
            progress(STEP, sum(done for done, _ in seen.values()), sum(total for _, total in seen.values()))
