"""A table's time zone without Spark: expressions read the wall clock in it, and texts without a zone are times in it."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import SqlCoordinator, Table
from tahoe.api.several_tables import transaction
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, InvariantViolation
from tahoe.ops.rows.insert import WriteOptions
from tahoe.schema.types import schema_from_json

ZONE = "America/Los_Angeles"
EVENING = datetime(2026, 1, 2, 7, 0, tzinfo=UTC)
"""23:00 of the first of January in Los Angeles."""
SCHEMA = schema_from_json(
    '{"type": "struct", "fields": ['
    '{"name": "id", "type": "long", "nullable": true, "metadata": {}},'
    '{"name": "at", "type": "timestamp", "nullable": true, "metadata": {}},'
    '{"name": "day", "type": "date", "nullable": true, "metadata": {"delta.generationExpression": "CAST(at AS DATE)"}},'
    '{"name": "hour", "type": "integer", "nullable": true, "metadata": {"delta.generationExpression": "hour(at)"}}]}'
)


def rows(*ids: int, at: datetime = EVENING) -> pa.Table:
    return pa.table({"id": list(ids), "at": pa.array([at] * len(ids), pa.timestamp("us", "UTC"))})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "t", SCHEMA, time_zone=ZONE)
    table.append(rows(1, 2))
    return table


def stored(table: Table, **options: Any) -> list[tuple[object, ...]]:
    found = table.to_arrow(**options).select(["id", "day", "hour"]).to_pylist()
    return sorted((row["id"], row["day"], row["hour"]) for row in found)


def test_generated_columns_read_the_wall_clock(table: Table) -> None:
    assert stored(table) == [(1, date(2026, 1, 1), 23), (2, date(2026, 1, 1), 23)]
    with pytest.raises(InvariantViolation, match="Generated Column"):
        table.append(rows(3).append_column("hour", pa.array([7], pa.int32())))
    table.update({"at": "at + INTERVAL 1 HOUR"}, "id = 1")
    assert stored(table) == [(1, date(2026, 1, 2), 0), (2, date(2026, 1, 1), 23)]
    merge = table.merge(rows(2, 3, at=EVENING - timedelta(hours=23)), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert stored(table) == [(1, date(2026, 1, 2), 0), (2, date(2026, 1, 1), 0), (3, date(2026, 1, 1), 0)]
    assert table.check(deep=True, strict=True) == []


def test_tables_in_a_transaction_have_their_time_zones(tmp_path: Path) -> None:
    coordinator = SqlCoordinator(f"sqlite:///{tmp_path / 'commits.db'}")
    managed = {"delta.feature.catalogManaged": "supported"}
    table = Table.create(tmp_path / "t", SCHEMA, time_zone=ZONE, coordinator=coordinator, properties=managed)
    with transaction(table) as changed:
        changed[table].append(rows(4))
    assert stored(table) == [(4, date(2026, 1, 1), 23)]


def test_constraints_read_the_wall_clock(table: Table) -> None:
    table.add_constraint("evening", "hour(at) = 23")
    table.append(rows(3))
    with pytest.raises(InvariantViolation, match="evening"):
        table.append(rows(4, at=EVENING + timedelta(hours=1)))
    with pytest.raises(InvariantViolation, match="not fulfil"):
        Table(table.url).add_constraint("evening_in_utc", "hour(at) = 23")


def test_defaults_are_of_the_local_day(tmp_path: Path) -> None:
    schema = schema_from_json(
        '{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true, "metadata": {}},'
        '{"name": "day", "type": "date", "nullable": true, "metadata": {"CURRENT_DEFAULT": "current_date()"}}]}'
    )
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    clock = SeededClock(start_ms=int(EVENING.timestamp() * 1000))
    table = Table.create(tmp_path / "t", schema, properties=properties, clock=clock, time_zone=ZONE)
    table.append(pa.table({"id": [1]}))
    assert table.to_arrow()["day"].to_pylist() == [date(2026, 1, 1)]
    assert Table(table.url, clock=clock, time_zone=ZONE).to_arrow(filter="day = current_date()").num_rows == 1
    assert Table(table.url, clock=clock).to_arrow(filter="day = current_date()").num_rows == 0


@pytest.mark.parametrize(
    "filter", ["at = '2026-01-01 23:00:00'", [("at", "=", "2026-01-01 23:00:00")], "date_format(at, 'HH') = '23'"]
)
def test_conditions_read_texts_as_local_times(table: Table, filter: Any) -> None:
    assert len(stored(table, filter=filter)) == 2
    assert table.files(filter).num_rows == 1
    assert stored(Table(table.url), filter=filter) == []
    assert Table(table.url).delete(filter).num_deleted_rows == 0
    table.overwrite(rows(7), replace_where=filter)
    assert [row[0] for row in stored(table)] == [7]
    assert table.delete(filter).num_deleted_rows == 1


def test_partitions_are_selected_by_local_times(tmp_path: Path) -> None:
    schema = {"id": "long", "at": "timestamp"}
    table = Table.create(tmp_path / "t", schema, partition_by=["at"], time_zone=ZONE)
    for number in range(2):
        table.append(rows(number))
    local = "at = '2026-01-01 23:00:00'"
    assert len(Table(table.url).optimize(where=local).plan.bins) == 0
    assert len(table.optimize(where=local, dry_run=True).plan.bins) == 1
    assert table.compute_statistics(where=local, dry_run=True).files == 2


def test_versions_are_named_by_local_times(table: Table, tmp_path: Path) -> None:
    table.append(rows(3))
    for version, hour in enumerate((7, 8, 9)):
        at = datetime(2026, 1, 2, hour, tzinfo=UTC).timestamp()
        os.utime(tmp_path / "t" / "_delta_log" / f"{version:020}.json", (at, at))
    table = Table(tmp_path / "t", time_zone=ZONE)
    between = "2026-01-02 00:30:00"
    assert table.snapshot(timestamp=between).version == 1
    assert table.to_arrow(timestamp=datetime(2026, 1, 2, 0, 30)).num_rows == 2
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    batch = next(iter(table.tail(from_timestamp=between)))
    assert batch.to_arrow()["id"].to_pylist() == [3]
    table.restore(timestamp=between)
    assert [row[0] for row in stored(table)] == [1, 2]
    assert table.history(1)[0]["operationParameters"]["timestamp"] == "2026-01-02 00:30:00.0"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../UTC", "+25:00"])
def test_a_name_that_is_no_zone_is_refused(tmp_path: Path, zone: str) -> None:
    with pytest.raises(InvalidRequest, match=r"\[TAHOE_TIME_ZONE\].* is no time zone"):
        Table(tmp_path / "t", time_zone=zone)


def test_offsets_are_zones(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, time_zone="GMT-8")
    table.append(rows(1))
    table.write(rows(2), WriteOptions("append"))
    assert stored(table) == [(1, date(2026, 1, 1), 23), (2, date(2026, 1, 1), 23)]
