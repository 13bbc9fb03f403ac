"""SET TBLPROPERTIES where files must be ready first: column mapping that goes, row ids that come in commits of some files each."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest

ROWS = pa.table({"id": [1, 2, 3], "p": ["a", "b", "b"]})
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}


def operations(table: Table) -> list[str]:
    return [entry["operation"] for entry in reversed(table.history())]


def mapped(path, properties=MAPPED) -> Table:
    table = Table.create(path, ROWS.schema, partition_by=["p"], properties=properties)
    table.append(ROWS)
    table.delete("id = 3")
    table.rename_column("id", "number")
    return table


@pytest.mark.parametrize("way", ["set", "set with others", "unset"])
def test_column_mapping_goes_by_its_property(tmp_path, way) -> None:
    table = mapped(tmp_path / "t")
    before = len(operations(table))
    if way == "unset":
        table.unset_properties(["DELTA.columnMapping.mode"])
    else:
        others = {"delta.appendOnly": "false"} if way == "set with others" else {}
        table.set_properties({"delta.columnMapping.mode": "NONE", **others})
    assert operations(table)[before] == "REMOVE COLUMN MAPPING"
    snapshot = table.snapshot()
    assert snapshot.config.column_mapping_mode == "none"
    assert [column.physical_name for column in snapshot.schema] == ["number", "p"]
    assert sorted(table.to_arrow().column("number").to_pylist()) == [1, 2]
    path = snapshot.files()["path"][0].as_py()
    assert pq.read_schema(tmp_path / "t" / path).names == ["number"]
    assert table.check(deep=True) == []
    table.set_properties({"delta.columnMapping.mode": "none"})
    assert operations(table).count("REMOVE COLUMN MAPPING") == 1


def test_column_mapping_that_iceberg_needs_stays(tmp_path) -> None:
    compat = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}
    table = Table.create(tmp_path / "t", ROWS.schema, properties=compat)
    table.append(ROWS)
    version = table.version()
    with pytest.raises(InvalidRequest):
        table.set_properties({"delta.columnMapping.mode": "none"})
    assert table.version() == version


@pytest.mark.parametrize(("files", "at_once", "batches"), [(5, 2, 2), (5, 5, 0), (4, 2, 1), (3, 1, 2)])
def test_row_ids_come_in_commits_of_some_files_each(tmp_path, files, at_once, batches) -> None:
    table = Table(tmp_path / "t")
    for number in range(files):
        table.append(pa.table({"id": [number, number + 100]}))
    table.add_constraint("small", "id < 1000")  # files are named again, and no row comes
    table.set_properties({"delta.enableRowTracking": "true"}, files_per_commit=at_once)
    made = operations(table)[files + 1 :]
    assert made == (["SET TBLPROPERTIES"] * (batches > 0) + ["ROW TRACKING BACKFILL"] * batches + ["SET TBLPROPERTIES"])
    assert [entry["operationParameters"]["batchId"] for entry in table.history() if "BACKFILL" in entry["operation"]] == [
        str(number) for number in reversed(range(batches))
    ]
    ids = table.to_arrow(row_ids=True).column("_row_id").to_pylist()
    assert sorted(ids) == list(range(2 * files))
    assert table.check(deep=True) == []


def test_who_is_cut_off_in_between_continues(tmp_path) -> None:
    table = Table(tmp_path / "t")
    for number in range(5):
        table.append(pa.table({"id": [number]}))
    table.add_feature("rowTracking")
    table.append(pa.table({"id": [5]}))  # has its row id already
    table.set_properties({"delta.enableRowTracking": "true"}, files_per_commit=2)
    assert sorted(table.to_arrow(row_ids=True).column("_row_id").to_pylist()) == list(range(6))
    assert operations(table).count("ROW TRACKING BACKFILL") == 2
