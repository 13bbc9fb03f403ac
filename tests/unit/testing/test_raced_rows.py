"""The operations of the in-memory table change rows as their names say."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.testing.raced_rows import (
    Files,
    Live,
    OperationOn,
    Row,
    applied,
    compact,
    copy_rows,
    delete,
    delete_partition,
    in_order,
    insert,
    move,
    overwrite,
    raced,
    update,
    upsert,
)

ROWS: list[Row] = [(1, "mon", "x"), (2, "mon", "x"), (3, "tue", "x")]


def table() -> tuple[Files, Live]:
    files = Files()
    return files, {add.path: add for add in files.add(ROWS)}


@pytest.mark.parametrize(
    ("operation", "rows"),
    [
        (insert([(9, "wed", "n")]), [*ROWS, (9, "wed", "n")]),
        (delete("id < 3", vectors=True), ROWS[2:]),
        (delete("id = 1", vectors=False), ROWS[1:]),
        (delete_partition("mon"), ROWS[2:]),
        (update("id = 3", "y", vectors=True), [*ROWS[:2], (3, "tue", "y")]),
        (move("id = 3", "mon", vectors=False), [*ROWS[:2], (3, "mon", "x")]),
        (upsert([1, 8], "mon", "u", vectors=True), [(1, "mon", "u"), *ROWS[1:], (8, "mon", "u")]),
        (compact("mon"), ROWS),
        (overwrite([(5, "mon", "o")]), [(5, "mon", "o")]),
        (copy_rows("id = 3", "mon"), [*ROWS, (1003, "mon", "copy")]),
    ],
)
def test_an_operation_matches_its_name(operation: OperationOn, rows: list[Row]) -> None:
    files, start = table()
    assert in_order(files, start, [operation]) == sorted(rows)
    assert files.table(start) == sorted(ROWS), "its starting version is unchanged"


def test_a_vector_deletes_positions_and_a_file_without_live_rows_is_removed() -> None:
    files, start = table()
    mon = start["day=mon/0"]
    live = applied(start, files.with_dead(mon, BitMap64([0])))
    assert files.dead(live[mon.path]) == BitMap64([0])
    assert files.alive(live[mon.path]) == [(1, (2, "mon", "x"))]
    assert mon.path not in applied(start, files.with_dead(mon, BitMap64([0, 1])))


def test_a_commit_cannot_remove_a_missing_file_or_add_a_live_one() -> None:
    files, start = table()
    mon = start["day=mon/0"]
    with pytest.raises(AssertionError, match="live already"):
        applied(start, [mon])
    with pytest.raises(AssertionError, match="not live with that vector"):
        applied(applied(start, files.with_dead(mon, BitMap64([0]))), [mon.remove(1)])


def test_a_race_returns_commits_conflicts_and_operations_without_effect() -> None:
    files, start = table()
    race = [
        delete("id = 1", vectors=True),
        update("id = 2", "y", vectors=True),
        delete("id = 1", vectors=True),
        delete("id = 99", vectors=True),
    ]
    outcomes, end = raced(files, start, race)
    assert outcomes[:2] == [None, None] and outcomes[3] == "nothing to commit"
    assert isinstance(outcomes[2], DeltaConcurrentModificationException)
    assert files.table(end) == in_order(files, start, race[:2]) == [(2, "mon", "y"), (3, "tue", "x")]
    without, _ = raced(files, start, race, with_evidence=False)
    assert isinstance(without[1], DeltaConcurrentModificationException), "the files alone do not distinguish the rows"
