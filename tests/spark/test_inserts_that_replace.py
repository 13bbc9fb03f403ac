"""``INSERT INTO t REPLACE ON …`` and ``REPLACE USING …``, which Spark has since 4.2; test_inserts.py has REPLACE WHERE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, TahoeError

pytestmark = pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark has REPLACE ON and REPLACE USING since 4.2")

REPLACED = [(1, "a"), (2, "new"), (3, "c"), (None, "n")]
STATEMENTS = {
    "INSERT INTO replaced REPLACE USING (id) SELECT * FROM newer": REPLACED,
    "INSERT INTO replaced BY NAME REPLACE USING (id) SELECT v, id FROM newer": REPLACED,
    "INSERT INTO replaced REPLACE USING (id, v) SELECT 2 AS id, 'b' AS v": [(1, "a"), (2, "b"), (2, "bb"), (None, "n")],
    "WITH q AS (SELECT * FROM newer) INSERT INTO replaced REPLACE USING (id) SELECT * FROM q": REPLACED,
    "INSERT INTO replaced REPLACE ON replaced.id = s.id (SELECT * FROM newer) AS s": REPLACED,
    "INSERT INTO replaced AS r REPLACE ON r.id <=> s.id (SELECT * FROM newer UNION ALL SELECT NULL, 'nn') s": [
        *REPLACED[:3],
        (None, "nn"),
    ],
    "INSERT INTO replaced AS r BY NAME REPLACE ON r.id = s.id AND r.v = 'b' (SELECT v, id FROM newer) AS s": [
        (1, "a"),
        (2, "bb"),
        (2, "new"),
        (3, "c"),
        (None, "n"),
    ],
    "INSERT INTO replaced REPLACE ON true SELECT * FROM newer": [(2, "new"), (3, "c")],
}
IN_CLASSIC_SESSIONS = {
    "INSERT INTO replaced REPLACE ON replaced.id = newer.id SELECT * FROM newer": REPLACED,
    "INSERT INTO replaced AS r REPLACE ON r.id = s.k (SELECT id AS k, v AS w FROM newer) s": REPLACED,
}
REFUSED = {
    "INSERT INTO replaced REPLACE USING (nope) SELECT * FROM newer": "UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
    "INSERT INTO replaced REPLACE USING (id) SELECT v, id FROM newer": "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
    "INSERT OVERWRITE replaced REPLACE USING (id) SELECT * FROM newer": "PARSE_SYNTAX_ERROR",
    "INSERT INTO replaced AS r SELECT * FROM newer": "PARSE_SYNTAX_ERROR",
    "INSERT INTO replaced REPLACE ON replaced.id = SELECT * FROM newer": "PARSE_SYNTAX_ERROR",
}


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A classic session, and a session of Spark Connect."""
    yield from with_tables(either_session)


def with_tables(spark: Any) -> Iterator[Any]:
    spark.sql("CREATE TABLE replaced (id BIGINT, v STRING) USING delta")
    spark.sql("CREATE TABLE newer (id INT, v STRING) USING delta")
    spark.sql("INSERT INTO newer VALUES (2, 'new'), (3, 'c')")
    yield spark
    for name in ("newer", "replaced"):
        spark.sql(f"DROP TABLE {name}")


def after(spark: Any, statement: str) -> list[tuple[int | None, str]]:
    spark.sql("INSERT OVERWRITE replaced VALUES (1, 'a'), (2, 'b'), (2, 'bb'), (NULL, 'n')")
    spark.sql(statement)
    return sorted((tuple(row) for row in spark.table("replaced").collect()), key=str)


def test_matching_rows_are_replaced(session: Any) -> None:
    for statement, expected in STATEMENTS.items():
        assert after(session, statement) == sorted(expected, key=str), statement
    parameters = session.sql("DESCRIBE HISTORY replaced").first().operationParameters
    assert parameters == {"mode": "Overwrite", "partitionBy": "[]", "replaceOnCond": "true"}


def test_conditions_name_the_tables_of_the_query(spark: SparkSession) -> None:
    for session in with_tables(spark):
        for statement, expected in IN_CLASSIC_SESSIONS.items():
            assert after(session, statement) == sorted(expected, key=str), statement


def test_the_schema_evolves(session: Any) -> None:
    session.sql("INSERT INTO replaced VALUES (1, 'a'), (2, 'b')")
    session.sql("INSERT WITH SCHEMA EVOLUTION INTO replaced BY NAME REPLACE USING (id) SELECT 2 AS id, 'z' AS v, 9 AS more")
    assert sorted(tuple(row) for row in session.table("replaced").collect()) == [(1, "a", None), (2, "z", 9)]


def test_wrong_statements_are_refused(session: Any) -> None:
    version = session.sql("DESCRIBE HISTORY replaced").first().version
    for statement, code in REFUSED.items():
        with pytest.raises((TahoeError, PySparkException)) as raised:
            session.sql(statement)
        actual = raised.value.code if isinstance(raised.value, InvalidRequest) else raised.value.getCondition()
        assert actual == code, statement
    assert session.sql("DESCRIBE HISTORY replaced").first().version == version
