"""The README, the guides that need Spark and the page for users of delta-spark run as they are written."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from scripts.follow_page import examples, follow
from tests.pages import ROOT, WITH_SPARK
from tests.spark.own_spark import run


@pytest.fixture(autouse=True)
def _observers_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the configuration of logging and of OpenTelemetry that a page makes."""
    logger, before = logging.getLogger("tahoe"), list(logging.getLogger("tahoe").handlers)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    yield
    for handler in set(logger.handlers) - set(before):
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(logging.NOTSET)


@contextmanager
def database_of(page, spark, tmp_path) -> Iterator[None]:
    name = f"page_{re.sub(r'[^a-z]', '_', page.lower())}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql(f"USE {name}")
    try:
        yield
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.mark.every_case
@pytest.mark.parametrize("page", WITH_SPARK)
def test_every_program_of_a_page_runs_in_order(page, spark, tmp_path):
    with database_of(page, spark, tmp_path):
        assert follow(ROOT / page, tmp_path) > 0


def test_the_readme_is_a_first_page():
    assert len((ROOT / "README.md").read_bytes()) <= 8_000


_USE = """
import sys
spark.range(3).write.format("delta").save(sys.argv[1])
print("= rows", DeltaTable.forPath(spark, sys.argv[1]).toDF().count())
"""


@pytest.mark.own_jvm
@pytest.mark.parametrize(
    ("lines", "first"), [("+", ""), ("-", "from tahoe import as_delta; as_delta.install()\n")], ids=["after", "before"]
)
def test_both_programs_of_the_page_for_users_of_delta_spark_run(lines, first, tmp_path):
    """The new lines as they are, and the old lines after the one call that the page gives for programs that cannot be changed."""
    (difference,) = examples(ROOT / "docs/coming-from-delta-spark.md")
    assert difference.language == "diff"
    program = "".join(line[1:] for line in difference.text.splitlines(keepends=True) if line[0] in f"{lines} \n")
    quiet = "from pyspark.sql import SparkSession\n"
    assert run(first + quiet + program + _USE, str(tmp_path / "t")) == ["= rows 3"]
