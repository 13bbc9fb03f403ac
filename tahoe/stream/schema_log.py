"""`SchemaLog`: the metadata with which a stream reads its table, one numbered file per change, in delta-spark's format.

    <schemaTrackingLocation>/_schema_log_<table id>[_<tracking id>]/0, 1, 2, …

A file contains ``v1`` and, on a second line, the JSON of a `TrackedMetadata`. Files are never changed: each change gets the next number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.protocol.actions import Metadata, Protocol, action_from_json, to_json_line
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import schema_from_json
from tahoe.store.log_store import Created, LogStore

_FIRST_LINE = "v1"
_MEMBERS: dict[str, type] = {
    "tableId": str,
    "deltaCommitVersion": int,
    "dataSchemaJson": str,
    "partitionSchemaJson": str,
    "sourceMetadataPath": str,
}


@dataclass(frozen=True)  # without slots, as a cached property needs a `__dict__`
class TrackedMetadata:
    """The metadata for reading rows from some version of a table on.

    Args:
        version: the metadata and protocol can read the table at this version, and after it until the next change.
        schema_string: the whole schema, as in `Metadata`.
        partition_schema_string: the partition columns, in the order of the partitioning, in the same form.
        source_path: the folder of the source in the query's checkpoint, which detects another stream's log.
        configuration: the table's properties; None in files of old writers.
        protocol: None in files of old writers.
        previous: the number of the file whose metadata the stream read with before; None for the preceding file.
    """

    table_id: str
    version: int
    schema_string: str
    partition_schema_string: str
    source_path: str
    configuration: Mapping[str, str] | None = None
    protocol: Protocol | None = None
    previous: int | None = None

    @classmethod
    def of(cls, config: TableConfig, version: int, source_path: str) -> TrackedMetadata:
        """Return the tracked metadata of a version of the table."""
        metadata = config.metadata
        return cls(
            metadata.id,
            version,
            metadata.schema_string,
            config.partition_schema.to_json(),
            source_path,
            dict(metadata.configuration),
            config.protocol,
        )

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names, in order."""
        return tuple(schema_from_json(self.partition_schema_string).names)

    def config(self, other: TableConfig) -> TableConfig:
        """Return the configuration for reading rows.

        Args:
            other: the table's configuration, for values that the file does not have.
        """
        metadata = replace(
            other.metadata,
            schema_string=self.schema_string,
            partition_columns=self.partition_columns,
            configuration=other.metadata.configuration if self.configuration is None else self.configuration,
        )
        return TableConfig(self.protocol or other.protocol, metadata, other.table)

    def with_changes(self, metadata: Metadata | None, protocol: Protocol | None, version: int, table: str) -> TrackedMetadata:
        """Apply commits that changed metadata or protocol, up to a version."""
        changed = replace(self, version=version)
        if metadata is not None:
            of_table = TrackedMetadata.of(TableConfig(protocol or Protocol(1, 2), metadata, table), version, self.source_path)
            changed = replace(of_table, protocol=self.protocol, previous=self.previous)
        return changed if protocol is None else replace(changed, protocol=protocol)

    def to_text(self) -> str:
        """Return the content of its file."""
        value: dict[str, Any] = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.schema_string,
            "partitionSchemaJson": self.partition_schema_string,
            "sourceMetadataPath": self.source_path,
        }
        if self.configuration is not None:
            value["tableConfigurations"] = dict(self.configuration)
        if self.protocol is not None:
            value["protocolJson"] = to_json_line(self.protocol)
        if self.previous is not None:
            value["previousMetadataSeqNum"] = self.previous
        return f"{_FIRST_LINE}\n{json.dumps(value, separators=(',', ':'), ensure_ascii=False)}"

    @classmethod
    def parse(cls, text: str, file: str) -> TrackedMetadata:
        """Parse a file.

        Args:
            file: its URL, for messages.

        Raises:
            CorruptTable: ``DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED``, or ``DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED`` if
                only the schema is invalid.
        """
        first, _, rest = text.partition("\n")
        if first.strip() != _FIRST_LINE:
            raise _damaged(file, f"it begins with {first[:20]!r} instead of {_FIRST_LINE!r}, the only supported version")
        try:
            value = json.loads(rest.partition("\n")[0])
        except ValueError as error:
            raise _damaged(file, "its second line is not JSON") from error
        wrong = [name for name, kind in _MEMBERS.items() if not isinstance(value, dict) or not _is(value.get(name), kind)]
        if wrong:
            raise _damaged(file, f"its member '{wrong[0]}' is missing or has a wrong type")
        table_id, version, schema_string, partition_schema_string, source_path = (value[name] for name in _MEMBERS)
        parsed = cls(table_id, version, schema_string, partition_schema_string, source_path, *_optional(value, file))
        for schema in (parsed.schema_string, parsed.partition_schema_string):
            _check_schema(schema, file)
        return parsed


class SchemaLog:
    """The files of one stream's source when this object was created, and the files that it added.

    Args:
        store: the store of the folder `log_folder`.
        table: the URL of the table that is read, for messages.

    Raises: like `TrackedMetadata.parse`.
    """

    def __init__(self, store: LogStore, table: str) -> None:
        self._store = store
        self._table = table
        names = [entry.rpartition("/")[2] for entry in store.names_from("")]
        self.number = max((int(name) for name in names if name.isascii() and name.isdecimal()), default=-1)
        self.current = None if self.number < 0 else self._read(self.number)

    @property
    def url(self) -> str:
        """The URL of its folder."""
        return self._store.url

    @property
    def previous(self) -> TrackedMetadata | None:
        """The metadata before `current`; None if there was none, or its file is gone."""
        number = self._number_before()
        return None if number < 0 else self._read_if_there(number)

    def add(self, metadata: TrackedMetadata, *, replaces: bool = False) -> None:
        """Write the next file, unless it would equal the newest.

        Args:
            replaces: it replaces the newest, with which nothing was read yet.

        Raises:
            InvalidRequest: ``DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT``: another stream has written that file.
            StorageFailure: storage refused the file.
        """
        if replaces and self.current is not None:
            metadata = replace(metadata, previous=self._number_before())
        if metadata == self.current:
            return
        name, data = str(self.number + 1), metadata.to_text().encode()
        outcome = self._store.put_if_absent(name, data)
        if not isinstance(outcome, Created):
            self._settle(name, data, getattr(outcome, "error", ""))
        self.number, self.current = self.number + 1, metadata

    def _settle(self, name: str, data: bytes, error: str) -> None:
        """Resolve an uncertain write by reading the file back."""
        try:
            content = self._store.get(name)
        except NotFound:
            raise StorageFailure(
                f"The schema log {self.url} of a stream of table {self._table} did not store its file '{name}': {error}. Start "
                "the stream again.",
                table=self._table,
                file=f"{self.url}/{name}",
            ) from None
        if content != data:
            raise InvalidRequest(
                f"The schema log {self.url} of a stream of table {self._table} got a file '{name}' from another stream. Give each "
                "stream a 'schemaTrackingLocation' of its own, and each source of one query a 'streamingSourceTrackingId'.",
                code="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                table=self._table,
                file=f"{self.url}/{name}",
            )

    def _number_before(self) -> int:
        previous = None if self.current is None else self.current.previous
        return self.number - 1 if previous is None else previous

    def _read_if_there(self, number: int) -> TrackedMetadata | None:
        try:
            return self._read(number)
        except NotFound:
            return None

    def _read(self, number: int) -> TrackedMetadata:
        file = f"{self.url}/{number}"
        try:
            return TrackedMetadata.parse(self._store.get(str(number)).decode("utf-8"), file)
        except UnicodeDecodeError as error:
            raise _damaged(file, "it is not text") from error


def log_folder(location: str, table_id: str, tracking_id: str | None) -> str:
    """Return the folder of the files.

    Args:
        location: ``schemaTrackingLocation``, as the user spelled it.
        table_id: ``metaData.id`` of the table.
        tracking_id: ``streamingSourceTrackingId``.

    Raises `InvalidRequest` (``DELTA_ILLEGAL_OPTION``) or `CorruptTable` for an id that would lead to another folder.
    """
    if tracking_id is not None and ("/" in tracking_id or "\\" in tracking_id):
        raise InvalidRequest(
            f"Invalid value '{tracking_id}' for the option 'streamingSourceTrackingId': "
            "it is part of a folder's name, and must not contain a slash.",
            code="DELTA_ILLEGAL_OPTION",
            option="streamingSourceTrackingId",
        )
    if "/" in table_id or "\\" in table_id:
        raise CorruptTable(
            f"The table's id '{table_id}' contains a slash, so it cannot be part of a schema log's folder. Stream without "
            "'schemaTrackingLocation', or repair the metaData action.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
        )
    return f"{location.rstrip('/')}/_schema_log_{table_id}{'' if tracking_id is None else f'_{tracking_id}'}"


def _is(value: object, kind: type) -> bool:
    # In Python, a bool is an int.
    return isinstance(value, kind) and not isinstance(value, bool)


def _optional(value: Mapping[str, Any], file: str) -> tuple[Mapping[str, str] | None, Protocol | None, int | None]:
    configuration, protocol, previous = (value.get(n) for n in ("tableConfigurations", "protocolJson", "previousMetadataSeqNum"))
    if configuration is not None and not (
        isinstance(configuration, dict) and all(isinstance(text, str) for text in configuration.values())
    ):
        raise _damaged(file, "its member 'tableConfigurations' has values other than texts")
    if previous is not None and not _is(previous, int):
        raise _damaged(file, "its member 'previousMetadataSeqNum' is not a whole number")
    if protocol is None:
        return configuration, None, previous
    try:
        action = action_from_json(json.loads(protocol))
    except (ValueError, TypeError, AttributeError, TahoeError) as error:
        raise _damaged(file, "its member 'protocolJson' is not a protocol") from error
    if not isinstance(action, Protocol):
        raise _damaged(file, "its member 'protocolJson' is not a protocol")
    return configuration, action, previous


def _check_schema(text: str, file: str) -> None:
    try:
        schema_from_json(text)
    except TahoeError as error:
        raise CorruptTable(
            f"The schema in the file {file} of a stream's schema log is invalid: {error.message} Restore the file from a copy, or choose "
            "another 'schemaTrackingLocation'.",
            code="DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
            file=file,
        ) from error


def _damaged(file: str, problem: str) -> CorruptTable:
    return CorruptTable(
        f"The file {file} of a stream's schema log cannot be read: {problem}. Restore the file from a copy, or choose another "
        "'schemaTrackingLocation'.",
        code="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        file=file,
    )
