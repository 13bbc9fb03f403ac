"""The facts of a commit that its lineage shows."""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.protocol.actions import Metadata
from tahoe.txn.commit import Committed
from tahoe.txn.commit_summary import CommitSummary, summary_of


@dataclass(frozen=True, slots=True)
class LineageFacts:
    """A commit without its files, so that a waiting one needs little memory.

    Args:
        table: the table's URL.
        timestamp_ms: the time of the commit, in milliseconds since the epoch.
        transaction_id: the commit's ``txnId``.
        metadata: the table's metadata as of the commit.
        inputs: see `tahoe.txn.transaction.Transaction`.
    """

    table: str
    version: int
    timestamp_ms: int
    transaction_id: str
    summary: CommitSummary
    metadata: Metadata
    inputs: tuple[str, ...]


def facts_of(committed: Committed) -> LineageFacts:
    """Return the facts of a commit."""
    prepared = committed.prepared
    return LineageFacts(
        table=committed.snapshot.store.url,
        version=committed.version,
        timestamp_ms=prepared.timestamp,
        transaction_id=prepared.transaction_id,
        summary=summary_of(committed),
        metadata=committed.snapshot.metadata,
        inputs=prepared.inputs,
    )
