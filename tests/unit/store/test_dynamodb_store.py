"""Commits through delta-spark's lock table: one winner for each version, for a death at any step."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa
import pytest
from botocore.exceptions import ReadTimeoutError

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, StorageFailure, Unsupported
from tahoe.log.files.paths import commit_name
from tahoe.store import dynamodb_store
from tahoe.store.dynamodb_store import DynamoDBLogStore, LockTable, without_lock_table
from tahoe.store.log_store import Created, Exists, FolderStore, LogStore, Refused
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tests.moto_server import moto_server

PREFIX = "io.delta.storage.S3DynamoDBLogStore."
OPTIONS = {f"{PREFIX}ddb.tableName": "locks", f"{PREFIX}ddb.region": "eu-west-1"}
SCHEMA = {"id": "long"}


class Died(BaseException):
    """The end of a process."""


def die(*_: object) -> None:
    """Ends the process."""
    raise Died


class Storage(WrappedStore):
    """Storage without conditional writes, whose writer dies or fails at a name."""

    at: str = ""
    error: type[BaseException] = Died

    def put(self, name: str, data: bytes) -> None:
        if self.at and self.at in name:
            self.at = ""
            raise self.error("here")
        super().put(name, data)

    def put_if_absent(self, name: str, data: bytes) -> Any:
        raise AssertionError("a conditional write")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A DynamoDB on the loopback."""
    with moto_server("dynamodb") as url:
        yield url


@pytest.fixture
def client(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Tahoe's client of DynamoDB, which has the lock table as delta-spark creates it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
    dynamodb_store._made_client.cache_clear()
    made = dynamodb_store._client("eu-west-1", ("", "", ""))
    names = ("tablePath", "fileName")
    made.create_table(
        TableName="locks",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": n, "KeyType": kind} for n, kind in zip(names, ("HASH", "RANGE"), strict=True)],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    yield made
    with suppress(made.exceptions.ResourceNotFoundException):
        made.delete_table(TableName="locks")
    dynamodb_store._made_client.cache_clear()


def store_over(storage: Storage) -> LogStore:
    """Another process's store over the same storage."""
    return cast(LogStore, DynamoDBLogStore(cast(FolderStore, storage), LockTable("locks", "eu-west-1", 3600), {}))


def another(url: str) -> tuple[Storage, Table]:
    """Another process: its storage, and the table."""
    storage = Storage(open_store(url))
    return storage, Table(url, store=store_over(storage))


def entries(client: Any, path: str) -> dict[str, dict[str, str]]:
    """The entries of a table by file name."""
    actual = client.scan(TableName="locks")["Items"]
    rows = [{key: next(iter(value.values())) for key, value in item.items()} for item in actual]
    return {row["fileName"]: row for row in rows if row["tablePath"] == path}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def made(url: str) -> Table:
    """A table with one row."""
    _, table = another(url)
    table = Table.create(url, SCHEMA, store=table.store)
    table.append(rows(0))
    return table


def test_entries_have_delta_spark_s_layout(client: Any, memory_url: str) -> None:
    table = made(memory_url)
    before = int(time.time())
    actual = entries(client, memory_url)
    assert list(actual) == [f"{version:020d}.json" for version in (0, 1)]
    entry = actual[f"{1:020d}.json"]
    assert entry.keys() == {"tablePath", "fileName", "tempPath", "complete", "expireTime"}
    assert entry["complete"] == "true" and abs(int(entry["expireTime"]) - before - 3600) < 600
    assert entry["tempPath"].startswith(f".tmp/{1:020d}.json.")
    assert table.store.get(f"_delta_log/{entry['tempPath']}") == table.store.get(commit_name(1))


def test_the_path_of_a_bucket_is_that_of_hadoop() -> None:
    entries = dynamodb_store._Entries("s3://bucket/a b", LockTable("locks", "eu-west-1", 1), {})
    assert entries.key(commit_name(3)) == ("s3a://bucket/a b", f"{3:020d}.json")
    assert entries.key("_delta_log/x.crc") == ("s3a://bucket/a b#_delta_log", "x.crc"), "never the table's newest entry"


@pytest.mark.parametrize(("step", "is_committed"), [(".tmp/", False), ("copy", True), ("mark", True)])
@pytest.mark.parametrize("then", ["read", "write", "refresh"])
def test_a_writer_that_dies_between_the_steps_leaves_a_commit_or_nothing(
    client: Any, memory_url: str, step: str, is_committed: bool, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(memory_url)
    storage, dying = another(memory_url)
    _, open_before = another(memory_url)
    assert open_before.version() == 1
    storage.at = commit_name(2) if step == "copy" else step
    with monkeypatch.context() as patched:
        if step == "mark":
            patched.setattr(dynamodb_store._Entries, "mark_complete", die)
        with pytest.raises(Died):
            dying.append(rows(1))
    expected = [0, 1] if is_committed else [0]
    table = open_before if then == "refresh" else another(memory_url)[1]
    if then == "write":
        assert table.append(rows(2)) == 2 + is_committed
        expected = [*expected, 2]
    assert sorted(table.to_arrow()["id"].to_pylist()) == expected
    assert {entry["complete"] for entry in entries(client, memory_url).values()} == {"true"}
    assert another(memory_url)[1].check() == []


def test_a_commit_of_delta_spark_that_is_not_complete_is_completed(client: Any, memory_url: str) -> None:
    table = made(memory_url)
    storage, writer = another(memory_url)
    storage.at = commit_name(2)
    with pytest.raises(Died):
        writer.append(rows(5))
    with ThreadPoolExecutor(4) as pool:  # several processes complete it at the same time
        seen = list(pool.map(lambda _: another(memory_url)[1].to_arrow().num_rows, range(8)))
    assert seen == [2] * 8 and table.version() == 2


def test_a_copy_that_fails_leaves_a_commit(client: Any, memory_url: str) -> None:
    made(memory_url)
    storage, table = another(memory_url)
    storage.at, storage.error = commit_name(2), StorageFailure
    assert table.append(rows(1)) == 2
    assert sorted(another(memory_url)[1].to_arrow()["id"].to_pylist()) == [0, 1]


def test_a_lost_answer_of_dynamodb_does_not_repeat_the_commit(
    client: Any, memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(memory_url)
    _, table = another(memory_url)
    real, lost = client.put_item, list[int]()

    def put_item(**arguments: Any) -> Any:
        answer = real(**arguments)
        if arguments["Item"]["fileName"]["S"] == f"{2:020d}.json" and not lost:
            lost.append(1)
            raise ReadTimeoutError(endpoint_url="https://dynamodb")
        return answer

    monkeypatch.setattr(client, "put_item", put_item)
    assert table.append(rows(1)) == 2 and lost
    assert another(memory_url)[1].to_arrow().num_rows == 2 and another(memory_url)[1].version() == 2


def test_of_two_writers_of_a_version_one_wins(client: Any, memory_url: str) -> None:
    made(memory_url)
    stores = [another(memory_url)[1].store for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda number: stores[number].put_if_absent(commit_name(2), b"%d" % number), range(8)))
    winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Created)]
    assert len(winners) == 1 and all(isinstance(outcome, Created | Exists) for outcome in outcomes)
    assert stores[0].get(commit_name(2)) == b"%d" % winners[0]


def test_24_concurrent_appends_of_four_writers_are_all_there_once(client: Any, memory_url: str) -> None:
    made(memory_url)
    tables = [another(memory_url)[1] for _ in range(4)]

    def append(number: int) -> None:
        for each in range(6):
            tables[number].append(rows(10 * number + each + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    table = another(memory_url)[1]
    assert table.version() == 25
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, *sorted(10 * n + e + 1 for n in range(4) for e in range(6))]


def test_an_expired_entry_is_not_needed(client: Any, memory_url: str) -> None:
    table = made(memory_url)
    for name, entry in entries(client, memory_url).items():
        client.delete_item(TableName="locks", Key={"tablePath": {"S": entry["tablePath"]}, "fileName": {"S": name}})
    assert isinstance(table.store.put_if_absent(commit_name(1), b"x"), Exists)
    assert another(memory_url)[1].append(rows(1)) == 2


def test_a_commit_without_a_previous_one_is_refused(client: Any, memory_url: str) -> None:
    table = made(memory_url)
    refused = table.store.put_if_absent(commit_name(7), b"x")
    assert isinstance(refused, Refused) and "version 6" in refused.error


def test_entries_of_a_deleted_table_are_reported(client: Any, memory_url: str) -> None:
    table = made(memory_url)
    for entry in list(table.store.walk()):
        table.store.delete(entry.name)
    with pytest.raises(InvalidRequest, match=f"still has entries of it.*tablePath is {memory_url}"):
        Table.create(memory_url, SCHEMA, store=another(memory_url)[1].store)


def test_a_missing_lock_table_is_named(client: Any, memory_url: str) -> None:
    client.delete_table(TableName="locks")
    with pytest.raises(StorageFailure, match=r"DynamoDB table locks: ResourceNotFoundException.*ddb\.tableName"):
        another(memory_url)[1].version()


def test_the_options_choose_the_lock_table() -> None:
    assert without_lock_table("s3", {"aws_region": "x"}) == (None, {"aws_region": "x"})
    assert without_lock_table("s3", {**OPTIONS, "aws_region": "x"}) == (
        LockTable("locks", "eu-west-1", 86400),
        {"aws_region": "x"},
    )
    assert without_lock_table("s3", {f"spark.{PREFIX}ddb.tableName": "t", f"{PREFIX}ddb.ttl": "60"})[0] == LockTable(
        "t", "us-east-1", 60
    )
    assert without_lock_table("file", OPTIONS) == (None, {})
    for options, error, names in (
        ({f"{PREFIX}ddb.tableName": "a", f"spark.{PREFIX}ddb.tableName": "b"}, InvalidRequest, "different values"),
        ({f"{PREFIX}ddb.region": "a"}, InvalidRequest, "ddb.tableName"),
        ({**OPTIONS, f"{PREFIX}ddb.ttl": "-1"}, InvalidRequest, "ddb.ttl"),
        ({**OPTIONS, f"{PREFIX}credentials.provider": "a.B"}, Unsupported, "credentials.provider"),
    ):
        with pytest.raises(error, match=names):
            without_lock_table("s3", options)


def test_a_table_in_s3_is_written_through_the_lock_table(client: Any, s3_url: str, s3_options: dict[str, str]) -> None:
    options = {**s3_options, **OPTIONS}
    table = Table.create(s3_url, SCHEMA, storage_options=options)
    table.append(rows(1, 2))
    assert Table(s3_url, storage_options=options).to_arrow().num_rows == 2
    assert len(entries(client, s3_url.replace("s3://", "s3a://"))) == 2
    again = pickle.loads(pickle.dumps(table.store))
    assert isinstance(again, DynamoDBLogStore) and again.get(commit_name(1)) == table.store.get(commit_name(1))
