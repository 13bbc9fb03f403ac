"""Histories depend only on their seed, and each step is described and carried out."""

from __future__ import annotations

from pathlib import Path

from tahoe.testing.random_history import FORMS, V3, History, restore
from tahoe.testing.table_laws import assert_laws

REWRITING = {"delta.enableDeletionVectors": "false"}


def rows(history: History) -> list[str]:
    return sorted(map(repr, history.table.to_arrow().to_pylist()))


def test_a_seed_gives_the_same_steps_and_the_same_rows(tmp_path: Path) -> None:
    outcomes = []
    for name in ("a", "b"):
        history = History(tmp_path / name, 5, REWRITING)
        outcomes.append((list(history.steps(4)), rows(history)))
    assert outcomes[0] == outcomes[1] and len(outcomes[0][0]) == 4


# Slow (over a second on a busy machine): a law for each of some ten columns of unusual types, at every version.
def test_a_history_breaks_no_law(tmp_path: Path) -> None:
    history = History(tmp_path, 2, {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    for _ in history.steps(4):
        pass
    assert_laws(history.table)
    assert history.done[0] in repr(history)


def test_columns_are_altered_except_those_used_by_conditions(tmp_path: Path) -> None:
    history = History(tmp_path, 3, V3)
    history.append()
    before = set(history.table.to_arrow().column_names)
    history.add_column()
    assert set(history.table.to_arrow().column_names) - before == {"extra 1"}
    history.rename_column()
    history.drop_column()
    now = set(history.table.to_arrow().column_names)
    assert len(now) == len(before) and {"id", "part 1/ü"} <= now


def test_restore_brings_back_old_rows_and_reports_when_nothing_changes(tmp_path: Path) -> None:
    history = History(tmp_path, 2, FORMS["format 2, rewriting"])
    history.append()
    version, old = history.table.version(), rows(history)
    history.table.delete()
    assert restore(history.table, version) and rows(history) == old
    assert not restore(history.table, version) and not restore(history.table, history.table.version())
