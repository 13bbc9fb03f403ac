"""A table whose files are lists of rows in memory, and operations that stage the same actions as the real ones.

A row is (id, day, value). Operations run on the live rows of a version, so that a race of a winner and a loser can be played step by step
and compared with the result of `rebase`:

    files = Files()
    start = {add.path: add for add in files.add([(1, "mon", "x"), (2, "mon", "x")])}
    race = [delete("id = 1", vectors=True), update("id = 2", "y", vectors=True)]
    outcomes, end = raced(files, start, race)
    assert outcomes == [None, None] and files.table(end) == in_order(files, start, race)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa
from pyroaring import BitMap64

from tahoe.base.clock import SeededClock
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import Predicate
from tahoe.ops.tables.create import new_metadata
from tahoe.protocol.actions import Action, AddFile, CommitInfo, DeletionVectorDescriptor, Protocol, RemoveFile
from tahoe.protocol.dv import decode
from tahoe.protocol.features import Feature
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Entry
from tahoe.store.object_store import open_store
from tahoe.txn.conflict import ConcurrentCommit, rebase
from tahoe.txn.prepare import prepare
from tahoe.txn.row_level import Evidence, Questions, questions
from tahoe.txn.transaction import SERIALIZABLE, Operation, Transaction

__all__ = [
    "Change",
    "Files",
    "Live",
    "OperationOn",
    "Row",
    "applied",
    "compact",
    "copy_rows",
    "delete",
    "delete_partition",
    "in_order",
    "insert",
    "move",
    "overwrite",
    "raced",
    "update",
    "upsert",
]

Row = tuple[int, str, str]
Live = Mapping[str, AddFile]

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("day", PrimitiveType("string")),
        StructField("value", PrimitiveType("string")),
    )
)
STORE = open_store("memory://rows/t")
CLOCK = SeededClock()
METADATA = new_metadata(SCHEMA, CLOCK, partition_by=["day"], properties={"delta.enableDeletionVectors": "true"})


@dataclass
class Files:
    """The content of storage: every data file and every vector ever written."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    vectors: dict[str, BitMap64] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def add(self, rows: list[Row], *, data_change: bool = True) -> list[AddFile]:
        """Add one file per day."""
        return [
            self._file(day, [r for r in rows if r[1] == day], data_change) for day in dict.fromkeys(day for _, day, _ in rows)
        ]

    def _file(self, day: str, rows: list[Row], data_change: bool) -> AddFile:
        path = f"day={day}/{next(self.numbers)}"
        self.rows[path] = rows
        ids = [row[0] for row in rows]
        stats = {"numRecords": len(rows), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}, "nullCount": {"id": 0}}
        return AddFile(path, {"day": day}, 100, 1, data_change, json.dumps(stats))

    def with_dead(self, add: AddFile, deleted: BitMap64) -> list[Action]:
        """Return the actions of a change by vector: the tombstone, and the file with the vector unless all of its rows are deleted."""
        removed = add.remove(1)
        if len(deleted) == len(self.rows[add.path]):
            return [removed]
        descriptor = DeletionVectorDescriptor("u", f"vector-{next(self.numbers)}", 10, len(deleted), 1)
        self.vectors[descriptor.unique_id] = deleted
        return [removed, replace(add, deletion_vector=descriptor, data_change=True)]

    def dead(self, add: AddFile) -> BitMap64:
        """Return the positions that a file's vector deletes."""
        vector = add.deletion_vector
        if vector is None:
            return BitMap64()
        return decode(vector, lambda name: b"", "") if vector.storage_type == "i" else self.vectors[vector.unique_id]

    def matches(self, path: str, predicate: Predicate) -> BitMap64:
        """Return the positions of a data file's rows for which a predicate is true, including deleted rows."""
        rows = self.rows[path]
        columns = zip(*rows, strict=True)
        table = pa.table({name: list(values) for name, values in zip(("id", "day", "value"), columns, strict=True)})
        return BitMap64(position for position, true in enumerate(evaluate(predicate, table).to_pylist()) if true)

    def alive(self, add: AddFile) -> list[tuple[int, Row]]:
        """Return the live rows of a file, with their positions."""
        deleted = self.dead(add)
        return [(position, row) for position, row in enumerate(self.rows[add.path]) if position not in deleted]

    def table(self, live: Live) -> list[Row]:
        """Return the rows of a version, sorted."""
        return sorted(row for add in live.values() for _, row in self.alive(add))

    def answer(self, asked: Questions, predicates: Iterable[Predicate]) -> Evidence:
        """Return the evidence that `tahoe.txn.commit.gather` reads from real files."""
        vectors = {vector.unique_id: self.vectors[vector.unique_id] for vector in asked.vectors}
        matches = {}
        for add in asked.files:
            positions = BitMap64()
            for predicate in predicates:
                positions |= self.matches(add.path, predicate)
            matches[add.path] = positions
        return Evidence(vectors, matches)


def applied(live: Live, actions: Iterable[Action]) -> Live:
    """Return the live files after a commit; removing a file that is not live, or adding one that is, is an error."""
    after = dict(live)
    actions = list(actions)
    for action in actions:
        if isinstance(action, RemoveFile):
            assert after.pop(action.path).key == action.key, f"{action.path} is not live with that vector"
    for action in actions:
        if isinstance(action, AddFile):
            assert action.path not in after, f"{action.path} is live already"
            after[action.path] = action
    return after


@dataclass(frozen=True)
class Change:
    """An operation's effect on one version: recorded on the transaction by `note`, and staged."""

    note: Callable[[Transaction], None]
    actions: list[Action]


OperationOn = Callable[[Files, Live], Change]


def insert(rows: list[Row]) -> OperationOn:
    """INSERT."""
    return lambda files, live: Change(lambda transaction: None, list(files.add(rows)))


def delete_partition(day: str) -> OperationOn:
    """DELETE of a whole day: its files are not read."""

    def run(files: Files, live: Live) -> Change:
        gone = [add for add in live.values() if add.partition_values["day"] == day]

        def note(transaction: Transaction) -> None:
            transaction.read(_parsed(f"day = '{day}'"))
            transaction.read_files(add.key for add in gone)

        return Change(note, [add.remove(1) for add in gone])

    return run


def delete(condition: str, *, vectors: bool) -> OperationOn:
    """DELETE, by deletion vectors or by rewriting files."""
    return _change(condition, lambda row: [], vectors=vectors)


def update(condition: str, value: str, *, vectors: bool) -> OperationOn:
    """UPDATE of the value."""
    return _change(condition, lambda row: [(row[0], row[1], value)], vectors=vectors)


def move(condition: str, day: str, *, vectors: bool) -> OperationOn:
    """UPDATE of the partition column: rows move from one partition to another."""
    return _change(condition, lambda row: [(row[0], day, row[2])], vectors=vectors)


def upsert(ids: list[int], day: str, value: str, *, vectors: bool) -> OperationOn:
    """MERGE on id and day: existing rows get the value, others are inserted."""
    condition = f"day = '{day}' and id in ({', '.join(map(str, ids))})"

    def run(files: Files, live: Live) -> Change:
        change = _change(condition, lambda row: [(row[0], row[1], value)], vectors=vectors)(files, live)
        there = {row[0] for row in files.table(live) if row[1] == day}
        new = [(each, day, value) for each in ids if each not in there]
        return replace(change, actions=[*change.actions, *files.add(new)])

    return run


def compact(day: str) -> OperationOn:
    """OPTIMIZE of a day: its files become one, with the same rows."""

    def run(files: Files, live: Live) -> Change:
        small = [add for add in live.values() if add.partition_values["day"] == day]
        rows = [row for add in small for _, row in files.alive(add)]
        note = lambda transaction: transaction.read_files(add.key for add in small)  # noqa: E731
        return Change(note, [*(add.remove(1, False) for add in small), *files.add(rows, data_change=False)])

    return run


def overwrite(rows: list[Row]) -> OperationOn:
    """Overwrite of all rows."""
    return lambda files, live: Change(
        lambda transaction: transaction.read_whole_table(), [*(add.remove(1) for add in live.values()), *files.add(rows)]
    )


def copy_rows(condition: str, day: str) -> OperationOn:
    """INSERT … SELECT from the table itself."""

    def run(files: Files, live: Live) -> Change:
        predicate = _parsed(condition)
        matches = [(add, _matching(files, add, predicate)) for add in live.values()]
        rows = [(files.rows[add.path][p][0] + 1000, day, "copy") for add, positions in matches for p in positions]

        def note(transaction: Transaction) -> None:
            transaction.read(predicate)
            for add, positions in matches:
                transaction.read_rows(add.key, positions)

        return Change(note, list(files.add(rows)))

    return run


def raced(
    files: Files,
    start: Live,
    operations: list[OperationOn],
    *,
    with_evidence: bool = True,
    isolation: str = SERIALIZABLE,
) -> tuple[list[object], Live]:
    """Run operations that all begin on `start` and commit in order, each past the earlier ones that succeeded.

    Returns:
        For each operation None or the conflict, or a text if there was nothing to commit; and the live files at the end.
    """
    snapshot = _snapshot(start)
    outcomes: list[object] = []
    won: list[ConcurrentCommit] = []
    live = start
    for operation in operations:
        change = operation(files, start)
        if not change.actions:
            outcomes.append("nothing to commit")
            continue
        transaction = Transaction(STORE, snapshot, CLOCK)
        transaction.isolation_level = isolation
        change.note(transaction)
        transaction.stage(*change.actions)
        mine = prepare(transaction, Operation("TEST"))
        moved = rebase(mine, won, 0) if won else mine
        asked = questions(mine, won)
        if isinstance(moved, Exception) and with_evidence and asked:
            moved = rebase(mine, won, 0, files.answer(asked, mine.reads.predicates))
        if isinstance(moved, Exception):
            outcomes.append(moved)
            continue
        outcomes.append(None)
        live = applied(live, moved.actions)
        won.append(ConcurrentCommit(moved.version, moved.full_actions()))
    return outcomes, live


def in_order(files: Files, start: Live, operations: list[OperationOn]) -> list[Row]:
    """Return the rows after running the operations one after the other, each on the result of the previous ones."""
    live = start
    for operation in operations:
        live = applied(live, operation(files, live).actions)
    return files.table(live)


def _change(condition: str, become: Callable[[Row], list[Row]], *, vectors: bool) -> OperationOn:
    """Replace rows for which the condition is true: by vectors, or by rewriting their files."""
    predicate = _parsed(condition)

    def run(files: Files, live: Live) -> Change:
        touched = [(add, rows) for add in live.values() if (rows := _matching(files, add, predicate))]
        changed = [new for add, rows in touched for position in rows for new in become(files.rows[add.path][position])]
        actions: list[Action] = []
        for add, rows in touched:
            if vectors:
                actions += files.with_dead(add, files.dead(add) | rows)
            else:
                remaining = [row for position, row in files.alive(add) if position not in rows]
                actions += [add.remove(1), *files.add(remaining)]

        def note(transaction: Transaction) -> None:
            transaction.read(predicate)
            for add, rows in touched:
                if vectors:
                    transaction.read_rows(add.key, rows)
                else:
                    transaction.read_files([add.key])

        return Change(note, [*actions, *files.add(changed)])

    return run


def _matching(files: Files, add: AddFile, predicate: Predicate) -> BitMap64:
    return files.matches(add.path, predicate) - files.dead(add)


def _parsed(condition: str) -> Predicate:
    return row_condition(condition, SCHEMA).predicate


def _snapshot(live: Live) -> Snapshot:
    vectors = frozenset({Feature.DELETION_VECTORS})
    protocol = Protocol(3, 7, vectors, vectors | {Feature.APPEND_ONLY, Feature.INVARIANTS})
    return Snapshot.first(STORE, (CommitInfo({}), protocol, METADATA, *live.values()), Entry("00000000000000000000.json", 1, 1))
