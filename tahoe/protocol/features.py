"""Table features, one row each (PROTOCOL.md, "Valid Feature Names in Table Features" and each feature's section).

Code queries the table: the features that a protocol implies, those that a table's metadata activates, those that this version can read
and write. A feature whose row says that Tahoe cannot read or write it is refused by name; so is a name without a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.protocol.actions import Protocol
from tahoe.protocol.properties import FEATURE_PREFIX, TableProperties
from tahoe.schema.types import StructField, is_geospatial
from tahoe.schema.walk import primitives

if TYPE_CHECKING:
    from tahoe.store.log_store import LogStore

__all__ = [
    "COORDINATED",
    "FEATURES",
    "TableFeature",
    "check_coordinated",
    "check_readable",
    "check_types_supported",
    "check_writable",
    "dependents_of",
    "feature_named",
    "first_name_of",
    "features_of",
    "normalise",
    "upgraded",
    "without_feature",
]


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One row of the table: the properties of a feature.

    Args:
        name: as in ``readerFeatures`` and ``writerFeatures``.
        reader: readers must understand it too.
        legacy: the (reader, writer) versions that imply it without a list, or None.
        requires: features that must be supported with it.
        forbids: features that may not be active beside it.
        wanted_by_property: the table property that enables it; a final ``.`` matches all properties with that prefix.
        wanting: the values of that property that enable it, as `TableProperties.get` returns them.
        wanted_by_field: whether a field of the schema, at any depth, needs it.
        joins_by_field: whether such a field, added to an existing table, enables the feature. Otherwise it has to be enabled first.
        removal: the steps of DROP FEATURE before the name may leave the protocol; None if the specification and the reference
            have no way back. The steps are implemented in `tahoe.ops.features.removals`.
        readable, writable: whether this version of Tahoe reads and writes tables that have it. If a writer need only refuse some
            operations, `writable` is True and `tahoe.protocol.config` checks whether the feature is in use.
    """

    name: str
    reader: bool = False
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    wanted_by_property: str | None = None
    wanting: Callable[[Any], bool] = bool
    wanted_by_field: Callable[[StructField], bool] | None = None
    joins_by_field: bool = False
    removal: str | None = None
    readable: bool = True
    writable: bool = True

    def is_wanted_by(self, properties: TableProperties, fields: Iterable[StructField]) -> bool:
        """Whether a table's properties or schema need the feature.

        Args:
            fields: of the schema, at any depth (`tahoe.schema.walk.all_fields`).
        """
        key, by_field = self.wanted_by_property, self.wanted_by_field
        if key is not None and key.endswith("."):
            if any(name.lower().startswith(key) for name in properties.configuration):
                return True
        elif key is not None and self.wanting(properties.get(key)):
            return True
        return by_field is not None and any(by_field(field) for field in fields)


def _has(*keys: str) -> Callable[[StructField], bool]:
    """Whether a field's metadata has one of the keys; a final ``.`` matches all keys with that prefix."""
    return lambda field: any(
        any(name == key or (key.endswith(".") and name.startswith(key)) for key in keys) for name in field.metadata
    )


def _is_of(type_name: str) -> Callable[[StructField], bool]:
    return lambda field: any(part.name == type_name for part in primitives(field.data_type))


_REWRITE = "files rewritten"
_PROPERTY_OFF = "property unset"

_ROWS = (
    TableFeature("appendOnly", legacy=(1, 2), wanted_by_property="delta.appendOnly"),
    TableFeature(
        "invariants", legacy=(1, 2), wanted_by_field=lambda field: "delta.invariants" in field.metadata or not field.nullable
    ),
    TableFeature("checkConstraints", legacy=(1, 3), wanted_by_property="delta.constraints.", removal="constraints dropped"),
    TableFeature("changeDataFeed", legacy=(1, 4), wanted_by_property="delta.enableChangeDataFeed"),
    TableFeature("generatedColumns", legacy=(1, 4), wanted_by_field=_has("delta.generationExpression")),
    TableFeature(
        "columnMapping",
        reader=True,
        legacy=(2, 5),
        wanted_by_property="delta.columnMapping.mode",
        wanting=lambda mode: mode != "none",
        removal=_REWRITE,
    ),
    TableFeature("identityColumns", legacy=(1, 6), wanted_by_field=_has("delta.identity.")),
    TableFeature("deletionVectors", reader=True, wanted_by_property="delta.enableDeletionVectors", removal="vectors purged"),
    TableFeature(
        "v2Checkpoint",
        reader=True,
        wanted_by_property="delta.checkpointPolicy",
        wanting=lambda policy: policy == "v2",
        removal="a classic checkpoint written",
    ),
    TableFeature("timestampNtz", reader=True, wanted_by_field=_is_of("timestamp_ntz")),
    TableFeature("timestampWithoutTimezone", reader=True),
    TableFeature("vacuumProtocolCheck", reader=True, removal=_PROPERTY_OFF),
    TableFeature("variantType", reader=True, wanted_by_field=_is_of("variant"), joins_by_field=True),
    TableFeature("variantType-preview", reader=True),
    TableFeature("variantShredding", reader=True, requires=("variantType",), wanted_by_property="delta.enableVariantShredding"),
    TableFeature("variantShredding-preview", reader=True),
    TableFeature("typeWidening", reader=True, wanted_by_property="delta.enableTypeWidening", removal=_REWRITE),
    TableFeature("typeWidening-preview", reader=True, removal=_REWRITE),
    TableFeature("catalogManaged", reader=True, requires=("inCommitTimestamp", "vacuumProtocolCheck")),
    TableFeature("catalogOwned-preview", reader=True, requires=("inCommitTimestamp", "vacuumProtocolCheck")),
    TableFeature(
        "geospatial",
        reader=True,
        wanted_by_field=lambda field: any(map(is_geospatial, primitives(field.data_type))),
        removal="geometry and geography columns dropped",
    ),
    TableFeature("geospatial-dev", reader=True, removal="geometry and geography columns dropped"),
    TableFeature("adaptiveMetadata-preview", reader=True, readable=False, writable=False),
    TableFeature("redirectReaderWriter-preview", reader=True, removal=_PROPERTY_OFF, readable=False, writable=False),
    TableFeature("redirectWriterOnly-preview", removal=_PROPERTY_OFF, writable=False),
    TableFeature("timestampNanos", reader=True, readable=False, writable=False),
    TableFeature("domainMetadata", removal="domains removed"),
    TableFeature(
        "rowTracking", requires=("domainMetadata",), wanted_by_property="delta.enableRowTracking", removal=_PROPERTY_OFF
    ),
    TableFeature("clustering", requires=("domainMetadata",), removal="clustering columns dropped"),
    TableFeature("inCommitTimestamp", wanted_by_property="delta.enableInCommitTimestamps", removal=_PROPERTY_OFF),
    TableFeature("allowColumnDefaults"),
    TableFeature(
        "icebergCompatV1",
        requires=("columnMapping",),
        forbids=("deletionVectors", "icebergCompatV2", "icebergCompatV3"),
        wanted_by_property="delta.enableIcebergCompatV1",
    ),
    TableFeature(
        "icebergCompatV2",
        requires=("columnMapping",),
        forbids=("deletionVectors", "icebergCompatV1", "icebergCompatV3"),
        wanted_by_property="delta.enableIcebergCompatV2",
    ),
    TableFeature(
        "icebergCompatV3",
        requires=("columnMapping", "rowTracking"),
        forbids=("icebergCompatV1", "icebergCompatV2"),
        wanted_by_property="delta.enableIcebergCompatV3",
    ),
    TableFeature("icebergWriterCompatV1", writable=False),
    TableFeature("icebergWriterCompatV3", writable=False),
    TableFeature("checkpointProtection", removal="history truncated"),
    TableFeature(
        "materializePartitionColumns",
        wanted_by_property="delta.enableMaterializePartitionColumnsFeature",
        removal=_PROPERTY_OFF,
    ),
    TableFeature(
        "coordinatedCommits-preview",
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        removal=_PROPERTY_OFF,
        writable=False,
    ),
    TableFeature("collations", writable=False),
    TableFeature("collations-preview", writable=False),
)

FEATURES: Mapping[str, TableFeature] = {row.name: row for row in _ROWS}

COORDINATED = frozenset({"catalogManaged", "catalogOwned-preview"})
"""Features of tables whose commits a coordinator ratifies; `check_coordinated` refuses such a table without a coordinator."""

_NEWEST_READER, _NEWEST_WRITER = 3, 7


def features_of(protocol: Protocol) -> frozenset[str]:
    """Return all features that a protocol supports, including those implied by its version numbers."""
    implied = frozenset(
        row.name
        for row in _ROWS
        if row.legacy
        and row.legacy[1] <= protocol.min_writer_version < _NEWEST_WRITER
        and (not row.reader or row.legacy[0] <= protocol.min_reader_version)
    )
    return implied | (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())


def check_readable(protocol: Protocol, table: str) -> None:
    """Raise `Unsupported` naming every reader feature that this version cannot read, and `CorruptTable` for a protocol that
    contradicts the specification. Unknown writer versions do not affect readers."""
    _check_versions(protocol, table, known=1 <= protocol.min_reader_version <= _NEWEST_READER)
    _check_lists(protocol, table)
    if protocol.min_reader_version < _NEWEST_READER:
        return
    missing = sorted(name for name in protocol.reader_features or () if not _can(name, "readable"))
    if missing:
        raise Unsupported(
            f"Table {table} needs reader features that this version of Tahoe does not have: {', '.join(missing)}. "
            "Upgrade Tahoe, or drop the features from the table with a writer that knows them.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            table=table,
            features=missing,
        )


def check_writable(protocol: Protocol, table: str) -> None:
    """Raise `Unsupported` naming every feature that this version cannot write."""
    check_readable(protocol, table)
    _check_versions(protocol, table, known=1 <= protocol.min_writer_version <= _NEWEST_WRITER)
    missing = sorted(name for name in features_of(protocol) if not _can(name, "writable"))
    if missing:
        raise Unsupported(
            f"Table {table} needs writer features that this version of Tahoe does not have: {', '.join(missing)}. "
            "Upgrade Tahoe, write with a client that knows them, or drop the features from the table.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            table=table,
            features=missing,
        )


def check_coordinated(protocol: Protocol, store: LogStore) -> None:
    """Raise `Unsupported` if a coordinator decides which commits the table has, and `store` does not query one that knows the table: its
    folder may be out of date (PROTOCOL.md, "Reader Requirements for Catalog-managed tables"). Other tables cost no request."""
    names = sorted(features_of(protocol) & COORDINATED)
    if not names or store.coordination == "in force":
        return
    missing = (
        "and no coordinator was named. Name it: tahoe.Table(path, coordinator=tahoe.SqlCoordinator(…)), or on Spark "
        "tahoe.enable(spark, coordinator=…), or for the command line TAHOE_COORDINATOR."
        if store.coordination == "none"
        else f"and the one that was named, {getattr(store, 'coordinator', None)!r}, does not know it. Name the one that it was made with."
    )
    raise Unsupported(
        f"Table {store.url} has the feature {', '.join(names)}: a coordinator says which commits it has, {missing}",
        code="DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        table=store.url,
        features=names,
    )


def upgraded(protocol: Protocol, wanted: Iterable[str]) -> Protocol:
    """Return the weakest protocol that supports all of `protocol` and the features `wanted`, with the features that they require."""
    names = set(features_of(protocol))
    queue = list(wanted)
    while queue:
        name = queue.pop()
        if name not in FEATURES:
            raise InvalidRequest(
                f"There is no table feature '{name}'; the features are: {', '.join(sorted(FEATURES))}.",
                code="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
                feature=name,
            )
        if name not in names:
            names.add(name)
        queue += [needed for needed in FEATURES[name].requires if needed not in names]
    least = normalise(frozenset(names), protocol)
    return protocol if features_of(least) == features_of(protocol) else least


def check_types_supported(before: Iterable[StructField], fields: Iterable[StructField], protocol: Protocol, table: str) -> None:
    """Refuse a column type that would exclude current readers of the table. A new table may have the type; for an existing table the feature
    must be enabled explicitly, as in the reference.

    Args:
        before, fields: of the schemas as it is and as it will be, at any depth.

    Raises:
        InvalidRequest: ``DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT``.
    """
    earlier, later, known = list(before), list(fields), features_of(protocol)
    asks = [
        (row.name, row.wanted_by_field)
        for row in _ROWS
        if row.legacy is None and row.wanted_by_field is not None and not row.joins_by_field
    ]
    missing = [
        name
        for name, by_field in asks
        if not {name, first_name_of(name)} & known and any(map(by_field, later)) and not any(map(by_field, earlier))
    ]
    if missing:
        properties = ", ".join(f"'{FEATURE_PREFIX}{name}' = 'supported'" for name in missing)
        raise InvalidRequest(
            f"Your table schema requires manually enablement of the following table feature(s): {', '.join(missing)}. Clients that do not "
            f"know them will not read table {table} any more. Run ALTER TABLE … SET TBLPROPERTIES ({properties}) first (Table.add_feature).",
            code="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            table=table,
            features=missing,
        )


def without_feature(protocol: Protocol, name: str, *, adding: Iterable[str] = ()) -> Protocol:
    """Return the weakest protocol with the features of `protocol` except `name`, and those in `adding` (PROTOCOL.md, "Table Features").

    Version numbers that imply the feature become lists of names; lists that are no longer needed become version numbers.
    """
    kept = (features_of(protocol) - {name}) | frozenset(adding)
    return normalise(kept, Protocol(1, 1))


def feature_named(name: str) -> TableFeature | None:
    """Return the row of a feature, ignoring case, or None."""
    return FEATURES.get(name) or next((row for row in _ROWS if row.name.lower() == name.lower()), None)


def first_name_of(name: str) -> str:
    """Return the feature's name before it was final. A table with that name keeps it, for clients that know only that name."""
    return "geospatial-dev" if name == "geospatial" else f"{name}-preview"


def dependents_of(name: str, protocol: Protocol) -> list[str]:
    """Return the features of a protocol that require the feature `name`."""
    return sorted(other for other in features_of(protocol) if other in FEATURES and name in FEATURES[other].requires)


def normalise(names: frozenset[str], least: Protocol) -> Protocol:
    """Return the weakest protocol with exactly these features: version numbers alone if they imply exactly them, else lists of names.

    `least` gives the minimum version numbers of the result: a write never downgrades a table.
    """
    known = [FEATURES[name] for name in names if name in FEATURES]
    if least.min_writer_version < _NEWEST_WRITER and len(known) == len(names) and all(row.legacy for row in known):
        reader = max([least.min_reader_version, *(row.legacy[0] for row in known if row.legacy)])
        writer = max([least.min_writer_version, *(row.legacy[1] for row in known if row.legacy)])
        candidate = Protocol(reader, writer)
        if features_of(candidate) == names:
            return candidate
    readers = frozenset(row.name for row in known if row.reader) | (least.reader_features or frozenset())
    modern_reader = any(row.reader and row.legacy is None for row in known) or least.min_reader_version == _NEWEST_READER
    if modern_reader:
        return Protocol(_NEWEST_READER, _NEWEST_WRITER, readers, names)
    reader = max([least.min_reader_version, *(row.legacy[0] for row in known if row.reader and row.legacy)])
    return Protocol(reader, _NEWEST_WRITER, None, names)


def _can(name: str, what: str) -> bool:
    row = FEATURES.get(name)
    return row is not None and bool(getattr(row, what))


def _check_versions(protocol: Protocol, table: str, *, known: bool) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if not known:
        raise Unsupported(
            f"Table {table} has protocol ({reader}, {writer}); this version of Tahoe knows readers up to {_NEWEST_READER} and "
            f"writers up to {_NEWEST_WRITER}. Upgrade Tahoe.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
            table=table,
        )


def _check_lists(protocol: Protocol, table: str) -> None:
    reader, writer, listed = protocol.min_reader_version, protocol.min_writer_version, protocol.reader_features
    if (reader == _NEWEST_READER and listed is None) or (reader < _NEWEST_READER and listed):
        raise CorruptTable(
            f"Table {table} has reader version {reader} "
            + ("without a readerFeatures list" if reader == _NEWEST_READER else "with a readerFeatures list")
            + "; the specification allows the list with reader version 3 only, and demands it there. Repair the protocol action.",
            code="TAHOE_CORRUPT_PROTOCOL",
            table=table,
        )
    if writer == _NEWEST_WRITER and protocol.writer_features is None:
        raise CorruptTable(
            f"Table {table} has writer version 7 without a writerFeatures list, which the specification demands. "
            "Repair the protocol action.",
            code="TAHOE_CORRUPT_PROTOCOL",
            table=table,
        )
    unlisted = sorted((protocol.reader_features or frozenset()) - (protocol.writer_features or frozenset()))
    if unlisted:
        raise CorruptTable(
            f"Table {table} lists reader features that its writerFeatures lack: {', '.join(unlisted)}. Repair the protocol action.",
            code="TAHOE_CORRUPT_PROTOCOL",
            table=table,
        )
