"""Commits to S3 through a DynamoDB table, in the layout of delta-spark's `S3DynamoDBLogStore`, so that both can write one Delta table.

It is for S3-compatible servers without conditional writes, and for tables that delta-spark writes with that class. A commit is a temporary
file, then an entry for its name in DynamoDB, which only one writer can create, then a copy under the commit's name, then the entry's mark
that it is complete. The entry decides: whoever finds one that is not complete copies the file and marks the entry.

An entry has the attributes ``tablePath`` (hash key, ``s3a://bucket/path``), ``fileName`` (range key), ``tempPath`` (relative to the log),
``complete`` (``true`` or ``false``), and ``expireTime`` (seconds since the epoch), after which DynamoDB may delete it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, cast

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.base.log_fields import about
from tahoe.base.missing_extra import MissingExtra
from tahoe.store.log_store import Created, Entry, Exists, FolderStore, LogStore, PutOutcome, Refused, Unanswered, pages_from
from tahoe.store.ranged_file import reopened

logger = logging.getLogger(__name__)

_PREFIX = "io.delta.storage.S3DynamoDBLogStore."
_LOG_FOLDER = "_delta_log"
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class LockTable:
    """A DynamoDB table, by delta-spark's settings.

    Args:
        name: ``ddb.tableName``; delta-spark's default is ``delta_log``.
        region: ``ddb.region``.
        seconds: ``ddb.ttl``: the time for which the entry of a complete commit stays.
    """

    name: str
    region: str
    seconds: int


def without_lock_table(scheme: str, options: Mapping[str, str]) -> tuple[LockTable | None, dict[str, str]]:
    """Return the lock table that the options of a store name, None for none; and the other options.

    This is the one rule for the choice of the log's store: a store of S3 whose options have ``ddb.tableName`` uses that table, with or
    without ``spark.`` before delta-spark's name; every other store writes commits by its own conditional writes.
    """
    own: dict[str, str] = {}
    for name, value in options.items():
        short = name.removeprefix("spark.").removeprefix(_PREFIX)
        if short == name.removeprefix("spark."):
            continue
        if own.setdefault(short, value) != value:
            raise InvalidRequest(
                f"The settings {_PREFIX}{short} and spark.{_PREFIX}{short} have different values: set only one.",
                code="TAHOE_STORAGE_OPTION",
                option=name,
            )
    others = {name: value for name, value in options.items() if _PREFIX not in name}
    if scheme != "s3" or not own:
        return None, others
    if unknown := sorted(own.keys() - {"ddb.tableName", "ddb.region", "ddb.ttl", *_WITHOUT_EFFECT}):
        raise Unsupported(f"Tahoe cannot honor the setting {_PREFIX}{unknown[0]}: remove it.", code="TAHOE_HADOOP_SETTING")
    if "ddb.tableName" not in own:
        raise InvalidRequest(f"Set {_PREFIX}ddb.tableName too, for example to delta_log.", code="TAHOE_STORAGE_OPTION")
    seconds = own.get("ddb.ttl", str(_DAY_SECONDS))
    if not seconds.isdecimal():
        raise InvalidRequest(f"{_PREFIX}ddb.ttl must be a number of seconds.", code="TAHOE_STORAGE_OPTION")
    return LockTable(own["ddb.tableName"], own.get("ddb.region", "us-east-1"), int(seconds)), others


_WITHOUT_EFFECT = ("provisionedThroughput.rcu", "provisionedThroughput.wcu", "read.retries")
"""Settings for a table that delta-spark creates, and for its streams of S3."""


class DynamoDBLogStore:
    """`tahoe.store.log_store.LogStore` whose conditional writes are entries of a lock table. Created by `open_store`.

    Args:
        inner: the table's storage.
        lock_table: where the entries are.
        options: the options with which another process can open the same store.
    """

    def __init__(self, inner: FolderStore, lock_table: LockTable, options: Mapping[str, str]) -> None:
        self._inner = inner
        self._options = dict(options)
        self._entries = _Entries(inner.url, lock_table, self._options)
        self._seconds = lock_table.seconds

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"DynamoDBLogStore({self._inner!r}, {self._entries.table!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[str, dict[str, str]]]:
        return reopened, (self._inner.url, self._options)

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`: the newest commit is completed first."""
        self._complete_newest(folder)
        return self._inner.list_from(folder, start)

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`."""
        self._complete_newest(folder)
        return self._inner.names_from(folder, start)

    def pages_from(self, folder: str, start: str = "") -> Iterator[list[Entry]]:
        """See `PagedStore.pages_from`."""
        self._complete_newest(folder)
        return pages_from(self._inner, folder, start)

    def get(self, name: str) -> bytes:
        """See `LogStore.get`: a commit in the lock table is there, even if its writer died before the copy."""
        try:
            return self._inner.get(name)
        except NotFound:
            if not self._complete(name):
                raise
        return self._inner.get(name)

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`."""
        try:
            return self._inner.get_many(names)
        except NotFound:
            return [self.get(name) for name in names]

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        entry = self._inner.head(name)
        return self._inner.head(name) if entry is None and self._complete(name) else entry

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`: by an entry of the lock table, which also orders commits."""
        try:
            if self._inner.head(name) is not None:
                return Exists()
            if refused := self._check_previous(name):
                return refused
            temporary = f".tmp/{name.rpartition('/')[2]}.{SYSTEM_CLOCK.uuid()}"
            self._inner.put(f"{_LOG_FOLDER}/{temporary}", data)
        except StorageFailure as error:
            return Refused(error.message)
        outcome = self._entries.create(name, temporary)
        if isinstance(outcome, Exists):
            self._complete(name)
        elif isinstance(outcome, Created):
            self._finish(name, temporary, data)
        return outcome

    def _check_previous(self, name: str) -> PutOutcome | None:
        """Complete the commit before this one. A commit without a previous one must not be written, nor over entries of a deleted table."""
        matched = _COMMIT.fullmatch(name)
        if matched is None:
            return None
        version = int(matched[1])
        if version == 0:
            item = self._entries.read(name)
            if item is None or item["complete"] != "true":
                return None
            raise InvalidRequest(
                f"Table {self._inner.url} was deleted, but the DynamoDB table {self._entries.table} still has entries of it. Delete the "
                f"entries whose tablePath is {self._entries.key(name)[0]}, or use another path.",
                code="TAHOE_LOCK_TABLE_ENTRIES",
                table=self._inner.url,
            )
        if self.head(f"{_LOG_FOLDER}/{version - 1:020d}.json") is None:
            return Refused(f"the commit of version {version - 1} is neither in storage nor in the lock table")
        self._complete(f"{_LOG_FOLDER}/{version - 1:020d}.json")
        return None

    def _finish(self, name: str, temporary: str, data: bytes) -> None:
        """Copy a commit to its name and mark its entry; after a failure the next reader or writer does. The commit is made already."""
        try:
            self._inner.put(name, data)
            self._entries.mark_complete(name, temporary, self._seconds)
        except StorageFailure as error:
            logger.warning(
                "%s/%s is committed, to be completed later: %s", self._inner.url, name, error, extra=about(self._inner.url)
            )

    def _complete_newest(self, folder: str) -> None:
        if folder == _LOG_FOLDER:
            name = self._entries.newest()
            if name is not None:
                self._complete(name)

    def _complete(self, name: str) -> bool:
        """Complete the commit of an entry that is not complete; whether there was one."""
        if not name.startswith(f"{_LOG_FOLDER}/"):
            return False
        item = self._entries.read(name)
        if item is None or item["complete"] == "true":
            return False
        if self._inner.head(name) is None:
            self._inner.put(name, self._inner.get(f"{_LOG_FOLDER}/{item['tempPath']}"))
        self._entries.mark_complete(name, item["tempPath"], self._seconds)
        return True


class _Entries:
    """The entries of one Delta table in DynamoDB. Names are those of the store."""

    def __init__(self, url: str, lock_table: LockTable, options: Mapping[str, str]) -> None:
        self.table = lock_table.name
        self._url = url
        self._path = "s3a" + url.removeprefix("s3") if url.startswith("s3:") else url
        keys = tuple(options.get(name, "") for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token"))
        self._client: Callable[[], Any] = lambda: _client(lock_table.region, keys)

    def key(self, name: str) -> tuple[str, str]:
        """Return hash and range key. Only commits have the table's own path: delta-spark takes its last entry for the newest commit."""
        folder, _, file = name.rpartition("/")
        return self._path if _COMMIT.fullmatch(name) else f"{self._path}#{folder}", file

    def read(self, name: str) -> dict[str, str] | None:
        """Return the attributes of an entry; None if there is none."""
        answer = self._ask("read", lambda client: client.get_item(TableName=self.table, Key=self._key(name), ConsistentRead=True))
        item = answer.get("Item")
        return {key: str(next(iter(value.values()))) for key, value in item.items()} if item else None

    def newest(self) -> str | None:
        """Return the name of the newest commit with an entry."""
        query = {
            "KeyConditionExpression": "tablePath = :path",
            "ExpressionAttributeValues": {":path": {"S": self._path}},
            "ScanIndexForward": False,
            "Limit": 1,
        }
        answer = self._ask("query", lambda client: client.query(TableName=self.table, ConsistentRead=True, **query))
        return next((f"{_LOG_FOLDER}/{item['fileName']['S']}" for item in answer["Items"]), None)

    def create(self, name: str, temporary: str) -> PutOutcome:
        """Create an entry that is not complete, unless there is one."""
        from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

        item = {**self._key(name), "tempPath": {"S": temporary}, "complete": {"S": "false"}}
        try:
            client = self._client()
            client.put_item(TableName=self.table, Item=item, ConditionExpression="attribute_not_exists(fileName)")
        except ClientError as error:
            code = str(error.response["Error"]["Code"])
            if code == "ConditionalCheckFailedException":
                return Exists()
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            return Refused(f"DynamoDB: {code}") if status < 500 else Unanswered(f"DynamoDB: {code}")
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            return Refused(f"DynamoDB: {type(error).__name__}")
        except BotoCoreError as error:
            return Unanswered(f"DynamoDB: {type(error).__name__}")
        return Created()

    def mark_complete(self, name: str, temporary: str, seconds: int) -> None:
        """Mark an entry as complete, to be deleted by DynamoDB after some seconds."""
        expires = int(SYSTEM_CLOCK.now_ms() // 1000) + seconds
        item = {**self._key(name), "tempPath": {"S": temporary}, "complete": {"S": "true"}, "expireTime": {"N": str(expires)}}
        self._ask("write", lambda client: client.put_item(TableName=self.table, Item=item))

    def _key(self, name: str) -> dict[str, dict[str, str]]:
        path, file = self.key(name)
        return {"tablePath": {"S": path}, "fileName": {"S": file}}

    def _ask(self, verb: str, request: Callable[[Any], Mapping[str, Any]]) -> Mapping[str, Any]:
        client = self._client()
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return request(client)
        except ClientError as error:
            reason = str(error.response["Error"]["Code"])
        except BotoCoreError as error:
            reason = type(error).__name__
        raise StorageFailure(
            f"Table {self._url}: could not {verb} its entries in the DynamoDB table {self.table}: {reason}. Check the table's name and "
            "region (ddb.tableName, ddb.region), that it has the keys tablePath and fileName, and that the credentials may use it.",
            table=self._url,
        )


_client_lock = Lock()


@lru_cache(maxsize=16)
def _made_client(region: str, keys: tuple[str, ...]) -> Any:
    try:
        import boto3
    except ImportError as error:
        raise MissingExtra(
            "A lock table in DynamoDB needs boto3: pip install 'tahoe-delta[dynamodb]'.", package="boto3", extra="dynamodb"
        ) from error
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    credentials = {name: key for name, key in zip(names, keys, strict=True) if key}
    library = logging.getLogger("botocore")
    # At DEBUG botocore logs keys, tokens and signatures. A program that sets its level has asked for them.
    if library.level == logging.NOTSET:
        library.setLevel(logging.INFO)
    return cast(Any, boto3).client("dynamodb", region_name=region, **credentials)


def _client(region: str, keys: tuple[str, ...]) -> Any:
    with _client_lock:  # boto3's default session is not made for threads
        return _made_client(region, keys)
