"""The store over object stores (S3, GCS, Azure, and one in memory for tests) through obstore, and `open_store` for every URL.

* **Conditional PUT, sent once.** `put_if_absent` uses a client that never repeats a request by itself: a repeated PUT
  whose first attempt had succeeded would return "exists" and hide that the commit is ours. Each answer becomes a typed outcome,
  and every answer that leaves open whether the bytes were written (5xx, timeout, connection lost after sending) is `Unanswered`. All
  other requests are safe to repeat, and are retried.
* **Stores that ignore the condition are detected.** Before the first conditional write through an S3 endpoint that is not
  Amazon's, ``_delta_log/.tahoe-probe`` is written twice on condition: a store that accepts both would lose commits, and is refused.
* **Secrets are not exposed.** Options go to obstore and nowhere else; messages contain the store's status and error code,
  never its text, which may repeat keys and signatures.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, BinaryIO, Literal, TypeVar, cast

import obstore
import pyarrow as pa
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, MemoryStore, ObjectStore, S3Store

from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError, Unsupported
from tahoe.store.dynamodb_store import DynamoDBLogStore, without_lock_table
from tahoe.store.hadoop_store import HadoopLogStore
from tahoe.store.local_store import LocalLogStore
from tahoe.store.location import HADOOP_SCHEMES, is_outside, refuse_outside_name, split_url, table_url
from tahoe.store.log_store import Created, Entry, Exists, FolderStore, InFlight, LogStore, PutOutcome, Refused, Unanswered
from tahoe.store.outside import OutsideFiles
from tahoe.store.ranged_file import RangedFile, reopened
from tahoe.store.refusals import NO_BUCKET, names_credentials, remedy_of, without_credentials
from tahoe.store.role_credentials import may_have_role

Options = Mapping[str, str]
Answer = TypeVar("Answer")


def open_store(path: str | os.PathLike[str], storage_options: Options | None = None) -> FolderStore:
    """Return the store of the table at `path`. Nothing is read or written, and the location need not exist.

    Args:
        path: a folder or URL, in any form that `tahoe.store.location.table_url` accepts. ``memory://name`` is a store in this process,
            shared by all users of that name.
        storage_options: for S3, GCS and Azure the options of the Rust crate ``object_store``, in upper or lower case
            (``aws_access_key_id``, ``aws_secret_access_key``, ``aws_endpoint``, ``aws_region``, ``allow_http``, …); its
            environment variables (``AWS_ACCESS_KEY_ID``, …) apply to options that are not set. For a local folder: ``fsync``
            (``true`` or ``false``); the others do not apply there and are ignored. For HDFS and ViewFs: settings of Hadoop.

    Raises:
        InvalidRequest: an invalid path, or an option unknown to the store (the message has its name, never its value).
        Unsupported: a scheme without a store.
    """
    url = table_url(path)
    options = dict(storage_options or {})
    scheme, authority, key = split_url(url)
    if scheme not in ("file", "memory", *HADOOP_SCHEMES):
        _check_texts({**dict(store_environment()), **{str(name): str(value) for name, value in options.items()}}, url)
    if scheme == "file":
        return LocalLogStore(url, fsync=_boolean(options, "fsync"))
    if scheme in HADOOP_SCHEMES:
        return HadoopLogStore(url, {str(name): str(value) for name, value in options.items()})
    if scheme == "memory":
        return ObjectLogStore(url, _memory_clients(authority), prefix=key)
    lock_table, own = without_lock_table(scheme, {str(name): str(value) for name, value in options.items()})
    configuration = tuple(sorted((name.lower(), value) for name, value in own.items()))
    store = ObjectLogStore(url, _clients(scheme, authority, configuration, store_environment()), prefix=key, options=own)
    return store if lock_table is None else cast(FolderStore, DynamoDBLogStore(store, lock_table, options))


@dataclass(slots=True)
class Clients:
    """The connections to one bucket, shared by its tables.

    Args:
        reads: for all repeatable requests.
        commits: for conditional writes; never repeats a request.
        honour_conditions: whether the store is known to honour conditional writes.
        may_sign: whether credentials are known, or the machine may have a role with some.
    """

    reads: ObjectStore
    commits: ObjectStore
    honour_conditions: bool
    may_sign: bool = False


class ObjectLogStore:
    """`tahoe.store.log_store.LogStore` over obstore. Created by `open_store`.

    Args:
        url: the table's URL.
        clients: the clients of its bucket.
        prefix: the key of the table's root in the bucket, '' for the bucket itself.
        options: the options with which another process can open the same store.
    """

    def __init__(self, url: str, clients: Clients, *, prefix: str, options: Options | None = None) -> None:
        self._url = url
        self._scheme = split_url(url)[0]
        self._clients = clients
        self._reads = clients.reads
        self._prefix = f"{prefix}/" if prefix else ""
        self._options = dict(options or {})
        self.outside = OutsideFiles(url, lambda root: open_store(root, self._options))
        self.coordination: Literal["none"] = "none"

    def __repr__(self) -> str:
        return f"ObjectLogStore({self._url!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[str, dict[str, str]]]:
        return reopened, (self._url, self._options)

    @property
    def url(self) -> str:
        """See `LogStore.url`."""
        return self._url

    asks_cheaply = False
    """See `LogStore.asks_cheaply`."""

    # -- reading -----------------------------------------------------------------------------------------------------------

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`; the store itself starts at `start` if it can."""
        prefix = f"{folder}/" if folder else ""
        # obstore's offset is exclusive; a name without its last character sorts before every name that begins with it.
        offset: str | None = prefix + start[:-1]
        entries: list[Entry] = []
        while offset is not None:
            offset, page_entries = self._list_folder(prefix, start, offset)
            entries.extend(page_entries)
        return sorted(entries, key=lambda entry: entry.name)

    def pages_from(self, folder: str, start: str = "") -> Iterator[list[Entry]]:
        """See `PagedStore.pages_from`; a store that lists in no order gives one page."""
        if self._lists_unsorted():
            yield self.list_from(folder, start)
            return
        prefix = f"{folder}/" if folder else ""
        for page in self._pages(prefix, prefix + start[:-1] or None):
            yield [entry for entry in page if _is_listed(entry.name[len(prefix) :], start)]

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`: costs as much as `list_from`, since object stores return everything in one answer."""
        return [entry.name for entry in self.list_from(folder, start)]

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`."""
        for page in self._pages(folder, None):
            yield from (entry for entry in page if not entry.name.endswith(_PROBE))

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`: the prefixes below the name."""
        prefix = (self._prefix + folder).rstrip("/")
        listing = self._ask("list", folder, lambda: obstore.list_with_delimiter(self._reads, prefix or None))
        return sorted(path.rstrip("/").rpartition("/")[2] for path in listing["common_prefixes"])

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`."""
        pages = self._ask("list", folder, lambda: obstore.list(self._reads, self._key(folder), chunk_size=1))
        return self._ask("list", folder, lambda: next(pages, None)) is not None

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        if is_outside(name):
            return self.outside.get(name)
        return self._ask("read", name, lambda: bytes(obstore.get(self._reads, self._key(name)).bytes()))

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`: concurrently."""
        if len(names) < 2 or self._scheme == "memory":
            return [self.get(name) for name in names]
        with ThreadPoolExecutor(min(len(names), _SIDE_BY_SIDE), thread_name_prefix="tahoe-get") as pool:
            return list(pool.map(self.get, names))

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        if is_outside(name):
            return self.outside.head(name)
        try:
            return self._entry(self._ask("look at", name, lambda: obstore.head(self._reads, self._key(name))))
        except NotFound:
            return None

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`: fetches ranges on demand. Raises `NotFound` if there is no such object."""
        if is_outside(name):
            return self.outside.open_input(name)
        if self._scheme == "memory":
            return pa.BufferReader(self.get(name))
        key = self._key(name)

        def read(start: int, stop: int) -> bytes:
            return self._ask("read", name, lambda: bytes(obstore.get_range(self._reads, key, start=start, end=stop)))

        size, tail = self._ask("open", name, lambda: self._size_and_tail(key))
        return pa.PythonFile(RangedFile(size, tail, read), mode="r")

    # -- writing -----------------------------------------------------------------------------------------------------------

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`."""
        self._ask("write", name, lambda: obstore.put(self._reads, self._key(name), data))

    @contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """See `LogStore.open_output`: buffers on local disk, so that a failure leaves nothing in the store."""
        from tempfile import TemporaryFile  # 3 ms, for writes of large files alone

        with TemporaryFile() as file:
            yield file
            file.seek(0)
            self._ask("write", name, lambda: obstore.put(self._reads, self._key(name), file))

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`: by the store's own conditional write."""
        if not self._clients.honour_conditions and (refused := self._probe_conditions()):
            return refused
        return self._create(self._key(name), data)

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        try:
            self._ask("delete", name, lambda: obstore.delete(self._reads, self._key(name)))
        except NotFound:
            return

    def delete_many(self, names: list[str]) -> None:
        """See `BulkStore.delete_many`: S3 accepts a thousand names per request."""
        keys = [self._key(name) for name in names]
        self._ask("delete", names[0], lambda: obstore.delete(self._reads, keys))

    # -- names and listings ------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        refuse_outside_name(name, self._url)
        return self._prefix + name

    def _entry(self, meta: Any) -> Entry:
        modified: datetime = meta["last_modified"]
        return Entry(meta["path"][len(self._prefix) :], meta["size"], (modified - _EPOCH) // _MILLISECOND)

    def _pages(self, folder: str, offset: str | None) -> Iterator[list[Entry]]:
        prefix = (self._prefix + folder).rstrip("/") or None
        pages = self._ask(
            "list", folder, lambda: obstore.list(self._reads, prefix, offset=offset and self._prefix + offset, chunk_size=_PAGE)
        )
        while (page := self._ask("list", folder, lambda: next(pages, None))) is not None:
            yield [self._entry(meta) for meta in page]

    def _list_folder(self, prefix: str, start: str, offset: str) -> tuple[str | None, list[Entry]]:
        """Return the entries directly below `prefix` from `offset` on, up to the first page that ends inside a sub-folder.

        Returns:
            the offset after that sub-folder (None at the end), and the entries.
        """
        entries: list[Entry] = []
        for page in self._pages(prefix, offset or None):
            for entry in page:
                if _is_listed(entry.name[len(prefix) :], start):
                    entries.append(entry)
            last = page[-1].name[len(prefix) :]
            if len(page) == _PAGE and "/" in last and not self._lists_unsorted():
                return f"{prefix}{last.partition('/')[0]}0", entries  # '0' is the character after '/'
        return None, entries

    def _lists_unsorted(self) -> bool:
        return split_url(self._url)[1].endswith("--x-s3")  # S3 Express directory buckets

    def _size_and_tail(self, key: str) -> tuple[int, bytes]:
        """Return an object's size and its last bytes, which contain a Parquet footer; in one request if the store supports suffix
        ranges."""
        if self._scheme in _WITHOUT_SUFFIX_RANGES:
            return obstore.head(self._reads, key)["size"], b""
        try:
            answer = obstore.get(self._reads, key, options={"range": {"suffix": _TAIL}})
            return answer.meta["size"], bytes(answer.bytes())
        except BaseError:  # an empty object has no suffix (416); any other error occurs again with this request
            return obstore.head(self._reads, key)["size"], b""

    # -- conditional writes ------------------------------------------------------------------------------------------------

    def _create(self, key: str, data: bytes) -> PutOutcome:
        try:
            obstore.put(self._clients.commits, key, data, mode="create", use_multipart=False)
            return Created()
        except (BaseError, OSError) as error:
            return _outcome(error, self._scheme)
        except NotImplementedError:
            return self._refuse_unconditional("its conditional writes are switched off (conditional_put)")

    def _probe_conditions(self) -> PutOutcome | None:
        """Return None once the store is known to honour conditions; else the outcome to answer with."""
        key = f"{self._prefix}_delta_log/{_PROBE}"
        outcome = self._create(key, b"probe")
        if isinstance(outcome, Created):
            outcome = self._create(key, b"probe")
        if isinstance(outcome, Created):
            return self._refuse_unconditional("it accepted two writes of one name that were both conditional on its absence")
        if not isinstance(outcome, Exists):
            return Refused(f"the probe for conditional writes failed: {outcome.error}")
        self._clients.honour_conditions = True
        return None

    def _refuse_unconditional(self, reason: str) -> PutOutcome:
        raise Unsupported(
            f"The store of table '{self._url}' does not support conditional writes: {reason}. Two writers could both believe that they "
            "won a commit. Use a store that honours If-None-Match on PUT, as Amazon S3 does, upgrade this one, or name a lock table "
            "(docs/storage.md).",
            code="TAHOE_NO_CONDITIONAL_WRITES",
            table=self._url,
        )

    def _ask(self, verb: str, name: str, request: Callable[[], Answer]) -> Answer:
        if not self._clients.may_sign:
            self._require_credentials()
        try:
            return request()
        except (BaseError, OSError, ValueError, NotImplementedError) as error:
            failure = _failure(error, verb, name, self._url, names_credentials(self._scheme, self._settings()))
        raise failure  # outside of the handler: the store's own text must not become the error's context

    def _settings(self) -> dict[str, str]:
        return {**dict(store_environment()), **self._options}

    def _require_credentials(self) -> None:
        """Raise `StorageFailure` (`TAHOE_ACCESS_DENIED`) if there are no credentials and nothing on this machine can issue some."""
        settings = self._settings()
        if not names_credentials(self._scheme, settings) and not may_have_role(self._scheme, settings):
            raise StorageFailure(
                f"Table '{self._url}': {without_credentials(self._scheme)}", code="TAHOE_ACCESS_DENIED", table=self._url
            )
        self._clients.may_sign = True


def _is_listed(name: str, start: str) -> bool:
    """Whether a listing from `start` on has this name, which is relative to the listed folder."""
    return "/" not in name and name >= start and name != _PROBE


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PAGE = 1000
_PROBE = ".tahoe-probe"  # remains, so that the next process needs only one request; never listed
_SIDE_BY_SIDE = 64
_TAIL = 256 * 1024
_WITHOUT_SUFFIX_RANGES = frozenset({"az", "adl", "azure", "abfs", "abfss"})
_READ_RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_NO_RETRIES = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}

_VARIABLES = {"s3": "AWS_", "gs": "GOOGLE_"}
"""The beginning of the names of a scheme's environment variables."""

_memory_stores: dict[str, Clients] = {}
_memory_lock = threading.Lock()


def _memory_clients(name: str) -> Clients:
    with _memory_lock:
        if name not in _memory_stores:
            store = MemoryStore()
            _memory_stores[name] = Clients(store, store, honour_conditions=True, may_sign=True)
        return _memory_stores[name]


@lru_cache(maxsize=64)
def _clients(
    scheme: str, authority: str, configuration: tuple[tuple[str, str], ...], environment: tuple[tuple[str, str], ...]
) -> Clients:
    """Return the clients of a bucket; `environment` is part of the cache key."""
    config = {name: value for name, value in configuration if _client_option(name) is None}
    client = {option: value for name, value in configuration if (option := _client_option(name)) is not None}
    variables = [(name.lower(), value) for name, value in environment if name.startswith(_VARIABLES.get(scheme, "AZURE_"))]
    if any(
        name.endswith(("endpoint", "endpoint_url")) and value.startswith("http://")
        for name, value in [*configuration, *variables]
    ):
        client.setdefault("allow_http", "true")  # an explicit http:// is intended

    def client_with(retries: Mapping[str, object]) -> ObjectStore:
        arguments: Any = {"config": config, "client_options": client, "retry_config": retries}
        if scheme == "s3":
            return S3Store(authority, **arguments)
        if scheme == "gs":
            return GCSStore(authority, **arguments)
        return AzureStore.from_url(f"{scheme}://{authority}", **arguments)

    try:
        trusted = not _must_be_probed(scheme, config)
        return Clients(client_with(_READ_RETRIES), client_with(_NO_RETRIES), honour_conditions=trusted)
    except UnknownConfigurationKeyError as error:
        matched = re.search(r"Configuration key: '([^']*)'", str(error))
        unknown = matched[1] if matched else "?"
        failure = InvalidRequest(
            f"The store at {scheme}://{authority} does not know the storage option '{unknown}': correct its name or remove it.",
            code="TAHOE_STORAGE_OPTION",
            option=unknown,
        )
    except (BaseError, ValueError, TypeError, OSError) as error:
        failure = _no_account(scheme, authority, [*config, *dict(environment)]) or InvalidRequest(
            f"The store at {scheme}://{authority} cannot be opened with these storage options ({type(error).__name__}): check "
            f"the region, the endpoint and the credentials among {sorted(name for name, _ in configuration)}.",
            code="TAHOE_STORAGE_OPTION",
        )
    raise failure


def _no_account(scheme: str, authority: str, names: Sequence[str]) -> InvalidRequest | None:
    """Return the error for a URL of Azure without its account; None if that is not what is missing."""
    if scheme in ("s3", "gs") or "@" in authority or any("account_name" in name.lower() for name in names):
        return None
    return InvalidRequest(
        f"The URL {scheme}://{authority} has a container and no storage account. Set the environment variable AZURE_STORAGE_ACCOUNT_NAME or "
        "the storage option azure_storage_account_name, or write abfss://container@account.dfs.core.windows.net/path.",
        code="TAHOE_STORAGE_OPTION",
        option="azure_storage_account_name",
    )


_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)


def _client_option(name: str) -> str | None:
    """Return the name of an option of the HTTP client without the store's prefix, as in ``azure_allow_http``; None for other options."""
    bare = re.sub("^(aws|azure|google)_", "", name)
    return bare if bare in _CLIENT_OPTIONS else None


def store_environment() -> tuple[tuple[str, str], ...]:
    """Return the environment variables that apply to object stores: names and values, sorted."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))))


def _check_texts(options: Options, url: str) -> None:
    """Refuse values that no request can carry, for which the client library would panic. Values never appear in messages."""
    for name, value in options.items():
        if any(part in name.lower() for part in _WITH_LINES):
            continue
        if control_character := next((character for character in value if ord(character) < 0x20 or ord(character) == 0x7F), None):
            raise InvalidRequest(
                f"The storage option '{name}' for '{url}' contains the control character {control_character!r}, which no request can carry. "
                "A trailing line break often comes from the file that the option was read from. Correct it.",
                code="TAHOE_STORAGE_OPTION",
                option=name,
            )
        if name.lower().endswith(("endpoint", "endpoint_url", "endpoint_url_s3")) and not _ENDPOINT.fullmatch(value):
            raise InvalidRequest(
                f"The storage option '{name}' for '{url}' must be a URL: http:// or https://, a host, and no blanks. Correct it.",
                code="TAHOE_STORAGE_OPTION",
                option=name,
            )


_WITH_LINES = ("certificate", "service_account_key", "serviceaccountkey")  # PEM and JSON texts may have line breaks
_ENDPOINT = re.compile(r"https?://[!-~]+")


def _must_be_probed(scheme: str, options: Options) -> bool:
    if scheme != "s3":
        return False
    endpoints = [value for name, value in options.items() if "endpoint" in name.lower()]
    endpoints += [os.environ[name] for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3") if name in os.environ]
    return any(not re.match(r"https?://[^/@]*\.amazonaws\.com(\.cn)?(/|$)", endpoint) for endpoint in endpoints)


def _boolean(options: Options, name: str) -> bool:
    value = str(options.get(name, "false")).lower()
    if value not in ("true", "false"):
        raise InvalidRequest(f"The storage option '{name}' must be 'true' or 'false'.", code="TAHOE_STORAGE_OPTION", option=name)
    return value == "true"


def _status(text: str) -> int | None:
    """Return the HTTP status of a failed request, from the structured part of obstore's message."""
    matched = re.search(r"\n\s*inner: (?:Status|Response) \{\s*status: (\d{3}),", text)
    return int(matched[1]) if matched else None


def _kind(error: Exception) -> str:
    """Describe an error, with nothing from the store's own text but its error code."""
    text = str(error)
    if (status := _status(text)) is not None:
        code = re.search(r"<Code>([A-Za-z0-9]{1,64})</Code>", text)
        return f"HTTP status {status}" + (f" ({code[1]})" if code else "")
    if transport := re.search(r"HttpError \{\s*kind: ([A-Za-z]+),", text):
        return _TRANSPORT.get(transport[1], f"the connection failed ({transport[1]})")
    return type(error).__name__


_TRANSPORT = {
    "Connect": "no connection could be made",
    "Timeout": "no answer came in time",
    "Interrupted": "the connection was lost",
    "Request": "the connection was lost",
}


def _outcome(error: Exception, scheme: str) -> PutOutcome:
    """Map a failed conditional write to its outcome. Doubt is `Unanswered`, which reading back resolves."""
    status, kind = _status(str(error)), _kind(error)
    if isinstance(error, AlreadyExistsError):
        return InFlight(kind) if status == 409 and scheme == "s3" else Exists()
    if isinstance(error, FileNotFoundError | PermissionDeniedError | UnauthenticatedError | InvalidPathError):
        return Refused(kind)
    if status is not None and 400 <= status < 500 and status != 408:
        return Refused(kind)
    if status == 501 or kind == _TRANSPORT["Connect"]:
        return Refused(kind)
    return Unanswered(kind)


def _failure(error: Exception, verb: str, name: str, url: str, has_credentials: bool) -> TahoeError:
    kind = _kind(error)
    where: dict[str, Any] = {"table": url, "file": name}
    if isinstance(error, FileNotFoundError) and not any(code in kind for code in NO_BUCKET):
        return NotFound(
            f"There is no object '{name}' in '{url}'. If the table's log names it, it was removed by a VACUUM or by hand: read a "
            "newer version of the table.",
            code="DELTA_FILE_NOT_FOUND",
            **where,
        )
    if isinstance(error, ValueError) and not isinstance(error, BaseError):
        return InvalidRequest(f"'{name}' is not a valid name in the store of table '{url}'.", code="TAHOE_STORE_NAME", **where)
    remedy = remedy_of(kind, split_url(url)[0], has_credentials=has_credentials)
    if remedy.startswith("Access"):
        return StorageFailure(f"Table '{url}': {remedy} Request: {verb} '{name}': {kind}.", code="TAHOE_ACCESS_DENIED", **where)
    return StorageFailure(f"Table '{url}': could not {verb} '{name}': {kind}. {remedy}", **where)
