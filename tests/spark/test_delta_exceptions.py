"""The exceptions of delta-spark that programs catch, each raised by a statement that really fails.

delta-spark's own test (`test_exceptions.py`) creates these exceptions with classes of its JAR. Here a statement runs on Spark, and another
writer, a `Table` without Spark, commits between its read and its commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import SparkSession

from tahoe import Table, exceptions
from tahoe.log.replay import add_files
from tahoe.store.local_store import LocalLogStore
from tahoe.tables import DeltaTable
from tahoe.txn.transaction import Operation

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "value": ["a", "b"]})
MORE = pa.table({"id": pa.array([7, 8], pa.int64()), "value": ["g", "h"]})


@dataclass(frozen=True)
class Conflict:
    """A statement on Spark, the commit of the other writer, and the exception of the statement with its error class."""

    statement: Callable[[SparkSession, str], object]
    concurrent: Callable[[Table], object]
    error: type[exceptions.TahoeError]
    code: str


def sql(text: str) -> Callable[[SparkSession, str], object]:
    return lambda spark, path: spark.sql(text.format(f"delta.`{path}`"))


def append_with_application(spark: SparkSession, path: str) -> None:
    rows = spark.createDataFrame([(3, "c")], "id bigint, value string")
    rows.write.format("delta").mode("append").option("txnAppId", "loader").option("txnVersion", 1).save(path)


def remove_a_file_unread(_: SparkSession, path: str) -> None:
    """Remove a file in a transaction that records no reads; every statement records the files that it removes as read."""
    table = Table(path)
    transaction = table.begin()
    transaction.stage(add_files(table.snapshot().files())[0].remove(1))
    table.commit(transaction, Operation("DELETE"))


CONFLICTS = {
    "concurrent write": Conflict(
        lambda spark, path: DeltaTable.forPath(spark, path).restoreToVersion(1),
        lambda table: table.append(MORE),
        exceptions.ConcurrentWriteException,
        "DELTA_CONCURRENT_WRITE",
    ),
    "protocol changed": Conflict(
        lambda spark, path: DeltaTable.forPath(spark, path).upgradeTableProtocol(1, 5),
        lambda table: table.set_properties({"delta.enableDeletionVectors": "true"}),
        exceptions.ProtocolChangedException,
        "DELTA_PROTOCOL_CHANGED",
    ),
    "metadata changed": Conflict(
        sql("ALTER TABLE {} ADD COLUMN more INT"),
        lambda table: table.set_properties({"delta.logRetentionDuration": "interval 9 days"}),
        exceptions.MetadataChangedException,
        "DELTA_METADATA_CHANGED",
    ),
    "append": Conflict(
        sql("DELETE FROM {} WHERE id > 1"),
        lambda table: table.append(MORE),
        exceptions.ConcurrentAppendException,
        "DELTA_CONCURRENT_APPEND",
    ),
    "delete of a file that was read": Conflict(
        sql("UPDATE {} SET value = 'x' WHERE id > 0"),
        lambda table: table.delete("id = 3"),
        exceptions.ConcurrentDeleteReadException,
        "DELTA_CONCURRENT_DELETE_READ",
    ),
    "delete of a file that is deleted": Conflict(
        remove_a_file_unread,
        lambda table: table.delete("id > 0"),
        exceptions.ConcurrentDeleteDeleteException,
        "DELTA_CONCURRENT_DELETE_DELETE",
    ),
    "transaction of one application": Conflict(
        append_with_application,
        lambda table: table.append(MORE, app=("loader", 0)),
        exceptions.ConcurrentTransactionException,
        "DELTA_CONCURRENT_TRANSACTION",
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of two files with one protocol, read under serializable isolation."""
    table = Table.create(tmp_path / "table", ROWS.schema, properties={"delta.isolationLevel": "Serializable"})
    table.append(ROWS)
    table.append(pa.table({"id": pa.array([3], pa.int64()), "value": ["c"]}))
    return str(tmp_path / "table")


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_raises_the_exception_of_delta_spark(
    spark: SparkSession, path: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflict = CONFLICTS[name]
    commit_before_the_first_of(monkeypatch, path, lambda: conflict.concurrent(Table(path)))
    with pytest.raises(conflict.error) as raised:
        conflict.statement(spark, path)
    error = raised.value
    assert isinstance(error, PySparkException) and isinstance(error, exceptions.DeltaConcurrentModificationException)
    assert str(error.getCondition()).startswith(conflict.code)
    assert Table(path).snapshot().version == 3, "only the other writer's commit follows"


def commit_before_the_first_of(monkeypatch: pytest.MonkeyPatch, path: str, commit: Callable[[], object]) -> None:
    """Have another writer commit when the table at `path` is about to be committed to for the first time."""
    put, pending = LocalLogStore.put_if_absent, [commit]

    def put_if_absent(store: LocalLogStore, name: str, data: bytes):
        if name.startswith("_delta_log/") and path in store.url and pending:
            pending.pop()()
        return put(store, name, data)

    monkeypatch.setattr(LocalLogStore, "put_if_absent", put_if_absent)


def test_an_analysis_error_is_an_analysis_exception(spark: SparkSession, path: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (missing > 0)")
    assert raised.value.getCondition()


def test_an_illegal_option_is_an_illegal_argument_exception(spark: SparkSession, path: str) -> None:
    rows = spark.createDataFrame([(3, "c")], "id bigint, value string")
    with pytest.raises(IllegalArgumentException) as raised:
        rows.write.format("delta").mode("append").option("txnAppId", "loader").save(path)
    assert raised.value.getCondition() == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
