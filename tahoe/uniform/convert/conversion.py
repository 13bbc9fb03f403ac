"""The input and the result of a conversion, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.base.exceptions import TahoeError
from tahoe.protocol.actions import Action
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

ReadCommit = Callable[[int], Sequence[Action]]


@dataclass(frozen=True, slots=True)
class DeltaSide:
    """The Delta side of a table: its store, versions and commits.

    Args:
        snapshot_at: returns the table at a version, or at the newest without argument. Raises `NotFound` if the log no longer has it.
        read_commit: returns the actions of one commit. Raises `NotFound` if the log no longer has it.
        metadata_store: the storage of the Iceberg metadata; None if it is in the table's own folder.
    """

    store: LogStore
    snapshot_at: Callable[..., Snapshot]
    read_commit: ReadCommit
    clock: Clock = SYSTEM_CLOCK
    metadata_store: LogStore | None = None

    @property
    def iceberg_store(self) -> LogStore:
        """The storage of the Iceberg metadata, and of the record of conversions."""
        return self.store if self.metadata_store is None else self.metadata_store

    @property
    def url(self) -> str:
        """The table's URL."""
        return self.store.url


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a conversion.

    Args:
        kind: ``none`` (the version was already converted), ``incremental`` or ``full``.
        version: the Delta version that the Iceberg side now shows; at least the target's.
        reason: why everything was rebuilt, for ``full``.
        catalog_errors: errors of catalogs whose pointer was not moved in time; readers by path see the metadata nevertheless.
    """

    kind: str
    version: int
    metadata_location: str
    snapshots: int = 0
    files_added: int = 0
    files_removed: int = 0
    reason: str | None = None
    catalog_errors: dict[str, TahoeError] = field(default_factory=dict)
