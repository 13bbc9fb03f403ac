"""Histories come of their seed alone, and each step is told and made."""

from __future__ import annotations

from pathlib import Path

from tahoe.testing.random_history import FORMS, V3, History, restore
from tahoe.testing.table_laws import assert_laws

REWRITING = {"delta.enableDeletionVectors": "false"}


def rows(history: History) -> list[str]:
    return sorted(map(repr, history.table.to_arrow().to_pylist()))


def test_a_seed_gives_the_same_steps_and_the_same_rows(tmp_path: Path) -> None:
    told = []
    for name in ("a", "b"):
        history = History(tmp_path / name, 5, REWRITING)
        told.append((list(history.steps(4)), rows(history)))
    assert told[0] == told[1] and len(told[0][0]) == 4


# Over a second where the machine is busy: a law for each of some ten columns of odd types, at every version.
def test_a_history_breaks_no_law(tmp_path: Path) -> None:
    history = History(tmp_path, 2, {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    for _ in history.steps(4):
        pass
    assert_laws(history.table)
    assert history.done[0] in repr(history)


def test_columns_are_added_renamed_and_dropped_but_for_those_that_conditions_name(tmp_path: Path) -> None:
    history = History(tmp_path, 3, V3)
    history.append()
    before = set(history.table.to_arrow().column_names)
    history.add_column()
    assert set(history.table.to_arrow().column_names) - before == {"extra 1"}
    history.rename_column()
    history.drop_column()
    now = set(history.table.to_arrow().column_names)
    assert len(now) == len(before) and {"id", "part 1/ü"} <= now


def test_restore_brings_old_rows_back_and_says_where_there_is_nothing_to_do(tmp_path: Path) -> None:
    history = History(tmp_path, 2, FORMS["format 2, rewriting"])
    history.append()
    version, old = history.table.version(), rows(history)
    history.table.delete()
    assert restore(history.table, version) and rows(history) == old
    assert not restore(history.table, version) and not restore(history.table, history.table.version())
