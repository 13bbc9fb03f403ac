"""The storage of tables that only a Spark Connect server can reach, for example because it alone has the credentials or the network.

    client: transaction ─► `ServerLogStore` ─► one query for each request ─► a Python worker of the server ─► storage

Only the requests move. Conflicts are detected and commits are decided at the client, as with any other store, so a query that Spark runs
twice commits once: the second conditional write finds the name taken, and the writer recognizes its own bytes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, BinaryIO, Literal, TypeVar, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from tahoe.base.exceptions import InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.spark.executors.shipped import mapped
from tahoe.spark.executors.storage_tasks import Call, Request, answered, bytes_between, deleted, joined, opened, parts_of
from tahoe.spark.versions.connect_frames import local_table
from tahoe.store.location import needs_jvm, split_url
from tahoe.store.log_store import Entry, LogStore, PutOutcome, Unanswered
from tahoe.store.outside import OutsideFiles
from tahoe.store.ranged_file import RangedFile, reopened

Answer = TypeVar("Answer")

_FAILED_QUERY = "TAHOE_CONNECT_SERVER"


def server_store(spark: SparkSession, path: str, url: str, options: dict[str, str]) -> ServerLogStore:
    """Return the store of a table that the server of a Spark Connect session reaches.

    Args:
        path: as the user wrote it.
        url: its `tahoe.store.location.table_url`.
        options: for `tahoe.store.object_store.open_store` on the server, whose environment variables apply too.

    Raises:
        InvalidRequest: a path relative to the client's folder.
        Unsupported: a Hadoop file system, or the memory of one process.
    """
    if ":/" not in path and not path.startswith("/"):
        raise InvalidRequest(
            f"The table's path '{path}' is relative to a folder of this machine, but the server reaches the storage "
            "(enable(spark, storage='server')). Pass a URL, or an absolute path of the server.",
            code="TAHOE_TABLE_LOCATION",
            path=path,
        )
    if needs_jvm(url) or split_url(url)[0] == "memory":
        raise Unsupported(
            f"Python workers of a Spark Connect server cannot reach {url}. Use a classic session for it.",
            code="TAHOE_TABLE_LOCATION",
            table=url,
        )
    return ServerLogStore(spark, url, options)


_PARTS = StructType([StructField("part", BinaryType())])


class ServerLogStore:
    """`tahoe.store.log_store.LogStore` whose requests a Spark Connect server answers.

    Args:
        spark: the session.
        url: the table's URL, as the server reaches it.
        options: the arguments of `tahoe.store.object_store.open_store` on the server.
    """

    def __init__(self, spark: SparkSession, url: str, options: dict[str, str]) -> None:
        self._spark = spark
        self._url = url
        self._options = options
        self.outside = OutsideFiles(url, lambda root: ServerLogStore(spark, root, options))

    def __repr__(self) -> str:
        return f"ServerLogStore({self._url!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[str, dict[str, str]]]:
        # Tasks of the server access the storage directly.
        return reopened, (self._url, self._options)

    @property
    def url(self) -> str:
        """See `LogStore.url`."""
        return self._url

    asks_cheaply = False
    """See `LogStore.asks_cheaply`."""

    coordination: Literal["none"] = "none"
    """See `LogStore.coordination`."""

    # -- reading -----------------------------------------------------------------------------------------------------------

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`."""
        return cast(list[Entry], self._call("list", "list_from", folder, start))

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`."""
        return cast(list[str], self._call("list", "names_from", folder, start))

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`: one request."""
        yield from cast(list[Entry], self._call("list", "walk", folder))

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`."""
        return cast(list[str], self._call("list", "folders", folder))

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`."""
        return bool(self._call("list", "has_folder", folder))

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        return cast(bytes, self._call("read", "get", name))

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`: one request."""
        return cast(list[bytes], self._call("read", "get_many", names)) if names else []

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        return cast(Entry | None, self._call("look at", "head", name))

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`: one request for a small object; further ones for ranges of a large object."""
        size, tail = cast(tuple[int, bytes], self._ask("read", name, Call(opened, (name,))))
        if len(tail) == size:
            return pa.BufferReader(tail)
        return pa.PythonFile(RangedFile(size, tail, lambda start, stop: self.run(bytes_between, name, start, stop)), mode="r")

    # -- writing -----------------------------------------------------------------------------------------------------------

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`."""
        self._call("write", "put", name, data)

    @contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """See `LogStore.open_output`: buffers in memory."""
        with io.BytesIO() as file:
            yield file
            self.put(name, file.getvalue())

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`."""
        try:
            return cast(PutOutcome, self._call("write", "put_if_absent", name, data))
        except StorageFailure as error:
            if error.code != _FAILED_QUERY:
                raise
            # It may have failed after its worker wrote the object.
            return Unanswered(error.message)

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        self._call("delete", "delete", name)

    def delete_many(self, names: list[str]) -> None:
        """See `BulkStore.delete_many`: one request."""
        self._ask("delete", names[0], Call(deleted, (names,)))

    # -- requests ----------------------------------------------------------------------------------------------------------

    def run(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """See `tahoe.store.log_store.RemoteStore`."""
        return cast(Answer, self._ask("read", "", Call(function, arguments)))

    def _call(self, verb: str, method: str, *arguments: Any) -> object:
        """Return the result of a method of the store there, whose first argument is the name of an object, or a list of names."""
        name = arguments[0] if isinstance(arguments[0], str) else arguments[0][0]
        return self._ask(verb, name, methodcaller(method, *arguments))

    def _ask(self, verb: str, name: str, request: Request) -> object:
        parts = local_table(self._spark, parts_of(pickle.dumps(request, pickle.HIGHEST_PROTOCOL)), _PARTS).coalesce(1)
        try:
            answers = mapped(parts, _PARTS, answered, self._url, self._options).toArrow()
        except PySparkException as error:
            failure = self._failure(verb, name, error)
        else:
            answer = pickle.loads(joined(answers.to_batches()))
            if isinstance(answer, TahoeError):
                raise answer
            return answer
        raise failure  # outside of the handler: the engine's stack trace must not become the error's context

    def _failure(self, verb: str, name: str, error: PySparkException) -> StorageFailure:
        place = f"{self._url}/{name}".rstrip("/")
        return StorageFailure(
            f"The Spark Connect server failed to {verb} {place}: {type(error).__name__} ({error.getCondition() or 'no error class'}). "
            "Check that the server runs, and look into its log.",
            code=_FAILED_QUERY,
            table=self._url,
        )
