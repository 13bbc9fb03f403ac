"""`FEATURES`: the table features, a row each, with their support per operation (PROTOCOL.md, "Valid Feature Names in Table Features").

The name of a feature is spelled in `Feature` and nowhere else. docs/design/028-features.md describes how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.protocol.properties import CONSTRAINT_PREFIX, TableProperties
from tahoe.schema.types import GENERATION_EXPRESSION, DataType, PrimitiveType, StructField, StructType, is_geospatial
from tahoe.schema.walk import paths_of_type, primitives


class Feature(StrEnum):
    """A table feature, equal to its name in ``readerFeatures`` and ``writerFeatures``. Tables can have features with other names."""

    __repr__ = str.__repr__

    APPEND_ONLY = "appendOnly"
    INVARIANTS = "invariants"
    CHECK_CONSTRAINTS = "checkConstraints"
    CHANGE_DATA_FEED = "changeDataFeed"
    GENERATED_COLUMNS = "generatedColumns"
    COLUMN_MAPPING = "columnMapping"
    IDENTITY_COLUMNS = "identityColumns"
    DELETION_VECTORS = "deletionVectors"
    V2_CHECKPOINT = "v2Checkpoint"
    TIMESTAMP_NTZ = "timestampNtz"
    TIMESTAMP_WITHOUT_TIMEZONE = "timestampWithoutTimezone"
    VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
    VARIANT_TYPE = "variantType"
    VARIANT_TYPE_PREVIEW = "variantType-preview"
    VARIANT_SHREDDING = "variantShredding"
    VARIANT_SHREDDING_PREVIEW = "variantShredding-preview"
    TYPE_WIDENING = "typeWidening"
    TYPE_WIDENING_PREVIEW = "typeWidening-preview"
    CATALOG_MANAGED = "catalogManaged"
    CATALOG_OWNED_PREVIEW = "catalogOwned-preview"
    GEOSPATIAL = "geospatial"
    GEOSPATIAL_DEV = "geospatial-dev"
    ADAPTIVE_METADATA_PREVIEW = "adaptiveMetadata-preview"
    REDIRECT_READER_WRITER_PREVIEW = "redirectReaderWriter-preview"
    REDIRECT_WRITER_ONLY_PREVIEW = "redirectWriterOnly-preview"
    TIMESTAMP_NANOS = "timestampNanos"
    DOMAIN_METADATA = "domainMetadata"
    ROW_TRACKING = "rowTracking"
    CLUSTERING = "clustering"
    IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
    ALLOW_COLUMN_DEFAULTS = "allowColumnDefaults"
    ICEBERG_COMPAT_V1 = "icebergCompatV1"
    ICEBERG_COMPAT_V2 = "icebergCompatV2"
    ICEBERG_COMPAT_V3 = "icebergCompatV3"
    ICEBERG_WRITER_COMPAT_V1 = "icebergWriterCompatV1"
    ICEBERG_WRITER_COMPAT_V3 = "icebergWriterCompatV3"
    CHECKPOINT_PROTECTION = "checkpointProtection"
    MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"
    COORDINATED_COMMITS_PREVIEW = "coordinatedCommits-preview"
    COLLATIONS = "collations"
    COLLATIONS_PREVIEW = "collations-preview"


class Use(Enum):
    """a use of a table that Tahoe supports for some features only."""

    READ = "read"
    WRITE = "write"
    FEED = "change data feed"
    UPGRADE = "added to an existing table"
    DROP = "dropped by DROP FEATURE"
    SPARK = "Spark"
    CONNECT = "Spark Connect"
    ICEBERG = "Iceberg"
    DEFAULT = "column default"


@dataclass(frozen=True, slots=True)
class Limit:
    """The support of an operation if a table has columns of the feature's types.

    Args:
        support: as in docs/features.md.
        message: of the error, with ``{columns}``, their paths, and the names of other facts; empty if the operation refuses the types by its
            own rules.
    """

    support: str
    message: str = ""
    code: str = ""
    error: type[TahoeError] = Unsupported


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One row of the table: the properties of a feature.

    Args:
        name: as in ``readerFeatures`` and ``writerFeatures``.
        reader: readers must understand it too.
        legacy: the (reader, writer) versions that imply it without a list, or None.
        requires: features that must be supported with it.
        forbids: features that may not be active beside it.
        enabled_by_property: the table property that enables it; a final ``.`` matches all properties with that prefix.
        enabling_value: whether a value of that property enables it; the value is that of `TableProperties.get`.
        enabled_by_field: whether a field of the schema, at any depth, needs it.
        types: whether a type without parts needs it. Exactly the columns with such types are subject to `limits`.
        is_added_by_field: whether such a field, added to an existing table, enables the feature. Otherwise it has to be enabled first.
        statement: the statement that enables it instead of a property.
        earlier_name: the feature's name before it was final. A table with that name keeps it, for clients that know only that name.
        is_coordinated: whether a coordinator decides which commits the table has.
        is_enforced: whether writers must check or complete each row; `tahoe.protocol.config` finds the columns.
        removal: the steps of DROP FEATURE before the name may leave the protocol; None if the specification and the reference
            have no way back. The steps are implemented in `tahoe.ops.features.removals`.
        unsupported: the operations that this version of Tahoe refuses for tables with the feature.
        limits: the operations that it supports for some columns only.
    """

    name: str
    reader: bool = False
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    enabled_by_property: str | None = None
    enabling_value: Callable[[Any], bool] = bool
    enabled_by_field: Callable[[StructField], bool] | None = None
    types: Callable[[DataType], bool] | None = None
    is_added_by_field: bool = False
    statement: str | None = None
    earlier_name: str | None = None
    is_coordinated: bool = False
    is_enforced: bool = False
    removal: str | None = None
    unsupported: frozenset[Use] = frozenset()
    limits: Mapping[Use, Limit] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The feature's name, and its earlier name if there is one."""
        return (self.name,) if self.earlier_name is None else (self.name, self.earlier_name)

    def supports(self, use: Use) -> bool:
        """Whether this version of Tahoe supports the operation for tables with the feature, within `limits`."""
        return use not in self.unsupported

    @property
    def depends_on_schema(self) -> bool:
        """Whether fields of the schema can enable the feature."""
        return self.types is not None or self.enabled_by_field is not None

    def is_needed_by(self, column: StructField) -> bool:
        """Whether a field of the schema enables the feature; the fields inside it are not considered."""
        types, by_field = self.types, self.enabled_by_field
        return (by_field is not None and by_field(column)) or (
            types is not None and any(map(types, primitives(column.data_type)))
        )

    def is_enabled_by(self, properties: TableProperties, fields: Iterable[StructField]) -> bool:
        """Whether a table's properties or schema need the feature.

        Args:
            fields: of the schema, at any depth (`tahoe.schema.walk.all_fields`).
        """
        key = self.enabled_by_property
        if key is not None and key.endswith("."):
            if any(name.lower().startswith(key) for name in properties.configuration):
                return True
        elif key is not None and self.enabling_value(properties.get(key)):
            return True
        return self.depends_on_schema and any(map(self.is_needed_by, fields))

    def columns_of(self, schema: StructType) -> list[str]:
        """Return the paths of the fields with the feature's types, also in lists and maps."""
        return [] if self.types is None else paths_of_type(schema, self.types)

    def check_columns(self, schema: StructType, use: Use, **facts: str) -> None:
        """Raise the error of `limits` if the operation does not support columns of the schema.

        Args:
            facts: of the error, in addition to ``columns``, the paths.
        """
        limit = self.limits.get(use)
        columns = self.columns_of(schema) if limit is not None and limit.message else []
        if limit is not None and columns:
            raise limit.error(
                limit.message.format(columns=", ".join(columns), **facts), code=limit.code, columns=columns, **facts
            )


def _has(*keys: str) -> Callable[[StructField], bool]:
    """Whether a field's metadata has one of the keys; a final ``.`` matches all keys with that prefix."""
    return lambda field: any(
        any(name == key or (key.endswith(".") and name.startswith(key)) for key in keys) for name in field.metadata
    )


def _is(type_name: str) -> Callable[[DataType], bool]:
    return lambda data_type: data_type == PrimitiveType(type_name)


_EVERYTHING = frozenset(Use)
_WRITES = _EVERYTHING - {Use.READ, Use.FEED, Use.SPARK, Use.CONNECT}
_REWRITE = "files rewritten"
_PROPERTY_OFF = "property unset"
_VARIANT_LIMITS = {Use.ICEBERG: Limit("shown if no column is a variant")}
_CATALOG_MANAGED = TableFeature(
    Feature.CATALOG_MANAGED,
    reader=True,
    requires=(Feature.IN_COMMIT_TIMESTAMP, Feature.VACUUM_PROTOCOL_CHECK),
    is_coordinated=True,
)
_GEOSPATIAL = TableFeature(
    Feature.GEOSPATIAL,
    reader=True,
    removal="geometry and geography columns dropped",
    limits={
        Use.DROP: Limit(
            "geometry and geography columns dropped",
            "Cannot drop the geospatial table feature. Recreate the table or drop columns with geometry/geography types: {columns} and try "
            "again (table {table}).",
            "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
            InvalidRequest,
        ),
        Use.DEFAULT: Limit(
            "refused for a geometry",
            "COLUMN DEFAULT is not supported for data types: [{column}: {data_type}] (table {table}). Leave the default out.",
            "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
            InvalidRequest,
        ),
        Use.SPARK: Limit("reads, writes, from PySpark 4.2"),
        Use.CONNECT: Limit(
            "refused if a column is a geometry",
            "Geospatial types cannot pass through Spark's Python workers: column {columns}. Use a classic session after "
            "tahoe.enable(spark) and a store that Spark itself reads, or read and write without Spark (tahoe.Table), with values in "
            "Well-Known Binary.",
            "DELTA_GEOSPATIAL_NOT_SUPPORTED",
        ),
        Use.ICEBERG: Limit("shown if no column is a geometry"),
    },
)

_ROWS = (
    TableFeature(Feature.APPEND_ONLY, legacy=(1, 2), enabled_by_property="delta.appendOnly"),
    TableFeature(
        Feature.INVARIANTS,
        is_enforced=True,
        legacy=(1, 2),
        enabled_by_field=lambda field: "delta.invariants" in field.metadata or not field.nullable,
    ),
    TableFeature(
        Feature.CHECK_CONSTRAINTS,
        is_enforced=True,
        legacy=(1, 3),
        enabled_by_property=CONSTRAINT_PREFIX,
        removal="constraints dropped",
    ),
    TableFeature(Feature.CHANGE_DATA_FEED, legacy=(1, 4), enabled_by_property="delta.enableChangeDataFeed"),
    TableFeature(Feature.GENERATED_COLUMNS, is_enforced=True, legacy=(1, 4), enabled_by_field=_has(GENERATION_EXPRESSION)),
    TableFeature(
        Feature.COLUMN_MAPPING,
        reader=True,
        legacy=(2, 5),
        enabled_by_property="delta.columnMapping.mode",
        enabling_value=lambda mode: mode != "none",
        removal=_REWRITE,
    ),
    TableFeature(Feature.IDENTITY_COLUMNS, is_enforced=True, legacy=(1, 6), enabled_by_field=_has("delta.identity.")),
    TableFeature(
        Feature.DELETION_VECTORS, reader=True, enabled_by_property="delta.enableDeletionVectors", removal="vectors purged"
    ),
    TableFeature(
        Feature.V2_CHECKPOINT,
        reader=True,
        enabled_by_property="delta.checkpointPolicy",
        enabling_value=lambda policy: policy == "v2",
        removal="a classic checkpoint written",
    ),
    TableFeature(Feature.TIMESTAMP_NTZ, reader=True, types=_is("timestamp_ntz")),
    TableFeature(Feature.TIMESTAMP_WITHOUT_TIMEZONE, reader=True),
    TableFeature(Feature.VACUUM_PROTOCOL_CHECK, reader=True, removal=_PROPERTY_OFF),
    TableFeature(
        Feature.VARIANT_TYPE,
        reader=True,
        types=_is("variant"),
        is_added_by_field=True,
        earlier_name=Feature.VARIANT_TYPE_PREVIEW,
        limits=_VARIANT_LIMITS,
    ),
    TableFeature(Feature.VARIANT_TYPE_PREVIEW, reader=True, limits=_VARIANT_LIMITS),
    TableFeature(
        Feature.VARIANT_SHREDDING,
        reader=True,
        requires=(Feature.VARIANT_TYPE,),
        enabled_by_property="delta.enableVariantShredding",
        earlier_name=Feature.VARIANT_SHREDDING_PREVIEW,
        limits=_VARIANT_LIMITS,
    ),
    TableFeature(Feature.VARIANT_SHREDDING_PREVIEW, reader=True, limits=_VARIANT_LIMITS),
    TableFeature(
        Feature.TYPE_WIDENING,
        reader=True,
        enabled_by_property="delta.enableTypeWidening",
        earlier_name=Feature.TYPE_WIDENING_PREVIEW,
        removal=_REWRITE,
    ),
    TableFeature(Feature.TYPE_WIDENING_PREVIEW, reader=True, removal=_REWRITE),
    _CATALOG_MANAGED,
    replace(_CATALOG_MANAGED, name=Feature.CATALOG_OWNED_PREVIEW),
    replace(_GEOSPATIAL, types=is_geospatial, earlier_name=Feature.GEOSPATIAL_DEV),
    replace(_GEOSPATIAL, name=Feature.GEOSPATIAL_DEV),
    TableFeature(Feature.ADAPTIVE_METADATA_PREVIEW, reader=True, unsupported=_EVERYTHING),
    TableFeature(Feature.REDIRECT_READER_WRITER_PREVIEW, reader=True, removal=_PROPERTY_OFF, unsupported=_EVERYTHING),
    TableFeature(Feature.REDIRECT_WRITER_ONLY_PREVIEW, removal=_PROPERTY_OFF, unsupported=_WRITES),
    TableFeature(Feature.TIMESTAMP_NANOS, reader=True, unsupported=_EVERYTHING),
    TableFeature(Feature.DOMAIN_METADATA, removal="domains removed"),
    TableFeature(
        Feature.ROW_TRACKING,
        requires=(Feature.DOMAIN_METADATA,),
        enabled_by_property="delta.enableRowTracking",
        removal=_PROPERTY_OFF,
    ),
    TableFeature(
        Feature.CLUSTERING, requires=(Feature.DOMAIN_METADATA,), statement="CLUSTER BY", removal="clustering columns dropped"
    ),
    TableFeature(Feature.IN_COMMIT_TIMESTAMP, enabled_by_property="delta.enableInCommitTimestamps", removal=_PROPERTY_OFF),
    TableFeature(Feature.ALLOW_COLUMN_DEFAULTS, is_enforced=True),
    TableFeature(
        Feature.ICEBERG_COMPAT_V1,
        requires=(Feature.COLUMN_MAPPING,),
        forbids=(Feature.DELETION_VECTORS, Feature.ICEBERG_COMPAT_V2, Feature.ICEBERG_COMPAT_V3),
        enabled_by_property="delta.enableIcebergCompatV1",
    ),
    TableFeature(
        Feature.ICEBERG_COMPAT_V2,
        requires=(Feature.COLUMN_MAPPING,),
        forbids=(Feature.DELETION_VECTORS, Feature.ICEBERG_COMPAT_V1, Feature.ICEBERG_COMPAT_V3),
        enabled_by_property="delta.enableIcebergCompatV2",
    ),
    TableFeature(
        Feature.ICEBERG_COMPAT_V3,
        requires=(Feature.COLUMN_MAPPING, Feature.ROW_TRACKING),
        forbids=(Feature.ICEBERG_COMPAT_V1, Feature.ICEBERG_COMPAT_V2),
        enabled_by_property="delta.enableIcebergCompatV3",
    ),
    TableFeature(Feature.ICEBERG_WRITER_COMPAT_V1, unsupported=_WRITES),
    TableFeature(Feature.ICEBERG_WRITER_COMPAT_V3, unsupported=_WRITES),
    TableFeature(Feature.CHECKPOINT_PROTECTION, removal="history truncated"),
    TableFeature(
        Feature.MATERIALIZE_PARTITION_COLUMNS,
        enabled_by_property="delta.enableMaterializePartitionColumnsFeature",
        removal=_PROPERTY_OFF,
    ),
    TableFeature(
        Feature.COORDINATED_COMMITS_PREVIEW,
        requires=(Feature.IN_COMMIT_TIMESTAMP, Feature.VACUUM_PROTOCOL_CHECK),
        removal=_PROPERTY_OFF,
        unsupported=_WRITES,
    ),
    TableFeature(Feature.COLLATIONS, earlier_name=Feature.COLLATIONS_PREVIEW, unsupported=_WRITES),
    TableFeature(Feature.COLLATIONS_PREVIEW, unsupported=_WRITES),
)

FEATURES: Mapping[str, TableFeature] = {row.name: row for row in _ROWS}

ENFORCED = frozenset({row.name for row in _ROWS if row.is_enforced} | {"char/varchar"})
"""The table features that `tahoe.protocol.constraints.check`, `generated_values` and `column_values` enforce together, and the lengths of
``char`` and ``varchar``, which are not a table feature."""

COORDINATED = frozenset(row.name for row in _ROWS if row.is_coordinated)
"""Features of tables whose commits a coordinator ratifies; `check_coordinated` refuses such a table without a coordinator."""

ICEBERG_COMPAT = {1: Feature.ICEBERG_COMPAT_V1, 2: Feature.ICEBERG_COMPAT_V2, 3: Feature.ICEBERG_COMPAT_V3}
"""The IcebergCompat features by version."""


def feature_named(name: str) -> TableFeature | None:
    """Return the row of a feature, ignoring case, or None."""
    return FEATURES.get(name) or next((row for row in FEATURES.values() if row.name.lower() == name.lower()), None)


def check_columns(schema: StructType, use: Use, **facts: str) -> None:
    """Check the schema's columns as `TableFeature.check_columns` does, for each feature."""
    for row in _ROWS:
        row.check_columns(schema, use, **facts)
