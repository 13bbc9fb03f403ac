"""The version checksum, ``<version>.crc``: what a version's state adds up to (PROTOCOL.md, "Version Checksum File").

Nothing is ever read from a checksum that the log itself says: it is what the log is checked against.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tahoe.exceptions import CorruptTable, NotFound
from tahoe.log.paths import checksum_name
from tahoe.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction, action_from_json
from tahoe.store.log_store import Created, Exists, LogStore

__all__ = ["VersionChecksum", "read_checksum", "write_checksum"]

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
    others: Mapping[str, Any] = field(default_factory=dict)

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
    """The checksum of a version; None where there is none or it is damaged (which is logged)."""
    name = checksum_name(version)
    try:
        return parse_checksum(store.get(name))
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CorruptTable) as error:
        logger.warning("%s/%s is damaged and was not used: %s", store.url, name, error)
        return None


def parse_checksum(data: bytes) -> VersionChecksum:
    """Raises ValueError, KeyError, TypeError or CorruptTable where the text is no valid checksum."""
    value = json.loads(data)
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


def write_checksum(store: LogStore, version: int, checksum: VersionChecksum) -> bool:
    """Write the checksum of a version unless it has one; True when it was written now."""
    text = json.dumps(checksum.to_json_value(), separators=(",", ":"), ensure_ascii=False)
    outcome = store.put_if_absent(checksum_name(version), text.encode())
    if not isinstance(outcome, Created | Exists):
        logger.warning("%s/%s was not written: %s", store.url, checksum_name(version), outcome.error)
    return isinstance(outcome, Created)


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
