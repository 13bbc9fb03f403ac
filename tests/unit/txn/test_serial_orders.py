"""Random racing operations, compared with running the committed ones one after the other."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import DeltaConcurrentModificationException
from tahoe.testing import raced_rows as model
from tahoe.txn.transaction import SERIALIZABLE, WRITE_SERIALIZABLE

DAYS = ("mon", "tue")


def condition(chance: random.Random) -> str:
    where = chance.choice(
        ["id = {a}"] * 4 + ["id in ({a}, {b})", "id < {a}", "id >= {b}", "id != {a}", "value = 'x'", "id between {a} and {b}"]
    )
    low, high = sorted(chance.choices(range(9), k=2))
    day = f" and day = '{chance.choice(DAYS)}'" if chance.random() < 0.5 else ""
    return where.format(a=low, b=high) + day


def operation(chance: random.Random, name: str) -> tuple[str, model.OperationOn]:
    vectors = chance.random() < 0.9
    kind = chance.choice(["insert", "copy", "compact", "partition", "move"] + ["delete", "update", "upsert"] * 3)
    day = chance.choice(DAYS)
    made = {
        "insert": lambda: model.insert([(chance.randrange(9), day, name)]),
        "delete": lambda: model.delete(condition(chance), vectors=vectors),
        "update": lambda: model.update(condition(chance), name, vectors=vectors),
        "upsert": lambda: model.upsert(sorted({chance.randrange(9), chance.randrange(9)}), day, name, vectors=vectors),
        "move": lambda: model.move(condition(chance), day, vectors=vectors),
        "copy": lambda: model.copy_rows(condition(chance), day),
        "compact": lambda: model.compact(day),
        "partition": lambda: model.delete_partition(day),
    }
    return f"{kind}{'' if vectors else ' copying'}", made[kind]()


def table(chance: random.Random, files: model.Files) -> model.Live:
    """Return up to four small files; some have deleted rows already."""
    live = {}
    for _ in range(chance.randint(1, 3)):
        day = chance.choice(DAYS)
        for add in files.add([(chance.randrange(9), day, chance.choice("xy")) for _ in range(chance.randint(1, 7))]):
            live[add.path] = add
    for _, change in (operation(chance, "before") for _ in range(chance.randint(0, 2))):
        live = model.applied(live, change(files, live).actions)
    return live


@pytest.mark.every_case
@pytest.mark.parametrize("races", [40, pytest.param(150, marks=pytest.mark.soak)])
@pytest.mark.parametrize("isolation", [SERIALIZABLE, WRITE_SERIALIZABLE])
def test_commits_of_racing_random_operations_are_a_serial_order(isolation, races):
    merged, freed, conflicts = 0, 0, Counter()
    for seed in range(races):
        chance = random.Random(seed)
        files = model.Files()
        live = table(chance, files)
        named = [operation(chance, f"w{number}") for number in range(chance.randint(2, 4))]
        operations = [made for _, made in named]
        outcomes, end = model.raced(files, live, operations, isolation=isolation)
        committed = [made for made, conflict in zip(operations, outcomes, strict=True) if conflict is None]
        conflicts.update(type(conflict).__name__ for conflict in outcomes if isinstance(conflict, Exception))
        if isolation == SERIALIZABLE:
            assert files.table(end) == model.in_order(files, live, committed), (seed, [name for name, _ in named], outcomes)
        else:
            orders = (model.in_order(files, live, list(order)) for order in _orders(committed))
            assert any(files.table(end) == rows for rows in orders), (seed, [name for name, _ in named], outcomes)
        merged += sum(add.deletion_vector is not None and add.deletion_vector.storage_type == "i" for add in end.values())
        without, _ = model.raced(files, live, operations, isolation=isolation, with_evidence=False)
        freed += sum(isinstance(each, Exception) for each in without) - sum(isinstance(each, Exception) for each in outcomes)
    # The law is vacuous unless vectors were merged, rows decided, and each conflict occurred.
    assert merged > races / 20 and freed > races / 10
    assert set(conflicts) == {"ConcurrentAppendException", "ConcurrentDeleteReadException"}


def test_a_commit_that_restores_rows_is_not_one_that_only_deletes_some():
    files = model.Files()
    (add,) = files.add([(number, "mon", "x") for number in range(6)])
    start = model.applied({add.path: add}, model.delete("id in (1, 2)", vectors=True)(files, {add.path: add}).actions)

    def restore(files: model.Files, live: model.Live) -> model.Change:
        """Restore row 2 and delete row 3, so that the vector keeps its length."""
        note = lambda transaction: transaction.read_whole_table()  # noqa: E731
        return model.Change(note, files.with_dead(live[add.path], BitMap64([1, 3])))

    for condition in ("id in (2, 5)", "id = 5"):
        outcomes, _ = model.raced(files, start, [restore, model.delete(condition, vectors=True)])
        assert outcomes[0] is None and isinstance(outcomes[1], DeltaConcurrentModificationException)


def _orders(operations: list[model.OperationOn]) -> list[list[model.OperationOn]]:
    if len(operations) < 2:
        return [operations]
    return [
        [first, *rest]
        for position, first in enumerate(operations)
        for rest in _orders([*operations[:position], *operations[position + 1 :]])
    ]
