"""UPDATE by deletion vectors and by rewriting files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import AddCDCFile, AddFile, RemoveFile

SCHEMA = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
KINDS = [{}, VECTORS, FEED, {**VECTORS, **FEED}]


def rows(*ids: int, month: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "month": [month] * len(ids), "name": [f"n{i}" for i in ids]}, schema=SCHEMA)


def found(table: Table, **asked: Any) -> dict[int, tuple[int, str]]:
    return {row["id"]: (row["month"], row["name"]) for row in table.to_arrow(**asked).to_pylist()}


def last(table: Table, kind: type) -> list[Any]:
    return [action for action in read_commit(table.store, table.version()) if isinstance(action, kind)]


def make(path: Path, properties: dict[str, str]) -> Table:
    table = Table.create(path / "t", SCHEMA, partition_by=["month"], properties=properties)
    table.append(rows(*range(4)))
    table.append(rows(*range(4, 8), month=2))
    return table


@pytest.fixture(params=KINDS, ids=["rewrite", "vectors", "rewrite-feed", "vectors-feed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return make(tmp_path, request.param)


def test_rows_that_are_meant_get_the_new_values_and_no_other(table: Table) -> None:
    before = found(table)
    outcome = table.update({"name": "concat(name, '!')"}, "id % 4 = 1")
    assert (outcome.version, outcome.num_affected_rows, outcome.num_updated_rows) == (3, 2, 2)
    assert found(table) == {**before, 1: (1, "n1!"), 5: (2, "n5!")}
    assert found(table, version=2) == before
    assert table.check() == []


def test_values_are_those_before_the_update(table: Table) -> None:
    table.update({"id": "id + 100", "name": "cast(id as string)"}, "id = 3")
    assert found(table)[103] == (1, "3")


def test_without_a_condition_every_row_changes(table: Table) -> None:
    assert table.update({"name": "null"}).num_updated_rows == 8
    assert set(found(table).values()) == {(1, None), (2, None)}
    assert not last(table, AddFile)[0].deletion_vector


def test_a_row_moves_to_the_partition_of_its_new_value(table: Table) -> None:
    table.update({"month": "month + 1"}, "id in (0, 4)")
    assert {id: month for id, (month, _) in found(table).items() if id in (0, 4)} == {0: 2, 4: 3}
    assert set(found(table, filter="month = 3")) == {4}
    assert table.check() == []


def test_no_matching_row_makes_no_commit(table: Table) -> None:
    assert table.update({"name": "'x'"}, "id > 100").version is None
    assert table.version() == 2


def test_the_feed_shows_rows_before_and_after(table: Table) -> None:
    if not table.snapshot().config.properties.enable_change_data_feed:
        assert not table.update({"name": "'x'"}, "id in (0, 4)").metrics["numAddedChangeFiles"]
        return
    outcome = table.update({"name": "'x'", "month": "9"}, "id in (0, 4)")
    assert outcome.metrics["numAddedChangeFiles"] == len(last(table, AddCDCFile)) == 3
    changes = sorted((row["id"], row["_change_type"], row["month"], row["name"]) for row in table.changes(3).to_pylist())
    assert changes == [
        (0, "update_postimage", 9, "x"),
        (0, "update_preimage", 1, "n0"),
        (4, "update_postimage", 9, "x"),
        (4, "update_preimage", 2, "n4"),
    ]


def test_a_rewritten_file_keeps_the_order_of_its_rows(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    outcome = table.update({"name": "'x'"}, "id = 1")
    assert table.to_arrow(filter="month = 1")["id"].to_pylist() == [0, 1, 2, 3]
    names = ("numAddedFiles", "numRemovedFiles", "numUpdatedRows", "numCopiedRows", "numDeletionVectorsAdded")
    assert [outcome.metrics[name] for name in names] == [1, 1, 1, 3, 0]


def test_a_vector_hides_the_old_row_and_only_new_rows_are_written(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    outcome = table.update({"name": "'x'"}, "id = 1")
    names = ("numAddedFiles", "numRemovedFiles", "numUpdatedRows", "numCopiedRows", "numDeletionVectorsAdded")
    assert [outcome.metrics[name] for name in names] == [1, 0, 1, 0, 1]
    assert len(last(table, AddFile)) == 2
    assert len(last(table, RemoveFile)) == 1


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_fields_of_structs_are_assigned_and_their_neighbours_stay(tmp_path: Path, properties: dict[str, str]) -> None:
    place = pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string()), ("w", pa.int64())]))])
    data = pa.table(
        {
            "id": [1, 2, 3],
            "place": pa.array([{"x": 1, "y": {"z": "a", "w": 1}}, None, {"x": 3, "y": None}], place),
            "tags": pa.array([["a"], None, []], pa.list_(pa.string())),
        }
    )
    table = Table.create(tmp_path / "t", data.schema, properties=properties)
    table.append(data)
    table.update({"place.y.z": "concat('z', cast(id as string))", "place.x": "10 * id"})
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "place": {"x": 10, "y": {"z": "z1", "w": 1}}, "tags": ["a"]},
        {"id": 2, "place": {"x": 20, "y": {"z": "z2", "w": None}}, "tags": None},
        {"id": 3, "place": {"x": 30, "y": {"z": "z3", "w": None}}, "tags": []},
    ]


@pytest.mark.parametrize(
    ("values", "where", "code"),
    [
        ({}, None, "TAHOE_NOTHING_ASSIGNED"),
        ({"name": "'a'", "NAME": "'b'"}, None, "DELTA_CONFLICT_SET_COLUMN"),
        ({"month": "id * 3000000000 + 3000000000"}, None, None),
        ({"name": "reflect('java.lang.System', 'exit')"}, None, None),
        ({"name": "(select 1)"}, None, None),
        ({"unknown": "1"}, None, None),
        ({"name": "unknown"}, None, None),
        ({"name": "'x'"}, "rand() > 0.5", None),
        ({"id": "1 / 0"}, None, None),
    ],
)
def test_impossible_updates_are_refused_before_a_file_is_written(
    tmp_path: Path, values: dict[str, str], where: str | None, code: str | None
) -> None:
    table = make(tmp_path, {**VECTORS, **FEED})
    data_files = set((tmp_path / "t").rglob("*.parquet"))
    with pytest.raises(InvalidRequest) as caught:
        table.update(values, where)
    assert code is None or caught.value.code == code
    assert set((tmp_path / "t").rglob("*.parquet")) == data_files
    assert table.version() == 2


def test_not_null_is_kept(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = Table.create(tmp_path / "t", schema)
    table.append(pa.table({"id": [1, 2], "name": ["a", None]}, schema=schema))
    table.update({"name": "'b'"}, "id = 2")
    with pytest.raises(InvalidRequest) as caught:
        table.update({"id": "null"}, "id = 2")
    assert caught.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert sorted(table.to_arrow().to_pydict()["name"]) == ["a", "b"]


def test_an_append_only_table_and_no_table_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path, {"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest) as caught:
        table.update({"name": "'x'"})
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    with pytest.raises(NotFound):
        Table(tmp_path / "nothing").update({"name": "'x'"})


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("properties", [FEED, {**FEED, **VECTORS}], ids=["rewrite", "vectors"])
def test_mapped_columns_are_updated_under_their_names(tmp_path: Path, mode: str, properties: dict[str, str]) -> None:
    table = make(tmp_path, {**properties, "delta.columnMapping.mode": mode})
    table.update({"name": "'x'"}, "name = 'n4'")
    assert found(table)[4] == (2, "x")
    assert sorted(table.changes(3)["name"].to_pylist()) == ["n4", "x"]
    assert table.check() == []


def test_errors_of_expressions_name_the_table_and_the_file(table: Table) -> None:
    for call in (
        lambda: table.update({"id": "1 / id"}, "id >= 0"),
        lambda: table.update({"id": "1"}, "CAST(name AS INT) = 1"),
        lambda: table.delete("CAST(name AS INT) = 1"),
    ):
        with pytest.raises(InvalidRequest, match="cannot be computed for row") as error:
            call()
        assert error.value.facts["table"] == table.url and error.value.facts["version"] == 2
        assert error.value.facts["file"] in table.files()["path"].to_pylist()
    with pytest.raises(InvalidRequest, match=f"Table {table.url}, version 2: "):
        table.add_constraint("number", "CAST(name AS INT) > 1")


@pytest.mark.parametrize("value", ["id", "CAST(id AS BINARY)"])
def test_a_value_that_no_cast_fits_is_an_error_if_no_row_matches(tmp_path: Path, value: str) -> None:
    table = Table.create(tmp_path, pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))]))
    with pytest.raises(InvalidRequest, match=f"Table {table.url}: .*no cast from") as error:
        table.update({"at": value})
    assert error.value.code == "DATATYPE_MISMATCH"
    table.append(pa.table({"id": [1]}))
    with pytest.raises(InvalidRequest, match="no cast from"):
        table.update({"at": value}, "id = 2")
    assert table.version() == 1
