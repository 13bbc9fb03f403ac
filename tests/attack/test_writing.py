"""Writing to a corrupt table: the write is refused, or keeps the table right; it never copies the corruption into new files."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tahoe import Table
from tahoe.base.exceptions import TahoeError
from tests.attack.damages import DAMAGES, Case, cases_of, flips, sample
from tests.attack.test_attack import SEED
from tests.attack.verdict import names_its_place, rows_of, table_of, time_limit
from tests.attack.victims import Victim, rows, victim

pytestmark = pytest.mark.damages_tables

IN_SUITE = 1
"""Cases of each damage to each table and each write, in the suite."""
TABLES = ("plain", "vectors", "timed", "checkpoint")
TABLES_IN_SOAK = (*TABLES, "mapped", "tracked", "sidecars")
DATA = ("data", "change data")


def append_to_checkpoint(table: Table) -> None:
    """Append until the table writes a checkpoint by itself."""
    while True:
        table.append(rows(900, 3))
        if table.version() % 10 == 0:
            return


WRITES: dict[str, Callable[[Table], Any]] = {
    "append": lambda table: table.append(rows(900, 3)),
    "appends up to a checkpoint": append_to_checkpoint,
    "delete": lambda table: table.delete("id = 10"),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@cache
def planned(table: str, damage: str, most: int | None) -> list[Case]:
    """Corruption of the log and the vectors, except for the loss of the newest version, which is undetectable (`tests/attack/known.py`)."""
    chance = random.Random(f"{SEED} writing {table} {damage}")
    actual = victim(table)
    cases = list(flips(actual, chance, 40)) if damage == "flipped" else cases_of(damage, actual)
    tellable = [case for case in cases if not case.what.startswith("the newest commit gone with its checksum")]
    return sample([case for case in tellable if not any(kind in case.kind for kind in DATA)], chance, most)


def fault(whole: Victim, case: Case, write: str) -> str | None:
    """The fault of the table after a write to the corrupt table, once the corruption is repaired; None if there is none."""
    table = table_of(whole, case.files)
    try:
        with time_limit():
            WRITES[write](table)
            table.checkpoint()
    except TahoeError as error:
        if not names_its_place(error, whole):
            return f"nameless error: {error}"
    except Exception as error:  # noqa: BLE001 - the test examines the kind of error
        return f"{type(error).__name__}: {error}"
    for name in case.files:
        table.store.damage(name, whole.files[name])  # type: ignore[attr-defined]
    return _after_mending(whole, Table(whole.url, store=table.store), write)


def _after_mending(whole: Victim, mended: Table, write: str) -> str | None:
    try:
        if violations := mended.check():
            return f"check: {violations[0]}"
        actual = rows_of(mended.to_arrow())
    except Exception as error:  # noqa: BLE001 - the table is whole again, so none is right
        return f"after mending: {type(error).__name__}: {error}"
    before, after = _truths(whole.name, write)
    return None if actual in (before, after) else f"{len(actual)} rows, not {len(before)} before"


@cache
def _truths(name: str, write: str) -> tuple[list[str], list[str]]:
    """The rows of the whole table before and after the write."""
    table = table_of(victim(name), {})
    before = rows_of(table.to_arrow())
    WRITES[write](table)
    return before, rows_of(table.to_arrow())


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("table", TABLES)
def test_a_write_to_a_damaged_table_is_refused_or_keeps_the_table_right(table: str, write: str) -> None:
    assert_kept(table, write, IN_SUITE)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("table", TABLES_IN_SOAK)
def test_every_write_to_a_damaged_table_is_refused_or_keeps_the_table_right(table: str, write: str) -> None:
    assert_kept(table, write, 50)


def assert_kept(table: str, write: str, most: int) -> None:
    cases = [case for damage in [*DAMAGES, "flipped"] for case in planned(table, damage, most)]
    faults = [f"{case.what}: {actual}" for case in cases if (actual := fault(victim(table), case, write)) is not None]
    assert not faults, f"{len(faults)} of {len(cases)}:\n" + "\n".join(faults[:20])
