"""A dbt project with dbt-spark's session method: every materialization, created by one `dbt build` and changed by the next.

The profile's settings enable Delta. The tables are in the Hive metastore that dbt-spark's session creates in the project's folder.
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tahoe
from tests.clients.child import HERE, command, needs

pytestmark = pytest.mark.clients

_FIRST, _SECOND = date(2026, 1, 1), date(2026, 1, 2)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after two builds: the second one finds the tables of the first, and one more day of deliveries."""
    needs("dbt-core", "dbt-spark", "pyspark")
    folder = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(HERE / "dbt_project", folder)
    for day in (1, 2):
        build = [
            "dbt",
            "build",
            "--vars",
            f"{{day: {day}}}",
            "--event-time-start",
            "2026-01-01",
            "--event-time-end",
            f"2026-01-0{day + 1}",
        ]
        command(build, folder)
    return folder


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("shops", [{"shop": "a", "city": "Berlin"}, {"shop": "b", "city": "Bern"}]),
        ("by_city", [{"city": "Berlin", "amount": 40}, {"city": "Bern", "amount": 21}]),
        ("appended", [(1, 10, _FIRST), (2, 20, _FIRST), (2, 21, _SECOND), (3, 30, _SECOND)]),
        ("overwritten", [(1, 10, _FIRST), (2, 20, _FIRST), (2, 21, _SECOND), (3, 30, _SECOND)]),
        ("by_batch", [(1, 10, _FIRST), (2, 20, _FIRST), (2, 21, _SECOND), (3, 30, _SECOND)]),
        ("merged", [(1, 10, _FIRST, None), (2, 21, _SECOND, "b"), (3, 30, _SECOND, "a")]),
    ],
)
def test_a_model_has_its_rows_after_the_second_build(project: Path, table: str, rows: list[Any]) -> None:
    names = ("id", "amount", "day", "shop")
    expected = [row if isinstance(row, dict) else dict(zip(names, row, strict=False)) for row in rows]
    actual = open_table(project, table).to_arrow().drop_columns(["at"] if table == "by_batch" else []).to_pylist()
    assert sorted(actual, key=str) == sorted(expected, key=str)


def test_a_snapshot_keeps_the_earlier_amount(project: Path) -> None:
    rows = open_table(project, "amounts").to_arrow().to_pylist()
    amounts = sorted((row["id"], row["amount"], row["dbt_valid_to"] is None) for row in rows)
    assert amounts == [(1, 10, True), (2, 20, False), (2, 21, True), (3, 30, True)]


@pytest.mark.parametrize(
    ("table", "operations"),
    [
        ("by_city", ["CREATE OR REPLACE TABLE AS SELECT"] * 2),
        ("appended", ["CREATE OR REPLACE TABLE AS SELECT", "WRITE"]),
        ("merged", ["CREATE OR REPLACE TABLE AS SELECT", "ADD COLUMNS", "MERGE"]),
        ("amounts", ["CREATE OR REPLACE TABLE AS SELECT", "ADD COLUMNS", "MERGE"]),
    ],
)
def test_the_second_build_changes_the_table_of_the_first(project: Path, table: str, operations: list[str]) -> None:
    assert [commit["operation"] for commit in open_table(project, table).history()][::-1] == operations


def open_table(project: Path, name: str) -> tahoe.Table:
    return tahoe.Table(str(project / "spark-warehouse/shop.db" / name))
