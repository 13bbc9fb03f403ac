"""Statements whose queries read the table that they write: the reads are part of the transaction, as in delta-spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tahoe
from tahoe.base.exceptions import ConcurrentAppendException, ConcurrentDeleteReadException
from tahoe.spark.commands import insert as inserts


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """A partitioned table with two rows, by its path."""
    name = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


@contextmanager
def committing_before(monkeypatch: pytest.MonkeyPatch, commit: Callable[[], object]) -> Iterator[None]:
    """Let another writer commit after the rows of an INSERT are written, before its own commit."""
    written = inserts.write_files

    def write_files(*arguments: Any, **options: Any) -> Any:
        files = written(*arguments, **options)
        monkeypatch.setattr(inserts, "write_files", written)
        commit()
        return files

    monkeypatch.setattr(inserts, "write_files", write_files)
    yield
    assert inserts.write_files is written, "the other writer has committed"


def append(path: Path, number: int, partition: str) -> Callable[[], object]:
    """Return a function that appends a row without Spark."""
    return lambda: tahoe.Table(str(path / "t")).append(pa.table({"id": pa.array([number], pa.int32()), "p": [partition]}))


def rows(spark: SparkSession, table: str) -> list[tuple[int, str]]:
    """Return the rows of a table in their order."""
    return sorted(tuple(row) for row in spark.sql(f"SELECT * FROM {table}").collect())


MISSING = "INSERT INTO {table} SELECT * FROM VALUES (2, 'b'), (3, 'a') AS s(id, p) WHERE {condition}"


@pytest.mark.parametrize(
    "query",
    [
        MISSING.replace("{condition}", "id NOT IN (SELECT id FROM {table})"),
        MISSING.replace("{condition}", "NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = s.id)"),
        MISSING.replace("{condition}", "id > (SELECT max(id) FROM {table})"),
        MISSING.replace("{condition}", "id > (SELECT count(*) FROM {table})"),
        "INSERT INTO {table} SELECT s.* FROM VALUES (3, 'a') AS s(id, p) LEFT ANTI JOIN {table} t ON s.id = t.id",
        "INSERT INTO {table} SELECT id + 2, p FROM {table} WHERE p = 'a'",
    ],
)
def test_a_concurrent_append_of_rows_that_the_query_should_have_read_conflicts(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    with committing_before(monkeypatch, append(tmp_path, 3, "a")), pytest.raises(ConcurrentAppendException):
        spark.sql(query.format(table=table))
    assert rows(spark, table) == [(1, "a"), (2, "b"), (3, "a")], "one row with the number 3"
    spark.sql(query.format(table=table))


def test_a_concurrent_append_to_a_partition_that_the_query_does_not_read_is_no_conflict(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with committing_before(monkeypatch, append(tmp_path, 9, "b")):
        spark.sql(f"INSERT INTO {table} SELECT id + 2, p FROM {table} WHERE p = 'a'")
    assert rows(spark, table) == [(1, "a"), (2, "b"), (3, "a"), (9, "b")]


def test_a_concurrent_delete_of_rows_that_the_query_has_read_conflicts(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tahoe.Table(str(tmp_path / "t"))
    statement = f"INSERT INTO {table} SELECT id + 2, p FROM {table} WHERE p = 'a'"
    with committing_before(monkeypatch, lambda: other.delete("p = 'b'")):
        spark.sql(statement)
    with committing_before(monkeypatch, lambda: other.delete("p = 'a'")), pytest.raises(ConcurrentDeleteReadException):
        spark.sql(statement)
    assert rows(spark, table) == []


@pytest.mark.parametrize("source", ["{table} VERSION AS OF 1", "VALUES (1, 'a') AS s(id, p)", "cached"])
def test_rows_of_a_version_and_cached_rows_are_no_reads(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    cached = spark.sql(f"SELECT * FROM {table}").cache()
    cached.count()
    cached.createOrReplaceTempView("cached")
    with committing_before(monkeypatch, append(tmp_path, 9, "b")):
        spark.sql(f"INSERT INTO {table} SELECT id + 2, p FROM {source.format(table=table)} WHERE p = 'a'")
    cached.unpersist()
    spark.catalog.dropTempView("cached")
    assert rows(spark, table) == [(1, "a"), (2, "b"), (3, "a"), (9, "b")]


def test_a_dataframe_that_is_written_reads_the_version_of_its_transaction(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.sql(f"SELECT id + 2 AS id, p FROM {table}")
    prepare = inserts.prepare_schema

    def prepare_schema(*arguments: Any) -> Any:
        monkeypatch.setattr(inserts, "prepare_schema", prepare)
        append(tmp_path, 9, "b")()
        return prepare(*arguments)

    monkeypatch.setattr(inserts, "prepare_schema", prepare_schema)
    with pytest.raises(ConcurrentAppendException):
        frame.write.format("delta").mode("append").save(f"{tmp_path}/t")
    frame.write.format("delta").mode("append").save(f"{tmp_path}/t")
    assert rows(spark, table) == [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (9, "b"), (11, "b")]
    last = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]
    assert last.isBlindAppend is False
