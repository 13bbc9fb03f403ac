"""What a commit must bring to a table whose commits a coordinator ratifies (PROTOCOL.md, "Writer Requirements for Catalog-managed tables").

The `txnId` that is demanded too stands in every `commitInfo` that Tahoe writes.
"""

from __future__ import annotations

from dataclasses import replace

from tahoe.exceptions import InvalidRequest
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import COORDINATED, check_coordinated, features_of
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

__all__ = ["TIMESTAMP_PROPERTIES", "check_put_under_coordinator", "with_timestamps"]

_ENABLED = "delta.enableInCommitTimestamps"
TIMESTAMP_PROPERTIES = (
    _ENABLED,
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""Properties that such a table keeps: when a commit was published says nothing of when it was made."""


def with_timestamps(snapshot: Snapshot | None, protocol: Protocol, metadata: Metadata) -> Metadata:
    """The metadata with in-commit timestamps turned on where the protocol has a coordinator's feature.

    Whatever brings other properties, as REPLACE and RESTORE do, the table keeps since when it has them.

    Raises:
        InvalidRequest: ``DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES`` where they are to be off.
    """
    if not features_of(protocol) & COORDINATED:
        return metadata
    asked = {key.lower(): value for key, value in metadata.configuration.items()}.get(_ENABLED.lower())
    if asked is not None and asked.lower() == "true":
        return metadata
    if asked is not None:
        raise InvalidRequest(
            f"{_ENABLED} = {asked} cannot be: where a coordinator ratifies a table's commits, their times stand in them. Leave it out.",
            code="DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
            property=_ENABLED,
        )
    before = {} if snapshot is None else snapshot.metadata.configuration
    was_on = before.get(_ENABLED, "").lower() == "true"
    kept = {key: before[key] for key in TIMESTAMP_PROPERTIES if was_on and key in before}
    return replace(metadata, configuration={**metadata.configuration, _ENABLED: "true", **kept})


def check_put_under_coordinator(store: LogStore, snapshot: Snapshot | None, config: TableConfig) -> None:
    """Raises `InvalidRequest` where a commit would put a table under a coordinator, and none was named."""
    if snapshot is not None and snapshot.config.features & COORDINATED:
        # It may have been dropped, or moved away, since it was read: a commit by its name would be one that nobody ratified.
        check_coordinated(snapshot.protocol, store)
        return
    if not config.features & COORDINATED or store.coordination != "none":
        return
    names = ", ".join(sorted(config.features & COORDINATED))
    raise InvalidRequest(
        f"Table {config.table} cannot have the feature {names}: a coordinator would say which commits it has, and none was named. "
        "Name one: tahoe.Table(path, coordinator=tahoe.SqlCoordinator(…)), or on Spark "
        "tahoe.enable(spark, coordinator=…); or leave the feature out.",
        code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION",
        table=config.table,
    )
