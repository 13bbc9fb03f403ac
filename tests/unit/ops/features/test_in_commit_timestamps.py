"""In-commit timestamps on a table that had none: since when, by which clock, and after the feature is dropped and added again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.base.clock import SystemClock

ROW = pa.table({"id": [1]})
HOUR_MS = 3_600_000


class Skewed(SystemClock):
    """A clock that is some hours wrong."""

    def __init__(self, hours: int) -> None:
        self.hours = hours

    def now_ms(self) -> int:
        return super().now_ms() + self.hours * HOUR_MS


def times(table: Table) -> dict[int, int]:
    return {entry["version"]: round(entry["timestamp"].timestamp() * 1000) for entry in table.history()}


def test_times_increase_whatever_the_clocks_of_writers_say(tmp_path: Path) -> None:
    early, late = (Table(tmp_path, clock=Skewed(hours)) for hours in (-5, 7))
    Table.create(tmp_path, ROW.schema)
    early.append(ROW)
    late.set_properties({"delta.enableInCommitTimestamps": "true"})
    for table in (early, late, early, late):
        table.append(ROW)
    actual = Table(tmp_path)
    configuration = actual.snapshot().metadata.configuration
    by_version = times(actual)
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(by_version[2])
    assert [by_version[v] for v in range(7)] == sorted(set(by_version.values()))
    for version, time in by_version.items():
        assert actual.snapshot(timestamp=datetime.fromtimestamp(time / 1000, UTC)).version == version
    assert actual.check() == []


def test_the_feature_goes_and_comes_back_with_another_beginning(tmp_path: Path) -> None:
    table = Table.create(tmp_path, ROW.schema, properties={"delta.enableInCommitTimestamps": "true"})
    table.append(ROW)
    dropped = table.drop_feature("inCommitTimestamp").version
    table.append(ROW)
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    table.append(ROW)
    actual = Table(tmp_path)
    assert dropped == 3 and actual.snapshot().metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "5"
    by_version = times(actual)
    assert [by_version[v] for v in range(7)] == sorted(set(by_version.values())) and actual.check() == []
