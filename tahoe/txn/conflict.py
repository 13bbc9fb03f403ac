"""Whether a commit may be moved past one that won its version: pure, in the reference's order, cheap checks first.

Sources: PROTOCOL.md says nothing of conflicts; the order and the classes are the reference's conflict checker's.
Each reason is its own error, naming the winner's version and operation, and what would avoid it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tahoe.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from tahoe.log.replay import files_table
from tahoe.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.protocol.features import check_writable, features_of
from tahoe.protocol.skipping import keep
from tahoe.txn.prepare import SNAPSHOT_ISOLATION, PreparedCommit

__all__ = ["Winner", "rebase"]


@dataclass(frozen=True)
class Winner:
    """A commit that took the version that another wanted."""

    version: int
    actions: tuple[Action, ...]

    @cached_property
    def info(self) -> CommitInfo:
        return next((a for a in self.actions if isinstance(a, CommitInfo)), CommitInfo({}))

    @property
    def operation(self) -> str:
        return str(self.info.values.get("operation", "an unnamed operation"))

    @cached_property
    def adds(self) -> list[AddFile]:
        return [a for a in self.actions if isinstance(a, AddFile)]

    @cached_property
    def removes(self) -> list[RemoveFile]:
        return [a for a in self.actions if isinstance(a, RemoveFile)]


def rebase(mine: PreparedCommit, winners: Sequence[Winner], now_ms: int) -> PreparedCommit | DeltaConcurrentModificationException:
    """The commit for the version after the last winner, or the conflict that forbids it, as a value.

    Args:
        winners: every commit since `mine.version`, oldest first, without a gap.
        now_ms: the clock's time, for the in-commit timestamp.
    """
    for winner in winners:
        for conflict in _conflicts(mine, winner):
            return conflict
    timestamp = max([mine.timestamp, now_ms, *(w.info.in_commit_timestamp + 1 for w in winners if w.info.in_commit_timestamp)])
    return replace(mine, version=winners[-1].version + 1, timestamp=timestamp)


def _conflicts(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    yield from _first_commit(mine, winner)
    yield from _protocol(mine, winner)
    yield from _metadata(mine, winner)
    yield from _domains(mine, winner)
    yield from _applications(mine, winner)
    yield from _added(mine, winner)
    yield from _removed_that_was_read(mine, winner)
    yield from _removed_twice(mine, winner)


def _first_commit(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    if mine.snapshot is None:
        yield ProtocolChangedException(
            f"Table {mine.config.table} was created by another writer ({_told(winner)}) while this one was creating it. "
            "Read the table again and append to it.",
            **_facts(mine, winner),
        )


def _protocol(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    theirs = next((a for a in winner.actions if isinstance(a, Protocol)), None)
    if theirs is None:
        return
    check_writable(theirs, mine.config.table)
    dropped = mine.snapshot is not None and not features_of(mine.snapshot.protocol) <= features_of(theirs)
    if mine.changes_protocol or dropped:
        yield ProtocolChangedException(
            f"The protocol of table {mine.config.table} was changed by {_told(winner)}. Run the operation again.",
            **_facts(mine, winner),
        )


def _metadata(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    if any(isinstance(a, Metadata) for a in winner.actions):
        yield MetadataChangedException(
            f"The schema or the properties of table {mine.config.table} were changed by {_told(winner)}. "
            "Read the table again and run the operation again.",
            **_facts(mine, winner),
        )


def _domains(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    theirs = {a.domain for a in winner.actions if isinstance(a, DomainMetadata)}
    for action in mine.actions:
        if isinstance(action, DomainMetadata) and action.domain in theirs:
            yield ConcurrentTransactionException(
                f"The metadata domain '{action.domain}' of table {mine.config.table} was changed by {_told(winner)} too. "
                "Run the operation again.",
                **_facts(mine, winner, domain=action.domain),
            )


def _applications(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    for action in winner.actions:
        if isinstance(action, SetTransaction) and action.app_id in mine.reads.app_ids:
            yield ConcurrentTransactionException(
                f"Application '{action.app_id}' has written its version {action.version} to table {mine.config.table} with "
                f"{_told(winner)}. Two writers use one application id: stop one of them, or run again to skip what is there.",
                **_facts(mine, winner, app_id=action.app_id),
            )


def _added(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    if mine.isolation_level == SNAPSHOT_ISOLATION or not winner.adds:
        return
    met = winner.adds[0] if mine.reads.whole_table else _first_met(mine, winner)
    if met is not None:
        where = ", ".join(f"{k}={v}" for k, v in met.partition_values.items())
        yield ConcurrentAppendException(
            f"{_told(winner)} added file {met.path}{f' (partition {where})' if where else ''} to what this operation on table "
            f"{mine.config.table} read. Run the operation again, or narrow what it reads"
            f"{' with a condition on the partition columns' if mine.config.partition_columns else ''}.",
            **_facts(mine, winner, file=met.path),
        )


def _first_met(mine: PreparedCommit, winner: Winner) -> AddFile | None:
    files = files_table(winner.adds) if mine.reads.predicates else None
    for predicate in mine.reads.predicates:
        mask = keep(predicate, files, mine.config.schema, mine.config.partition_columns)
        met = mask.index(True).as_py() if len(mask) else -1
        if met >= 0:
            return winner.adds[met]
    return None


def _removed_that_was_read(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    for remove in winner.removes:
        if remove.key in mine.reads.file_keys or mine.reads.whole_table:
            yield ConcurrentDeleteReadException(
                f"{_told(winner)} removed file {remove.path}, which this operation on table {mine.config.table} read. "
                "Run the operation again.",
                **_facts(mine, winner, file=remove.path),
            )


def _removed_twice(mine: PreparedCommit, winner: Winner) -> Iterator[DeltaConcurrentModificationException]:
    theirs = {remove.path for remove in winner.removes}
    for action in mine.actions:
        if isinstance(action, RemoveFile) and action.path in theirs:
            yield ConcurrentDeleteDeleteException(
                f"{_told(winner)} removed file {action.path}, which this operation on table {mine.config.table} removes too. "
                "Run the operation again.",
                **_facts(mine, winner, file=action.path),
            )


def _told(winner: Winner) -> str:
    return f"version {winner.version} ({winner.operation})"


def _facts(mine: PreparedCommit, winner: Winner, **more: Any) -> dict[str, Any]:
    return {"table": mine.config.table, "winner_version": winner.version, "winner_operation": winner.operation, **more}
