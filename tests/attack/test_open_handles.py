"""A handle that has seen a version never goes back behind it without a word."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest

from tahoe.base.exceptions import TahoeError
from tests.attack.damages import DAMAGES, cases_of, sample
from tests.attack.known import is_known
from tests.attack.test_attack import SEED
from tests.attack.verdict import Failure, Judge, rows_of, table_of
from tests.attack.victims import VICTIMS, victim

pytestmark = pytest.mark.damages_tables


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("table", VICTIMS)
@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("with_checksums", [True, False])
def test_a_handle_that_saw_a_version_raises_when_it_is_gone(table: str, lost: int, with_checksums: bool) -> None:
    whole = victim(table)
    handle = table_of(whole, {})
    seen = handle.version()
    for name in whole.of_kind("commit")[-lost:]:
        handle.store.damage(name, None)  # type: ignore[attr-defined]
        if with_checksums:
            handle.store.damage(name.replace(".json", ".crc"), None)  # type: ignore[attr-defined]
    with pytest.raises(TahoeError) as caught:
        rows_of(handle.to_arrow())
    assert whole.url in caught.value.message
    assert str(seen) in caught.value.message


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", ["plain", "vectors", "checkpoint"])
def test_an_open_handle_gives_the_right_rows_or_an_error_when_its_table_is_damaged(table: str, damage: str) -> None:
    chance = random.Random(f"{SEED} handle {table} {damage}")
    cases = [case for case in cases_of(damage, victim(table)) if "commit" in case.kind]
    report = Judge(victim(table), open_handle=True).judge(sample(cases, chance, 3), _of_check)
    assert not report.failures, str(report)


def _of_check(found: Failure) -> bool:
    """`check()` reads the storage, not the handle, so the list of undetectable corruption applies to it."""
    return found.question == "check" and is_known(found)


@pytest.mark.parametrize("hinted", ["the older checkpoint", "nothing"])
def test_a_damaged_checkpoint_that_is_not_hinted_is_passed_over(hinted: str) -> None:
    whole = victim("checkpoint")
    older, newest = whole.of_kind("checkpoint")
    hint = f'{{"version":{int(older[11:31])},"size":99}}'.encode() if hinted == "the older checkpoint" else None
    truth = rows_of(table_of(whole, {}).to_arrow())
    data = whole.files[newest]
    for damaged in (b"", b"PAR1", data[:-9], data[: len(data) // 2] + bytes(len(data) - len(data) // 2)):
        table = table_of(whole, {newest: damaged, "_delta_log/_last_checkpoint": hint})
        assert rows_of(table.to_arrow()) == truth
        assert any(actual.version == int(newest[11:31]) for actual in table.check())
