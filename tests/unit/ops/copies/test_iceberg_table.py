"""CONVERT TO DELTA of Iceberg tables that PyIceberg wrote, and of Tahoe's own Iceberg side."""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table as TheirTable
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.log.files.live_files import add_files
from tahoe.ops.copies.iceberg_deletes import dead_rows
from tahoe.ops.copies.iceberg_snapshot import IcebergFile
from tahoe.store.location import name_below
from tahoe.store.object_store import open_store
from tahoe.testing.random_history import V2, V3

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


@pytest.fixture
def catalog(tmp_path: Path):
    made = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    made.create_namespace("db")
    yield made
    made.engine.dispose()


def made(catalog: SqlCatalog, rows: pa.Table = ROWS, **options) -> TheirTable:
    return catalog.create_table("db.t", rows.schema, **options)


def of(theirs: TheirTable) -> Table:
    return Table(theirs.location().removeprefix("file://"))


def in_order(rows: pa.Table) -> list:
    return rows.sort_by("id").to_pylist()


def test_columns_that_were_renamed_added_and_dropped_are_found_by_id(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("more", LongType())
    theirs.append(pa.table({"id": pa.array([4], pa.int64()), "label": ["d"], "more": pa.array([40], pa.int64())}))
    with theirs.update_schema() as change:
        change.delete_column("more")
    theirs.append(pa.table({"id": pa.array([5], pa.int64()), "label": ["e"]}))
    expected = in_order(theirs.scan().to_arrow())
    table = of(theirs)
    planned = table.convert_to_delta(dry_run=True)
    assert planned.version is None and not table.exists() and planned.files == 3
    assert table.convert_to_delta(properties={"delta.columnMapping.maxColumnId": "1"}).version == 0
    assert str(table.schema()) == "struct<id:long,label:string>"
    assert in_order(table.to_arrow()) == expected
    assert table.to_arrow(filter="label = 'b'").to_pylist() == [{"id": 2, "label": "b"}]
    assert table.check(deep=True) == []
    # A new column does not get the id of the one that was dropped, whose values are in a file.
    table.add_columns(pa.schema([("fresh", pa.int64())]))
    assert table.to_arrow()["fresh"].null_count == 5
    configuration = table.snapshot().metadata.configuration
    assert configuration["delta.columnMapping.mode"] == "id" and configuration["delta.columnMapping.maxColumnId"] == "4"
    table.append(pa.table({"id": [6], "label": ["f"], "fresh": [60]}))
    table.delete("id = 1")
    assert table.to_arrow().num_rows == 5


def test_the_history_of_a_converted_table(catalog):
    theirs = made(catalog, properties={"team": "me", "delta.appendOnly": "true"})
    theirs.append(ROWS)
    table = of(theirs)
    table.convert_to_delta(properties={"more": "too"})
    commit = table.history()[0]
    parameters = {"numFiles": "1", "partitionedBy": "[]", "collectStats": "true", "sourceFormat": "iceberg"}
    assert (commit["operation"], commit["operationParameters"]) == ("CONVERT", parameters)
    configuration = table.snapshot().metadata.configuration
    assert configuration["team"] == "me" and configuration["more"] == "too" and "delta.appendOnly" not in configuration
    (stats,) = table.files()["stats"].to_pylist()
    assert json.loads(stats)["maxValues"] == {"id": 3, "name": "b"}
    assert table.convert_to_delta().was_delta


def test_partitions_by_identity_of_every_kind(catalog):
    kinds = {
        "i": pa.array([7, 7, None], pa.int32()),
        "d": pa.array([date(2026, 3, 1), date(1960, 1, 2), None]),
        "t": pa.array([datetime(2026, 3, 1, 5, 6, 7, 8, UTC), None, None], pa.timestamp("us", "UTC")),
        "n": pa.array([datetime(1969, 3, 1, 5, 6, 7), None, None], pa.timestamp("us")),
        "m": pa.array([Decimal("1.20"), Decimal("-3.00"), None], pa.decimal128(9, 2)),
        "b": pa.array([True, False, None]),
        "s": ["a b", "é/%", None],
    }
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), **kinds})
    theirs = made(catalog, rows)
    with theirs.update_spec() as change:
        for name in kinds:
            change.add_identity(name)
    theirs.append(rows)
    table = of(theirs)
    table.convert_to_delta()
    assert table.snapshot().partition_columns == tuple(kinds)
    assert in_order(table.to_arrow()) == in_order(theirs.scan().to_arrow())
    assert table.to_arrow(filter="d = '1960-01-02'").num_rows == 1
    assert table.check(deep=True) == []


def test_nested_columns_keep_their_ids(catalog):
    kind = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.struct([("y", pa.string())])))])
    rows = pa.table({
        "id": pa.array([1], pa.int64()),
        "s": pa.array([{"x": 1, "l": [{"y": "q"}]}], kind),
        "m": pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    theirs = made(catalog, rows)
    theirs.append(rows)
    with theirs.update_schema() as change:
        change.rename_column(("s", "x"), "z")
    table = of(theirs)
    table.convert_to_delta()
    assert table.to_arrow().to_pylist() == [{"id": 1, "s": {"z": 1, "l": [{"y": "q"}]}, "m": [("k", 2)]}]
    ids = json.loads(table.snapshot().metadata.schema_string)["fields"][2]["metadata"]["delta.columnMapping.nested.ids"]
    assert set(ids) == {"m.key", "m.value"}
    assert table.check(deep=True) == []


def test_rows_that_were_deleted_stay_so(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    theirs.delete(EqualTo("id", 2))
    table = of(theirs)
    table.convert_to_delta()  # not other files in the folder
    assert in_order(table.to_arrow()) == [{"id": 1, "name": "a"}, {"id": 3, "name": None}]


@pytest.mark.parametrize(("statistics", "partition_by"), [(True, []), (False, ["name"])])
def test_position_deletes_become_vectors(tmp_path, statistics, partition_by):
    """Tahoe's own Iceberg side has them."""
    table = Table.create(tmp_path / "t", ROWS.schema, partition_by=partition_by, properties=V2)
    table.append(ROWS)
    table.append(pa.table({"id": pa.array(range(10, 5010), pa.int64()), "name": ["x"] * 5000}))
    table.delete("id = 2 or (id > 20 and id % 3 = 0)")
    expected = in_order(table.to_arrow())
    table.uniform.sync()
    (tmp_path / "t" / "_delta_log").rename(tmp_path / "away")
    again = Table(tmp_path / "t")
    again.convert_to_delta(statistics=statistics)
    assert in_order(again.to_arrow()) == expected
    assert again.check(deep=True) == []
    vectors = [add.deletion_vector for add in add_files(again.snapshot().files())]
    assert any(vector is not None and vector.storage_type == "u" for vector in vectors)
    again.delete("id = 3")
    assert again.to_arrow().num_rows == len(expected) - 1


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone(catalog, tmp_path, shallow):
    theirs = made(catalog)
    with theirs.update_spec() as change:
        change.add_identity("name")
    theirs.append(ROWS)
    done = of(theirs).clone(tmp_path / "clone", shallow=shallow)
    assert not of(theirs).exists() and done.metrics["source_num_of_files"] == 3
    clone = Table(tmp_path / "clone")
    assert in_order(clone.to_arrow()) == in_order(ROWS)
    assert clone.check(deep=True) == []
    commit = clone.history()[0]
    assert commit["operationParameters"] == {"source": f"iceberg.`{of(theirs).store.url}`", "sourceVersion": "-1"}
    clone.delete("id = 1")
    assert theirs.scan().to_arrow().num_rows == 3
    with pytest.raises(NotFound):
        of(theirs).clone(tmp_path / "other", version=1)


def test_a_repeated_deep_clone_copies_new_files(catalog, tmp_path):
    theirs = made(catalog)
    theirs.append(ROWS)
    of(theirs).clone(tmp_path / "clone")
    theirs.append(pa.table({"id": pa.array([4], pa.int64()), "name": ["d"]}))
    done = of(theirs).clone(tmp_path / "clone", replace=True)
    assert (done.metrics["source_num_of_files"], done.metrics["num_copied_files"]) == (2, 1)
    clone = Table(tmp_path / "clone")
    assert in_order(clone.to_arrow()) == in_order(theirs.scan().to_arrow()) and clone.check(deep=True) == []
    assert of(theirs).clone(tmp_path / "clone", replace=True).version is None
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
    theirs.append(pa.table({"id": pa.array([5], pa.int64()), "label": ["e"]}))
    of(theirs).clone(tmp_path / "clone", replace=True)
    assert in_order(clone.to_arrow()) == in_order(theirs.scan().to_arrow()) and clone.check(deep=True) == []
    assert clone.to_arrow(filter="label = 'd'").num_rows == 1


def test_a_deep_clone_is_not_made_again_where_columns_have_other_physical_names(catalog, tmp_path):
    """Partition values and statistics of the files that stay are under the older ones."""
    rows = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]})
    theirs = made(catalog)
    theirs.append(rows)
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
    theirs.append(rows.rename_columns(["id", "label"]).set_column(0, "id", pa.array([2], pa.int64())))
    of(theirs).clone(tmp_path / "clone")
    theirs.delete(EqualTo("id", 1))  # the file that says name
    with pytest.raises(InvalidRequest) as caught:
        of(theirs).clone(tmp_path / "clone", replace=True)
    assert caught.value.code == "TAHOE_CLONE_OF_RENAMED_COLUMNS" and Table(tmp_path / "clone").version() == 0


def test_readers_that_go_by_names_find_a_column_that_was_renamed(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
    table = of(theirs)
    table.convert_to_delta()
    expected = [{"id": 1, "label": "a"}, {"id": 2, "label": "b"}, {"id": 3, "label": None}]
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.store.url)).execute("SELECT * FROM t ORDER BY id")
    assert in_order(table.to_arrow()) == pa.table(query.read_all()).to_pylist() == expected


def test_a_new_column_of_an_older_name_is_another_column(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
    with theirs.update_schema() as change:
        change.add_column("name", LongType())
    table = of(theirs)
    table.convert_to_delta()
    fields = {field["name"]: field["metadata"] for field in json.loads(table.snapshot().metadata.schema_string)["fields"]}
    physical = {name: actual["delta.columnMapping.physicalName"] for name, actual in fields.items()}
    assert physical == {"id": "id", "label": "name", "name": "name-3"}
    assert table.to_arrow(filter="name is null and label = 'b'").to_pylist() == [{"id": 2, "label": "b", "name": None}]
    (stats,) = table.files()["stats"].to_pylist()
    assert json.loads(stats)["maxValues"] == {"id": 3, "name": "b"}
    assert table.check(deep=True) == []


@pytest.mark.parametrize("shallow", [True, False])
def test_dead_rows_are_dead_in_a_clone(tmp_path, shallow):
    table = Table.create(tmp_path / "t", ROWS.schema, properties=V2)
    table.append(pa.table({"id": pa.array(range(5000), pa.int64()), "name": ["x"] * 5000}))
    table.delete("id % 3 = 0")
    expected = in_order(table.to_arrow())
    table.uniform.sync()
    (tmp_path / "t" / "_delta_log").rename(tmp_path / "away")
    Table(tmp_path / "t").clone(tmp_path / "clone", shallow=shallow)
    clone = Table(tmp_path / "clone")
    assert in_order(clone.to_arrow()) == expected and clone.check(deep=True) == []
    assert list((tmp_path / "clone").rglob("deletion_vector_*.bin"))


def refused(table: Table, kind=Unsupported) -> str:
    with pytest.raises(kind) as caught:
        table.convert_to_delta(source="iceberg")
    assert not table.exists()
    return caught.value.code


def test_vectors_of_format_3_are_refused(tmp_path):
    table = Table.create(tmp_path / "t", ROWS.schema, properties=V3)
    table.append(ROWS)
    table.delete("id = 2")
    table.uniform.sync()
    (tmp_path / "t" / "_delta_log").rename(tmp_path / "away")
    assert refused(Table(tmp_path / "t")) == "TAHOE_ICEBERG_FILE"


def test_buckets_are_no_partitions(catalog):
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "some"))
    theirs = made(catalog)
    theirs.append(ROWS)
    metadata = metadata_of(theirs)
    metadata["partition-specs"] = [json.loads(spec.model_dump_json()) | {"spec-id": 0}]
    put_metadata(theirs, metadata, 9)
    # The manifest of a table without partitions has no value for the field: only the partitioning is looked at here.
    of(theirs).convert_to_delta()
    assert of(theirs).snapshot().partition_columns == () and of(theirs).to_arrow().num_rows == 3


def test_files_of_an_older_partitioning_are_refused(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    with theirs.update_spec() as change:
        change.add_identity("id")
    theirs.append(ROWS)
    table = of(theirs)
    code = "DELTA_CLONE_INCOMPATIBLE_SOURCE.ICEBERG_UNDERGONE_PARTITION_EVOLUTION"
    assert refused(table, InvalidRequest) == code


def test_an_empty_text_is_no_partition_of_a_delta_table(catalog):
    theirs = made(catalog, partition_spec=PartitionSpec(), properties={})
    with theirs.update_spec() as change:
        change.add_identity("name")
    theirs.append(pa.table({"id": pa.array([1], pa.int64()), "name": [""]}))
    assert refused(of(theirs)) == "TAHOE_ICEBERG_EMPTY_PARTITION_VALUE"


def test_files_that_cannot_be_read_by_id_are_refused(catalog, tmp_path):
    theirs = made(catalog)
    place = Path(str(of(theirs).store.url).removeprefix("file://")) / "data" / "a.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, place)
    theirs.add_files([f"file://{place}"])
    assert refused(of(theirs)) == "TAHOE_ICEBERG_FILE_WITHOUT_IDS"


def test_columns_of_a_wider_type_by_now_are_refused(catalog):
    theirs = made(catalog, pa.table({"id": pa.array([1], pa.int32())}))
    theirs.append(pa.table({"id": pa.array([1], pa.int32())}))
    with theirs.update_schema() as change:
        change.update_column("id", LongType())
    assert refused(of(theirs)) == "TAHOE_ICEBERG_PROMOTED_TYPE"


def test_types_that_delta_has_not_are_refused(catalog):
    theirs = made(catalog, pa.table({"t": pa.array([1], pa.time64("us"))}))
    assert refused(of(theirs)) == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_files_outside_of_the_folder_are_refused(catalog, tmp_path):
    theirs = made(catalog, properties={"write.data.path": f"file://{tmp_path}/elsewhere"})
    theirs.append(ROWS)
    assert refused(of(theirs), CorruptTable) == "TAHOE_PATH_OUTSIDE_TABLE"


def test_missing_and_ambiguous_iceberg_tables_are_refused(catalog, tmp_path):
    assert refused(Table(tmp_path / "nothing"), NotFound) == "DELTA_TABLE_NOT_FOUND"
    theirs = made(catalog)
    table = of(theirs)
    put_metadata(theirs, metadata_of(theirs), 0, "lost")
    assert refused(table, InvalidRequest) == "TAHOE_ICEBERG_METADATA_AMBIGUOUS"
    put_metadata(theirs, metadata_of(theirs), 1)
    with pytest.raises(InvalidRequest) as caught:
        table.convert_to_delta({"name": "string"})
    assert caught.value.code == "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES"
    with pytest.raises(InvalidRequest) as caught:
        table.convert_to_delta(properties={"delta.columnMapping.mode": "name"})
    assert caught.value.code == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    (Path(theirs.location().removeprefix("file://")) / "metadata" / "00002-x.metadata.json").write_text("{}")
    assert refused(table, CorruptTable) == "TAHOE_CORRUPT_ICEBERG_METADATA"


@pytest.mark.parametrize(("hint", "is_read"), [("2", True), ("1", True), ("3", False), ("0", False), ("", False), ("2x", False)])
def test_a_hint_leads_to_the_newest_metadata_or_the_table_is_refused(catalog, hint, is_read):
    """A table without a catalog: versions 1 and 2, and beside them the leftovers of a dead writer, or a catalog named."""
    theirs = made(catalog)
    theirs.append(ROWS)
    folder = Path(theirs.location().removeprefix("file://")) / "metadata"
    text = Path(theirs.metadata_location.removeprefix("file://")).read_text()
    for file in folder.glob("*.metadata.json"):
        file.unlink()
    for number in (1, 2):
        (folder / f"v{number}.metadata.json").write_text(text)
    (folder / "version-hint.text").write_text(hint)
    table = of(theirs)
    if is_read:
        assert table.convert_to_delta(dry_run=True).files == 1
    for stray in ("v4.metadata.json", "00000-x.metadata.json"):
        (folder / stray).write_text("{}")
        assert refused(table, InvalidRequest) == "TAHOE_ICEBERG_METADATA_AMBIGUOUS", stray
        (folder / stray).unlink()
    if is_read:
        assert table.convert_to_delta().version == 0 and in_order(table.to_arrow()) == in_order(ROWS)
    else:
        assert refused(table, InvalidRequest) == "TAHOE_ICEBERG_METADATA_AMBIGUOUS"


def test_metadata_that_is_gzipped_is_read(catalog):
    theirs = made(catalog)
    theirs.append(ROWS)
    plain = Path(theirs.metadata_location.removeprefix("file://"))
    zipped = plain.with_name(plain.name.replace(".metadata.json", ".gz.metadata.json"))
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert of(theirs).convert_to_delta().files == 1
    assert in_order(of(theirs).to_arrow()) == in_order(ROWS)


def test_a_table_without_a_snapshot_becomes_an_empty_one(catalog):
    theirs = made(catalog)
    of(theirs).convert_to_delta()
    assert of(theirs).to_arrow().num_rows == 0 and of(theirs).schema().names == ["id", "name"]


def metadata_of(theirs: TheirTable) -> dict:
    return json.loads(Path(theirs.metadata_location.removeprefix("file://")).read_text())


def put_metadata(theirs: TheirTable, metadata: dict, number: int, name: str = "x") -> None:
    folder = Path(theirs.location().removeprefix("file://")) / "metadata"
    (folder / f"{number:05}-{name}.metadata.json").write_text(json.dumps(metadata))


def test_a_delete_file_holds_for_older_files_alone(tmp_path):
    store = open_store(tmp_path)
    for name, positions in (("one", [0, 2, 2]), ("two", [1])):
        sink = io.BytesIO()
        pq.write_table(pa.table({"file_path": ["x/a", *["x/b"] * (len(positions) - 1)], "pos": positions}), sink)
        store.put(name, sink.getvalue())
    a, b = (IcebergFile(f"x/{name}", name, 1, 9, sequence, {}) for name, sequence in (("a", 1), ("b", 3)))
    deletes = [IcebergFile(name, name, 1, 1, 2, {}) for name in ("one", "two")]
    assert {name: list(dead) for name, dead in dead_rows(store, [a, b], deletes).items()} == {"a": [0, 1]}
    younger = [replace(delete, sequence=3) for delete in deletes]
    assert {name: list(dead) for name, dead in dead_rows(store, [a, b], younger).items()} == {"a": [0, 1], "b": [2]}
    store.put("one", b"PAR1")
    with pytest.raises(CorruptTable) as caught:
        dead_rows(store, [a, b], deletes)
    assert caught.value.code == "TAHOE_CORRUPT_ICEBERG_METADATA"


def test_without_pyiceberg_the_extra_is_named(catalog, monkeypatch):
    theirs = made(catalog)
    monkeypatch.setitem(sys.modules, "tahoe.ops.copies.iceberg_snapshot", None)
    assert refused(of(theirs)) == "TAHOE_LIBRARY_MISSING"


@pytest.mark.parametrize(
    ("root", "location", "name"),
    [
        ("file:///a/t", "file:///a/t/data/x y", "data/x y"),
        ("file:///a/t", "file:/a/t/data/x%20y", "data/x%20y"),
        ("file:///a/t", "/a/t/x", "x"),
        ("file:///a/t", "/a/tt/x", None),
        ("file:///a/t", "file:///a/t/../u", None),
        ("file:///a/t", "relative", None),
        ("s3://b/t", "s3a://b/t/x", "x"),
        ("s3://b/t", "s3a://c/t/x", None),
        ("s3://b/t", "/t/x", None),
    ],
)
def test_names_of_locations(root, location, name):
    assert name_below(root, location) == name
