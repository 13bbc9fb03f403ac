"""Turns a `Transaction` into a `PreparedCommit`: every rule that does not depend on concurrent commits, and the commit's bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import cached_property
from tahoe.base.version import ENGINE_INFO
from tahoe.log.files.commit_checksum import with_commit_checksum
from tahoe.log.files.removed_files import joined, single_actions
from tahoe.log.replay import add_files
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol, RemoveFile
from tahoe.protocol.column_values.identity import with_marks
from tahoe.protocol.config import TableConfig, required_features
from tahoe.protocol.features import ENFORCED, FEATURES, Feature
from tahoe.protocol.iceberg_compat import check_iceberg_compat
from tahoe.protocol.properties import FEATURE_PREFIX
from tahoe.protocol.protocols import features_of, normalise, upgraded
from tahoe.protocol.row_tracking import (
    DOMAIN,
    NO_ROW_IDS,
    PRESERVED,
    assigned,
    assigns_row_ids,
    has_row_tracking,
    high_water_mark,
    materialized_columns,
    row_id_domain,
)
from tahoe.schema.depth import check_depth
from tahoe.schema.mapping import check_mapping
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.coordinated import check_put_under_coordinator, with_timestamps
from tahoe.txn.transaction import (
    SERIALIZABLE,
    SNAPSHOT_ISOLATION,
    WRITE_SERIALIZABLE,
    Operation,
    ReadSet,
    Transaction,
)

__all__ = [
    "SERIALIZABLE",
    "SNAPSHOT_ISOLATION",
    "WRITE_SERIALIZABLE",
    "PreparedCommit",
    "enables_in_commit_timestamps",
    "future_config",
    "prepare",
    "with_enablement",
]

_NEW_TABLE_PROTOCOL = Protocol(1, 2)
# Accepted by `SET TBLPROPERTIES` but never stored in the configuration: they are part of the protocol action.
_PROTOCOL_KEYS = ("delta.minReaderVersion", "delta.minWriterVersion", "delta.ignoreProtocolDefaults")

_MANIFESTS, _VECTORS = "delta.compatibility.symlinkFormatManifest.enabled", "delta.enableDeletionVectors"
_PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass(frozen=True)
class PreparedCommit:
    """One commit, complete except for its version.

    Args:
        version: the version to try.
        snapshot: the version that the transaction read; None for a new table.
        config: the table's configuration after this commit.
        reads: see `ReadSet`.
        actions: all actions but commitInfo and version-dependent values; protocol and metadata first.
        commit_info: the provenance, without the timestamps that depend on the version.
        isolation_level: ``Serializable``, ``WriteSerializable``, or ``SnapshotIsolation`` for a commit that only rearranges data.
        timestamp: milliseconds; at least the read version's in-commit timestamp + 1.
        row_id_mark: the row id high-water mark of the versions before this one.
        may_be_moved: whether it may be retried at a later version after a lost race.
        looks_for: the files whose existence is checked (`tahoe.txn.vanished`): ``old`` ones, ``all`` or ``none``.
        inputs: see `Transaction`.
        adds_again: whether it adds files again that the table has, with other statistics, tags or row ids.
    """

    version: int
    snapshot: Snapshot | None
    config: TableConfig
    reads: ReadSet
    actions: Sequence[Action]
    commit_info: Mapping[str, Any]
    isolation_level: str
    is_blind_append: bool
    timestamp: int
    row_id_mark: int = NO_ROW_IDS
    may_be_moved: bool = True
    looks_for: Literal["old", "all", "none"] = "old"
    inputs: tuple[str, ...] = ()
    adds_again: bool = False

    @property
    def transaction_id(self) -> str:
        """The commit's unique id, by which it is recognized in the log."""
        return str(self.commit_info["txnId"])

    @property
    def changes_metadata(self) -> bool:
        """Whether it has a `metaData` action."""
        return any(isinstance(action, Metadata) for action in single_actions(self.actions))

    @property
    def changes_protocol(self) -> bool:
        """Whether it has a `protocol` action."""
        return any(isinstance(action, Protocol) for action in single_actions(self.actions))

    def full_actions(self) -> Sequence[Action]:
        """Return the actions as written: commitInfo first, as in-commit timestamps require, and with row ids if rows are tracked."""
        return self._full_actions

    @cached_property
    def _full_actions(self) -> Sequence[Action]:
        info = {"timestamp": self.timestamp, **self.commit_info}
        if self.config.in_commit_timestamps:
            info = {"inCommitTimestamp": self.timestamp, **info}
        actions = self.actions
        if assigns_row_ids(self.config):
            actions = assigned(actions, self.row_id_mark, self.version, self.config.table)
        return joined((CommitInfo(info),), actions)

    def to_bytes(self) -> bytes:
        """Return the content of the commit's file for `version`, with its checksum (`tahoe.log.files.commit_checksum`)."""
        return with_commit_checksum(self.version, self.full_actions())


def prepare(transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> PreparedCommit:
    """Check the transaction against the rules of its table, and freeze it.

    Args:
        user_metadata: for commitInfo; empty or None for none.

    Raises:
        Unsupported: the table requires something that this version of Tahoe cannot write.
        InvalidRequest: the actions violate a rule of the table (append-only, IcebergCompat, a file added twice, …).
    """
    snapshot, clock = transaction.snapshot, transaction.clock
    if snapshot is not None:
        transaction.ensure_writable(snapshot.config, _enforced(transaction, snapshot.config))
    config = future_config(transaction)
    transaction.ensure_writable(config, _enforced(transaction, config))
    check_put_under_coordinator(transaction.store, snapshot, config)
    enabling = enables_in_commit_timestamps(snapshot, config)
    version = 0 if snapshot is None else snapshot.version + 1
    timestamp = clock.now_ms()
    if snapshot is not None and config.in_commit_timestamps:
        # Its timestamp is not in a checkpoint, but in its version's commit; before the feature it is the time of the commit's file.
        timestamp = max(timestamp, snapshot.timestamp_ms + 1)
    if enabling:
        config = with_enablement(config, version, timestamp)
    reads, readded = replace(transaction.reads, rows=dict(transaction.reads.rows)), list[AddFile]()
    if has_row_tracking(config) and not (snapshot and has_row_tracking(snapshot.config)):
        readded = _files_without_row_ids(transaction, config)
        reads = replace(reads, whole_table=True)
    _check(transaction, config)
    head: list[Action] = []
    if snapshot is None or config.protocol != snapshot.protocol:
        head.append(config.protocol)
    if snapshot is None or config.metadata != snapshot.metadata:
        head.append(config.metadata)
    if assigns_row_ids(config) and transaction.row_id_mark > _row_id_mark(snapshot):
        head.append(row_id_domain(transaction.row_id_mark))
    blind = _is_blind_append(transaction)
    isolation = SNAPSHOT_ISOLATION if _only_rearranges(transaction, head) else transaction.isolation_level
    more: dict[str, Any] = {} if not user_metadata else {"userMetadata": user_metadata}
    if has_row_tracking(config):
        more["tags"] = {PRESERVED: _text(_keeps_row_ids(transaction))}
    prepared = PreparedCommit(
        version=version,
        snapshot=snapshot,
        config=config,
        reads=reads,
        actions=joined(head, transaction.staged, *transaction.removed, *transaction.added, readded),
        commit_info=_commit_info(transaction, operation, isolation, blind, more),
        isolation_level=isolation,
        is_blind_append=blind,
        timestamp=timestamp,
        row_id_mark=max(_row_id_mark(snapshot), transaction.row_id_mark),
        may_be_moved=transaction.may_be_moved,
        looks_for=transaction.looks_for,
        inputs=transaction.inputs,
        adds_again=bool(readded) or _adds_again(transaction),
    )
    # A file that cannot be given row ids raises here, before anything is sent.
    prepared.full_actions()
    return prepared


def _adds_again(transaction: Transaction) -> bool:
    """Whether the transaction adds a file that it has read. A file with another deletion vector has another key."""
    read = transaction.reads.file_keys
    return bool(read) and any(isinstance(action, AddFile) and action.key in read for action in transaction.staged)


def _enforced(transaction: Transaction, config: TableConfig) -> frozenset[str]:
    """Return the features whose requirements on rows this commit satisfies: all of them if it adds neither rows nor requirements."""
    snapshot = transaction.snapshot
    if snapshot is not None and not transaction.adds and set(config.demands()) <= set(snapshot.config.demands()):
        return ENFORCED
    return transaction.enforces


def future_config(transaction: Transaction) -> TableConfig:
    """Return the table's configuration after the transaction: its metadata, and the protocol raised as necessary.

    Computed once for each metadata, protocol and mark of the transaction; if none of them changes, it is the snapshot's configuration.
    """
    inputs = transaction.metadata, transaction.protocol, transaction.marks
    if transaction.future is None or any(
        earlier is not current for earlier, current in zip(transaction.future[0], inputs, strict=True)
    ):
        transaction.future = inputs, _future_config(transaction)
    return transaction.future[1]


def _future_config(transaction: Transaction) -> TableConfig:
    metadata, snapshot = _metadata(transaction), transaction.snapshot
    protocol = _protocol(transaction, metadata)
    stripped = with_timestamps(snapshot, protocol, _still_protecting(snapshot, protocol, _stripped(metadata)))
    if snapshot is not None and protocol is snapshot.protocol and stripped is snapshot.metadata:
        return snapshot.config
    return TableConfig(protocol, stripped, transaction.store.url)


def _metadata(transaction: Transaction) -> Metadata:
    metadata = _metadata_asked(transaction)
    if not transaction.marks:
        return metadata
    schema = with_marks(metadata.schema, transaction.marks, transaction.store.url)
    return replace(metadata, schema_string=schema.to_json())


def _metadata_asked(transaction: Transaction) -> Metadata:
    if transaction.metadata is not None:
        return transaction.metadata
    if transaction.snapshot is None:
        raise InvalidRequest(
            f"Table {transaction.store.url} does not exist; its first commit must include the metadata.",
            code="DELTA_METADATA_ABSENT",
        )
    return transaction.snapshot.metadata


def _protocol(transaction: Transaction, metadata: Metadata) -> Protocol:
    base = transaction.protocol or (transaction.snapshot.protocol if transaction.snapshot else _NEW_TABLE_PROTOCOL)
    if transaction.snapshot is not None and transaction.metadata is None and transaction.protocol is None:
        return base
    configured = {key.lower(): value for key, value in metadata.configuration.items()}
    reader, writer = configured.get("delta.minreaderversion"), configured.get("delta.minwriterversion")
    if writer and transaction.snapshot is None and transaction.protocol is None:
        # The requested version replaces the default of a new table, so that writer 1 and writer 7 imply no feature.
        base = Protocol(1, 1)
    if reader or writer:
        base = _raised(base, int(reader or 1), int(writer or 1), transaction.store.url)
    needed = required_features(metadata)
    # If a table has a feature under its first name, adding the later name would exclude clients that support only the first.
    supported = features_of(base)
    return upgraded(base, {name for name in needed if name in supported or not _has_earlier_name(name, supported)})


def _has_earlier_name(feature: str, supported: frozenset[str]) -> bool:
    return feature in FEATURES and FEATURES[feature].earlier_name in supported


def _raised(protocol: Protocol, reader: int, writer: int, table: str) -> Protocol:
    """Return the weakest protocol with the previous features and those of these version numbers (PROTOCOL.md, "Protocol Evolution").

    Reader 3 and writer 7 imply no feature: they list features by name.
    """
    if reader == 3 and max(writer, protocol.min_writer_version) < 7:
        raise InvalidRequest(
            f"The protocol of table {table} cannot be reader 3 with writer {max(writer, protocol.min_writer_version)}: reader features "
            "are also writer features. Set delta.minWriterVersion = 7 as well, or enable a feature by name (delta.feature.<name>).",
            code="DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            table=table,
        )
    return normalise(features_of(protocol) | features_of(Protocol(reader, writer)), Protocol(1, 1))


def _stripped(metadata: Metadata) -> Metadata:
    lowered = {key.lower() for key in _PROTOCOL_KEYS}
    retained = {
        key: value
        for key, value in metadata.configuration.items()
        if key.lower() not in lowered and not key.lower().startswith(FEATURE_PREFIX)
    }
    return metadata if retained == metadata.configuration else replace(metadata, configuration=retained)


def _still_protecting(snapshot: Snapshot | None, protocol: Protocol, metadata: Metadata) -> Metadata:
    """Retain checkpoint protection when an operation replaces the properties, such as RESTORE and REPLACE, until the feature is
    dropped."""
    protection = None if snapshot is None else snapshot.metadata.configuration.get(_PROTECTION)
    if protection is None or _PROTECTION in metadata.configuration or Feature.CHECKPOINT_PROTECTION not in features_of(protocol):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _PROTECTION: protection})


def enables_in_commit_timestamps(snapshot: Snapshot | None, config: TableConfig) -> bool:
    """Whether a commit on `snapshot` that makes the table `config` enables in-commit timestamps on a table with earlier versions."""
    return config.in_commit_timestamps and snapshot is not None and not snapshot.config.in_commit_timestamps


def with_enablement(config: TableConfig, version: int, timestamp: int) -> TableConfig:
    """Record from when on commits have timestamps (PROTOCOL.md, "Writer Requirements for In-Commit Timestamps")."""
    configuration = {
        **config.metadata.configuration,
        "delta.inCommitTimestampEnablementVersion": str(version),
        "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
    }
    return replace(config, metadata=replace(config.metadata, configuration=configuration))


def _files_without_row_ids(transaction: Transaction, config: TableConfig) -> list[AddFile]:
    """Return the files from before row tracking was enabled, to be committed again so that the commit assigns them ids."""
    materialized_columns(config)
    if transaction.snapshot is None:
        return []
    touched = {add.path for add in transaction.adds} | {remove.path for remove in transaction.removes}
    live = add_files(transaction.snapshot.files())
    return [replace(add, data_change=False) for add in live if add.base_row_id is None and add.path not in touched]


def _row_id_mark(snapshot: Snapshot | None) -> int:
    mark = None if snapshot is None else high_water_mark(snapshot.state.domains)
    return NO_ROW_IDS if mark is None else mark


def _keeps_row_ids(transaction: Transaction) -> bool:
    """Whether no row loses its id: none is moved to another file, as far as the actions show, or all rows keep their ids."""
    if transaction.row_ids_kept:
        return True
    gone = {remove.path for remove in transaction.removes}
    return not gone or all(add.path in gone for add in transaction.adds)


def _text(value: bool) -> str:
    return "true" if value else "false"


def _check(transaction: Transaction, config: TableConfig) -> None:
    adds, removes = transaction.adds, transaction.removes
    if transaction.snapshot is None or config.metadata.schema_string != transaction.snapshot.metadata.schema_string:
        check_depth(config.schema)
    # If the feature is dropped, its domain is removed too.
    tracked = Feature.ROW_TRACKING in config.features
    if tracked and any(isinstance(action, DomainMetadata) and action.domain == DOMAIN for action in transaction.staged):
        raise InvalidRequest(
            f"The metadata domain {DOMAIN} is managed by row tracking and cannot be staged.", code="TAHOE_RESERVED_DOMAIN"
        )
    # Files that are columns are distinct.
    keys = Counter(add.key for add in adds) if len(adds) > sum(map(len, transaction.added)) else {}
    twice = [key for key, count in keys.items() if count > 1]
    if twice:
        raise InvalidRequest(
            f"File {twice[0][0]} would be added twice by one commit to {config.table}.",
            code="DELTA_DUPLICATE_ACTIONS_FOUND",
            file=twice[0][0],
        )
    if transaction.removed or any(remove.data_change for remove in removes):
        config.refuse_if_append_only()
    previous = transaction.snapshot.config if transaction.snapshot else None
    if previous is None or config.metadata != previous.metadata:
        check_mapping(config.schema, config.column_mapping_mode, config.properties.max_column_id)
        _check_feed_columns(config, previous)
        _check_manifests(config, transaction.snapshot)
    check_iceberg_compat(config, previous, adds)


def _check_manifests(config: TableConfig, snapshot: Snapshot | None) -> None:
    """Check that manifests for readers without deletion vectors and vectors are not combined."""
    if not config.properties.get(_MANIFESTS):
        return
    if config.properties.get(_VECTORS):
        reason, kind = f"{_VECTORS} is true too", "PERSISTENT_DELETION_VECTORS"
    elif snapshot is not None and any(vector is not None for vector in snapshot.files()["deletionVector"].to_pylist()):
        reason, kind = "files have deletion vectors; run REORG TABLE … APPLY (PURGE) first", "EXISTING_DELETION_VECTORS"
    else:
        return
    raise InvalidRequest(
        f"The validation of the properties of table {config.table} has been violated: {_MANIFESTS} = true is for readers without "
        f"deletion vectors, but {reason}. Disable one of the two.",
        code=f"DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.{kind}_WITH_INCREMENTAL_MANIFEST_GENERATION",
        table=config.table,
    )


def _check_feed_columns(config: TableConfig, previous: TableConfig | None) -> None:
    """Check that a table with a change data feed has no column that the feed adds."""
    was_on = previous is not None and previous.properties.enable_change_data_feed
    taken = [column.name for column in config.schema if column.name.lower() in _FEED_COLUMNS]
    if taken and config.properties.enable_change_data_feed:
        raise InvalidRequest(
            f"Table {config.table} has a column '{taken[0]}', which is reserved by its change data feed. Rename the column, or disable "
            "delta.enableChangeDataFeed.",
            code="RESERVED_CDC_COLUMNS_ON_WRITE" if was_on else "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
            table=config.table,
            column=taken[0],
        )


def _is_blind_append(transaction: Transaction) -> bool:
    """Whether nothing was read and no file is removed; as in the reference, a commit without any files counts too."""
    files = (action for action in transaction.staged if isinstance(action, AddFile | RemoveFile | AddCDCFile))
    return (
        not transaction.removed and not transaction.reads.has_read_data and all(isinstance(action, AddFile) for action in files)
    )


def _only_rearranges(transaction: Transaction, head: list[Action]) -> bool:
    if head or transaction.removed or transaction.added:
        return False
    return all(isinstance(a, (AddFile, RemoveFile)) and not a.data_change for a in transaction.staged)


def _commit_info(
    transaction: Transaction, operation: Operation, isolation: str, blind: bool, more: Mapping[str, object]
) -> dict[str, Any]:
    info: dict[str, Any] = {"operation": operation.name, "operationParameters": dict(operation.parameters)}
    if transaction.snapshot is not None:
        info["readVersion"] = transaction.snapshot.version
    info["isolationLevel"] = isolation
    info["isBlindAppend"] = blind
    info["operationMetrics"] = {name: str(value) for name, value in operation.metrics.items()}
    info |= more
    info["engineInfo"] = ENGINE_INFO
    info["txnId"] = transaction.clock.uuid()
    return info
