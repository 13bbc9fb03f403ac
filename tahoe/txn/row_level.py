"""Row-level conflict resolution for two writers that change different rows of the same file. Pure.

A concurrent commit that changes a file's deletion vector deletes rows and adds none. Whether the later operation would have had the same
effect after it is decided by rows:

    rows taken    the concurrent commit's vector minus the previous one
    rows read     positions that the later writer recorded (`Transaction.read_rows`), rows for which its predicates are true
    rows new      the rows of added files for which the later writer's predicates are true

If the rows read intersect neither those taken nor those new, the later writer saw exactly what it would see after the concurrent commit,
so running them in this order has the same result. (It has read no row of files that it did not record.)
Its own vector is then merged with the concurrent one.

Vectors and rows are in storage, so `questions` lists the necessary ones, `tahoe.txn.commit` reads them, and `Evidence` contains the
result. Missing evidence counts as a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tahoe.log.files.live_files import canonical_path
from tahoe.log.replay import files_table
from tahoe.protocol.actions import Action, AddFile, DeletionVectorDescriptor, RemoveFile
from tahoe.protocol.dv import decode, inline_descriptor
from tahoe.protocol.skipping import keep
from tahoe.txn.concurrent_commit import ConcurrentCommit
from tahoe.txn.prepare import SNAPSHOT_ISOLATION, WRITE_SERIALIZABLE, PreparedCommit

if TYPE_CHECKING:
    from pyroaring import BitMap64


RowsRead = Mapping[str, "BitMap64 | None"]


@dataclass(frozen=True)
class Evidence:
    """Data read to resolve a conflict by rows.

    Args:
        vectors: deleted row positions, by the descriptor's unique id.
        matches: by canonical path of a data file, the physical positions of all rows, including deleted ones, for which one of the
            later writer's predicates is true.
    """

    vectors: Mapping[str, BitMap64] = field(default_factory=dict)
    matches: Mapping[str, BitMap64] = field(default_factory=dict)

    def deleted(self, descriptor: DeletionVectorDescriptor | None) -> BitMap64 | None:
        """Return the deleted rows of a descriptor; None if unknown."""
        from pyroaring import BitMap64

        if descriptor is None:
            return BitMap64()
        if descriptor.storage_type == "i":
            return decode(descriptor, _no_read, "")
        return self.vectors.get(descriptor.unique_id)


NO_EVIDENCE = Evidence()


@dataclass(frozen=True)
class Questions:
    """The data needed to resolve a conflict by rows: vectors, and data files whose matching rows are read."""

    vectors: tuple[DeletionVectorDescriptor, ...] = ()
    files: tuple[AddFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.vectors or self.files)


def questions(mine: PreparedCommit, commits: Sequence[ConcurrentCommit]) -> Questions:
    """Return the evidence that could resolve a conflict with these commits; empty if no evidence can."""
    if mine.reads.whole_table:
        return Questions()
    read = rows_read(mine)
    own_adds = {canonical_path(a.path, mine.config.table): a for a in mine.actions if isinstance(a, AddFile)}
    vectors: list[DeletionVectorDescriptor | None] = []
    files: list[AddFile] = []
    for concurrent, met in zip(commits, matching_files_by_commit(mine, commits), strict=True):
        changes = concurrent.vector_changes(mine.config.table)
        touched = {canonical_path(remove.path, mine.config.table) for remove in concurrent.removes}
        # No evidence resolves a conflict with a commit that only rearranged rows, but it shows whether there are other conflicts.
        if not concurrent.only_rearranges and any(path in read and read[path] is None for path in touched):
            return Questions()
        for add in met:
            if canonical_path(add.path, mine.config.table) not in changes:
                files.append(add)
                vectors.append(add.deletion_vector)
        for path, (before, after) in changes.items():
            if path in read or after in met:
                vectors += [before.deletion_vector, after.deletion_vector]
            if path in own_adds:
                vectors.append(own_adds[path].deletion_vector)
    unknown = {v.unique_id: v for v in vectors if v is not None and v.storage_type != "i"}
    return Questions(tuple(unknown.values()), tuple({add.path: add for add in files}.values()))


def rows_read(mine: PreparedCommit) -> RowsRead:
    """Return the positions recorded as read, by canonical path; None for all rows of the file."""
    root = mine.config.table
    read: dict[str, BitMap64 | None] = {canonical_path(path, root): rows for (path, _), rows in mine.reads.rows.items()}
    return {**read, **dict.fromkeys((canonical_path(path, root) for path, _ in mine.reads.file_keys), None)}


def relevant_adds(mine: PreparedCommit, concurrent: ConcurrentCommit) -> list[AddFile]:
    """Return the concurrent commit's files whose rows the later writer should have seen, at its isolation level."""
    if mine.isolation_level == SNAPSHOT_ISOLATION or concurrent.only_rearranges:
        return []
    if mine.isolation_level == WRITE_SERIALIZABLE and not mine.changes_metadata and concurrent.is_blind_append:
        return []
    return concurrent.adds


def matching_files(mine: PreparedCommit, adds: Sequence[AddFile]) -> list[AddFile]:
    """Return the files that may have rows for which one of the predicates is true, by partition values and statistics."""
    if not adds or not mine.reads.predicates:
        return []
    files, met = files_table(adds), set[int]()
    for predicate in mine.reads.predicates:
        mask = keep(predicate, files, mine.config.schema, mine.config.partition_columns)
        met.update(position for position, matched in enumerate(mask.to_pylist()) if matched)
    return [adds[position] for position in sorted(met)]


def matching_files_by_commit(mine: PreparedCommit, commits: Sequence[ConcurrentCommit]) -> list[list[AddFile]]:
    """Return for each concurrent commit those of its `relevant_adds` that are `matching_files`; evaluated together to save overhead."""
    adds = [relevant_adds(mine, concurrent) for concurrent in commits]
    met = {id(add) for add in matching_files(mine, [add for each in adds for add in each])}
    return [[add for add in each if id(add) in met] for each in adds]


def rows_deleted(concurrent: ConcurrentCommit, evidence: Evidence, root_url: str) -> dict[str, BitMap64]:
    """Return the rows that the concurrent commit deleted from remaining files, by canonical path; only if it certainly restored none."""
    taken: dict[str, BitMap64] = {}
    for path, (before, after) in concurrent.vector_changes(root_url).items():
        deleted_before, deleted_after = evidence.deleted(before.deletion_vector), evidence.deleted(after.deletion_vector)
        if deleted_before is not None and deleted_after is not None and deleted_before <= deleted_after:
            taken[path] = deleted_after - deleted_before
    return taken


def merged(
    mine: PreparedCommit, concurrent: ConcurrentCommit, evidence: Evidence, paths: Iterable[str]
) -> dict[str, tuple[Action, ...]] | None:
    """Merge the vectors of files that both changed: the tombstone of the concurrent entry and the file with both vectors, if rows are
    left.

    Args:
        paths: canonical paths of files that remain after the concurrent commit.

    Returns:
        Actions by path; None if vectors are unknown, or both deleted the same rows.
    """
    root, by_path = mine.config.table, dict[str, tuple[Action, ...]]()
    changes = concurrent.vector_changes(root)
    removed = {canonical_path(a.path, root): a for a in mine.actions if isinstance(a, RemoveFile)}
    added = {canonical_path(a.path, root): a for a in mine.actions if isinstance(a, AddFile)}
    for path in paths:
        before, after = changes[path]
        added_file = added.get(path)
        if added_file is None or removed[path].key[1] != before.key[1]:
            return None
        deleted_before, theirs, ours = (evidence.deleted(action.deletion_vector) for action in (before, after, added_file))
        if deleted_before is None or theirs is None or ours is None or not deleted_before <= ours:
            return None
        if (ours - deleted_before) & (theirs - deleted_before):
            return None
        by_path[path] = tuple(_merged_actions(after, removed[path], added_file, ours | theirs))
    return by_path


def _merged_actions(theirs: AddFile, removed: RemoveFile, mine: AddFile, deleted: BitMap64) -> Iterator[Action]:
    yield replace(theirs.remove(0, removed.data_change), deletion_timestamp=removed.deletion_timestamp)
    if len(deleted) != theirs.num_records:
        yield replace(theirs, deletion_vector=inline_descriptor(deleted), data_change=mine.data_change)


def _no_read(name: str) -> bytes:
    raise AssertionError(f"an inline deletion vector reads no file, but '{name}' was requested")
