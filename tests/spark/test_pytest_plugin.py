"""The fixtures of the pytest plugin with Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytest_plugins = ["pytester"]

TESTS = """
from pyspark.sql import SparkSession

from tahoe.tables import DeltaTable
from tahoe.testing.assertions import assert_changes, assert_history, assert_rows, assert_schema

FEED = {"delta.enableChangeDataFeed": "true"}


def test_tables_made_by_spark_and_without(delta_spark, delta_table):
    made = delta_table(delta_spark.sql("SELECT 1 id, 1.5D v"), properties=FEED)
    assert_history(made, ["CREATE TABLE", "WRITE"])
    delta_spark.sql(f"UPDATE delta.`{made.url}` SET v = 2.5")
    other = delta_table([{"id": 1, "v": 2.5}], schema={"id": "int", "v": "double"})
    frame = delta_spark.read.format("delta").load(other.url)
    for rows in (made, made.url, frame, DeltaTable.forPath(delta_spark, made.url)):
        assert_rows(rows, [{"id": 1, "v": 2.5}])
        assert_schema(rows, {"id": "int", "v": "double"})
    assert_rows(made, frame)
    changes = [("update_preimage", 1.5), ("update_postimage", 2.5)]
    table = DeltaTable.forPath(delta_spark, made.url)
    assert_changes(table, 2, [{"id": 1, "v": v, "_change_type": kind} for kind, v in changes])


def test_the_session_is_the_active_one(delta_spark):
    assert delta_spark is SparkSession.getActiveSession()
"""


PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLES = [text for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if "delta_spark" in text]


@pytest.fixture(autouse=True)
def _shared_session_is_active(spark: SparkSession) -> None:
    """The plugin uses the active session, which may be one without Delta that another test has used."""
    spark.createDataFrame([(1,)], "id int")


def test_the_examples_with_spark_of_the_page_run_unchanged(spark: SparkSession, pytester: pytest.Pytester) -> None:
    for number, text in enumerate(EXAMPLES):
        pytester.makepyfile(**{f"test_example_{number}": text})
    pytester.runpytest_inprocess("-p", "tahoe.testing.pytest_plugin", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_fixtures_work_with_the_active_session_and_leave_it_running(spark: SparkSession, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    # Python may collect sockets that PySpark left open in earlier tests while this one runs.
    sockets = "ignore:unclosed <socket:ResourceWarning"
    pytester.makeini(f"[pytest]\nfilterwarnings =\n    error\n    {sockets}\n")
    pytester.runpytest_inprocess("-p", "tahoe.testing.pytest_plugin", "-p", "no:cacheprovider").assert_outcomes(passed=2)
    assert spark.range(3).count() == 3
