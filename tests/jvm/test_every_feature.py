"""Each table feature, by turns: what one side makes and changes the other reads and changes, with equal rows, changes and row ids.

Identity, default and generated columns are in `test_column_values_jvm.py`, wider types in `test_types_jvm.py`, clustering in
`test_clustering_jvm.py`, features that go in `test_drop_feature.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tests.interop.engines import canonical

pytestmark = pytest.mark.jvm


@dataclass(frozen=True)
class Case:
    """How a table with a feature is made.

    Args:
        properties: of the table, besides the change data feed.
        appends_only: rows are added and never changed.
        not_null: the column ``id`` is required.
        has_time: there is a column without a time zone.
        check: a CHECK constraint.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    appends_only: bool = False
    not_null: bool = False
    has_time: bool = False
    check: str = ""


def supported(feature: str) -> Mapping[str, str]:
    return {f"delta.feature.{feature}": "supported"}


VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"}
TIMED = {"delta.enableInCommitTimestamps": "true"}

CASES: Mapping[str, Case] = {
    "appendOnly": Case({"delta.appendOnly": "true"}, appends_only=True),
    "invariants": Case(not_null=True),
    "checkConstraints": Case(check="id < 100000"),
    "changeDataFeed": Case({"delta.checkpointInterval": "3"}),
    "columnMapping, names": Case(MAPPED),
    "columnMapping, ids": Case({"delta.columnMapping.mode": "id"}),
    "deletionVectors": Case(VECTORS),
    "v2Checkpoint": Case(V2),
    "timestampNtz": Case(has_time=True),
    "vacuumProtocolCheck": Case(supported("vacuumProtocolCheck")),
    "typeWidening": Case({"delta.enableTypeWidening": "true"}),
    "domainMetadata": Case(supported("domainMetadata")),
    "rowTracking": Case(TRACKED),
    "inCommitTimestamp": Case(TIMED),
    "icebergCompatV1": Case(MAPPED | {"delta.enableIcebergCompatV1": "true"}),
    "icebergCompatV2": Case(MAPPED | {"delta.enableIcebergCompatV2": "true"}),
    "checkpointProtection": Case(supported("checkpointProtection")),
    "many at once": Case(VECTORS | MAPPED | TRACKED | V2 | TIMED, not_null=True, has_time=True, check="id < 100000"),
}
FEED = {"delta.enableChangeDataFeed": "true"}
START = dt.datetime(2020, 1, 1)

Rows = dict[int, dict[str, Any]]


def rows_of(case: Case, first: int, last: int, letter: str = "n") -> Rows:
    rows: Rows = {number: {"id": number, "name": f"{letter}{number}"} for number in range(first, last)}
    for row in rows.values() if case.has_time else ():
        row["at"] = START + dt.timedelta(days=row["id"])
    return rows


def schema_of(case: Case) -> pa.Schema:
    fields = [pa.field("id", pa.int64(), nullable=not case.not_null), pa.field("name", pa.string())]
    return pa.schema([*fields, pa.field("at", pa.timestamp("us"))] if case.has_time else fields)


def arrow(case: Case, rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), schema_of(case))


class Ours:
    """Tahoe, without Spark."""

    def __init__(self, _: SparkSession, path: str, case: Case) -> None:
        self.path, self.case = path, case

    def make(self) -> None:
        table = Table.create(self.path, schema_of(self.case), properties={**FEED, **self.case.properties})
        if self.case.check:
            table.add_constraint("small", self.case.check)

    def append(self, first: int, last: int) -> None:
        Table(self.path).append(arrow(self.case, rows_of(self.case, first, last)))

    def change(self, turn: int, first: int, last: int) -> None:
        table = Table(self.path)
        table.delete(f"id % 4 = {turn}")
        table.update({"name": "upper(name)"}, f"id % 5 = {turn}")
        merge = table.merge(arrow(self.case, rows_of(self.case, first, last, "m")), "target.id = source.id")
        merge.when_matched_update({"name": "source.name"}).when_not_matched_insert_all().execute()


class Theirs:
    """delta-spark."""

    def __init__(self, jvm: SparkSession, path: str, case: Case) -> None:
        self.jvm, self.name, self.case = jvm, f"delta.`{path}`", case

    def make(self) -> None:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in {**FEED, **self.case.properties}.items())
        columns = f"id BIGINT{' NOT NULL' * self.case.not_null}, name STRING{', at TIMESTAMP_NTZ' * self.case.has_time}"
        self.jvm.sql(f"CREATE TABLE {self.name} ({columns}) USING delta TBLPROPERTIES ({properties})")
        if self.case.check:
            self.jvm.sql(f"ALTER TABLE {self.name} ADD CONSTRAINT small CHECK ({self.case.check})")

    def append(self, first: int, last: int) -> None:
        self.jvm.sql(f"INSERT INTO {self.name} {self._rows(first, last)}")

    def change(self, turn: int, first: int, last: int) -> None:
        self.jvm.sql(f"DELETE FROM {self.name} WHERE id % 4 = {turn}")
        self.jvm.sql(f"UPDATE {self.name} SET name = upper(name) WHERE id % 5 = {turn}")
        self.jvm.sql(
            f"MERGE INTO {self.name} t USING ({self._rows(first, last, 'm')}) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
        )

    def _rows(self, first: int, last: int, letter: str = "n") -> str:
        time = f", CAST(date_add(DATE'{START:%Y-%m-%d}', CAST(id AS INT)) AS TIMESTAMP_NTZ) at" if self.case.has_time else ""
        return f"SELECT id, concat('{letter}', id) name{time} FROM range({first}, {last})"


def changed(case: Case, rows: Rows, turn: int, first: int, last: int) -> Rows:
    """What `change` makes of rows, as Python has it."""
    rows = {number: dict(row) for number, row in rows.items() if number % 4 != turn}
    for number, row in rows.items():
        row["name"] = row["name"].upper() if number % 5 == turn else row["name"]
    for number, row in rows_of(case, first, last, "m").items():
        rows[number] = rows.get(number, row) | {"name": row["name"]}
    return rows


@pytest.mark.parametrize("makers", [(Ours, Theirs), (Theirs, Ours)], ids=["made by us", "made by the JVM"])
@pytest.mark.parametrize("name", CASES)
def test_one_side_makes_and_changes_a_table_and_the_other_reads_and_changes_it(
    jvm: SparkSession, path: str, name: str, makers: tuple[type[Ours], type[Theirs]]
) -> None:
    case = CASES[name]
    expected: Rows = {}
    for turn, side in enumerate(maker(jvm, path, case) for maker in makers):
        if turn == 0:
            side.make()
        first = turn * 20
        side.append(first, first + 12)
        expected |= rows_of(case, first, first + 12)
        if not case.appends_only:
            side.change(turn, first + 8, first + 16)
            expected = changed(case, expected, turn, first + 8, first + 16)
        both_agree(jvm, path, case, expected)
    assert Table(path).check(deep=True) == []


def both_agree(jvm: SparkSession, path: str, case: Case, expected: Rows) -> None:
    """Rows as they should be, and the same changes and row ids for both."""
    table, now = Table(path), jvm.read.format("delta").load(path)
    assert canonical(table.to_arrow()) == canonical(now.toArrow()) == canonical(arrow(case, expected))
    feed = jvm.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    assert canonical(table.changes(0).drop(["_commit_timestamp"])) == canonical(feed.drop("_commit_timestamp").toArrow())
    if "delta.enableRowTracking" in case.properties:
        names = ["id", "row_id", "row_commit_version"]
        ours = table.to_arrow(columns=["id"], row_ids=True).rename_columns(names)
        assert canonical(ours) == canonical(row_ids(now).toArrow())


def row_ids(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version")
