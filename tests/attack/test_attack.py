"""Every corruption of every kind of file of every table: the right rows, or an error that names the table and the position.

Each test runs many cases of one corruption of one table, and reports all of its failures at once, grouped. A sample by seed
(`TAHOE_ATTACK_SEED`) runs with the suite; all cases (a few of equal ones, by seed) and thousands of flipped bits have the mark `soak`.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from functools import cache
from itertools import islice

import pytest

from tahoe.store.log_store import LogStore
from tahoe.testing.store_suite import LogStoreContract
from tests.attack.damages import DAMAGES, Case, cases_of, few_of_each_shape, flips, sample
from tests.attack.known import KNOWN, is_known
from tests.attack.overlay import Overlay
from tests.attack.verdict import LIMIT_SECONDS, Judge, table_of
from tests.attack.victims import VICTIMS, victim

pytestmark = pytest.mark.damages_tables

SEED = int(os.environ.get("TAHOE_ATTACK_SEED", "1"))
FLIPPED = "flipped"
KINDS = [*DAMAGES, FLIPPED]
IN_SUITE = 6
IN_SUITE_WITH_CHECKPOINTS = 2
"""Cases of one damage to one table, in the suite. Tables with checkpoints take several times as long."""
LEAST_IN_SUITE = 700
FLIPS_IN_SOAK = 1_000
"""Flipped bits of each table, in the soak."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Corruption is logged too, thousands of times here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@cache
def planned(table: str, damage: str, seed: int, most: int | None) -> list[Case]:
    """A limited number of cases of one corruption of one table, or all but equal ones; the same for the same seed."""
    chance = random.Random(f"{seed} {table} {damage}")
    actual = victim(table)
    if damage == FLIPPED:
        expected = FLIPS_IN_SOAK if most is None else most
        return sample(flips(actual, chance, -(-expected // len(actual.kinds()))), chance, expected)
    cases = cases_of(damage, actual)
    return few_of_each_shape(cases, actual, chance) if most is None else sample(cases, chance, most)


def in_suite(table: str, damage: str) -> list[Case]:
    """The sample of this seed."""
    has_checkpoints = any("checkpoint" in kind for kind in victim(table).kinds())
    return planned(table, damage, SEED, IN_SUITE_WITH_CHECKPOINTS if has_checkpoints else IN_SUITE)


def assert_reported(table: str, cases: list[Case], check_each: int = 1) -> None:
    report = Judge(victim(table), check_each=check_each).judge(cases, is_known)
    assert not report.failures, str(report)
    assert report.slowest[0] < LIMIT_SECONDS, f"{report.slowest[1]} took {report.slowest[0]:.1f} s of the processor's time"


@pytest.mark.parametrize("damage", KINDS)
@pytest.mark.parametrize("table", VICTIMS)
def test_a_damaged_table_gives_the_right_rows_or_an_error_that_names_the_place(table: str, damage: str) -> None:
    assert_reported(table, in_suite(table, damage), check_each=5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("damage", KINDS)
@pytest.mark.parametrize("table", VICTIMS)
def test_every_damage_gives_the_right_rows_or_an_error_that_names_the_place(table: str, damage: str) -> None:
    assert_reported(table, planned(table, damage, SEED, None), check_each=5)


def test_the_attack_has_as_many_cases_as_were_promised() -> None:
    assert sum(len(in_suite(table, damage)) for table in VICTIMS for damage in KINDS) >= LEAST_IN_SUITE


@pytest.mark.parametrize("name", KNOWN)
def test_damage_that_no_reader_can_notice_is_still_not_noticed(name: str) -> None:
    """An entry that nothing needs any more is struck off the list."""
    entry = KNOWN[name]
    judge = Judge(victim(entry.table))
    cases = planned(entry.table, entry.damage, 1, None)
    drawn = random.Random(1).sample(cases, len(cases))
    assert any(entry.covers(actual) for case in islice(drawn, 400) for actual in judge.judge([case]).failures)


@pytest.mark.parametrize("table", VICTIMS)
def test_a_whole_table_has_nothing_to_report(table: str) -> None:
    judge = Judge(victim(table))
    report = judge.judge([Case("none", "no damage", {"unheard of": b""})])
    assert not report.failures, str(report)
    assert table_of(judge.victim, {}).check() == []


class TestOverlay(LogStoreContract):
    @pytest.fixture
    def store(self) -> LogStore:
        return Overlay("memory://attack/contract", {"x": b""}, {"x": None})
