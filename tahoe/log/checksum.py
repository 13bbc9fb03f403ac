"""The version checksum, ``<version>.crc``: the totals of a version's state (PROTOCOL.md, "Version Checksum File").

The state is never read from a checksum; the log is checked against it. A checksum that Tahoe wrote also has its version and a CRC-32 of
itself, so that corruption of the checksum is not taken for corruption of the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from zlib import crc32

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.json_values import compact_json
from tahoe.log.files.last_checkpoint import count_of
from tahoe.log.files.paths import checksum_name, parse
from tahoe.log.totals import FileSizeHistogram, FileTotals
from tahoe.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction, action_from_json
from tahoe.protocol.config import TableConfig
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import LogStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The totals of one version's state.

    Args:
        table_size_bytes: the sum of the live files' sizes.
        num_files: the number of live files.
        transaction_id: `commitInfo.txnId` of the commit that made the version.
        transactions, domains: all live ones, or None if the writer left them out.
        in_commit_timestamp: milliseconds since the epoch, if in-commit timestamps are enabled.
        num_deleted_records, num_deletion_vectors: of all live files; None if deletion vectors are not in use.
        deleted_record_counts, file_sizes: the histograms, if the writer has them.
        all_files: the live files themselves, if the writer listed them.
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
    deleted_record_counts: tuple[int, ...] | None = None
    file_sizes: FileSizeHistogram | None = None
    all_files: tuple[AddFile, ...] | None = None

    @property
    def totals(self) -> FileTotals:
        """The totals of the live files."""
        return FileTotals(
            self.num_files,
            self.table_size_bytes,
            self.num_deleted_records,
            self.num_deletion_vectors,
            self.deleted_record_counts,
            self.file_sizes,
        )

    def to_json_value(self) -> dict[str, Any]:
        """Return the members with the specification's names, without unknown ones."""
        counts, sizes = self.deleted_record_counts, self.file_sizes
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
            "fileSizeHistogram": None if sizes is None else sizes.to_json_value(),
            "deletedRecordCountsHistogramOpt": None if counts is None else {"deletedRecordCounts": list(counts)},
            "allFiles": None if self.all_files is None else [each.to_json_value() for each in self.all_files],
        }
        return {name: member for name, member in value.items() if member is not None}


def read_checksum(store: LogStore, version: int) -> VersionChecksum | None:
    """Read the checksum of a version; None if there is none.

    Raises:
        CorruptTable: the checksum is corrupt. The table can still be read.
    """
    name = checksum_name(version)
    try:
        data = store.get(name)
    except NotFound:
        return None
    return parse_checksum(name, data, store.url)


def encode_checksum(version: int, checksum: VersionChecksum) -> bytes:
    """Return the bytes of a checksum's file; other readers ignore Tahoe's own members."""
    value = {**checksum.to_json_value(), _VERSION: version}
    text = compact_json(value).encode()[:-1]
    return text + b"%s%d}" % (_OWN_CRC32, crc32(text))


def parse_checksum(name: str, data: bytes, url: str) -> VersionChecksum:
    """Parse a checksum file; raise `CorruptTable` if it is invalid, or was not written under this name."""
    try:
        value = json.loads(data)
        _check_own(name, value, data)
        return _checksum(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CorruptTable) as error:
        raise CorruptTable(
            f"Table {url}: the checksum {name} is damaged ({type(error).__name__}: {error}). It is not needed to "
            "read the table: delete it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            table=url,
            file=name,
        ) from error


def state_differences(checksum: VersionChecksum, state: TableState, *, written_ms: int | None = None) -> list[str]:
    """Describe the differences between a checksum and the log in protocol, metadata, transactions, domains and the commit.

    Args:
        written_ms: the time of the last write to the log. Transactions whose retention had expired by then may be missing, because a
            checkpoint may have dropped them. None if no checkpoint was read.
    """
    wrong_parts = []
    if checksum.protocol != state.protocol:
        wrong_parts.append(f"the protocol {checksum.protocol}, but the log gives {state.protocol}")
    wrong_parts += _metadata_differences(checksum.metadata, state.metadata)
    for transaction in checksum.transactions or ():
        mine = state.transactions.get(transaction.app_id)
        if mine is None and written_ms is not None and _is_expired(transaction, state, written_ms):
            continue
        if mine is None or mine.version != transaction.version:
            gives = "no transaction of it" if mine is None else f"its transaction {mine.version}"
            wrong_parts.append(
                f"transaction {transaction.version} of the application '{transaction.app_id}', but the log gives {gives}"
            )
    if checksum.domains is not None:
        stated = {each.domain: each.configuration for each in checksum.domains if not each.removed}
        domains = {each.domain: each.configuration for each in state.domains.values() if not each.removed}
        wrong = sorted(name for name in stated.keys() | domains.keys() if stated.get(name) != domains.get(name))
        if wrong:
            wrong_parts.append(f"metadata domains that the log gives otherwise ({', '.join(wrong)})")
    for name, said, given_value in (
        ("txnId", checksum.transaction_id, state.transaction_id),
        ("inCommitTimestampOpt", checksum.in_commit_timestamp, state.in_commit_timestamp),
    ):
        if said is not None and given_value is not None and said != given_value:
            wrong_parts.append(f"{name} {said}, but the log gives {given_value}")
    return wrong_parts


_VERSION = "tahoe.version"
_OWN_CRC32 = b',"tahoe.crc32":'


def _check_own(name: str, value: Any, data: bytes) -> None:
    """Check the version and the CRC-32 that Tahoe's own checksums contain. Raises `ValueError`."""
    position = data.rfind(_OWN_CRC32)
    if position >= 0 and data[position:] != b"%s%d}" % (_OWN_CRC32, crc32(data[:position])):
        raise ValueError("its bytes are not those that were written")
    stated, parsed = value.get(_VERSION), parse(name)
    if stated is not None and parsed is not None and stated != parsed.version:
        raise ValueError(f"it was written for version {stated}")


def _metadata_differences(stated: Metadata, mine: Metadata) -> list[str]:
    members = {
        "id": (stated.id, mine.id),
        "schemaString": (stated.schema_string, mine.schema_string),
        "partitionColumns": (stated.partition_columns, mine.partition_columns),
        "configuration": (stated.configuration, mine.configuration),
    }
    wrong = [name for name, (theirs, ours) in members.items() if theirs != ours]
    return [f"a metaData action whose {' and '.join(wrong)} the log gives otherwise"] if wrong else []


def _is_expired(transaction: SetTransaction, state: TableState, now_ms: int) -> bool:
    retention_ms = TableConfig(state.protocol, state.metadata, "").properties.set_transaction_retention_ms
    updated = transaction.last_updated
    return retention_ms is not None and updated is not None and updated + retention_ms <= now_ms


def _checksum(value: Mapping[str, Any]) -> VersionChecksum:
    if value["numMetadata"] != 1 or value["numProtocol"] != 1:
        raise ValueError("numMetadata and numProtocol must be 1")
    counts = (value.get("deletedRecordCountsHistogramOpt") or {}).get("deletedRecordCounts")
    # Delta-spark used the name `histogramOpt` before the specification had a name for it.
    sizes = value.get("fileSizeHistogram") or value.get("histogramOpt")
    return VersionChecksum(
        table_size_bytes=count_of(value["tableSizeBytes"]),
        num_files=count_of(value["numFiles"]),
        protocol=_action("protocol", value["protocol"], Protocol),
        metadata=_action("metaData", value["metadata"], Metadata),
        transaction_id=value.get("txnId"),
        in_commit_timestamp=_count_or_none(value.get("inCommitTimestampOpt")),
        transactions=_actions("txn", value.get("setTransactions"), SetTransaction),
        domains=_actions("domainMetadata", value.get("domainMetadata"), DomainMetadata),
        num_deleted_records=_count_or_none(value.get("numDeletedRecordsOpt")),
        num_deletion_vectors=_count_or_none(value.get("numDeletionVectorsOpt")),
        deleted_record_counts=None if counts is None else tuple(map(count_of, counts)),
        file_sizes=None if sizes is None else FileSizeHistogram.from_json_value(sizes),
        all_files=_actions("add", value.get("allFiles"), AddFile),
    )


def _count_or_none(value: object) -> int | None:
    return None if value is None else count_of(value)


def _action(name: str, value: object, kind: type[T]) -> T:
    action = action_from_json({name: value})
    if not isinstance(action, kind):
        raise ValueError(f"{name} is missing")
    return action


def _actions(name: str, values: Sequence[object] | None, kind: type[T]) -> tuple[T, ...] | None:
    return None if values is None else tuple(_action(name, value, kind) for value in values)
