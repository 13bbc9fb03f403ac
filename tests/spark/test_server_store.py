"""Sessions of Spark Connect whose server alone reaches the storage: its environment has the credentials, and the client's has none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tahoe
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.spark.connect import server_store
from tahoe.spark.connect.server_store import ServerLogStore
from tahoe.spark.jvm.storage import table_at
from tahoe.store.log_store import Created, Exists, LogStore, Unanswered
from tahoe.tables import DeltaTable
from tahoe.testing.interleaving import in_threads
from tahoe.testing.store_suite import LogStoreContract
from tests.spark.connect_server import remote, server

VECTORS = "delta.enableDeletionVectors"


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory, java_options: str, s3_options: dict[str, str]) -> Iterator[str]:
    """A server that has the credentials of an S3."""
    variables = {name.upper(): value for name, value in s3_options.items()} | {"AWS_ALLOW_HTTP": "true"}
    with server(tmp_path_factory.mktemp("server"), java_options, variables=variables) as url:
        yield url


@pytest.fixture(scope="module")
def connect(server_url: str) -> Iterator[Any]:
    """A session of the server."""
    session = opened(server_url)
    yield session
    with remote():
        session.stop()


def opened(url: str) -> Any:
    """Return a new session whose tables the server reaches."""
    from pyspark.sql.connect.session import SparkSession

    with remote():
        return tahoe.enable(SparkSession.builder.remote(url).create(), storage="server")


@pytest.fixture
def store(connect: Any, s3_url: str) -> ServerLogStore:
    """The store of a table in S3."""
    with remote():
        opened = table_at(connect, s3_url, {}).store
    assert isinstance(opened, ServerLogStore)
    return opened


def test_a_table_lives_where_only_the_server_reaches(connect: Any, s3_url: str, s3_options: dict[str, str]) -> None:
    with pytest.raises(StorageFailure, match="TAHOE_ACCESS_DENIED"):
        tahoe.Table(s3_url).version()
    name = f"delta.`{s3_url}`"
    with remote():
        connect.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('{VECTORS}' = 'true')")
        connect.range(20).selectExpr("id", "cast(id % 2 AS INT) AS p").write.format("delta").mode("append").save(s3_url)
        connect.sql(f"UPDATE {name} SET id = id + 100 WHERE id = 3")
        connect.sql(f"MERGE INTO {name} t USING (SELECT 4L AS id, 9 AS p) s ON t.id = s.id WHEN MATCHED THEN DELETE")
        table = DeltaTable.forPath(connect, s3_url)
        table.optimize().executeCompaction()
        table.restoreToVersion(3)
        table.vacuum(1000)
        assert sorted(row.id for row in connect.read.format("delta").load(s3_url).collect()) == [
            *(number for number in range(20) if number not in (3, 4)),
            103,
        ]
        assert connect.read.format("delta").option("versionAsOf", 1).load(s3_url).count() == 20
        operations = [row.operation for row in table.history().collect()]
    assert operations[-4:] == ["MERGE", "UPDATE", "WRITE", "CREATE TABLE"] and "RESTORE" in operations
    assert tahoe.Table(s3_url, storage_options=s3_options).check(deep=True) == []


def test_concurrent_clients_commit_every_append_once(
    connect: Any, server_url: str, s3_url: str, s3_options: dict[str, str]
) -> None:
    with remote():
        connect.range(0).write.format("delta").save(s3_url)
        sessions = [opened(server_url) for _ in range(2)]

        def append(session: Any, first: int) -> None:
            for number in range(3):
                session.range(first + number, first + number + 1).write.format("delta").mode("append").save(s3_url)

        in_threads([partial(append, session, 10 * number) for number, session in enumerate(sessions)])
        for session in sessions:
            session.stop()
    table = tahoe.Table(s3_url, storage_options=s3_options)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12] and table.version() == 6


def test_a_commit_whose_query_fails_after_writing_counts_once(
    connect: Any, s3_url: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped, failures = server_store.mapped, []

    class Lost:
        def __init__(self, frame: Any) -> None:
            self._frame = frame

        def toArrow(self) -> pa.Table:  # noqa: N802 - PySpark's name
            answer = self._frame.toArrow()
            if isinstance(server_store.pickle.loads(server_store.joined(answer.to_batches())), Created) and not failures:
                failures.append("connection lost")
                raise PySparkException("the connection is lost")
            return answer

    monkeypatch.setattr(server_store, "mapped", lambda *arguments: Lost(mapped(*arguments)))
    with remote():
        connect.range(3).write.format("delta").save(s3_url)
    table = tahoe.Table(s3_url, storage_options=s3_options)
    assert failures == ["connection lost"]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2] and table.version() == 0


def test_a_failed_query_is_a_storage_failure_without_a_stack_trace(
    store: ServerLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def toArrow(self) -> pa.Table:  # noqa: N802
            raise PySparkException("the connection is lost")

    monkeypatch.setattr(server_store, "mapped", lambda *_: Failing())
    with remote():
        with pytest.raises(StorageFailure, match=r"TAHOE_CONNECT_SERVER.*failed to read s3://.*/x") as raised:
            store.get("x")
        assert isinstance(store.put_if_absent("x", b""), Unanswered)
    assert raised.value.__cause__ is None and raised.value.__context__ is None


def test_errors_of_the_storage_arrive_unchanged(store: ServerLogStore) -> None:
    with remote(), pytest.raises(NotFound, match="nothing") as raised:
        store.get("nothing")
    assert raised.value.facts["table"] == store.url


def test_a_large_object_travels_in_parts(store: ServerLogStore) -> None:
    content = bytes(range(256)) * (20 * 4096)  # 20 MB
    with remote():
        store.put("large", content)
        assert store.get("large") == content
        with store.open_input("large") as file:
            file.seek(5_000_000)
            assert (file.size(), file.read(10)) == (len(content), content[5_000_000:5_000_010])


def test_vacuum_looks_at_the_links_of_the_server(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with remote():
        connect.range(3).coalesce(1).write.format("delta").save(path)
    (file,) = (tmp_path / "t").glob("*.parquet")
    (tmp_path / "t" / "real").mkdir()
    target = file.rename(tmp_path / "t" / "real" / "file.parquet")
    file.symlink_to(target)
    os.utime(target, (1, 1))
    with remote():
        DeltaTable.forPath(connect, path).vacuum(1000)
        assert connect.read.format("delta").load(path).count() == 3
    assert target.exists() and file.is_symlink()


@pytest.mark.parametrize(
    ("path", "error"), [("relative/t", InvalidRequest), ("hdfs://host:1/t", Unsupported), ("memory://a/t", Unsupported)]
)
def test_places_that_the_server_cannot_reach_are_refused(connect: Any, path: str, error: type[Exception]) -> None:
    with remote(), pytest.raises(error, match="TAHOE_TABLE_LOCATION"):
        connect.range(1).write.format("delta").save(path)


def test_the_argument_is_checked(connect: Any, spark: Any) -> None:
    with remote(), pytest.raises(InvalidRequest, match="storage='client' or storage='server', found 'both'"):
        tahoe.enable(connect, storage="both")
    with pytest.raises(Unsupported, match="for sessions of Spark Connect"):
        tahoe.enable(spark, storage="server")


@pytest.mark.soak
class TestContract(LogStoreContract):
    """The requirements on every store."""

    @pytest.fixture
    def store(self, connect: Any, s3_url: str) -> Iterator[LogStore]:
        """A new place in S3."""
        with remote():
            yield ServerLogStore(connect, f"{s3_url}/{uuid4()}", {})

    def test_a_free_name_is_created_and_a_taken_one_is_left_as_it_is(self, store: LogStore) -> None:
        """With the outcomes of a store on this machine."""
        assert store.put_if_absent("name", b"1") == Created()
        assert store.put_if_absent("name", b"2") == Exists()
        assert store.get("name") == b"1"
