"""The golden tables through Spark, natively and by the portable source: the rows that their writers expect, and clear refusals."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeError
from tests.tables.golden import (
    ABSENT,
    HIVE_ROWS,
    REFUSED,
    ROOT,
    GoldenTable,
    Refusal,
    assert_same_rows,
    dat_tables,
    golden_tables,
    hive_tables,
)

pytestmark = pytest.mark.skipif(not ROOT.exists(), reason=ABSENT)


def _every_third(tables: list[GoldenTable]) -> list[object]:
    """All of them in a long run, a third in every run."""
    return [pytest.param(table, marks=() if place % 3 == 0 else pytest.mark.soak) for place, table in enumerate(tables)]


def rows(session: SparkSession, table: GoldenTable):
    reader = session.read.format("delta")
    if table.version is not None:
        reader = reader.option("versionAsOf", table.version)
    return reader.load(str(table.path)).toArrow()


@pytest.mark.every_case
@pytest.mark.parametrize("table", _every_third(dat_tables() + golden_tables()), ids=lambda table: table.name)
def test_a_golden_table_is_read_equal_by_the_native_scan(spark: SparkSession, table: GoldenTable):
    assert_same_rows(rows(spark, table), table.rows())


# The portable source calls the core's own reader, which the tests without Spark compare with all of them.
@pytest.mark.parametrize("table", _every_third(dat_tables() + golden_tables()), ids=lambda table: table.name)
def test_a_golden_table_is_read_equal_by_the_portable_source(plain: SparkSession, table: GoldenTable):
    assert_same_rows(rows(plain, table), table.rows())


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.name)
def test_a_table_that_cannot_be_read_right_is_refused_with_the_cores_own_error(spark: SparkSession, refusal: Refusal):
    with pytest.raises(refusal.error) as raised:
        spark.read.format("delta").load(str(refusal.path)).collect()
    assert isinstance(raised.value, TahoeError)
    for part in refusal.says:
        assert part in str(raised.value)


@pytest.mark.parametrize("path", hive_tables(), ids=lambda path: path.name)
def test_the_tables_for_hive_are_read_whole(spark: SparkSession, path):
    assert spark.read.format("delta").load(str(path)).count() == HIVE_ROWS.get(path.name, 10)
