"""A commit in numbers, for those who observe commits: counts and sizes, and never a value from a row or a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tahoe.base.events import Fields, Observation
from tahoe.log.files.removed_files import adds_in, removes_in, single_actions
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.txn.commit import Committed

Lifecycle = Literal["CREATE", "OVERWRITE", "TRUNCATE", "ALTER"]


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """The operation of a commit, and the size of its change.

    Args:
        operation: as in the table's history.
        bytes_added, bytes_removed: sizes of the files on storage.
        rows_written: the rows that the operation wrote, as its metrics in the history state; None if they state none.
        lifecycle: how the commit changed the table beyond its rows; None for a plain change of rows.
    """

    operation: str
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    rows_written: int | None
    lifecycle: Lifecycle | None


def summary_of(committed: Committed) -> CommitSummary:
    """Return the summary of a commit. A file with a new deletion vector is both added and removed, as in the log."""
    info = committed.prepared.commit_info
    added = [add.size for add in adds_in(committed.actions)]
    removed = [remove.size or 0 for remove in removes_in(committed.actions)]
    return CommitSummary(
        operation=str(info.get("operation", "")),
        files_added=len(added),
        files_removed=len(removed),
        bytes_added=sum(added),
        bytes_removed=sum(removed),
        rows_written=_rows_written(info.get("operationMetrics")),
        lifecycle=_lifecycle(committed, bool(added)),
    )


def record_commit(observation: Observation, committed: Committed) -> None:
    """Record a commit as the result of an observed operation."""
    observation.record(committed.version, lambda: _fields(committed), committed)


def _fields(committed: Committed) -> Fields:
    summary = summary_of(committed)
    rows = {} if summary.rows_written is None else {"rows_written": summary.rows_written}
    return {
        "operation": summary.operation,
        "attempts": committed.attempts,
        "concurrent_commits": len(committed.concurrent),
        "files_added": summary.files_added,
        "files_removed": summary.files_removed,
        "bytes_added": summary.bytes_added,
        "bytes_removed": summary.bytes_removed,
        **rows,
    }


def _rows_written(metrics: object) -> int | None:
    rows = metrics.get("numOutputRows") if isinstance(metrics, Mapping) else None
    return None if rows is None else int(rows)


def _lifecycle(committed: Committed, adds_files: bool) -> Lifecycle | None:
    info, snapshot = committed.prepared.commit_info, committed.prepared.snapshot
    parameters = info.get("operationParameters") or {}
    if snapshot is None:
        return "CREATE"
    if info.get("operation") == "TRUNCATE":
        return "TRUNCATE"
    replaces = str(info.get("operation", "")).startswith(("CREATE OR REPLACE", "REPLACE", "CLONE"))
    is_partial = not parameters.keys().isdisjoint(("predicate", "isDynamicPartitionOverwrite"))
    if replaces or (parameters.get("mode") == "Overwrite" and not is_partial):
        return "OVERWRITE"
    alters = any(isinstance(action, Metadata | Protocol) for action in single_actions(committed.actions))
    return "ALTER" if alters and not adds_files else None
