"""Conditions on partitions that an engine evaluates, because Tahoe does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.row_condition import RowCondition
from tahoe.ops.rows.conditions import select_partitions
from tahoe.schema.types import StructType

DAYS = [date(2026, 11, 28), date(2026, 11, 29), None]
BY_TIME = "day >= current_date() - INTERVAL 1 DAY"
NOW = Moment(1_795_950_000_000)
"""The 29th of November 2026."""


class Engine:
    """An engine that selects the last day.

    Args:
        agrees: whether conditions mean to it what they mean to Tahoe.
    """

    def __init__(self, *, agrees: bool = True) -> None:
        self._agrees = agrees
        self.calls: list[tuple[str, list[str], list[tuple[Any, ...]]]] = []

    def agrees(self, condition: RowCondition) -> bool:
        return self._agrees

    def __call__(self, where: str, columns: StructType, partitions: Sequence[tuple[Any, ...]]) -> list[int]:
        self.calls.append((where, list(columns.names), list(partitions)))
        return [place for place, (day, _) in enumerate(partitions) if day == DAYS[1]]


@pytest.fixture
def table(tmp_path):
    table = Table.create(
        tmp_path / "t", pa.schema({"id": pa.int64(), "day": pa.date32(), "n": pa.int32()}), partition_by=["day", "n"]
    )
    for number in (1, 2):
        table.append(pa.table({"id": [number] * 3, "day": pa.array(DAYS), "n": pa.array([7, 7, None], pa.int32())}))
    return table


def test_each_partition_is_sent_once_with_values_of_its_types_and_all_its_files_are_selected(table):
    engine = Engine()
    selected = select_partitions(table.snapshot(), BY_TIME, NOW, engine=engine)
    ((where, columns, partitions),) = engine.calls
    assert (where, columns) == (BY_TIME, ["day", "n"])
    assert sorted(partitions, key=str) == sorted([(DAYS[0], 7), (DAYS[1], 7), (None, None)], key=str)
    assert selected.condition == BY_TIME
    assert [add.partition_values["day"] for add in selected.adds] == ["2026-11-29"] * 2


def test_a_condition_that_tahoe_evaluates_is_not_sent(table):
    engine = Engine()
    assert len(select_partitions(table.snapshot(), "day = '2026-11-28'", NOW, engine=engine).adds) == 2
    with pytest.raises(InvalidRequest, match="DELTA_NON_PARTITION_COLUMN_REFERENCE"):
        select_partitions(table.snapshot(), "id = 1", NOW, engine=engine)
    assert engine.calls == []


def test_a_condition_that_means_something_else_to_the_engine_is_sent(table):
    engine = Engine(agrees=False)
    selected = select_partitions(table.snapshot(), "day = '2026-11-28'", NOW, engine=engine)
    assert [add.partition_values["day"] for add in selected.adds] == ["2026-11-29"] * 2
    assert [where for where, _, _ in engine.calls] == ["day = '2026-11-28'"]


def test_without_an_engine_the_condition_is_refused(table):
    with pytest.raises(InvalidRequest, match="TAHOE_EXPRESSION_NOT_ALLOWED"):
        select_partitions(table.snapshot(), "hex(n) = '7'", NOW)
    selected = select_partitions(table.snapshot(), BY_TIME, NOW)
    assert {add.partition_values["day"] for add in selected.adds} == {"2026-11-28", "2026-11-29"}


def test_a_table_without_partitions_is_one_partition(tmp_path):
    table = Table(tmp_path / "t")
    table.append(pa.table({"id": [1]}))
    snapshot = table.snapshot()
    for places in ([0], []):
        engine = Mock(Engine, return_value=places)
        assert len(select_partitions(snapshot, "current_date() > '2020-01-01'", NOW, engine=engine).adds) == len(places)
