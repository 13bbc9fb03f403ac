"""Requirements on commits to a table with a coordinator (PROTOCOL.md, "Writer Requirements for Catalog-managed tables").

Every `commitInfo` that Tahoe writes contains the required `txnId`.
"""

from __future__ import annotations

from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import COORDINATED
from tahoe.protocol.protocols import check_coordinated, features_of
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

_ENABLED = "delta.enableInCommitTimestamps"
TIMESTAMP_PROPERTIES = (
    _ENABLED,
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""Properties that such a table retains: the publication time of a commit is not its commit time."""


def with_timestamps(snapshot: Snapshot | None, protocol: Protocol, metadata: Metadata) -> Metadata:
    """Return the metadata with in-commit timestamps enabled if the protocol has a coordinator's feature.

    Operations that replace the properties, such as REPLACE and RESTORE, retain their enablement version and time.

    Raises:
        InvalidRequest: ``DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES`` if they are to be disabled.
    """
    if not features_of(protocol) & COORDINATED:
        return metadata
    requested = {key.lower(): value for key, value in metadata.configuration.items()}.get(_ENABLED.lower())
    if requested is not None and requested.lower() == "true":
        return metadata
    if requested is not None:
        raise InvalidRequest(
            f"{_ENABLED} = {requested} is not allowed: a table with a commit coordinator requires in-commit timestamps. Omit it.",
            code="DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
            property=_ENABLED,
        )
    before = {} if snapshot is None else snapshot.metadata.configuration
    was_on = before.get(_ENABLED, "").lower() == "true"
    retained = {key: before[key] for key in TIMESTAMP_PROPERTIES if was_on and key in before}
    return replace(metadata, configuration={**metadata.configuration, _ENABLED: "true", **retained})


def check_put_under_coordinator(store: LogStore, snapshot: Snapshot | None, config: TableConfig) -> None:
    """Raise `InvalidRequest` if a commit would put a table under a coordinator but none is configured."""
    if snapshot is not None and snapshot.config.features & COORDINATED:
        # It may have been dropped, or moved, since it was read: a commit by its name would be unratified.
        check_coordinated(snapshot.protocol, store)
        return
    if not config.features & COORDINATED or store.coordination != "none":
        return
    names = ", ".join(sorted(config.features & COORDINATED))
    raise InvalidRequest(
        f"Table {config.table} cannot have the feature {names}: it requires a commit coordinator, and none is configured. "
        "Configure one: tahoe.Table(path, coordinator=tahoe.SqlCoordinator(…)), or on Spark "
        "tahoe.enable(spark, coordinator=…); or omit the feature.",
        code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION",
        table=config.table,
    )
