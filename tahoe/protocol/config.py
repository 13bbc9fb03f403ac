"""`TableConfig`: protocol and metadata checked against each other, and the operations that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from tahoe.base.exceptions import CorruptTable, InvalidRequest, SchemaMismatch, TahoeError, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.features import FEATURES, ICEBERG_COMPAT, Feature, feature_named
from tahoe.protocol.properties import CONSTRAINT_PREFIX, FEATURE_PREFIX, TableProperties
from tahoe.protocol.protocols import check_readable, check_writable, features_of
from tahoe.schema.evolve import check_duplicates
from tahoe.schema.mapping import check_mapping_of_columns
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import GENERATION_EXPRESSION, DecimalType, PrimitiveType, StructType, is_opaque
from tahoe.schema.walk import all_fields, struct_fields
from tahoe.schema.widening import NO_WIDENING, Widening, check_type_changes


@dataclass(frozen=True)
class TableConfig:
    """The configuration of one version of a table: protocol, schema, properties and the operations that they allow.

    Args:
        table: the table's URL, for messages.
    """

    protocol: Protocol
    metadata: Metadata
    table: str

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties, with the defaults of those that are not set."""
        return TableProperties(self.metadata.configuration)

    @cached_property
    def schema(self) -> StructType:
        """The logical schema, partition columns included."""
        try:
            return self.metadata.schema
        except TahoeError as error:
            error.located(table=self.table)
            raise

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names, in the order of the partitioning."""
        for name in self.metadata.partition_columns:
            if self.schema.find(name) is None:
                raise CorruptTable(
                    f"Table {self.table} is partitioned by '{name}', which is not in its schema. Repair the metaData action.",
                    code="DELTA_MISSING_PARTITION_COLUMN",
                    table=self.table,
                    column=name,
                )
        return self.metadata.partition_columns

    @cached_property
    def partition_schema(self) -> StructType:
        """The partition columns, in the order of the partitioning."""
        return self.schema.select(list(self.partition_columns))

    @cached_property
    def data_schema(self) -> StructType:
        """The logical schema without the partition columns."""
        return self.schema.without({self.schema.field(name).name for name in self.partition_columns})

    @cached_property
    def features(self) -> frozenset[str]:
        """All supported features, including those implied by version numbers."""
        return features_of(self.protocol)

    def is_active(self, feature: Feature) -> bool:
        """Whether the protocol supports a feature and the table's properties or schema use it."""
        if feature not in self.features:
            return False
        row = FEATURES[feature]
        return row.is_enabled_by(self.properties, all_fields(self.schema) if row.depends_on_schema else ())

    @property
    def column_mapping_mode(self) -> str:
        """``none``, ``name`` or ``id``; the mode counts only if the protocol supports column mapping."""
        return self.properties.column_mapping_mode if self.is_active(Feature.COLUMN_MAPPING) else "none"

    @property
    def iceberg_compat_version(self) -> int | None:
        """1, 2 or 3 if an IcebergCompat feature is active, else None."""
        return next((version for version in (3, 2, 1) if self.is_active(ICEBERG_COMPAT[version])), None)

    @property
    def materializes_partition_columns(self) -> bool:
        """Whether data files contain the partition columns too."""
        if self.iceberg_compat_version is not None or self.is_active(Feature.MATERIALIZE_PARTITION_COLUMNS):
            return True
        return bool(self.properties.get("delta.writePartitionColumnsToParquet"))

    @property
    def random_prefixes(self) -> bool:
        """Whether new files go to folders of random names instead of ``column=value`` folders."""
        return self.properties.randomize_file_prefixes or self.column_mapping_mode != "none"

    @property
    def writes_v2_checkpoints(self) -> bool:
        """Whether checkpoints follow the V2 specification (PROTOCOL.md, "V2 Checkpoint Table Feature")."""
        return self.properties.checkpoint_policy == "v2" and Feature.V2_CHECKPOINT in self.features

    def automatic_widening(self, mode: str) -> Widening:
        """Return the types that schema evolution may widen in this table (PROTOCOL.md, "Type Widening").

        Args:
            mode: one of `tahoe.schema.widening.WIDENING_MODES`.
        """
        if not self.properties.enable_type_widening:
            return NO_WIDENING
        return Widening(mode, for_iceberg="iceberg" in self.properties.universal_format_enabled_formats)

    @property
    def in_commit_timestamps(self) -> bool:
        """Whether commits record their timestamp (PROTOCOL.md, "In-Commit Timestamps")."""
        return self.is_active(Feature.IN_COMMIT_TIMESTAMP)

    def ensure_readable(self) -> None:
        """Raise if this version of Tahoe cannot read the table correctly; the message names the features, and the fact ``action`` is
        ``protocol`` or ``metaData``, the action at fault."""
        with _about("protocol", self.table):
            check_readable(self.protocol, self.table)
        with _about("metaData", self.table):
            self._check_metadata()

    def _check_metadata(self) -> None:
        if self.metadata.format_provider.lower() != "parquet":
            raise Unsupported(
                f"Table {self.table} keeps its data as {self.metadata.format_provider}; only parquet is supported.",
                code="TAHOE_DATA_FORMAT",
            )
        check_mapping_of_columns(self.schema, self.column_mapping_mode)
        check_type_changes(self.schema)
        self._check_names()

    def _check_names(self) -> None:
        """Refuse columns whose names differ at most in case, and repeated partition columns."""
        try:
            check_duplicates(self.schema)
        except SchemaMismatch as error:
            raise self._corrupt(error.message, error.code, columns=error.facts["columns"]) from error
        lowered = [name.lower() for name in self.partition_columns]
        for name, column in zip(lowered, self.partition_columns, strict=True):
            if lowered.count(name) > 1:
                raise self._corrupt(
                    f"It is partitioned by '{column}' more than once.", "DELTA_DUPLICATE_COLUMNS_FOUND", column=column
                )
            data_type = self.schema.field(column).data_type
            if not isinstance(data_type, PrimitiveType | DecimalType) or is_opaque(data_type):
                fault = f"It is partitioned by '{column}' of type {data_type}, which has no partition values."
                raise self._corrupt(fault, "DELTA_INVALID_PARTITION_COLUMN_TYPE", column=column)

    def _corrupt(self, fault: str, code: str, **facts: object) -> CorruptTable:
        return CorruptTable(f"Table {self.table}: {fault} Repair its metaData action.", code=code, table=self.table, **facts)

    def ensure_writable(self, enforced: frozenset[str] = frozenset()) -> None:
        """Raise if a write would break a constraint of the table that the writer does not enforce.

        Args:
            enforced: the features among ``checkConstraints``, ``generatedColumns`` and ``invariants`` that the writer enforces
                (`tahoe.protocol.constraints`); none by default.
        """
        check_writable(self.protocol, self.table)
        used = sorted(name for feature, name in self.demands() if feature not in enforced)
        if used:
            raise Unsupported(
                f"Table {self.table} uses features that this version of Tahoe does not enforce on writes: {', '.join(used)}. "
                "Upgrade Tahoe, or write with a client that enforces it.",
                code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
                table=self.table,
                features=used,
            )

    def refuse_if_append_only(self) -> None:
        """Raise `InvalidRequest` (`DELTA_CANNOT_MODIFY_APPEND_ONLY`) if rows may not be removed or changed."""
        if self.properties.append_only:
            raise InvalidRequest(
                f"Table {self.table} is append-only (delta.appendOnly = true), so rows may not be removed or changed. "
                "Unset the property first, or append only.",
                code="DELTA_CANNOT_MODIFY_APPEND_ONLY",
                table=self.table,
            )

    def demands(self) -> Iterator[tuple[str, str]]:
        """Yield the constraints that writers must enforce: the feature, and where it is used. Those inside lists and maps, and a generated
        field of a struct, cannot be enforced by any writer; nor can a generated column under a protocol without the feature."""
        if any(key.lower().startswith(CONSTRAINT_PREFIX) for key in self.metadata.configuration):
            yield Feature.CHECK_CONSTRAINTS, Feature.CHECK_CONSTRAINTS
        top_level = {id(column) for column in self.schema}
        in_structs = {id(column) for column in struct_fields(self.schema)}
        for column in all_fields(self.schema):
            keys = column.metadata
            if GENERATION_EXPRESSION in keys:
                name = f"generatedColumns (column {column.name})"
                is_enforced = id(column) in top_level and Feature.GENERATED_COLUMNS in self.features
                yield Feature.GENERATED_COLUMNS if is_enforced else name, name
            if any(key.startswith("delta.identity.") for key in keys):
                name = f"identityColumns (column {column.name})"
                is_enforced = id(column) in top_level and Feature.IDENTITY_COLUMNS in self.features
                yield Feature.IDENTITY_COLUMNS if is_enforced else name, name
            if "delta.invariants" in keys:
                name = f"invariants (column {column.name})"
                yield Feature.INVARIANTS if id(column) in in_structs else name, name
            if "CURRENT_DEFAULT" in keys:
                name = f"allowColumnDefaults (column {column.name})"
                is_enforced = id(column) in top_level and Feature.ALLOW_COLUMN_DEFAULTS in self.features
                yield Feature.ALLOW_COLUMN_DEFAULTS if is_enforced else name, name
            if DECLARED_TYPE in keys:
                yield "char/varchar", f"char/varchar length (column {column.name})"


@contextmanager
def _about(action: str, table: str) -> Iterator[None]:
    """Add the action and the table to errors raised inside."""
    try:
        yield
    except TahoeError as error:
        error.facts.setdefault("action", action)
        error.located(table=table)
        raise


def required_features(metadata: Metadata) -> frozenset[str]:
    """Return the features that a table's schema and properties need in its protocol: according to the table of features, and those that a
    property ``delta.feature.<name>`` requests by name."""
    properties = TableProperties(metadata.configuration)
    fields = list(all_fields(metadata.schema))
    by_name = {
        row.name if (row := feature_named(key[len(FEATURE_PREFIX) :])) else key[len(FEATURE_PREFIX) :]
        for key, value in metadata.configuration.items()
        if key.lower().startswith(FEATURE_PREFIX) and value.lower() in ("supported", "enabled")
    }
    return frozenset(by_name | {row.name for row in FEATURES.values() if row.is_enabled_by(properties, fields)})
