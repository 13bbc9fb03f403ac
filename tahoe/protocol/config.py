"""`TableConfig`: protocol and metadata checked against each other; it answers every "may I?" of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tahoe.exceptions import CorruptTable, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.features import check_readable, check_writable, features_of
from tahoe.protocol.properties import TableProperties
from tahoe.schema.evolve import check_type_changes
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

__all__ = ["TableConfig", "features_wanted_by"]


@dataclass(frozen=True)
class TableConfig:
    """What one version of a table is and allows.

    Args:
        table: the table's URL, for messages.
    """

    protocol: Protocol
    metadata: Metadata
    table: str

    @cached_property
    def properties(self) -> TableProperties:
        return TableProperties(self.metadata.configuration)

    @cached_property
    def schema(self) -> StructType:
        """The logical schema, partition columns included."""
        return self.metadata.schema

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names, in the order of the partitioning."""
        for name in self.metadata.partition_columns:
            if self.schema.find(name) is None:
                raise CorruptTable(
                    f"Table {self.table} is partitioned by '{name}', which is not in its schema. Repair the metaData action.",
                    table=self.table,
                    column=name,
                )
        return self.metadata.partition_columns

    @cached_property
    def partition_schema(self) -> StructType:
        return self.schema.select(list(self.partition_columns))

    @cached_property
    def data_schema(self) -> StructType:
        """The logical schema without the partition columns."""
        return self.schema.without({self.schema.field(name).name for name in self.partition_columns})

    @cached_property
    def features(self) -> frozenset[str]:
        """All supported features, those implied by version numbers included."""
        return features_of(self.protocol)

    @property
    def column_mapping_mode(self) -> str:
        """``none``, ``name`` or ``id``; the mode counts only where the protocol supports column mapping."""
        mode = self.properties.column_mapping_mode
        return mode if "columnMapping" in self.features else "none"

    @property
    def iceberg_compat_version(self) -> int | None:
        """1, 2 or 3 where an IcebergCompat feature is active."""
        for version in (3, 2, 1):
            if f"icebergCompatV{version}" in self.features and self.properties.get(f"delta.enableIcebergCompatV{version}"):
                return version
        return None

    @property
    def materializes_partition_columns(self) -> bool:
        """Whether data files hold the partition columns too."""
        return self.iceberg_compat_version is not None or bool(
            "materializePartitionColumns" in self.features
            and self.properties.get("delta.enableMaterializePartitionColumnsFeature")
        )

    @property
    def random_prefixes(self) -> bool:
        """Whether new files go to folders of random names in place of ``column=value`` ones."""
        return self.properties.randomize_file_prefixes or self.column_mapping_mode != "none"

    @property
    def in_commit_timestamps(self) -> bool:
        return "inCommitTimestamp" in self.features and self.properties.enable_in_commit_timestamps

    def ensure_readable(self) -> None:
        """Raises where this version of Tahoe cannot read the table right; the message names the features."""
        check_readable(self.protocol, self.table)
        if self.metadata.format_provider.lower() != "parquet":
            raise Unsupported(f"Table {self.table} keeps its data as {self.metadata.format_provider}; only parquet is supported.")
        check_type_changes(self.schema)

    def ensure_writable(self, enforced: frozenset[str] = frozenset()) -> None:
        """Raises where a write would break a rule of the table that the writer does not enforce.

        Args:
            enforced: what the writer enforces of ``checkConstraints``, ``generatedColumns`` and ``invariants``
                (`tahoe.protocol.constraints`); a writer that says nothing enforces none of them.
        """
        check_writable(self.protocol, self.table)
        used = sorted(name for feature, name in self.demands() if feature not in enforced)
        if used:
            raise Unsupported(
                f"Table {self.table} uses what this version of Tahoe does not enforce on writes: {', '.join(used)}. "
                "Upgrade Tahoe, or write with a client that enforces it.",
                code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
                table=self.table,
                features=used,
            )

    def demands(self) -> Iterator[tuple[str, str]]:
        """What writers must enforce: the feature, and where it is used. Inside lists and maps, and a generated field of a struct, are
        beyond every writer; so is a generated column of a protocol that has no such feature."""
        if any(key.lower().startswith("delta.constraints.") for key in self.metadata.configuration):
            yield "checkConstraints", "checkConstraints"
        top_level = {id(column) for column in self.schema}
        in_structs = {id(column) for column in _struct_fields(self.schema)}
        for column in _all_fields(self.schema):
            keys = column.metadata
            if "delta.generationExpression" in keys:
                name = f"generatedColumns (column {column.name})"
                known = id(column) in top_level and "generatedColumns" in self.features
                yield "generatedColumns" if known else name, name
            if any(key.startswith("delta.identity.") for key in keys):
                yield "identityColumns", f"identityColumns (column {column.name})"
            if "delta.invariants" in keys:
                name = f"invariants (column {column.name})"
                yield "invariants" if id(column) in in_structs else name, name
            if "CURRENT_DEFAULT" in keys:
                yield "allowColumnDefaults", f"allowColumnDefaults (column {column.name})"
            if "__CHAR_VARCHAR_TYPE_STRING" in keys:
                yield "char/varchar", f"char/varchar length (column {column.name})"


def features_wanted_by(metadata: Metadata) -> frozenset[str]:
    """The features that a table's schema and properties need in its protocol (`delta-features`, "becomes active when")."""
    properties = TableProperties(metadata.configuration)
    schema = metadata.schema
    wanted = {name for name, key in _ENABLED_BY.items() if properties.get(key)}
    if properties.column_mapping_mode != "none":
        wanted.add("columnMapping")
    if properties.get("delta.checkpointPolicy") == "v2":
        wanted.add("v2Checkpoint")
    for key, value in metadata.configuration.items():
        lowered = key.lower()
        if lowered.startswith("delta.constraints."):
            wanted.add("checkConstraints")
        if lowered.startswith("delta.feature.") and value.lower() in ("supported", "enabled"):
            wanted.add(key[len("delta.feature.") :])
    return frozenset(wanted | _wanted_by_schema(schema))


_ENABLED_BY = {
    "appendOnly": "delta.appendOnly",
    "changeDataFeed": "delta.enableChangeDataFeed",
    "deletionVectors": "delta.enableDeletionVectors",
    "typeWidening": "delta.enableTypeWidening",
    "rowTracking": "delta.enableRowTracking",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
    "icebergCompatV3": "delta.enableIcebergCompatV3",
    "materializePartitionColumns": "delta.enableMaterializePartitionColumnsFeature",
    "variantShredding": "delta.enableVariantShredding",
}


def _wanted_by_schema(schema: StructType) -> set[str]:
    wanted: set[str] = set()
    for column in _all_fields(schema):
        keys: Any = column.metadata
        if "delta.generationExpression" in keys:
            wanted.add("generatedColumns")
        if any(key.startswith("delta.identity.") for key in keys):
            wanted.add("identityColumns")
        if "delta.invariants" in keys or not column.nullable:
            wanted.add("invariants")
        if "CURRENT_DEFAULT" in keys:
            wanted.add("allowColumnDefaults")
        for part in _primitives(column.data_type):
            if part.name == "timestamp_ntz":
                wanted.add("timestampNtz")
            if part.name == "variant":
                wanted.add("variantType")
    return wanted


def _all_fields(schema: StructType) -> Iterator[StructField]:
    for column in schema:
        yield column
        yield from _nested_fields(column.data_type)


def _struct_fields(schema: StructType) -> Iterator[StructField]:
    """Every field that structs alone lead to."""
    for column in schema:
        yield column
        if isinstance(column.data_type, StructType):
            yield from _struct_fields(column.data_type)


def _nested_fields(data_type: DataType) -> Iterator[StructField]:
    match data_type:
        case StructType():
            yield from _all_fields(data_type)
        case ArrayType(element):
            yield from _nested_fields(element)
        case MapType(key, value):
            yield from _nested_fields(key)
            yield from _nested_fields(value)


def _primitives(data_type: DataType) -> Iterator[PrimitiveType]:
    match data_type:
        case PrimitiveType():
            yield data_type
        case ArrayType(element):
            yield from _primitives(element)
        case MapType(key, value):
            yield from _primitives(key)
            yield from _primitives(value)
