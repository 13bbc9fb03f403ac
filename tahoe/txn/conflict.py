"""Whether a commit may be rebased onto concurrent commits: pure, in the reference's order, cheap checks first.

Sources: PROTOCOL.md does not define conflicts; the order and the classes are those of the reference's conflict checker. In addition,
files are compared by statistics and, with evidence from `tahoe.txn.row_level`, by rows.
Each reason has its own error, with the concurrent commit's version and operation, and a way to avoid it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tahoe.base.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from tahoe.expr.tree.predicate import Column, Comparison, Literal, Not
from tahoe.log.files.live_files import canonical_path
from tahoe.protocol.actions import Action, AddFile, DomainMetadata, Metadata, RemoveFile, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import COORDINATED
from tahoe.protocol.partition import deserialize
from tahoe.protocol.protocols import check_writable, features_of
from tahoe.protocol.row_tracking import DOMAIN, PRESERVED, high_water_mark
from tahoe.txn.concurrent_commit import ConcurrentCommit
from tahoe.txn.metadata_changes import enables_row_tracking, keeps_written_files_valid
from tahoe.txn.prepare import PreparedCommit, enables_in_commit_timestamps, with_enablement
from tahoe.txn.row_level import (
    NO_EVIDENCE,
    Evidence,
    matching_files,
    matching_files_by_commit,
    merged,
    relevant_adds,
    rows_deleted,
    rows_read,
)

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["ConcurrentCommit", "rebase"]


def rebase(
    mine: PreparedCommit, commits: Sequence[ConcurrentCommit], now_ms: int, evidence: Evidence = NO_EVIDENCE
) -> PreparedCommit | DeltaConcurrentModificationException:
    """Return the commit for the version after the last concurrent commit, or the conflict that prevents it, as a value.

    Args:
        commits: every commit since `mine.version`, oldest first, without a gap.
        now_ms: the clock's time, for the in-commit timestamp.
        evidence: vectors and rows that were read; missing evidence counts as a conflict.
    """
    moved = mine
    try:
        # Matching files depends on the schema, so with metadata changes among them, each commit is matched with the schema before it.
        in_one_go = not any(concurrent.metadata for concurrent in commits)
        met = matching_files_by_commit(mine, commits) if in_one_go else [None] * len(commits)
        for concurrent, its_files_met in zip(commits, met, strict=True):
            moved = _rebase_onto(moved, concurrent, evidence, its_files_met)
    except DeltaConcurrentModificationException as conflict:
        return conflict
    earlier = [w.info.in_commit_timestamp + 1 for w in commits if w.info.in_commit_timestamp]
    moved = replace(moved, version=commits[-1].version + 1, timestamp=max([mine.timestamp, now_ms, *earlier]))
    return _with_enablement(moved)


def _rebase_onto(
    mine: PreparedCommit, concurrent: ConcurrentCommit, evidence: Evidence, met: list[AddFile] | None
) -> PreparedCommit:
    _check_may_be_moved(mine, concurrent)
    mine = _rebase_protocol(mine, concurrent)
    mine = _rebase_metadata(mine, concurrent)
    _check_domains(mine, concurrent)
    _check_applications(mine, concurrent)
    mine = _rebase_row_ids(mine, concurrent)
    taken = rows_deleted(concurrent, evidence, mine.config.table)
    _check_added(mine, concurrent, evidence, taken, met)
    _check_removed(mine, concurrent, taken)
    return _rebase_shared_files(mine, concurrent, evidence, taken)


def _check_may_be_moved(mine: PreparedCommit, concurrent: ConcurrentCommit) -> None:
    if mine.snapshot is None:
        raise ProtocolChangedException(
            f"Table {mine.config.table} was created by another writer ({_described(concurrent)}) at the same time. "
            "Read the table again and append to it.",
            **_facts(mine, concurrent),
        )
    if not mine.may_be_moved:
        raise ConcurrentWriteException(
            f"{_described(concurrent)} was committed to table {mine.config.table} while this operation ran, and it cannot move to a "
            "later version. Run the operation again while no other writer is active.",
            **_facts(mine, concurrent),
        )


def _rebase_protocol(mine: PreparedCommit, concurrent: ConcurrentCommit) -> PreparedCommit:
    theirs = concurrent.protocol
    if theirs is None:
        return mine
    check_writable(theirs, mine.config.table)
    dropped = mine.snapshot is not None and not features_of(mine.snapshot.protocol) <= features_of(theirs)
    # After such a commit a coordinator must be asked, and this writer may not have one.
    coordinated = features_of(theirs) & COORDINATED > mine.config.features & COORDINATED
    if mine.changes_protocol or dropped or coordinated:
        raise ProtocolChangedException(
            f"The protocol of table {mine.config.table} was changed by {_described(concurrent)}. Run the operation again.",
            **_facts(mine, concurrent),
        )
    return replace(mine, config=replace(mine.config, protocol=theirs))


def _rebase_metadata(mine: PreparedCommit, concurrent: ConcurrentCommit) -> PreparedCommit:
    theirs, before = concurrent.metadata, mine.config.metadata
    if theirs is None:
        return mine
    if mine.changes_metadata or not keeps_written_files_valid(before, theirs, mine.config.features):
        raise MetadataChangedException(
            f"The schema or the properties of table {mine.config.table} were changed by {_described(concurrent)}. "
            "Read the table again and run the operation again.",
            **_facts(mine, concurrent),
        )
    info = mine.commit_info
    if enables_row_tracking(before, theirs):
        # The commit's files were written before there were ids to preserve.
        info = {**info, "tags": {**info.get("tags", {}), PRESERVED: "false"}}
    return replace(mine, config=replace(mine.config, metadata=theirs), commit_info=info)


def _check_domains(mine: PreparedCommit, concurrent: ConcurrentCommit) -> None:
    theirs = {a.domain for a in concurrent.actions if isinstance(a, DomainMetadata)} - {DOMAIN}
    for action in mine.actions:
        if isinstance(action, DomainMetadata) and action.domain in theirs:
            raise ConcurrentTransactionException(
                f"The metadata domain '{action.domain}' of table {mine.config.table} was changed by {_described(concurrent)} too. "
                "Run the operation again.",
                **_facts(mine, concurrent, domain=action.domain),
            )


def _check_applications(mine: PreparedCommit, concurrent: ConcurrentCommit) -> None:
    for action in concurrent.actions:
        if isinstance(action, SetTransaction) and action.app_id in mine.reads.app_ids:
            raise ConcurrentTransactionException(
                f"Application '{action.app_id}' has written its version {action.version} to table {mine.config.table} with "
                f"{_described(concurrent)}. Two writers use one application id: stop one of them, or run again to skip this version.",
                **_facts(mine, concurrent, app_id=action.app_id),
            )


def _rebase_row_ids(mine: PreparedCommit, concurrent: ConcurrentCommit) -> PreparedCommit:
    """Assign ids to new files after the concurrent commit's; preserve ids that it assigned to files."""
    mark = high_water_mark(concurrent.actions)
    if mark is not None:
        mine = replace(mine, row_id_mark=max(mark, mine.row_id_mark))
    files_with_ids = {add.key: add for add in concurrent.adds if add.base_row_id is not None and not add.data_change}
    if (
        not any(isinstance(action, (AddFile, RemoveFile)) and action.base_row_id is None for action in mine.actions)
        or not files_with_ids
    ):
        return mine
    paths = {path: add for (path, _), add in files_with_ids.items()}
    return replace(mine, actions=tuple(_with_ids_of(action, paths.get(getattr(action, "path", ""))) for action in mine.actions))


def _with_ids_of(action: Action, theirs: AddFile | None) -> Action:
    if theirs is None or not isinstance(action, (AddFile, RemoveFile)):
        return action
    return replace(action, base_row_id=theirs.base_row_id, default_row_commit_version=theirs.default_row_commit_version)


def _check_added(
    mine: PreparedCommit, concurrent: ConcurrentCommit, evidence: Evidence, taken: dict[str, BitMap64], met: list[AddFile] | None
) -> None:
    """Check for new rows that should have been read. A file that only lost rows adds none; `_check_removed` checks those."""
    root = mine.config.table
    new = [add for add in relevant_adds(mine, concurrent) if canonical_path(add.path, root) not in taken]
    if (mine.reads.whole_table or mine.reads.all_rows) and new:
        raise _appended(mine, concurrent, new[0], "the whole table")
    for add in matching_files(mine, new) if met is None else [add for add in met if canonical_path(add.path, root) not in taken]:
        matches = evidence.matches.get(canonical_path(add.path, root))
        deleted = evidence.deleted(add.deletion_vector)
        if matches is None or deleted is None or matches - deleted:
            raise _appended(mine, concurrent, add, " or ".join(f"the rows with {p}" for p in mine.reads.predicates))


def _appended(mine: PreparedCommit, concurrent: ConcurrentCommit, add: AddFile, read: str) -> ConcurrentAppendException:
    avoiding = _condition_without(mine.config, add)
    hint = f" Or exclude its partition with the condition {avoiding}." if avoiding else ""
    return ConcurrentAppendException(
        f"{_described(concurrent)} added file {add.path}{_partition(add)} to table {mine.config.table}, of which this operation read {read}. "
        f"Run the operation again.{hint}",
        **_facts(mine, concurrent, file=add.path, avoiding=avoiding),
    )


def _check_removed(mine: PreparedCommit, concurrent: ConcurrentCommit, taken: dict[str, BitMap64]) -> None:
    """Check for removed files, or deleted rows, that were read."""
    root, read = mine.config.table, rows_read(mine)
    for remove in concurrent.removes:
        path = canonical_path(remove.path, root)
        if mine.reads.whole_table or (mine.reads.all_rows and not concurrent.only_rearranges):
            raise _deleted(mine, concurrent, remove, "removed")
        if path not in read:
            continue
        rows = read[path]
        if rows is None or (rows and path not in taken):
            raise _deleted(mine, concurrent, remove, "changed rows of" if path in taken else "removed")
        if path in taken and rows & taken[path]:
            raise _deleted(mine, concurrent, remove, f"changed {len(rows & taken[path])} of the {len(rows)} rows read of")


def _deleted(
    mine: PreparedCommit, concurrent: ConcurrentCommit, file: RemoveFile | AddFile, did: str
) -> ConcurrentDeleteReadException:
    avoiding = _condition_without(mine.config, file)
    hint = f" Or exclude its partition with the condition {avoiding}." if avoiding else ""
    return ConcurrentDeleteReadException(
        f"{_described(concurrent)} {did} file {file.path}{_partition(file)}, which this operation on table {mine.config.table} read. "
        f"Run the operation again.{hint}",
        **_facts(mine, concurrent, file=file.path, avoiding=avoiding, only_rearranged=concurrent.only_rearranges),
    )


def _rebase_shared_files(
    mine: PreparedCommit, concurrent: ConcurrentCommit, evidence: Evidence, taken: dict[str, BitMap64]
) -> PreparedCommit:
    root = mine.config.table
    theirs = {canonical_path(remove.path, root) for remove in concurrent.removes}
    both = {canonical_path(a.path, root): a for a in mine.actions if isinstance(a, RemoveFile)}
    both = {path: remove for path, remove in both.items() if path in theirs}
    if not both:
        return mine
    merged_files = merged(mine, concurrent, evidence, both) if both.keys() <= taken.keys() else None
    if merged_files is None:
        remove = next((remove for path, remove in both.items() if path not in taken), next(iter(both.values())))
        raise ConcurrentDeleteDeleteException(
            f"{_described(concurrent)} removed or changed file {remove.path}{_partition(remove)}, which this operation on table {root} "
            "removes or changes too. Run the operation again.",
            **_facts(mine, concurrent, file=remove.path, only_rearranged=concurrent.only_rearranges),
        )
    rest = [
        a for a in mine.actions if not isinstance(a, (AddFile, RemoveFile)) or canonical_path(a.path, root) not in merged_files
    ]
    return replace(mine, actions=(*rest, *(action for pair in merged_files.values() for action in pair)))


def _with_enablement(moved: PreparedCommit) -> PreparedCommit:
    """Set the version and time of a commit that enables in-commit timestamps, which have changed."""
    if not moved.changes_metadata or not enables_in_commit_timestamps(moved.snapshot, moved.config):
        return moved
    config = with_enablement(moved.config, moved.version, moved.timestamp)
    actions = tuple(config.metadata if isinstance(action, Metadata) else action for action in moved.actions)
    return replace(moved, config=config, actions=actions)


def _condition_without(config: TableConfig, file: AddFile | RemoveFile) -> str | None:
    """Return an SQL condition that excludes the file's partition; None if the table is not partitioned."""
    values = file.partition_values or {}
    for column in config.partition_schema:
        if column.physical_name in values:
            value = Literal(deserialize(values[column.physical_name], column.data_type), column.data_type)
            return str(Not(Comparison("<=>", Column((column.name,)), value)))
    return None


def _partition(file: AddFile | RemoveFile) -> str:
    where = ", ".join(f"{name}={value}" for name, value in (file.partition_values or {}).items())
    return f" (partition {where})" if where else ""


def _described(concurrent: ConcurrentCommit) -> str:
    return f"version {concurrent.version} ({concurrent.operation})"


def _facts(mine: PreparedCommit, concurrent: ConcurrentCommit, **more: object) -> dict[str, Any]:
    return {"table": mine.config.table, "winner_version": concurrent.version, "winner_operation": concurrent.operation, **more}
