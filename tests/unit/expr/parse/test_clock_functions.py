"""The time of the statement in conditions and values, which is the time of the table's clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.clock import SystemClock
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.predicate import Literal
from tahoe.schema.types import PrimitiveType, StructField, StructType

NOW = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


class Stopped(SystemClock):
    """A clock that stands still."""

    def now_ms(self) -> int:
        return NOW_MS


DAYS = [date(2026, 11, 29) - timedelta(days=days) for days in (0, 1, 30, 90)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("current_timestamp()", NOW),
        ("NOW ( )", NOW),
        ("current_timestamp", NOW),
        ("current_date", date(2026, 11, 30)),
        ("curdate()", date(2026, 11, 30)),
        ("localtimestamp()", datetime(2026, 11, 30, 0, 30)),
    ],
)
def test_the_functions_are_constants_in_the_time_zone_of_the_session(text, answer):
    expression = parse_expression(text, StructType(()), "Europe/Berlin", NOW_MS)
    assert isinstance(expression, Literal)
    assert expression.value == answer


def test_a_column_comes_before_a_function_without_brackets():
    schema = StructType((StructField("current_date", PrimitiveType("long")),))
    assert str(parse_expression("current_date", schema, "UTC", NOW_MS)) == "`current_date`"


@pytest.mark.parametrize("text", ["current_date()", "current_date", "now()"])
def test_without_the_time_of_a_statement_they_are_refused(text):
    with pytest.raises(InvalidRequest, match="not on the list of functions") as caught:
        parse_expression(text, StructType(()))
    assert caught.value.code == "TAHOE_EXPRESSION_NOT_ALLOWED"


@pytest.mark.parametrize("text", ["now", "curdate", "current_date(1)", "x.current_date()"])
def test_other_spellings_are_refused(text):
    with pytest.raises(InvalidRequest):
        parse_expression(text, StructType(()), "UTC", NOW_MS)


@pytest.fixture
def table(tmp_path):
    table = Table.create(
        tmp_path / "t",
        {"id": "long", "day": "date", "at": "timestamp"},
        partition_by=["day"],
        clock=Stopped(),
    )
    times = pa.array([NOW - timedelta(hours=hours) for hours in (0, 1, 2, 3)], pa.timestamp("us", "UTC"))
    table.append(pa.table({"id": [0, 1, 2, 3], "day": pa.array(DAYS), "at": times}))
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def test_a_read_skips_files_by_the_current_time(table):
    assert table.files("day >= current_date() - INTERVAL 7 DAYS").num_rows == 2
    assert table.to_arrow(filter="at > now() - INTERVAL 90 MINUTES").num_rows == 2


def test_a_retention_job_removes_whole_partitions(table):
    deleted = table.delete("day < current_date() - INTERVAL 1 MONTH")
    assert (deleted.num_deleted_rows, ids(table)) == (1, [0, 1, 2])
    operation = table.history(1)[0]
    assert operation["operationMetrics"]["numAddedFiles"] == "0"
    assert "current_date() - INTERVAL 1 MONTH" in operation["operationParameters"]["predicate"]


def test_update_and_merge_assign_the_current_time(table):
    table.update({"at": "current_timestamp() + INTERVAL 1 DAY"}, "id = 0")
    merge = table.merge(pa.table({"id": [1, 9]}), "source.id = target.id AND target.day > current_date() - INTERVAL 7 DAYS")
    merge = merge.when_matched_update({"at": "current_timestamp()"})
    merge.when_not_matched_insert({"id": "source.id", "day": "current_date()", "at": "now()"}).execute()
    rows = {row["id"]: (row["day"], row["at"]) for row in table.to_arrow().to_pylist()}
    assert rows[0] == (DAYS[0], NOW + timedelta(days=1))
    assert rows[1] == (DAYS[1], NOW)
    assert rows[9] == (DAYS[0], NOW)


def test_overwrite_optimize_purge_and_statistics_take_a_condition_with_the_current_time(table):
    where = "day >= current_date() - INTERVAL 1 DAY"
    new = table.to_arrow(filter="day = current_date()")
    table.overwrite(new, replace_where=where)
    assert ids(table) == [0, 2, 3]
    table.append(new)
    assert len(table.optimize(where=where).removed) == 2
    table.purge(where)
    assert table.compute_statistics(where).files == 1


def test_a_constraint_has_no_current_time(table):
    with pytest.raises(Unsupported, match="current_date"):
        table.add_constraint("c", "day <= current_date()")
