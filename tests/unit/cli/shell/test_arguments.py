"""Storage options on the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.cli.shell.arguments import COORDINATOR, TIME_ZONE, open_table, options_of
from tahoe.coordinator.sql_coordinator import SqlCoordinator


def test_an_option_is_a_name_and_a_value_which_may_contain_equals_signs() -> None:
    assert options_of(["region=eu", "key=a=b=", "empty="]) == {"region": "eu", "key": "a=b=", "empty": ""}
    assert options_of([]) == {}


@pytest.mark.parametrize("text", ["region", "=eu", ""])
def test_an_option_without_a_name_or_a_value_is_refused_and_the_value_is_not_shown(text: str) -> None:
    with pytest.raises(InvalidRequest, match="--option name=value") as caught:
        options_of([text])
    assert caught.value.code == "TAHOE_STORAGE_OPTION" and "eu" not in caught.value.message


def test_opening_a_table_reads_nothing(tmp_path: Path) -> None:
    assert not open_table(str(tmp_path), []).exists()


def test_the_coordinator_of_a_managed_table_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, path = f"sqlite:///{tmp_path}/c.db", str(tmp_path / "t")
    properties = {"delta.feature.catalogManaged": "supported"}
    Table.create(path, pa.schema([("id", pa.int64())]), properties=properties, coordinator=SqlCoordinator(url))
    with pytest.raises(Unsupported, match=COORDINATOR):
        open_table(path, []).version()
    monkeypatch.setenv(COORDINATOR, url)
    assert open_table(path, []).version() == 0


def test_the_time_zone_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_table(str(tmp_path), []).time_zone == "UTC"
    monkeypatch.setenv(TIME_ZONE, "Europe/Paris")
    assert open_table(str(tmp_path), []).time_zone == "Europe/Paris"
    monkeypatch.setenv(TIME_ZONE, "Paris")
    with pytest.raises(InvalidRequest, match="'Paris' is no time zone"):
        open_table(str(tmp_path), [])
