"""The operation parameters and metrics of a MERGE in the log, with delta-spark's names. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.ops.merge.clauses import Action, Clause, Kind, of_kind
from tahoe.ops.merge.explained import ClauseExplained, MergeExplained
from tahoe.ops.rows.row_changes import FileChange, Staged, uses_vectors, vector_metrics
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation


@dataclass(frozen=True, slots=True)
class ClauseCount:
    """A clause with its condition as text, and the number of rows to which it applies."""

    clause: Clause[str]
    rows: int


def clause_counts(clauses: Iterable[Clause[Any]], rows: Mapping[int, int], text_of: Callable[[Any], str]) -> list[ClauseCount]:
    """Return the row counts in the order of the clauses.

    Args:
        rows: the number of rows by the number of the clause.
        text_of: returns a condition as the user wrote it.
    """
    return [
        ClauseCount(
            Clause(clause.kind, clause.action, None if clause.condition is None else text_of(clause.condition)),
            rows.get(number, 0),
        )
        for number, clause in enumerate(clauses)
    ]


@dataclass(frozen=True, slots=True)
class StagedMerge:
    """The actions that a MERGE has staged.

    Args:
        changes: the deleted rows of each touched file.
        marked: whether deleted rows are marked in deletion vectors; else files are rewritten.
    """

    changes: Sequence[FileChange]
    marked: bool
    removed: Sequence[AddFile]
    added: Sequence[AddFile]
    feed: Sequence[AddCDCFile]

    @property
    def copied(self) -> int:
        """The number of rows that are copied unchanged."""
        return 0 if self.marked else sum(change.living - len(change.dead) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Times:
    """The start of each phase, and the end, in milliseconds since the epoch."""

    started: int
    materialized: int
    scanned: int
    ended: int


def ambiguous(table: str) -> InvalidRequest:
    """Return the error for a row of the target that two rows of the source match."""
    return InvalidRequest(
        f"MERGE cannot be run on table {table}: more than one row of the source matches the same row of the target, and the result could "
        "depend on their order. The conditions of WHEN clauses do not change that. Remove duplicates from the source, or narrow the "
        "condition after ON. Nothing was written.",
        code="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        table=table,
    )


def counted(counts: Iterable[ClauseCount], action: Action, kind: Kind | None = None) -> int:
    """Return the number of rows of all clauses with an action, and with a kind if one is passed."""
    return sum(count.rows for count in counts if count.clause.action == action and kind in (None, count.clause.kind))


def merge_parameters(on: str, clauses: Sequence[Clause[str]]) -> dict[str, Any]:
    """Return the ``operationParameters`` of `commitInfo`."""

    def shown(clause: Clause[str]) -> dict[str, str]:
        condition = {} if clause.condition is None else {"predicate": clause.condition}
        return {**condition, "actionType": clause.action.value}

    parameters: dict[str, Any] = {"predicate": compact_json([on])}
    return parameters | {kind.value: compact_json([shown(clause) for clause in of_kind(clauses, kind)]) for kind in Kind}


def merge_metrics(source_rows: int, counts: Sequence[ClauseCount], written: StagedMerge, times: Times) -> dict[str, int | str]:
    """Return the ``operationMetrics`` of `commitInfo`."""
    updated, deleted, inserted = (counted(counts, action) for action in (Action.UPDATE, Action.DELETE, Action.INSERT))
    vectors = vector_metrics(written.changes, written.marked)
    return {
        "numSourceRows": source_rows,
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsMatchedUpdated": counted(counts, Action.UPDATE, Kind.MATCHED),
        "numTargetRowsNotMatchedBySourceUpdated": counted(counts, Action.UPDATE, Kind.NOT_MATCHED_BY_SOURCE),
        "numTargetRowsDeleted": deleted,
        "numTargetRowsMatchedDeleted": counted(counts, Action.DELETE, Kind.MATCHED),
        "numTargetRowsNotMatchedBySourceDeleted": counted(counts, Action.DELETE, Kind.NOT_MATCHED_BY_SOURCE),
        "numTargetRowsCopied": written.copied,
        "numTargetBytesAdded": sum(add.size for add in written.added),
        "numTargetBytesRemoved": sum(add.size for add in written.removed),
        "numOutputRows": inserted + updated + written.copied,
        "numTargetFilesAdded": len(written.added),
        "numTargetFilesRemoved": len(written.removed),
        "numTargetChangeFilesAdded": len(written.feed),
        "numTargetDeletionVectorsAdded": vectors["numDeletionVectorsAdded"],
        "numTargetDeletionVectorsRemoved": vectors["numDeletionVectorsRemoved"],
        "numTargetDeletionVectorsUpdated": 0,
        "executionTimeMs": times.ended - times.started,
        "materializeSourceTimeMs": times.materialized - times.started,
        "scanTimeMs": times.scanned - times.materialized,
        "rewriteTimeMs": times.ended - times.scanned,
    }


def staged(parameters: dict[str, Any], counts: Sequence[ClauseCount], metrics: dict[str, int | str]) -> Staged:
    """Return the result of a MERGE whose changes are staged."""
    rows = (counted(counts, action) for action in (Action.UPDATE, Action.DELETE, Action.INSERT))
    return Staged(Operation("MERGE", parameters, metrics), *rows)


@dataclass(frozen=True, slots=True)
class MatchSummary:
    """The result of the search for matching rows.

    Args:
        on: the SQL text of the match condition.
        files_scanned: the number of files that were read; `files_touched` of them contain rows that change.
    """

    on: str
    counts: Sequence[ClauseCount]
    source_rows: int
    files_scanned: int
    files_touched: int


def explained(snapshot: Snapshot, config: TableConfig, matched: MatchSummary) -> MergeExplained:
    """Return the result of `explain()`.

    Args:
        config: the configuration of the table after the MERGE.
    """
    clauses = (
        ClauseExplained(count.clause.kind.words, count.clause.action.name, count.clause.condition, count.rows)
        for count in matched.counts
    )
    existing = set(snapshot.schema.names)
    return MergeExplained(
        snapshot.store.url,
        snapshot.version,
        matched.on,
        tuple(clauses),
        source_rows=matched.source_rows,
        files=len(snapshot.files()),
        files_scanned=matched.files_scanned,
        files_touched=matched.files_touched,
        uses_deletion_vectors=uses_vectors(config),
        new_columns=tuple(name for name in config.schema.names if name not in existing),
    )
