"""Beside busy appenders DELETE, UPDATE and MERGE get their turn, and the appenders get theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mixed_load import CHANGES, WRITERS, make_table, measure, run
from tahoe.api.table import Table

ENOUGH = 50
"""Enough appends for a share: with few, a writer may lose all turns by chance."""


@pytest.mark.soak
def test_no_writer_starves_beside_others(tmp_path: Path) -> None:
    """Shares of one run, since nothing is known of how busy the machine is: starved writers did one for hundreds of appends. The load
    lasts four seconds, and its processes take as long to begin; it lasts longer where they come to little in that time."""
    path = str(tmp_path / "table")
    make_table(path, vectors=True)
    operations = 0
    for phase, seconds in enumerate((4.0, 20.0, 200.0)):
        done = run("tahoe", path, WRITERS, seconds, phase)
        operations += sum(len(each.milliseconds) for each in done)
        appends = sum(len(each.milliseconds) for each in done if each.kind == "append")
        if appends >= ENOUGH:
            break
    assert appends >= ENOUGH
    for each in done:
        assert len(each.milliseconds) >= max(1, 0.02 * appends), (each.kind, len(each.milliseconds), appends)
        assert each.begun_again == 0, each.kind
    table = Table(path)
    assert table.check() == []
    assert list(Path(path, "_delta_log").glob("_tahoe_intents/*")) == []
    assert table.version() == 1 + operations


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_each_change_keeps_a_fifth_of_its_rate_and_appends_stay_fast() -> None:
    actual = measure("tahoe", 60, 50)
    changes, appends, ten = actual["changes"], actual["appends"], actual["ten_appenders"]
    assert isinstance(changes, dict)
    assert isinstance(appends, dict)
    assert isinstance(ten, dict)
    assert all(changes[kind]["share"] >= 0.2 for kind in CHANGES), actual
    assert appends["p99_ms"] < 1_000, actual
    assert ten["longest_ms"] < 3_000, actual
