"""One table for each violation: made by Tahoe, one thing in it made wrong, and exactly the rules that say so."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import tahoe
from tahoe.ops.check.strict_check import ALL_RULES
from tahoe.ops.check.table_check import strict_violations
from tahoe.store.local_store import LocalLogStore
from tahoe.txn.hooks import checkpoint_snapshot
from tests.cleaned_logs import start_at_the_checkpoint
from tests.unit.ops.check import planted_in_commits, planted_in_files, planted_in_settings, planted_in_summaries
from tests.unit.ops.check.planting import SUMMED_UP, TABLES, Plant, log_of

pytestmark = pytest.mark.damages_tables

PLANTED = [
    *planted_in_commits.PLANTED,
    *planted_in_settings.PLANTED,
    *planted_in_files.PLANTED,
    *planted_in_summaries.PLANTED,
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each kind of table, made once and copied for each violation."""
    folder = tmp_path_factory.mktemp("whole")
    for name, make in TABLES.items():
        make(folder / name)
        if name not in SUMMED_UP:
            for file in [*log_of(folder / name).glob("*.crc"), *log_of(folder / name).glob("*checkpoint*")]:
                file.unlink()
    return {name: folder / name for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_tahoe_wrote_breaks_no_rule(tables: dict[str, Path], name: str) -> None:
    assert strict_violations(tahoe.Table(str(tables[name])).store) == []


@pytest.mark.parametrize("with_its_commit", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_a_log_that_starts_at_a_checkpoint_breaks_no_rule(
    tables: dict[str, Path], tmp_path: Path, name: str, with_its_commit: bool
) -> None:
    """In each version but the newest, where a log needs a commit after its checkpoint: a change of metadata and of files is next."""
    whole = tahoe.Table(str(shutil.copytree(tables[name], tmp_path / "whole")))
    whole.set_properties({"custom": "1"})
    whole.append(whole.to_arrow().slice(0, 1))
    for version in range(whole.version()):
        root = Path(shutil.copytree(tmp_path / "whole", tmp_path / str(version)))
        checkpoint_snapshot(replace(whole.snapshot(version), store=LocalLogStore(root)), whole.clock)
        start_at_the_checkpoint(root, with_its_commit=with_its_commit)
        assert tahoe.Table(str(root)).check(deep=True) == []
        gone = set() if with_its_commit else {"what-is-gone-is-in-a-checkpoint"}
        assert {actual.code for actual in strict_violations(LocalLogStore(root))} == gone


@pytest.mark.parametrize(("what", "kind", "plant", "rules"), PLANTED, ids=[each[0] for each in PLANTED])
def test_each_violation_is_found_by_the_rules_that_are_about_it(
    tables: dict[str, Path], tmp_path: Path, what: str, kind: str, plant: Plant, rules: set[str]
) -> None:
    table = tmp_path / "table"
    shutil.copytree(tables[kind], table)
    plant(table)
    actual = strict_violations(tahoe.Table(str(table)).store)
    assert {each.code for each in actual} == rules, "\n".join(map(str, actual))
    assert {each.section for each in actual} == {section for section, name in ALL_RULES if name in rules}


def test_every_rule_has_a_table_that_breaks_it() -> None:
    names = {name for _, name in ALL_RULES}
    assert len(names) == len(ALL_RULES), "no two rules have one name"
    assert {name for *_, rules in PLANTED for name in rules} == names


def test_most_rules_have_a_table_that_breaks_them_alone() -> None:
    """One fault of a writer often breaks two rules; otherwise one table shows the one rule."""
    assert len({name for *_, rules in PLANTED if len(rules) == 1 for name in rules}) >= 120
