"""Operation × operation × {same row, same file, same partition, disjoint} × isolation level: which commits conflict.

The table below is Tahoe's behavior, cell by cell; two further tests compare it with the reference's documentation ("cannot conflict"
there means no conflict here), and with running the two operations one after the other.

A cell has four letters, for a concurrent commit in the same row, in the same file, in the same partition, and in another
partition:  ``.`` both succeed, as if the later commit had begun after the first,  ``o`` both succeed, as if the later had come first
(WriteSerializable only),  ``A`` ConcurrentAppend,  ``R`` ConcurrentDeleteRead,  ``D`` ConcurrentDeleteDelete.
"""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import ConcurrentAppendException, ConcurrentDeleteDeleteException, ConcurrentDeleteReadException
from tahoe.testing import raced_rows as model
from tahoe.txn.transaction import SERIALIZABLE, WRITE_SERIALIZABLE

RELATIONS = ("same row", "same file", "same partition", "disjoint")
LETTERS = {
    type(None): ".",
    ConcurrentAppendException: "A",
    ConcurrentDeleteReadException: "R",
    ConcurrentDeleteDeleteException: "D",
}

# The later commit always changes row 1 of day 'mon' in the first file, or all of 'mon'.
LOSERS = {
    "INSERT": model.insert([(1, "mon", "mine")]),
    "INSERT SELECT": model.copy_rows("day = 'mon' and id = 1", "wed"),
    "DELETE partition": model.delete_partition("mon"),
    "DELETE copying": model.delete("day = 'mon' and id = 1", vectors=False),
    "DELETE": model.delete("day = 'mon' and id = 1", vectors=True),
    "UPDATE": model.update("day = 'mon' and id = 1", "mine", vectors=True),
    "UPDATE partition": model.update("day = 'mon'", "mine", vectors=True),
    "MERGE": model.upsert([1, 7], "mon", "mine", vectors=True),
    "COMPACTION": model.compact("mon"),
    "OVERWRITE": model.overwrite([(5, "fri", "mine")]),
}

# The row of the first commit, by relation.
IDS = {"same row": (1, "mon"), "same file": (2, "mon"), "same partition": (11, "mon"), "disjoint": (21, "tue")}


def winners(relation: str) -> dict[str, model.OperationOn]:
    number, day = IDS[relation]
    where = f"day = '{day}' and id = {number}"
    # Within the same file's range of ids, but not in the file: only the rows can show that.
    inserted = [(0, day, "w"), (3, day, "w")] if relation == "same file" else [(number, day, "w")]
    return {
        "INSERT": model.insert(inserted),
        "INSERT SELECT": model.copy_rows(where, day),
        "DELETE partition": model.delete_partition(day),
        "DELETE copying": model.delete(where, vectors=False),
        "DELETE": model.delete(where, vectors=True),
        "UPDATE": model.update(where, "theirs", vectors=True),
        "MERGE": model.upsert([number, 30], day, "theirs", vectors=True),
        "COMPACTION": model.compact(day),
        "OVERWRITE": model.overwrite([(6, "fri", "theirs")]),
    }


COLUMNS = tuple(winners("disjoint"))
# Winners, from the left: INSERT, INSERT SELECT, DELETE partition, DELETE copying, DELETE, UPDATE, MERGE, COMPACTION, OVERWRITE.
CELLS = {
    SERIALIZABLE: """
INSERT            | .... | .... | .... | .... | .... | .... | .... | .... | ....
INSERT SELECT     | A... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
DELETE partition  | AAA. | AAA. | RRR. | AAA. | AAA. | AAA. | AAA. | RRR. | RRRR
DELETE copying    | A... | .... | RRR. | AA.. | AA.. | AA.. | AA.. | RRR. | RRRR
DELETE            | A... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
UPDATE            | A... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
UPDATE partition  | AAA. | AAA. | RRR. | AAA. | RRR. | AAA. | AAA. | RRR. | RRRR
MERGE             | A... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
COMPACTION        | .... | .... | RRR. | RRR. | RRR. | RRR. | RRR. | RRR. | RRRR
OVERWRITE         | AAAA | AAAA | RRRR | AAAA | AAAA | AAAA | AAAA | RRRR | AAAA
""",
    WRITE_SERIALIZABLE: """
INSERT            | .... | .... | .... | .... | .... | .... | .... | .... | ....
INSERT SELECT     | o... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
DELETE partition  | ooo. | AAA. | RRR. | AAA. | AAA. | AAA. | AAA. | RRR. | RRRR
DELETE copying    | o... | .... | RRR. | AA.. | AA.. | AA.. | AA.. | RRR. | RRRR
DELETE            | o... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
UPDATE            | o... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
UPDATE partition  | ooo. | AAA. | RRR. | AAA. | RRR. | AAA. | AAA. | RRR. | RRRR
MERGE             | o... | .... | RRR. | RA.. | R... | A... | A... | RRR. | RRRR
COMPACTION        | .... | .... | RRR. | RRR. | RRR. | RRR. | RRR. | RRR. | RRRR
OVERWRITE         | oooo | AAAA | RRRR | AAAA | AAAA | AAAA | AAAA | RRRR | AAAA
""",
}


def start(files: model.Files) -> model.Live:
    """Return two files of day 'mon' and one of day 'tue', with four rows each."""
    batches = [[(number, day, "x") for number in range(low, low + 4)] for low, day in ((0, "mon"), (10, "mon"), (20, "tue"))]
    return {add.path: add for rows in batches for add in files.add(rows)}


def outcome(loser: str, winner: str, relation: str, isolation: str, *, with_evidence: bool = True) -> str:
    """Return the letter of one race; '!' if the result matches no order of the two."""
    files = model.Files()
    live = start(files)
    both = [winners(relation)[winner], LOSERS[loser]]
    outcomes, end = model.raced(files, live, both, isolation=isolation, with_evidence=with_evidence)
    # If PySpark is loaded, the error's class is also one of PySpark's.
    letter = next(letter for kind, letter in LETTERS.items() if isinstance(outcomes[1], kind))
    if letter != ".":
        return letter
    rows = files.table(end)
    if rows == model.in_order(files, live, both):
        return "."
    return "o" if rows == model.in_order(files, live, both[::-1]) else "!"


@pytest.mark.parametrize("isolation", CELLS)
@pytest.mark.parametrize("loser", LOSERS)
def test_every_cell_of_the_matrix_and_successes_are_serial_orders(loser, isolation):
    cells = {line.split("|")[0].strip(): [part.strip() for part in line.split("|")[1:]] for line in lines(isolation)}
    letters = ["".join(outcome(loser, winner, relation, isolation) for relation in RELATIONS) for winner in COLUMNS]
    assert dict(zip(COLUMNS, letters, strict=True)) == dict(zip(COLUMNS, cells[loser], strict=True))


def test_the_matrix_has_a_row_for_every_loser():
    for isolation in CELLS:
        assert [line.split("|")[0].strip() for line in lines(isolation)] == list(LOSERS)


def test_only_blind_inserts_under_write_serializable_may_be_reordered():
    assert "o" not in "".join(part for line in lines(SERIALIZABLE) for part in line.split("|")[1:])
    for line in lines(WRITE_SERIALIZABLE):
        assert "o" not in "".join(line.split("|")[2:])


CHANGES = ("DELETE partition", "DELETE copying", "DELETE", "UPDATE", "MERGE")


@pytest.mark.parametrize(
    ("losers", "won_by", "isolation"),
    [
        (["INSERT"], COLUMNS, SERIALIZABLE),
        (["COMPACTION"], ["INSERT", "INSERT SELECT"], SERIALIZABLE),
        ([*CHANGES, "UPDATE partition"], ["INSERT"], WRITE_SERIALIZABLE),
    ],
)
def test_documented_non_conflicts_need_no_row_evidence(losers, won_by, isolation):
    for loser in losers:
        for winner in won_by:
            assert {outcome(loser, winner, relation, isolation, with_evidence=False) for relation in RELATIONS} <= {".", "o"}


@pytest.mark.parametrize(
    ("losers", "won_by"),
    [(CHANGES, ["INSERT", *CHANGES, "COMPACTION"]), (["COMPACTION"], [*CHANGES, "COMPACTION"])],
)
def test_documented_conflicts_occur_in_the_same_row(losers, won_by):
    for loser in losers:
        for winner in won_by:
            assert outcome(loser, winner, "same row", SERIALIZABLE) in "ARD"


def test_disjoint_partitions_never_conflict():
    for loser in LOSERS:
        for winner in COLUMNS:
            if "OVERWRITE" not in (loser, winner):
                assert outcome(loser, winner, "disjoint", SERIALIZABLE, with_evidence=False) == "."


def test_row_evidence_only_turns_conflicts_into_success():
    freed = set()
    for loser in LOSERS:
        for winner in COLUMNS:
            for relation in RELATIONS:
                without = outcome(loser, winner, relation, SERIALIZABLE, with_evidence=False)
                letters = outcome(loser, winner, relation, SERIALIZABLE)
                assert without != "." or letters == "."
                freed |= {(loser, winner, relation)} if letters == "." != without else set()
    # Different rows of one file, in every combination of changes by vector, and inserts into the range of a file's statistics.
    by_rows = {"DELETE", "UPDATE", "MERGE"}
    assert {(loser_kind, winner_kind, "same file") for loser_kind in by_rows for winner_kind in by_rows | {"INSERT"}} <= freed
    assert {relation for _, _, relation in freed} == {"same file"}


def lines(isolation: str) -> list[str]:
    return CELLS[isolation].strip().splitlines()
