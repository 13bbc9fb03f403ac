"""What a conversion starts from, and what it gives, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.exceptions import TahoeError
from tahoe.protocol.actions import Action
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

__all__ = ["Conversion", "DeltaSide", "ReadCommit"]

ReadCommit = Callable[[int], Sequence[Action]]


@dataclass(frozen=True, slots=True)
class DeltaSide:
    """The Delta side of a table: where it lies, and how its versions and commits are read.

    Args:
        snapshot_at: the table at a version; called without one, at the newest. Raises `NotFound` where the log no longer has it.
        read_commit: the actions of one commit; raises `NotFound` where the log no longer has it.
    """

    store: LogStore
    snapshot_at: Callable[..., Snapshot]
    read_commit: ReadCommit
    clock: Clock = SYSTEM_CLOCK

    @property
    def url(self) -> str:
        """The table's URL."""
        return self.store.url


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did.

    Args:
        kind: ``none`` (the version was converted already), ``incremental`` or ``full``.
        version: the Delta version that the Iceberg side now speaks of; at least the target's.
        reason: why all was built anew, for ``full``.
        catalog_errors: catalogs whose pointer was not moved in time, with the error; the metadata by path is there all the same.
    """

    kind: str
    version: int
    metadata_location: str
    snapshots: int = 0
    files_added: int = 0
    files_removed: int = 0
    reason: str | None = None
    catalog_errors: dict[str, TahoeError] = field(default_factory=dict)
