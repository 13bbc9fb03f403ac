"""The actions of a commit as frozen values, one JSON line each (PROTOCOL.md, "Actions")."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tahoe.base.exceptions import CorruptTable
from tahoe.base.json_values import compact_json
from tahoe.protocol.action_members import check_action
from tahoe.schema.types import StructType, schema_from_json


@dataclass(frozen=True, slots=True)
class Protocol:
    """The minimum versions and features that a client must support. The feature lists are None below reader version 3, writer version 7."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names; feature lists are sorted."""
        value: dict[str, Any] = {"minReaderVersion": self.min_reader_version, "minWriterVersion": self.min_writer_version}
        if self.reader_features is not None:
            value["readerFeatures"] = sorted(self.reader_features)
        if self.writer_features is not None:
            value["writerFeatures"] = sorted(self.writer_features)
        return value


@dataclass(frozen=True)  # without slots, because of the cached property
class Metadata:
    """The table's identity, schema and properties. `created_time` is in milliseconds since the epoch."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def schema(self) -> StructType:
        """`schema_string`, parsed on first use. Raises `CorruptTable` if it is not a schema."""
        return schema_from_json(self.schema_string)

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names."""
        value: dict[str, Any] = {"id": self.id}
        _put(value, "name", self.name)
        _put(value, "description", self.description)
        value["format"] = {"provider": self.format_provider, "options": dict(self.format_options)}
        value["schemaString"] = self.schema_string
        value["partitionColumns"] = list(self.partition_columns)
        value["configuration"] = dict(self.configuration)
        _put(value, "createdTime", self.created_time)
        return value


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """The location of a file's deleted row positions (PROTOCOL.md, "Deletion Vector Descriptor Schema").

    Args:
        storage_type: ``u`` (a file named by a UUID below the root), ``i`` (inline), ``p`` (an absolute path).
        offset: in bytes within the file, for ``u`` and ``p``.
        size_in_bytes: of the serialized bitmap.
        cardinality: the number of deleted rows.
    """

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None
    max_row_index: int | None = None

    @property
    def unique_id(self) -> str:
        """The second half of a logical file's key: ``<storageType><pathOrInlineDv>[@offset]``."""
        base = f"{self.storage_type}{self.path_or_inline_dv}"
        return base if self.offset is None else f"{base}@{self.offset}"

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any]) -> DeletionVectorDescriptor:
        """Return the descriptor in the member ``deletionVector`` of an action, or in that column of a checkpoint."""
        return cls(
            storage_type=value["storageType"],
            path_or_inline_dv=value["pathOrInlineDv"],
            size_in_bytes=value["sizeInBytes"],
            cardinality=value["cardinality"],
            offset=value.get("offset"),
            max_row_index=value.get("maxRowIndex"),
        )

    def to_json_value(self) -> dict[str, Any]:
        """Return the member ``deletionVector`` of an `add` or a `remove`."""
        value: dict[str, Any] = {"storageType": self.storage_type, "pathOrInlineDv": self.path_or_inline_dv}
        _put(value, "offset", self.offset)
        value["sizeInBytes"] = self.size_in_bytes
        value["cardinality"] = self.cardinality
        _put(value, "maxRowIndex", self.max_row_index)
        return value


@dataclass(frozen=True, slots=True)
class AddFile:
    """Adds a data file to the table. `path` is as in the log, percent-encoded; `stats` is the JSON text, unparsed.

    `partition_values` maps physical column names to the specification's strings, None for null.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The identity of a logical file: its path and the id of its deletion vector."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    @property
    def num_records(self) -> int | None:
        """The row count in the file's statistics, deleted rows included; None if it is missing or unreadable."""
        if not self.stats:
            return None
        # Most writers put it first: the rest of long statistics is not parsed.
        first = _NUM_RECORDS_FIRST.match(self.stats)
        if first is not None:
            return int(first[1])
        try:
            stated: Any = json.loads(self.stats)
        except (ValueError, RecursionError):
            return None
        records = stated.get("numRecords") if isinstance(stated, dict) else None
        return records if type(records) is int else None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names; None values are omitted."""
        value: dict[str, Any] = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "modificationTime": self.modification_time,
            "dataChange": self.data_change,
        }
        _put(value, "stats", self.stats)
        _put(value, "tags", None if self.tags is None else dict(self.tags))
        _put(value, "deletionVector", self.deletion_vector and self.deletion_vector.to_json_value())
        _put(value, "baseRowId", self.base_row_id)
        _put(value, "defaultRowCommitVersion", self.default_row_commit_version)
        _put(value, "clusteringProvider", self.clustering_provider)
        return value

    def remove(self, deletion_timestamp: int, data_change: bool = True) -> RemoveFile:
        """Return the tombstone of this logical file, with its extended metadata."""
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            stats=self.stats,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
        )


_NUM_RECORDS_FIRST = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d+)\s*[,}]')


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Removes a data file from the table; kept as a tombstone until VACUUM's retention has passed."""

    path: str
    deletion_timestamp: int | None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The identity of the removed logical file: as `AddFile.key`."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names; None values are omitted."""
        value: dict[str, Any] = {"path": self.path}
        _put(value, "deletionTimestamp", self.deletion_timestamp)
        value["dataChange"] = self.data_change
        _put(value, "extendedFileMetadata", self.extended_file_metadata)
        _put(value, "partitionValues", None if self.partition_values is None else dict(self.partition_values))
        _put(value, "size", self.size)
        _put(value, "stats", self.stats)
        _put(value, "tags", None if self.tags is None else dict(self.tags))
        _put(value, "deletionVector", self.deletion_vector and self.deletion_vector.to_json_value())
        _put(value, "baseRowId", self.base_row_id)
        _put(value, "defaultRowCommitVersion", self.default_row_commit_version)
        return value


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """A change data file of this version."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    tags: Mapping[str, str | None] | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names; `dataChange` is always false."""
        value: dict[str, Any] = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "dataChange": False,
        }
        _put(value, "tags", None if self.tags is None else dict(self.tags))
        return value


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The newest transaction version that an application has committed (PROTOCOL.md, "Transaction Identifiers")."""

    app_id: str
    version: int
    last_updated: int | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names."""
        value: dict[str, Any] = {"appId": self.app_id, "version": self.version}
        _put(value, "lastUpdated", self.last_updated)
        return value


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named configuration; `removed` marks a tombstone."""

    domain: str
    configuration: str
    removed: bool = False

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names."""
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Provenance of a commit; free-form JSON by the specification, so it is kept as a mapping."""

    values: Mapping[str, Any]

    @property
    def transaction_id(self) -> str | None:
        """``txnId``; None if the writer wrote none, or a value that is not a text."""
        value = self.values.get("txnId")
        return value if isinstance(value, str) else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Milliseconds since the epoch; None if the commit does not record its timestamp."""
        value = self.values.get("inCommitTimestamp")
        return value if isinstance(value, int) else None

    def to_json_value(self) -> dict[str, Any]:
        """Return all members that the writer wrote, including those that Tahoe does not know."""
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """Marks a V2 checkpoint and its version."""

    version: int
    tags: Mapping[str, str] | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names."""
        value: dict[str, Any] = {"version": self.version}
        _put(value, "tags", None if self.tags is None else dict(self.tags))
        return value


@dataclass(frozen=True, slots=True)
class SidecarFile:
    """A file of ``_delta_log/_sidecars`` with a part of a V2 checkpoint's file actions."""

    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str] | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the action without its name, with the specification's member names."""
        value: dict[str, Any] = {
            "path": self.path,
            "sizeInBytes": self.size_in_bytes,
            "modificationTime": self.modification_time,
        }
        _put(value, "tags", None if self.tags is None else dict(self.tags))
        return value


Action = (
    Protocol
    | Metadata
    | AddFile
    | RemoveFile
    | AddCDCFile
    | SetTransaction
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | SidecarFile
)

_NAMES: dict[type, str] = {
    Protocol: "protocol",
    Metadata: "metaData",
    AddFile: "add",
    RemoveFile: "remove",
    AddCDCFile: "cdc",
    SetTransaction: "txn",
    DomainMetadata: "domainMetadata",
    CommitInfo: "commitInfo",
    CheckpointMetadata: "checkpointMetadata",
    SidecarFile: "sidecar",
}


def to_json_line(action: Action) -> str:
    """Return the action as one line of a commit, without the line break."""
    return compact_json({_NAMES[type(action)]: action.to_json_value()})


def action_from_json(line: Mapping[str, object]) -> Action | None:
    """Return the action of one parsed line; None for an action that this version does not know (PROTOCOL.md: readers ignore those).

    Raises `CorruptTable` if the action violates the specification (`tahoe.protocol.action_members`).
    """
    members = [(name, value) for name, value in line.items() if value is not None]
    for name, value in members:
        check_action(name, value)
    for name, value in members:
        build = _BUILDERS.get(name)
        if build is None:
            continue
        try:
            return build(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptTable(
                f"A '{name}' action of the log is malformed: {type(error).__name__}: {error}.",
                code="TAHOE_CORRUPT_ACTION",
                action=name,
            ) from error
    return None


def _put(value: dict[str, Any], name: str, member: object) -> None:
    if member is not None:
        value[name] = member


def _protocol(value: Mapping[str, Any]) -> Protocol:
    def features(name: str) -> frozenset[str] | None:
        names = value.get(name)
        return None if names is None else frozenset(names)

    return Protocol(
        int(value["minReaderVersion"]), int(value["minWriterVersion"]), features("readerFeatures"), features("writerFeatures")
    )


# Old writers omit the schema of an empty table, and the reference accepts that (docs/design/012-required-fields.md).
_EMPTY_SCHEMA = '{"type":"struct","fields":[]}'


def _metadata(value: Mapping[str, Any]) -> Metadata:
    file_format = value["format"]
    return Metadata(
        id=value["id"],
        schema_string=value.get("schemaString") or _EMPTY_SCHEMA,
        partition_columns=tuple(value["partitionColumns"]),
        configuration=dict(value["configuration"]),
        name=value.get("name"),
        description=value.get("description"),
        created_time=value.get("createdTime"),
        format_provider=file_format["provider"],
        format_options=dict(file_format.get("options") or {}),
    )


def vector_of(value: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    """Return the descriptor in a member ``deletionVector``, or None."""
    return None if value is None else DeletionVectorDescriptor.from_json_value(value)


def _add(value: Mapping[str, Any]) -> AddFile:
    return AddFile(
        path=value["path"],
        partition_values=dict(value["partitionValues"]),
        size=int(value["size"]),
        modification_time=int(value["modificationTime"]),
        data_change=bool(value["dataChange"]),
        stats=value.get("stats"),
        tags=value.get("tags"),
        deletion_vector=vector_of(value.get("deletionVector")),
        base_row_id=value.get("baseRowId"),
        default_row_commit_version=value.get("defaultRowCommitVersion"),
        clustering_provider=value.get("clusteringProvider"),
    )


def _remove(value: Mapping[str, Any]) -> RemoveFile:
    return RemoveFile(
        path=value["path"],
        deletion_timestamp=value.get("deletionTimestamp"),
        data_change=bool(value["dataChange"]),
        extended_file_metadata=value.get("extendedFileMetadata"),
        partition_values=value.get("partitionValues"),
        size=value.get("size"),
        stats=value.get("stats"),
        tags=value.get("tags"),
        deletion_vector=vector_of(value.get("deletionVector")),
        base_row_id=value.get("baseRowId"),
        default_row_commit_version=value.get("defaultRowCommitVersion"),
    )


_BUILDERS: dict[str, Callable[[Any], Action]] = {
    "protocol": _protocol,
    "metaData": _metadata,
    "add": _add,
    "remove": _remove,
    "cdc": lambda v: AddCDCFile(v["path"], dict(v["partitionValues"]), int(v["size"]), v.get("tags")),
    "txn": lambda v: SetTransaction(v["appId"], int(v["version"]), v.get("lastUpdated")),
    "domainMetadata": lambda v: DomainMetadata(v["domain"], v["configuration"], bool(v["removed"])),
    "commitInfo": lambda v: CommitInfo(dict(v)),
    "checkpointMetadata": lambda v: CheckpointMetadata(int(v["version"]), v.get("tags")),
    "sidecar": lambda v: SidecarFile(v["path"], int(v["sizeInBytes"]), int(v["modificationTime"]), v.get("tags")),
}
