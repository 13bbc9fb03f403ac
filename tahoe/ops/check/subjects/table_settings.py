"""The settings in force in a version: its protocol and metadata, read as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tahoe.protocol.features import FEATURES, Feature

_ID, _PHYSICAL_NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Field:
    """A field of the schema at any depth.

    Args:
        path: field path: names, and ``element``, ``key``, ``value`` where it goes through an array or a map.
        physical: the same of physical names.
        raw: the field as the schema's JSON has it.
    """

    path: tuple[str, ...]
    physical: tuple[str, ...]
    raw: dict[str, Any]

    @property
    def name(self) -> str:
        """The path, for messages."""
        return ".".join(self.path)

    @property
    def type(self) -> Any:
        """The type's name, or the JSON of a nested type."""
        return self.raw.get("type")

    @property
    def metadata(self) -> dict[str, Any]:
        """The column's metadata; empty if it has none."""
        stored = self.raw.get("metadata")
        return stored if isinstance(stored, dict) else {}


@dataclass(frozen=True)
class Settings:
    """Protocol and metadata of one version, as they are written."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]

    @property
    def reader(self) -> int:
        """The minimum reader version; 0 if it is not a number."""
        return _number(self.protocol.get("minReaderVersion"))

    @property
    def writer(self) -> int:
        """The minimum writer version; 0 if it is not a number."""
        return _number(self.protocol.get("minWriterVersion"))

    @property
    def reader_features(self) -> frozenset[str]:
        """The listed reader features."""
        return _names(self.protocol.get("readerFeatures"))

    @property
    def writer_features(self) -> frozenset[str]:
        """The listed writer features."""
        return _names(self.protocol.get("writerFeatures"))

    @cached_property
    def configuration(self) -> dict[str, str]:
        """The table's properties; the names of ``delta.`` properties are in lower case."""
        stored = self.metadata.get("configuration")
        pairs = stored.items() if isinstance(stored, dict) else ()
        return {(name.lower() if name.lower().startswith("delta.") else name): str(value) for name, value in pairs}

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema's JSON; a struct without fields if it is invalid."""
        try:
            stored = json.loads(self.metadata.get("schemaString") or "")
        except (ValueError, TypeError, RecursionError):
            stored = None
        return stored if isinstance(stored, dict) and isinstance(stored.get("fields"), list) else {"type": "struct", "fields": []}

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the schema, at any depth."""
        return tuple(_fields(self.schema, (), ()))

    @cached_property
    def columns(self) -> dict[str, Field]:
        """The top-level columns by name."""
        return {field.path[0]: field for field in self.fields if len(field.path) == 1}

    @property
    def partition_columns(self) -> list[str]:
        """The listed partition columns."""
        stored = self.metadata.get("partitionColumns")
        return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []

    @cached_property
    def mapping_mode(self) -> str:
        """The column mapping mode that readers must apply: ``none`` if the feature is not supported."""
        return self.property("delta.columnMapping.mode", "none").lower() if self.supports(Feature.COLUMN_MAPPING) else "none"

    def property(self, name: str, default: str = "") -> str:
        """Return a table property's text."""
        return self.configuration.get(name.lower(), default)

    def is_on(self, name: str) -> bool:
        """Whether a property is ``true``."""
        return self.property(name).lower() == "true"

    def supports(self, feature: str) -> bool:
        """Whether the protocol lists the feature, or its versions imply it."""
        row = FEATURES[feature]
        if self.writer >= 7:
            return feature in self.writer_features
        return row.legacy is not None and self.reader >= row.legacy[0] and self.writer >= row.legacy[1]

    def is_active(self, feature: str, name: str) -> bool:
        """Whether the feature is supported and its property ``true``."""
        return self.supports(feature) and self.is_on(name)

    def physical_name(self, column: str) -> str:
        """Return the name of a top-level column in the log."""
        field = self.columns.get(column)
        mapped = self.mapping_mode != "none" and field is not None
        return str(field.metadata.get(_PHYSICAL_NAME, column)) if mapped and field is not None else column


def _fields(schema: object, path: tuple[str, ...], physical: tuple[str, ...]) -> Iterator[Field]:
    if not isinstance(schema, dict):
        return
    match schema.get("type"):
        case "struct":
            for raw in schema.get("fields") or ():
                if isinstance(raw, dict):
                    name = str(raw.get("name"))
                    metadata = raw["metadata"] if isinstance(raw.get("metadata"), dict) else {}
                    field = Field((*path, name), (*physical, str(metadata.get(_PHYSICAL_NAME, name))), raw)
                    yield field
                    yield from _fields(raw.get("type"), field.path, field.physical)
        case "array":
            yield from _fields(schema.get("elementType"), (*path, "element"), (*physical, "element"))
        case "map":
            yield from _fields(schema.get("keyType"), (*path, "key"), (*physical, "key"))
            yield from _fields(schema.get("valueType"), (*path, "value"), (*physical, "value"))


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _names(value: object) -> frozenset[str]:
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()
