"""The features of a protocol: those that it supports, refuses and requires, and the protocol that supports a given set of features.

A feature that `tahoe.protocol.features` lists as unsupported is refused by name; so is an unlisted name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.base.wording import suggestion
from tahoe.protocol.actions import Protocol
from tahoe.protocol.features import COORDINATED, FEATURES, Use
from tahoe.protocol.properties import FEATURE_PREFIX
from tahoe.schema.types import StructField

if TYPE_CHECKING:
    from tahoe.store.log_store import LogStore


_NEWEST_READER, _NEWEST_WRITER = 3, 7


def features_of(protocol: Protocol) -> frozenset[str]:
    """Return all features that a protocol supports, including those implied by its version numbers."""
    implied = frozenset(
        row.name
        for row in FEATURES.values()
        if row.legacy
        and row.legacy[1] <= protocol.min_writer_version < _NEWEST_WRITER
        and (not row.reader or row.legacy[0] <= protocol.min_reader_version)
    )
    return implied | (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())


def check_readable(protocol: Protocol, table: str) -> None:
    """Raise `Unsupported` naming every reader feature that this version cannot read, and `CorruptTable` for a protocol that
    contradicts the specification. Unknown writer versions do not affect readers."""
    _check_versions(protocol, table, is_supported=1 <= protocol.min_reader_version <= _NEWEST_READER)
    _check_lists(protocol, table)
    if protocol.min_reader_version < _NEWEST_READER:
        return
    missing = sorted(name for name in protocol.reader_features or () if not _supports(name, Use.READ))
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
    _check_versions(protocol, table, is_supported=1 <= protocol.min_writer_version <= _NEWEST_WRITER)
    missing = sorted(name for name in features_of(protocol) if not _supports(name, Use.WRITE))
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


def upgraded(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """Return the weakest protocol that supports all of `protocol` and the features `features`, with the features that they require."""
    names = set(features_of(protocol))
    queue = list(features)
    while queue:
        name = queue.pop()
        if name not in FEATURES:
            raise InvalidRequest(
                f"There is no table feature '{name}'.{suggestion(name, FEATURES)} The features are: {', '.join(sorted(FEATURES))}.",
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
    earlier, later, supported = list(before), list(fields), features_of(protocol)
    missing = [
        row.name
        for row in FEATURES.values()
        if row.legacy is None and row.depends_on_schema and not row.is_added_by_field and supported.isdisjoint(row.names)
        if any(map(row.is_needed_by, later)) and not any(map(row.is_needed_by, earlier))
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
    return normalise((features_of(protocol) - {name}) | frozenset(adding), Protocol(1, 1))


def dependents_of(name: str, protocol: Protocol) -> list[str]:
    """Return the features of a protocol that require the feature `name`."""
    return sorted(other for other in features_of(protocol) if other in FEATURES and name in FEATURES[other].requires)


def normalise(names: frozenset[str], least: Protocol) -> Protocol:
    """Return the weakest protocol with exactly these features: version numbers alone if they imply exactly them, else lists of names.

    `least` gives the minimum version numbers of the result: a write never downgrades a table.
    """
    rows = [FEATURES[name] for name in names if name in FEATURES]
    if least.min_writer_version < _NEWEST_WRITER and len(rows) == len(names) and all(row.legacy for row in rows):
        reader = max([least.min_reader_version, *(row.legacy[0] for row in rows if row.legacy)])
        writer = max([least.min_writer_version, *(row.legacy[1] for row in rows if row.legacy)])
        candidate = Protocol(reader, writer)
        if features_of(candidate) == names:
            return candidate
    readers = frozenset(row.name for row in rows if row.reader) | (least.reader_features or frozenset())
    modern_reader = any(row.reader and row.legacy is None for row in rows) or least.min_reader_version == _NEWEST_READER
    if modern_reader:
        return Protocol(_NEWEST_READER, _NEWEST_WRITER, readers, names)
    reader = max([least.min_reader_version, *(row.legacy[0] for row in rows if row.reader and row.legacy)])
    return Protocol(reader, _NEWEST_WRITER, None, names)


def _supports(name: str, use: Use) -> bool:
    return name in FEATURES and FEATURES[name].supports(use)


def _check_versions(protocol: Protocol, table: str, *, is_supported: bool) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if not is_supported:
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
