"""CLUSTER BY without Spark: the columns that a table may be clustered by, the domain in its log, and OPTIMIZE."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.rows.insert import WriteOptions
from tahoe.store.object_store import open_store

SCHEMA = pa.schema(
    {"id": pa.int64(), "t": pa.string(), "s": pa.struct({"x": pa.int64(), "y": pa.bool_()}), "l": pa.list_(pa.int64())}
)
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


def rows(seed: int, count: int = 400) -> pa.Table:
    chance = random.Random(seed)
    actual = [
        {
            "id": chance.randrange(10_000),
            "t": f"t{chance.randrange(100):02}",
            "s": {"x": chance.randrange(1000), "y": True},
            "l": [],
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(actual, SCHEMA)


def table_of(cluster_by: list[str] | None = ["id", "s.x"], files: int = 4, **properties: str) -> Table:  # noqa: B006
    url = f"memory://{SYSTEM_CLOCK.uuid()}/t"
    table = Table.create(url, SCHEMA, cluster_by=cluster_by, properties=properties or MAPPED, store=open_store(url))
    for number in range(files):
        table.append(rows(number))
    return table


def columns(table: Table) -> list[str]:
    actual: list[str] = table.detail()["clusteringColumns"]
    return actual


def cubes(table: Table) -> dict[str, int]:
    """The cubes of the live files, and how many of these each has; of those without one under an empty name."""
    actual: dict[str, int] = {}
    for tags in table.files()["tags"].to_pylist():
        cube = dict(tags or {}).get("ZCUBE_ID") or ""
        actual[cube] = actual.get(cube, 0) + 1
    return actual


def contents(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow(row_ids=True).to_pylist(), key=lambda row: row["_row_id"])


def test_a_new_table_has_its_clustering_columns() -> None:
    table = table_of(files=0)
    snapshot = table.snapshot()
    assert columns(table) == ["id", "s.x"]
    assert {"clustering", "domainMetadata"} <= set(snapshot.config.features)
    assert not [key for key in snapshot.metadata.configuration if "feature" in key]
    stored = json.loads(snapshot.state.domains["delta.clustering"].configuration)["clusteringColumns"]
    physical = {column.name: column.physical_name for column in snapshot.schema}
    assert stored[0] == [physical["id"]] != ["id"]
    assert table.history(1)[0]["operationParameters"]["clusterBy"] == '["id","s.x"]'


def test_optimize_clusters_new_files_and_leaves_clustered_ones() -> None:
    table = table_of()
    before = contents(table)
    done = table.optimize(target_file_size=8000)
    assert contents(table) == before
    assert set(table.files()["clusteringProvider"].to_pylist()) == {"liquid"}
    assert len(cubes(table)) == 1
    assert done.metrics["clusteringStats"]["inputOtherFiles"]["numFiles"] == 4
    assert done.metrics["zOrderStats"] is None
    parameters = table.history(1)[0]["operationParameters"]
    assert (parameters["clusterBy"], parameters["zOrderBy"], parameters["isFull"]) == ('["id","s.x"]', "[]", "false")
    assert table.optimize().version is None
    table.append(rows(9))
    # The cube is large already, as the caller says: the new file alone is clustered.
    assert len(table.optimize(min_cube_size=1000).removed) == 1
    assert len(cubes(table)) == 2
    # Two small cubes are joined.
    assert table.optimize(target_file_size=8000).metrics["clusteringStats"]["inputNumZCubes"] == 2
    assert len(cubes(table)) == 1
    assert table.check(deep=True) == []


def test_conditions_on_each_column_skip_files() -> None:
    table = table_of(cluster_by=["id", "t"], files=6)
    table.optimize(target_file_size=3000)
    files = table.files().num_rows
    assert files >= 6
    assert table.files("id = 5000").num_rows <= files / 2
    assert table.files("t = 't50'").num_rows <= files / 2


@pytest.mark.parametrize(("curve", "tag"), [("kd", "kd"), ("hilbert", "hilbert"), ("z", "zorder")])
def test_tags_say_by_which_curve(curve: str, tag: str) -> None:
    table = table_of()
    table.optimize(curve=curve)
    assert {dict(tags)["ZCUBE_ZORDER_CURVE"] for tags in table.files()["tags"].to_pylist()} == {tag}
    assert {dict(tags)["ZCUBE_ZORDER_BY"] for tags in table.files()["tags"].to_pylist()} == {'["id","s.x"]'}


def test_other_columns_count_for_new_files_and_full_takes_the_old_ones() -> None:
    table = table_of()
    table.optimize()
    table.cluster_by(["t"])
    assert columns(table) == ["t"]
    assert table.history(1)[0]["operation"] == "CLUSTER BY"
    assert table.history(1)[0]["operationParameters"] == {"oldClusteringColumns": "id,s.x", "newClusteringColumns": "t"}
    assert table.optimize().version is None
    before = contents(table)
    assert table.optimize(full=True).metrics["clusteringStats"]["mergedFiles"]["numFiles"] == 1
    assert contents(table) == before
    assert table.optimize(full=True).version is None


def test_a_table_that_is_clustered_no_more_is_packed() -> None:
    table = table_of()
    table.optimize(target_file_size=8000)
    table.cluster_by([])
    assert columns(table) == []
    assert "clustering" in table.snapshot().config.features
    done = table.optimize()
    assert done.metrics["clusteringStats"] is None
    assert cubes(table) == {"": 1}
    assert table.history(1)[0]["operationParameters"]["clusterBy"] == "[]"


def test_no_clustering_of_a_table_that_has_none_is_no_commit() -> None:
    table = table_of(None)
    assert table.cluster_by([]) == table.version() == 4
    assert "clustering" not in table.snapshot().config.features


def test_a_table_becomes_a_clustered_one() -> None:
    table = table_of(None)
    table.cluster_by(["t", "id"])
    assert columns(table) == ["t", "id"]
    assert table.optimize().metrics["clusteringStats"]["numOutputZCubes"] == 1


def test_a_column_keeps_its_part_under_another_name_and_is_not_dropped() -> None:
    table = table_of()
    table.rename_column("s", "r")
    table.rename_column("id", "odd name")
    assert columns(table) == ["`odd name`", "r.x"]
    with pytest.raises(InvalidRequest) as caught:
        table.drop_columns(["r"])
    assert caught.value.code == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    table.drop_columns(["t"])
    assert table.optimize().version == table.version()


def test_rows_that_go_and_files_that_are_purged() -> None:
    table = table_of(cluster_by=["id"])
    table.optimize(target_file_size=8000)
    assert len(cubes(table)) == 1
    table.delete("id % 97 = 1")
    assert set(table.files()["clusteringProvider"].to_pylist()) == {"liquid"}
    table.purge()
    # The same rows in the same order: as clustered as they were.
    assert len(cubes(table)) == 1
    assert "" not in cubes(table)
    table.delete("id % 5 = 1")
    before = contents(table)
    assert table.optimize().version is not None
    assert contents(table) == before
    assert table.files()["deletionVector"].null_count == table.files().num_rows


def test_writes_leave_the_clustering_as_it_is_unless_they_say_otherwise() -> None:
    table = table_of()
    table.overwrite(rows(1))
    assert columns(table) == ["id", "s.x"]
    table.write(rows(2), WriteOptions("append", cluster_by=("ID", "s.X")))
    with pytest.raises(InvalidRequest) as caught:
        table.write(rows(2), WriteOptions("append", cluster_by=("id",)))
    assert caught.value.code == "DELTA_CLUSTERING_COLUMNS_MISMATCH"
    table.write(rows(2), WriteOptions("overwrite", cluster_by=("t",)))
    assert columns(table) == ["t"]
    table.overwrite(rows(2).select(["id"]), overwrite_schema=True)
    assert columns(table) == []
    assert json.loads(table.snapshot().state.domains["delta.clustering"].configuration)["clusteringColumns"] == []


def test_a_table_of_an_older_version_is_clustered_as_it_was() -> None:
    table = table_of()
    table.cluster_by(["t"])
    table.restore(3)
    assert columns(table) == ["id", "s.x"]
    table.cluster_by([])
    table.restore(5)
    assert columns(table) == ["t"]


CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: table_of(["nope"]), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    (lambda: table_of(["id", "ID"]), "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
    (lambda: table_of(["l"]), "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    (lambda: table_of(["s"]), "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    (lambda: table_of(["s.y"]), "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    (lambda: table_of(["t"], **{"delta.dataSkippingNumIndexedCols": "1"}), "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    (lambda: table_of(["id", "t", "s.x", "l", "s"]), "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
    (
        lambda: table_of(None, **{"delta.feature.clustering": "supported"}),
        "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
    ),
    (
        lambda: Table.create(f"memory://{SYSTEM_CLOCK.uuid()}/t", SCHEMA, partition_by=["t"], cluster_by=["id"]),
        "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
    ),
    (lambda: table_of().optimize("id = 1"), "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    (lambda: table_of().optimize(zorder_by=["id"]), "DELTA_CLUSTERING_WITH_ZORDER_BY"),
    (lambda: table_of(None).optimize(full=True), "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
    (
        lambda: table_of().set_properties({"delta.feature.clustering": "supported"}),
        "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
    ),
    (lambda: table_of().set_properties({"clusteringColumns": "[]"}), "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
    (lambda: table_of().set_properties({"delta.dataSkippingNumIndexedCols": "1"}), "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    (
        lambda: table_of(["id"], **{"delta.dataSkippingNumIndexedCols": "1"}).change_column("t", first=True),
        "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    ),
]


@pytest.mark.parametrize(("made", "code"), CASES)
def test_columns_that_the_reference_refuses_are_refused_with_its_class(made: Callable[[], object], code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        made()
    assert caught.value.code == code


def test_a_partitioned_table_is_not_clustered() -> None:
    url = f"memory://{SYSTEM_CLOCK.uuid()}/t"
    table = Table.create(url, SCHEMA, partition_by=["t"], store=open_store(url))
    with pytest.raises(InvalidRequest) as caught:
        table.cluster_by(["id"])
    assert caught.value.code == "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"
