"""`TableState`: the state of a version except its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tahoe.protocol.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a version except its files.

    Args:
        transactions: the newest of each application.
        domains: by name, without removed ones.
        in_commit_timestamp: of the version's own commit, in milliseconds since the epoch; None if that commit records none,
            or was not read because a checkpoint or a compaction replaced it.
        transaction_id: `commitInfo.txnId` of the version's own commit; None likewise.
    """

    protocol: Protocol
    metadata: Metadata
    transactions: Mapping[str, SetTransaction]
    domains: Mapping[str, DomainMetadata]
    in_commit_timestamp: int | None = None
    transaction_id: str | None = None


def advance_state(state: TableState, actions: Iterable[Action]) -> TableState:
    """Return the state after the actions of one or more further commits, oldest first; nothing is read."""
    transactions, domains = dict(state.transactions), dict(state.domains)
    protocol, metadata = state.protocol, state.metadata
    in_commit_timestamp: int | None = None
    transaction_id: str | None = None
    for action in actions:
        match action:
            case Protocol():
                protocol = action
            case Metadata():
                metadata = action
            case SetTransaction():
                transactions[action.app_id] = action
            case DomainMetadata():
                domains[action.domain] = action
            case CommitInfo():
                in_commit_timestamp, transaction_id = action.in_commit_timestamp, action.transaction_id
    live = {name: domain for name, domain in domains.items() if not domain.removed}
    return TableState(protocol, metadata, transactions, live, in_commit_timestamp, transaction_id)
