"""The version checksum, ``<version>.crc``: what a version's state adds up to (PROTOCOL.md, "Version Checksum File").

Nothing is ever read from a checksum that the log itself says: it is what the log is checked against.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.exceptions import CorruptTable, NotFound
from tahoe.log.files.paths import checksum_name
from tahoe.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_from_json,
)
from tahoe.protocol.config import TableConfig
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import Created, Exists, LogStore

__all__ = [
    "VersionChecksum",
    "checksum_after",
    "checksum_of",
    "parse_checksum",
    "read_checksum",
    "write_checksum",
    "write_checksum_after",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """What one version's state adds up to.

    Args:
        table_size_bytes: the sum of the live files' sizes.
        num_files: the live files.
        transaction_id: `commitInfo.txnId` of the commit that made the version.
        transactions, domains: all live ones, or None where the writer left them out.
        in_commit_timestamp: milliseconds since the epoch, where in-commit timestamps are on.
        num_deleted_records, num_deletion_vectors: of all live files; None where deletion vectors are not in use.
    """

    table_size_bytes: int
    num_files: int
    protocol: Protocol
    metadata: Metadata
    transaction_id: str | None = None
    in_commit_timestamp: int | None = None
    transactions: tuple[SetTransaction, ...] | None = None
    domains: tuple[DomainMetadata, ...] | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None

    def to_json_value(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "txnId": self.transaction_id,
            "tableSizeBytes": self.table_size_bytes,
            "numFiles": self.num_files,
            "numDeletedRecordsOpt": self.num_deleted_records,
            "numDeletionVectorsOpt": self.num_deletion_vectors,
            "numMetadata": 1,
            "numProtocol": 1,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": None if self.transactions is None else [each.to_json_value() for each in self.transactions],
            "domainMetadata": None if self.domains is None else [each.to_json_value() for each in self.domains],
            "metadata": self.metadata.to_json_value(),
            "protocol": self.protocol.to_json_value(),
        }
        return {name: found for name, found in value.items() if found is not None}


def read_checksum(store: LogStore, version: int) -> VersionChecksum | None:
    """The checksum of a version; None where there is none.

    Raises:
        CorruptTable: it is there and damaged. The table can be read all the same.
    """
    name = checksum_name(version)
    try:
        data = store.get(name)
    except NotFound:
        return None
    return parse_checksum(name, data, store.url)


def parse_checksum(name: str, data: bytes, url: str) -> VersionChecksum:
    """The checksum of a file's bytes; `CorruptTable` where they are none."""
    try:
        return _checksum(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CorruptTable) as error:
        raise CorruptTable(
            f"Table {url}: the checksum {name} is damaged ({type(error).__name__}: {error}). It is not needed to "
            "read the table: delete it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            table=url,
            file=name,
        ) from error


def checksum_of(state: TableState, files: pa.Table, config: TableConfig) -> VersionChecksum:
    """The checksum of a version whose live files are at hand.

    Args:
        files: with the columns ``size`` and ``deletionVector`` of `tahoe.log.replay.FILES_SCHEMA`.
    """
    vectors = files.column("deletionVector") if "deletionVectors" in config.features else None
    return VersionChecksum(
        table_size_bytes=pc.sum(files.column("size"), min_count=0).as_py(),
        num_files=files.num_rows,
        protocol=state.protocol,
        metadata=state.metadata,
        transaction_id=state.transaction_id,
        in_commit_timestamp=state.in_commit_timestamp if config.in_commit_timestamps else None,
        transactions=tuple(state.transactions.values()),
        domains=tuple(state.domains.values()),
        num_deleted_records=None if vectors is None else pc.sum(pc.struct_field(vectors, "cardinality"), min_count=0).as_py(),
        num_deletion_vectors=None if vectors is None else len(vectors) - vectors.null_count,
    )


def checksum_after(
    previous: VersionChecksum | None, state: TableState, actions: Sequence[Action], url: str
) -> VersionChecksum | None:
    """The checksum of the version that a commit makes, from the one before and the commit alone.

    Args:
        previous: of the version before; None for the commit that makes version 0.
        state: after the commit.
        actions: of the commit.
        url: the table's URL, for messages.

    Returns:
        None where the commit does not tell: a removed file without its size, or files that may have been there already.
    """
    adds = [action for action in actions if isinstance(action, AddFile)]
    removes = [action for action in actions if isinstance(action, RemoveFile)]
    if any(remove.size is None for remove in removes):
        return None
    if adds and not removes and not any(add.data_change for add in adds):
        return None  # adds that change nothing may repeat files of the table, with other statistics or tags
    config = TableConfig(state.protocol, state.metadata, url)
    deleted, vectors = _vectors(previous, config, adds, removes)
    return VersionChecksum(
        table_size_bytes=(previous.table_size_bytes if previous else 0)
        + sum(add.size for add in adds)
        - sum(remove.size or 0 for remove in removes),
        num_files=(previous.num_files if previous else 0) + len(adds) - len(removes),
        protocol=state.protocol,
        metadata=state.metadata,
        transaction_id=state.transaction_id,
        in_commit_timestamp=state.in_commit_timestamp if config.in_commit_timestamps else None,
        transactions=tuple(state.transactions.values()),
        domains=tuple(state.domains.values()),
        num_deleted_records=deleted,
        num_deletion_vectors=vectors,
    )


def write_checksum_after(store: LogStore, version: int, state: TableState, actions: Sequence[Action]) -> VersionChecksum | None:
    """Write the checksum of the version that a commit made, if the version before has one; what was written.

    Args:
        state: after the commit.
        actions: of the commit.
    """
    previous = read_checksum(store, version - 1) if version else None
    if version and previous is None:
        return None
    found = checksum_after(previous, state, actions, store.url)
    if found is None or found.num_files < 0 or found.table_size_bytes < 0:
        return None
    return found if write_checksum(store, version, found) else None


def write_checksum(store: LogStore, version: int, checksum: VersionChecksum) -> bool:
    """Write the checksum of a version unless it has one; True when it was written now."""
    text = json.dumps(checksum.to_json_value(), separators=(",", ":"), ensure_ascii=False)
    outcome = store.put_if_absent(checksum_name(version), text.encode())
    if not isinstance(outcome, Created | Exists):
        logger.warning("%s/%s was not written: %s", store.url, checksum_name(version), outcome.error)
    return isinstance(outcome, Created)


def _checksum(value: Mapping[str, Any]) -> VersionChecksum:
    if value["numMetadata"] != 1 or value["numProtocol"] != 1:
        raise ValueError("numMetadata and numProtocol must be 1")
    return VersionChecksum(
        table_size_bytes=_count(value["tableSizeBytes"]),
        num_files=_count(value["numFiles"]),
        protocol=_action("protocol", value["protocol"], Protocol),
        metadata=_action("metaData", value["metadata"], Metadata),
        transaction_id=value.get("txnId"),
        in_commit_timestamp=value.get("inCommitTimestampOpt"),
        transactions=_actions("txn", value.get("setTransactions"), SetTransaction),
        domains=_actions("domainMetadata", value.get("domainMetadata"), DomainMetadata),
        num_deleted_records=value.get("numDeletedRecordsOpt"),
        num_deletion_vectors=value.get("numDeletionVectorsOpt"),
    )


def _vectors(
    previous: VersionChecksum | None, config: TableConfig, adds: Sequence[AddFile], removes: Sequence[RemoveFile]
) -> tuple[int | None, int | None]:
    """Dead rows and deletion vectors after the commit; None where they are not in use, or were not counted so far."""
    if "deletionVectors" not in config.features:
        return None, None
    deleted, vectors = 0, 0
    if previous is not None:
        if previous.num_deleted_records is not None and previous.num_deletion_vectors is not None:
            deleted, vectors = previous.num_deleted_records, previous.num_deletion_vectors
        elif "deletionVectors" in TableConfig(previous.protocol, previous.metadata, config.table).features:
            return None, None
    came = [add.deletion_vector for add in adds if add.deletion_vector]
    went = [remove.deletion_vector for remove in removes if remove.deletion_vector]
    return deleted + _cardinality(came) - _cardinality(went), vectors + len(came) - len(went)


def _cardinality(vectors: Sequence[DeletionVectorDescriptor]) -> int:
    return sum(vector.cardinality for vector in vectors)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _action(name: str, value: Any, kind: type[T]) -> T:
    found = action_from_json({name: value})
    if not isinstance(found, kind):
        raise ValueError(f"{name} is missing")
    return found


def _actions(name: str, values: Sequence[Any] | None, kind: type[T]) -> tuple[T, ...] | None:
    return None if values is None else tuple(_action(name, value, kind) for value in values)
