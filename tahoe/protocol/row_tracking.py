"""Row tracking: the row ids and row commit versions of the files of a commit (PROTOCOL.md, "Row Tracking").

    actions of a commit ──assigned──► the same, each new file with ``baseRowId`` and ``defaultRowCommitVersion``
                                      and the domain ``delta.rowTracking`` if the high-water mark has risen

Ids are assigned when a commit is encoded, from the high-water mark and the version that it attempts to write, so a commit that loses
a race gets new ids and nothing has to be undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.protocol.actions import Action, AddFile, DomainMetadata
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.protocol.properties import TableProperties

DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
MATERIALIZED_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
# Iceberg's reserved ids of the same two columns (Iceberg's format/spec.md, "Reserved Field IDs"); IcebergCompatV3 requires them.
ROW_ID_FIELD_ID, ROW_COMMIT_VERSION_FIELD_ID = 2147483540, 2147483539
# The tag of commitInfo that records whether rows kept their ids.
PRESERVED = "delta.rowTracking.preserved"
# The high-water mark of a table without row ids.
NO_ROW_IDS = -1
_MARK = "rowIdHighWaterMark"


@dataclass(frozen=True, slots=True)
class MaterializedColumns:
    """The names, in data files, of the columns that contain preserved row ids and versions."""

    row_id: str
    row_commit_version: str


def assigns_row_ids(config: TableConfig) -> bool:
    """Whether writers must assign ids: row tracking is supported and not suspended."""
    return Feature.ROW_TRACKING in config.features and not config.properties.get(SUSPENDED)


def has_row_tracking(config: TableConfig) -> bool:
    """Whether row tracking is enabled: every row has an id, and copied or changed rows keep theirs."""
    return config.is_active(Feature.ROW_TRACKING)


def materialized_columns(config: TableConfig) -> MaterializedColumns | None:
    """Return the names of the columns with row ids in data files; None if row tracking is not enabled."""
    if not has_row_tracking(config):
        return None
    names = [config.properties.get(key) for key in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)]
    if None in names:
        raise CorruptTable(
            f"Table {config.table} has {ENABLED} = true without {MATERIALIZED_ROW_ID} and {MATERIALIZED_ROW_COMMIT_VERSION}, which "
            "the specification demands. Unset the property, and set it again.",
            code="DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING",
            table=config.table,
        )
    return MaterializedColumns(*names)


def with_materialized_columns(configuration: Mapping[str, str], clock: Clock) -> dict[str, str]:
    """Return a table's properties, with names for the materialized columns if row tracking is enabled and they have none.

    Raises `InvalidRequest` if row tracking is both enabled and suspended.
    """
    properties = TableProperties(configuration)
    if not properties.get(ENABLED):
        return dict(configuration)
    if properties.get(SUSPENDED):
        raise InvalidRequest(
            f"{ENABLED} and {SUSPENDED} cannot both be true. Set {SUSPENDED} to false to enable row tracking.",
            code="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            property=SUSPENDED,
        )
    # Spelled like the reference's, so that they are not mistaken for user columns.
    prefixes = {MATERIALIZED_ROW_ID: "_row-id-col-", MATERIALIZED_ROW_COMMIT_VERSION: "_row-commit-version-col-"}
    named = {key: prefix + clock.uuid() for key, prefix in prefixes.items() if properties.get(key) is None}
    return {**configuration, **named}


def high_water_mark(domains: Mapping[str, DomainMetadata] | Iterable[Action]) -> int | None:
    """Return the highest row id assigned so far, from a table's domains or a commit's actions; None if they do not contain it.

    Raises `CorruptTable` if the domain is corrupt.
    """
    if isinstance(domains, Mapping):
        domain = domains.get(DOMAIN)
    else:
        domain = next((a for a in domains if isinstance(a, DomainMetadata) and a.domain == DOMAIN), None)
    if domain is None or domain.removed:
        return None
    try:
        return int(json.loads(domain.configuration)[_MARK])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"The metadata domain {DOMAIN} must contain a number '{_MARK}', found {domain.configuration!r}. Repair the domainMetadata "
            "action, with a number that is no lower than any row id of the table.",
            code="TAHOE_CORRUPT_ROW_TRACKING",
            domain=DOMAIN,
        ) from error


def assigned(actions: Iterable[Action], mark: int, version: int, table: str) -> tuple[Action, ...]:
    """Return the actions of a commit with row ids and row commit versions for files that have none.

    Files that were in the table before keep theirs.

    Args:
        mark: the high-water mark of the version before this one; `NO_ROW_IDS` if there is none.
        version: the version that the commit attempts to write.

    Returns:
        The actions, after the new high-water mark if it has risen.

    Raises:
        Unsupported: a new file has no count of records.
    """
    highest = mark
    with_ids: list[Action] = []
    for action in actions:
        if isinstance(action, AddFile) and (action.base_row_id is None or action.default_row_commit_version is None):
            base = action.base_row_id
            if base is None:
                base, highest = highest + 1, highest + _num_records(action, table)
            commit_version = version if action.default_row_commit_version is None else action.default_row_commit_version
            action = replace(action, base_row_id=base, default_row_commit_version=commit_version)
        with_ids.append(action)
    if highest == mark:
        return tuple(with_ids)
    others = (action for action in with_ids if not (isinstance(action, DomainMetadata) and action.domain == DOMAIN))
    return (row_id_domain(highest), *others)


def row_id_domain(mark: int) -> DomainMetadata:
    """Return the metadata domain with the highest row id assigned so far."""
    return DomainMetadata(DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))


def _num_records(add: AddFile, table: str) -> int:
    """Return the number of physical rows, including those that a deletion vector removes: each position has its id."""
    if add.num_records is None:
        raise Unsupported(
            f"Table {table} tracks rows, and file {add.path} has no numRecords in its statistics, so its rows cannot be given ids. "
            "Write the file with statistics.",
            code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            table=table,
            file=add.path,
        )
    return add.num_records
