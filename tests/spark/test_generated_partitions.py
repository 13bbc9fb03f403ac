"""Spark's scans leave out generated partitions by filters on their base column, for every expression that delta-spark derives from."""

from __future__ import annotations

from functools import reduce

import pytest

from tests.generated_columns import CASES, generated_table


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Each case as a table, the base of every second one in a struct."""
    folder = tmp_path_factory.mktemp("generated")
    return [generated_table(folder / str(number), case, nested=number % 2 == 1) for number, case in enumerate(CASES)]


def files_of_scans(frame):
    """The number of files that each scan was given, by the table's folder."""
    frame.collect()
    pending, numbers = [frame._jdf.queryExecution().executedPlan()], {}
    while pending:
        plan = pending.pop()
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            pending.append(plan.executedPlan())
        elif plan.getClass().getSimpleName() == "FileSourceScanExec":
            root = plan.relation().location().rootPaths().head().getName()
            numbers[int(root)] = int(plan.metrics().apply("numFiles").value())
        pending += [plan.children().apply(number) for number in range(plan.children().size())]
    return numbers


@pytest.mark.parametrize("sign", [" = ", " >= ", " < ", " IS NULL", " LIKE "])
def test_scans_are_given_the_files_that_may_have_rows(spark, tables, sign):
    expected, frames = {}, []
    for number, (case, (table, base)) in enumerate(zip(CASES, tables, strict=True)):
        actual = [(text.format(b=base), files) for text, files in case.files.items() if sign in text]
        if actual:
            condition, expected[number] = actual[0]
            path = table.url.removeprefix("file://")
            frames.append(spark.read.format("delta").load(path).where(condition).select("id"))
    assert len(frames) > 20 or sign == " LIKE "
    assert files_of_scans(reduce(lambda one, other: one.union(other), frames)) == expected
