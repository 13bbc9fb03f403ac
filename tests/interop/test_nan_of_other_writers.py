"""NaN in files of deltalake, whose statistics leave it out. To SQL, NaN is greater than every other number."""

from __future__ import annotations

import json
import math
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.log.files.live_files import add_files
from tahoe.protocol.actions import AddFile

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "f": [1.0, math.nan, None],
        "x": pa.array([1.0, math.nan, None], pa.float32()),
        "s": pa.array([{"f": 1.0}, {"f": math.nan}, None]),
    }
)
CONDITIONS = [
    "{} > 5",
    "{} >= 5",
    "{} = 'NaN'",
    "{} != 1",
    "NOT ({} < 5)",
    "{} IN (7, 'NaN')",
    "{} > 5 AND id = 2",
    "{} > 5 OR {} < 0",
]
COLUMNS = ["f", "x", "s.f"]


def adds_of(table: Table) -> list[AddFile]:
    return add_files(table.files())


def checkpointed_by_deltalake(root: Path) -> None:
    deltalake.DeltaTable(root).create_checkpoint()


def checkpointed_by_tahoe(root: Path) -> None:
    Table(root).checkpoint()


def checkpointed_with_structs(root: Path) -> None:
    properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    Table(root).set_properties(properties)
    Table(root).checkpoint()


def tagged_by_nobody(root: Path) -> None:
    assert all(not add.tags for add in adds_of(Table(root)))


LOGS = [tagged_by_nobody, checkpointed_by_deltalake, checkpointed_by_tahoe, checkpointed_with_structs]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    deltalake.write_deltalake(tmp_path, ROWS)
    (stats,) = (add.stats for add in adds_of(Table(tmp_path)))
    assert json.loads(stats or "")["maxValues"]["f"] == 1.0, "deltalake states the greatest value without NaN"
    return tmp_path


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.__name__)
def test_a_filter_finds_nan(root: Path, log: object) -> None:
    log(root)  # type: ignore[operator]
    table = Table(root)
    for column in COLUMNS:
        for text in CONDITIONS:
            condition = text.format(column, column)
            assert table.to_arrow(filter=condition)["id"].to_pylist() == [2], condition
        assert table.to_arrow(filter=f"{column} < 1").num_rows == 0
        assert table.files(f"{column} < 1").num_rows == 0, "the least value counts"
    assert table.check(deep=False) == []


@pytest.mark.parametrize("vectors", [False, True])
def test_delete_update_and_merge_change_the_rows_with_nan(root: Path, vectors: bool) -> None:
    table = Table(root)
    if vectors:
        table.set_properties({"delta.enableDeletionVectors": "true"})
    table.update({"id": "20"}, "f > 5")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3, 20]
    source = pa.table({"f": [math.nan], "id": [30]})
    table.merge(source, "target.f = source.f").when_matched_update({"id": "source.id"}).execute()
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3, 30]
    table.delete("x >= 2")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3]


def test_a_file_that_tahoe_writes_or_analyzes_has_the_tag_and_is_skipped_again(root: Path) -> None:
    table = Table(root)
    table.append(pa.table({"id": [4], "f": [2.0]}))
    table.append(pa.table({"id": [5], "f": [math.nan]}))
    assert [bool(add.tags) for add in adds_of(table)] == [False, True, False]
    assert table.files("f > 5").num_rows == 2
    assert table.compute_statistics().changed == 1, "NaN is no bound, so that the file needs no tag"
    assert table.files("f > 5").num_rows == 2
    deltalake.write_deltalake(root, pa.table({"id": [6], "f": [3.0]}), mode="append", schema_mode="merge")
    assert table.files("f > 5").num_rows == 3
    assert table.compute_statistics().changed == 1
    assert table.files("f > 5").num_rows == 2
    table.checkpoint()
    assert Table(root).files("f > 5").num_rows == 2
    deltalake.DeltaTable(root).create_checkpoint()
    assert Table(root).files("f > 5").num_rows == 2
    assert sorted(table.to_arrow(filter="f > 1")["id"].to_pylist()) == [2, 4, 5, 6]


def test_compaction_and_restore_keep_known_statistics(root: Path) -> None:
    table = Table(root)
    table.append(pa.table({"id": [4], "f": [2.0]}))
    version = table.snapshot().version
    table.delete("id = 4")
    table.restore(version)
    assert [bool(add.tags) for add in adds_of(table)] == [False, True]
    table.optimize()
    assert [bool(add.tags) for add in adds_of(table)] == [False]
    assert table.to_arrow(filter="f > 5")["id"].to_pylist() == [2]
