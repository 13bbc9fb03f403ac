"""``df.mergeInto`` of PySpark on Delta tables, in a classic session and in one of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A session with the table `merged (id, v)`."""
    either_session.sql("CREATE TABLE merged (id BIGINT, v STRING) USING delta")
    either_session.sql("INSERT INTO merged VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    yield either_session
    either_session.sql("DROP TABLE merged")


def rows(session: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.table("merged").collect())


def test_clauses_without_values_assign_all_columns(session: Any) -> None:
    source = session.createDataFrame([(2, "x"), (4, "y")], "id BIGINT, v STRING").alias("source")
    writer = source.mergeInto("merged", sf.expr("merged.id = source.id"))
    writer.whenMatched().updateAll().whenNotMatched().insertAll().whenNotMatchedBySource(
        sf.expr("merged.id = 3")
    ).delete().merge()
    assert rows(session) == [(1, "a"), (2, "x"), (4, "y")]


def test_clauses_apply_in_their_order_under_their_conditions(session: Any) -> None:
    source = session.createDataFrame([(1, "x"), (2, "y"), (5, "z")], "id BIGINT, v STRING").alias("s")
    writer = source.mergeInto("default.merged", sf.col("merged.id") == sf.col("s.id"))
    writer.whenMatched(sf.expr("s.v = 'x'")).update({"v": sf.expr("concat(merged.v, s.v)")}).whenMatched().delete()
    writer.whenNotMatched(sf.expr("s.id > 4")).insert({"id": sf.col("s.id"), "v": sf.lit("new")})
    writer.whenNotMatchedBySource().update({"v": sf.upper("merged.v")}).merge()
    assert rows(session) == [(1, "ax"), (3, "C"), (5, "new")]


def test_the_schema_evolves_if_it_is_requested(session: Any) -> None:
    source = session.createDataFrame([(7, 0.5)], "id BIGINT, size DOUBLE").alias("s")
    writer = source.mergeInto("merged", sf.expr("merged.id = s.id")).whenNotMatched().insertAll()
    writer.withSchemaEvolution().merge()
    assert rows(session)[-1] == (7, None, 0.5)


def test_a_merge_without_clauses_is_refused_and_so_is_another_table(session: Any) -> None:
    source = session.createDataFrame([(1, "x")], "id BIGINT, v STRING").alias("s")
    with pytest.raises(InvalidRequest):
        source.mergeInto("merged", sf.expr("merged.id = s.id")).merge()
    session.sql("CREATE TABLE other (id BIGINT, v STRING) USING parquet")
    try:
        with pytest.raises(PySparkException):
            source.mergeInto("other", sf.expr("other.id = s.id")).whenMatched().updateAll().merge()
    finally:
        session.sql("DROP TABLE other")
    assert rows(session) == [(1, "a"), (2, "b"), (3, "c")]
