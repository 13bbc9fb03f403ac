"""`spark.sql` of a session with Delta on: queries that read tables by path, and the statements of Delta."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException

import tahoe
from tahoe.exceptions import InvalidRequest, NotFound, Unsupported

FIVE = "SELECT id, concat('n', id) AS name FROM range(5)"


@pytest.fixture(scope="module")
def shared(spark, tmp_path_factory) -> str:
    """A table of three versions: five rows, a property, one row more. Tests only read it."""
    path = str(tmp_path_factory.mktemp("sql") / "it's a `table`")
    spark.sql(FIVE).write.format("delta").save(path)
    spark.sql(f"ALTER TABLE {_named(path)} SET TBLPROPERTIES ('delta.checkpointInterval' = 7, owner.team = 'flights')")
    spark.sql("SELECT 5L AS id, 'five' AS name").write.format("delta").mode("append").save(path)
    return path


def _named(path: str) -> str:
    quoted = path.replace("`", "``")
    return f"delta.`{quoted}`"


def _rows(spark, text: str, *args, **named) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text, *args, **named).collect())


def test_a_table_is_read_by_its_path_at_any_version(spark, shared):
    t = _named(shared)
    first = spark.sql(f"DESCRIBE HISTORY {t}").where("version = 0").select("timestamp").first()[0]
    counts = spark.sql(
        f"""
        SELECT (SELECT count(*) FROM {t}), (SELECT count(*) FROM {t} VERSION AS OF 0),
               (SELECT count(*) FROM {t} FOR SYSTEM_VERSION AS OF '1' AS x WHERE x.id > 1), -- FROM delta.`/nowhere`
               (SELECT count(*) FROM {t} TIMESTAMP AS OF CAST('{first}' AS TIMESTAMP) + INTERVAL 0 HOUR t),
               (SELECT count(*) FROM {_named(f"{shared}@v1")}), (SELECT max(_metadata.row_index) FROM {t} VERSION AS OF 2)
        """
    ).first()
    assert tuple(counts)[:5] == (6, 5, 3, 5, 5)
    assert counts[5] >= 0
