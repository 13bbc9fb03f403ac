"""Two writers that change different rows of the same file: what must be known to let both succeed, and what comes of it. Pure.

A winner that gives a file another deletion vector takes rows away and adds none. Whether the loser's operation would have done
the same after it, is decided by rows:

    rows taken    the winner's vector without the one before it
    rows read     positions that the loser noted (`Transaction.read_rows`), rows for which its predicates are true
    rows new      of files that the winner added, those for which the loser's predicates are true

Where the rows read meet neither those taken nor those new, the loser saw exactly what it would see after the winner, so
"winner, then loser" is a serial order with the same result. (Files that the loser did not note have no row that it read.)
Its own vector is then merged onto the winner's.

Vectors and rows are in storage, so `questions` says which are needed, `tahoe.txn.evidence` reads them, and `Evidence` is what it
found. What is not known counts as a conflict.
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
from tahoe.txn.prepare import SNAPSHOT_ISOLATION, WRITE_SERIALIZABLE, PreparedCommit
from tahoe.txn.winner import Winner

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = [
    "NO_EVIDENCE",
    "Evidence",
    "Questions",
    "RowsRead",
    "adds_that_count",
    "files_met",
    "files_met_by",
    "merged",
    "questions",
    "rows_read",
    "rows_taken",
]

RowsRead = Mapping[str, "BitMap64 | None"]


@dataclass(frozen=True)
class Evidence:
    """What was read to settle a conflict by rows.

    Args:
        vectors: dead row positions, by the descriptor's unique id.
        matches: by canonical path of a data file, the physical positions of all rows, dead ones too, for which one of the loser's
            predicates is true.
    """

    vectors: Mapping[str, BitMap64] = field(default_factory=dict)
    matches: Mapping[str, BitMap64] = field(default_factory=dict)

    def dead(self, descriptor: DeletionVectorDescriptor | None) -> BitMap64 | None:
        """The dead rows that a descriptor stands for; None where they are not known."""
        from pyroaring import BitMap64

        if descriptor is None:
            return BitMap64()
        if descriptor.storage_type == "i":
            return decode(descriptor, _no_read, "")
        return self.vectors.get(descriptor.unique_id)


NO_EVIDENCE = Evidence()


@dataclass(frozen=True)
class Questions:
    """What must be read to settle a conflict by rows: vectors, and data files for their rows that match."""

    vectors: tuple[DeletionVectorDescriptor, ...] = ()
    files: tuple[AddFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.vectors or self.files)


def questions(mine: PreparedCommit, winners: Sequence[Winner]) -> Questions:
    """What `Evidence` could turn a conflict with these winners into none; nothing where no evidence can help."""
    if mine.reads.whole_table:
        return Questions()
    read, own = rows_read(mine), {canonical_path(a.path, mine.config.table): a for a in mine.actions if isinstance(a, AddFile)}
    vectors: list[DeletionVectorDescriptor | None] = []
    files: list[AddFile] = []
    for winner, met in zip(winners, files_met_by(mine, winners), strict=True):
        changes = winner.vector_changes(mine.config.table)
        touched = {canonical_path(remove.path, mine.config.table) for remove in winner.removes}
        # Against a winner that only rearranged no evidence helps either, but it tells whether nothing else is in the way.
        if not winner.only_rearranges and any(path in read and read[path] is None for path in touched):
            return Questions()
        for add in met:
            if canonical_path(add.path, mine.config.table) not in changes:
                files.append(add)
                vectors.append(add.deletion_vector)
        for path, (before, after) in changes.items():
            if path in read or after in met:
                vectors += [before.deletion_vector, after.deletion_vector]
            if path in own:
                vectors.append(own[path].deletion_vector)
    unknown = {v.unique_id: v for v in vectors if v is not None and v.storage_type != "i"}
    return Questions(tuple(unknown.values()), tuple({add.path: add for add in files}.values()))


def rows_read(mine: PreparedCommit) -> RowsRead:
    """By canonical path, the positions that the loser noted as read; None for all rows of the file."""
    root = mine.config.table
    read: dict[str, BitMap64 | None] = {canonical_path(path, root): rows for (path, _), rows in mine.reads.rows.items()}
    return {**read, **dict.fromkeys((canonical_path(path, root) for path, _ in mine.reads.file_keys), None)}


def adds_that_count(mine: PreparedCommit, winner: Winner) -> list[AddFile]:
    """The winner's files whose rows the loser should have seen, at its isolation level."""
    if mine.isolation_level == SNAPSHOT_ISOLATION or winner.only_rearranges:
        return []
    if mine.isolation_level == WRITE_SERIALIZABLE and not mine.changes_metadata and winner.is_blind_append:
        return []
    return winner.adds


def files_met(mine: PreparedCommit, adds: Sequence[AddFile]) -> list[AddFile]:
    """The files that may hold rows for which one of the loser's predicates is true, by partition values and statistics."""
    if not adds or not mine.reads.predicates:
        return []
    files, met = files_table(adds), set[int]()
    for predicate in mine.reads.predicates:
        mask = keep(predicate, files, mine.config.schema, mine.config.partition_columns)
        met.update(position for position, kept in enumerate(mask.to_pylist()) if kept)
    return [adds[position] for position in sorted(met)]


def files_met_by(mine: PreparedCommit, winners: Sequence[Winner]) -> list[list[AddFile]]:
    """For each winner, those of its `adds_that_count` that are `files_met`. All are judged in one go, for each go has its price."""
    adds = [adds_that_count(mine, winner) for winner in winners]
    met = {id(add) for add in files_met(mine, [add for each in adds for add in each])}
    return [[add for add in each if id(add) in met] for each in adds]


def rows_taken(winner: Winner, evidence: Evidence, root_url: str) -> dict[str, BitMap64]:
    """By canonical path, the rows that the winner took from files that stay; only where it is known that it gave none back."""
    taken: dict[str, BitMap64] = {}
    for path, (before, after) in winner.vector_changes(root_url).items():
        dead_before, dead_after = evidence.dead(before.deletion_vector), evidence.dead(after.deletion_vector)
        if dead_before is not None and dead_after is not None and dead_before <= dead_after:
            taken[path] = dead_after - dead_before
    return taken


def merged(
    mine: PreparedCommit, winner: Winner, evidence: Evidence, paths: Iterable[str]
) -> dict[str, tuple[Action, ...]] | None:
    """For files that both changed: the tombstone of the winner's and the file with both vectors, or none where no row is left.

    Args:
        paths: canonical, of files that stay after the winner.

    Returns:
        By path; None where vectors are not known, or the two took the same rows.
    """
    root, found = mine.config.table, dict[str, tuple[Action, ...]]()
    changes = winner.vector_changes(root)
    removed = {canonical_path(a.path, root): a for a in mine.actions if isinstance(a, RemoveFile)}
    added = {canonical_path(a.path, root): a for a in mine.actions if isinstance(a, AddFile)}
    for path in paths:
        before, after = changes[path]
        own = added.get(path)
        if own is None or removed[path].key[1] != before.key[1]:
            return None
        dead_before, theirs, ours = (evidence.dead(action.deletion_vector) for action in (before, after, own))
        if dead_before is None or theirs is None or ours is None or not dead_before <= ours:
            return None
        if (ours - dead_before) & (theirs - dead_before):
            return None
        found[path] = tuple(_on_top(after, removed[path], own, ours | theirs))
    return found


def _on_top(theirs: AddFile, removed: RemoveFile, own: AddFile, dead: BitMap64) -> Iterator[Action]:
    yield replace(theirs.remove(0, removed.data_change), deletion_timestamp=removed.deletion_timestamp)
    if len(dead) != theirs.num_records:
        yield replace(theirs, deletion_vector=inline_descriptor(dead), data_change=own.data_change)


def _no_read(name: str) -> bytes:
    raise AssertionError(f"an inline deletion vector reads no file, but '{name}' was asked for")
