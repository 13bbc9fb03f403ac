"""Progress of Spark's jobs for a waiting user: counted by Spark, and without a bar where there is one already."""

from __future__ import annotations

from pyspark.sql import functions as sf

from tahoe.base.progress import Reported, silent
from tahoe.spark.jvm.job_progress import STEP, reporting_jobs


def test_the_tasks_of_a_job_are_reported_while_it_runs(spark):
    reported = Reported()
    # Long enough for a look at it, every half second.
    slow = spark.range(0, 4, 1, 4).select(sf.expr("java_method('java.lang.Thread', 'sleep', 400L)"))
    with reporting_jobs(spark.sparkContext, reported):
        slow.write.format("noop").mode("overwrite").save()
    assert {step for step, _, _ in reported.reports} == {STEP}
    assert all(0 <= done <= total == 4 for _, done, total in reported.reports)
    count = len(reported.reports)
    slow.limit(0).collect()
    assert len(reported.reports) == count, "nothing is reported after the end"


def test_who_does_not_look_costs_no_thread(spark):
    with reporting_jobs(None, silent):  # type: ignore[arg-type] # Spark is not even asked
        pass
