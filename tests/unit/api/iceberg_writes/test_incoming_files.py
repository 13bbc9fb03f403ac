"""Data files of clients: registered or written again, and never silently wrong; files that contradict their manifest are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import tahoe
from tahoe.api.iceberg_writes import table_writer
from tahoe.api.iceberg_writes.incoming_files import incoming_files
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.uniform.commits.client_manifests import DATA, ClientFile
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical, read_deltalake
from tests.unit.api.iceberg_writes.hand_made import KINDS, Writer
from tests.unit.uniform.serve.serving import refused, warehouse_of

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    return LocalClient(writable_catalog(tmp_path))


def metrics(table: tahoe.Table) -> dict[str, str]:
    return dict(table.history(1)[0]["operationMetrics"])


def test_rows_are_written_again_where_physical_names_differ(client: LocalClient, tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "t", SCHEMA, properties=UNIFORM)
    table.append(rows(1))
    client.load_table("default.t").append(rows(2, 3))
    for read in (table.to_arrow(), read_deltalake(str(tmp_path / "t")), client.load_table("default.t").scan().to_arrow()):
        assert canonical(read) == canonical(rows(1, 2, 3))
    assert (metrics(table)["numRewrittenFiles"], metrics(table)["numRegisteredFiles"]) == ("1", "0")
    (reason,) = json.loads(metrics(table)["rewrittenFiles"]).values()
    assert "named 'id' in the file" in reason


def test_partitioned_files_are_registered_with_their_values(client: LocalClient, tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    orders = client.create_table("default.t", schema, partition_spec=spec)
    orders.append(pa.table({"id": [1, 2, 3], "name": ["a b", None, "ü/x"]}, schema=SCHEMA))
    table = tahoe.Table(tmp_path / "t")
    assert metrics(table)["numRegisteredFiles"] == "3"
    for read in (table.to_arrow(), read_deltalake(str(tmp_path / "t")), client.load_table("default.t").scan().to_arrow()):
        assert canonical(read) == canonical(pa.table({"id": [1, 2, 3], "name": ["a b", None, "ü/x"]}))
    assert table.to_arrow("name = 'a b'")["id"].to_pylist() == [1]
    orders.dynamic_partition_overwrite(pa.table({"id": [9], "name": ["a b"]}, schema=SCHEMA))
    assert sorted(table.to_arrow()["id"].to_pylist()) == [2, 3, 9]


def test_a_table_without_uniform_is_shown_and_not_written(tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "warehouse" / "t", SCHEMA)
    warehouse = warehouse_of(tmp_path / "warehouse", metadata_path=tmp_path / "beside")
    client = LocalClient(table_writer.writable_catalog(warehouse, tahoe.Table))
    with pytest.raises(BadRequestError, match="has no UniForm"):
        client.load_table("default.t").append(rows(1))
    assert table.version() == 0


def test_rules_of_the_table_are_checked_before_the_commit(client: LocalClient, tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "t", SCHEMA, properties=UNIFORM)
    table.add_constraint("positive", "id > 0")
    client.load_table("default.t").append(rows(1))
    before = sorted(path for path in tmp_path.rglob("*.parquet"))
    with pytest.raises(BadRequestError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        client.load_table("default.t").append(rows(-1))
    left = set(tmp_path.rglob("*.parquet")) - set(before)
    assert {path.parent.name for path in left} <= {"data"}, "only the client's own file is left"
    assert table.to_arrow()["id"].to_pylist() == [1]
    assert table.version() == 2


def test_the_table_computes_identity_and_generated_columns_that_a_client_leaves_out(client: LocalClient, tmp_path: Path) -> None:
    schema = StructType(
        (
            StructField("id", PrimitiveType("long")),
            StructField("number", PrimitiveType("long"), True, identity_metadata(10, 1, allow_explicit=False)),
            StructField("double", PrimitiveType("long"), True, {"delta.generationExpression": "id * 2"}),
        )
    )
    table = tahoe.Table.create(tmp_path / "t", schema, properties=UNIFORM)
    orders = client.load_table("default.t")
    orders.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    assert table.to_arrow().to_pylist() == [{"id": 1, "number": 10, "double": 2}, {"id": 2, "number": 11, "double": 4}]
    orders.append(pa.table({"id": pa.array([3], pa.int64()), "double": pa.array([6], pa.int64())}))
    assert table.to_arrow("id = 3").to_pylist() == [{"id": 3, "number": 12, "double": 6}]
    version = table.version()
    for name, message in (("number", "EXPLICIT_INSERT"), ("double", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")):
        with pytest.raises(BadRequestError, match=message):
            client.load_table("default.t").append(pa.table({"id": pa.array([4], pa.int64()), name: pa.array([5], pa.int64())}))
    assert table.version() == version


def test_statistics_are_those_of_the_footer(client: LocalClient, tmp_path: Path) -> None:
    client.create_table("default.t", SCHEMA).append(rows(3, 5))
    (file,) = tahoe.Table(tmp_path / "t").files().to_pylist()
    statistics = json.loads(file["stats"])
    assert (statistics["numRecords"], statistics["minValues"]["id"], statistics["maxValues"]["id"]) == (2, 3, 5)


def test_a_file_outside_of_the_table_is_refused(client: LocalClient, tmp_path: Path) -> None:
    orders = client.create_table("default.t", SCHEMA)
    pq.write_table(rows(1), tmp_path / "elsewhere.parquet")
    with pytest.raises(BadRequestError, match="TAHOE_PATH_OUTSIDE_TABLE"):
        orders.add_files([f"file://{tmp_path}/elsewhere.parquet"])


def test_a_file_without_field_ids_is_written_again(client: LocalClient, tmp_path: Path) -> None:
    orders = client.create_table("default.t", SCHEMA)
    (tmp_path / "t" / "data").mkdir(exist_ok=True)
    pq.write_table(rows(1), tmp_path / "t/data/own.parquet")
    orders.add_files([f"file://{tmp_path}/t/data/own.parquet"])
    table = tahoe.Table(tmp_path / "t")
    assert (metrics(table)["numRewrittenFiles"], canonical(table.to_arrow())) == ("1", canonical(rows(1)))
    assert canonical(client.load_table("default.t").scan().to_arrow()) == canonical(rows(1))


def test_a_file_with_some_field_ids_is_refused(client: LocalClient, tmp_path: Path) -> None:
    client.create_table("default.t", SCHEMA)
    table = tahoe.Table(tmp_path / "t")
    with_id = SCHEMA.set(0, SCHEMA.field(0).with_metadata({"PARQUET:field_id": "1"}))
    path = tmp_path / "t/own.parquet"
    pq.write_table(pa.table(rows(1).columns, schema=with_id), path)
    file = ClientFile(f"file://{path}", DATA, "PARQUET", 1, path.stat().st_size)
    document = client._here._warehouse.load(("default",), "t").document
    with pytest.raises(InvalidRequest, match="field ids and others without"):
        incoming_files(table.store, table.snapshot().config, document, [file], 0)
    with pytest.raises(Unsupported, match="of the format ORC"):
        incoming_files(table.store, table.snapshot().config, document, [replace(file, file_format="ORC")], 0)


def test_a_file_that_differs_from_its_manifest_is_refused(client: LocalClient, tmp_path: Path) -> None:
    orders = client.create_table("default.t", SCHEMA)
    answer = client._here.answer

    def exchange(request: object) -> object:
        for path in (tmp_path / "t/data").glob("*.parquet"):
            shutil.copy(other, path)
        return answer(request)  # type: ignore[arg-type]

    other = tmp_path / "other.parquet"
    pq.write_table(rows(1, 2, 3), other)
    client._here.answer = exchange  # type: ignore[method-assign,assignment]
    with pytest.raises(BadRequestError, match="has 3 rows, and 1 by its manifest"):
        orders.append(rows(1))
    other.write_bytes(b"no Parquet")
    with pytest.raises(BadRequestError, match="is not a Parquet file"):
        orders.append(rows(1))


@pytest.mark.parametrize("by_client", [True, False])
def test_moved_rows_keep_their_ids(tmp_path: Path, by_client: bool) -> None:
    """In a table that a client created, files are registered with their row ids; in others the ids are written again."""
    if by_client:
        schema = Schema(NestedField(1, "id", LongType()))
        LocalClient(writable_catalog(tmp_path)).create_table("default.t", schema, properties={"format-version": "3"})
    writer = Writer(tmp_path, **KINDS["Puffin files of vectors"])
    writer.table.append(pa.table({"id": [1, 2, 3]}))
    moved = writer.data_file(30, 2, 9, row_ids=[2, 1, None])
    assert writer.commit("overwrite", moved, without="m").status == 200
    writer.assert_rows(30, 2, 9)
    table = writer.table
    actual = {row["id"]: row["_row_id"] for row in table.to_arrow(row_ids=True).to_pylist()}
    assert (actual[30], actual[2], actual[9] > 2) == (2, 1, True)
    assert metrics(table)["numRegisteredFiles"] == str(int(by_client))
    assert table.check(strict=True, deep=True) == []


@pytest.mark.parametrize("number", [-1, 3, 2**62])
def test_row_ids_that_the_table_does_not_have_are_refused(tmp_path: Path, number: int) -> None:
    writer = Writer(tmp_path, **KINDS["Puffin files of vectors"])
    writer.table.append(pa.table({"id": [1, 2, 3]}))
    answer = writer.commit("overwrite", writer.data_file(1, row_ids=[number]), without="m")
    assert "other values than 0 to 2" in refused(answer, 400, "BadRequestException")
    writer.assert_rows(1, 2, 3)


def test_clients_of_format_2_write_tables_with_row_tracking(client: LocalClient, tmp_path: Path) -> None:
    table = tahoe.Table.create(tmp_path / "t", SCHEMA, properties={**UNIFORM, "delta.enableRowTracking": "true"})
    table.append(rows(1))
    client.load_table("default.t").append(rows(2, 3))
    assert sorted(table.to_arrow(row_ids=True)["_row_id"].to_pylist()) == [0, 1, 2]
    assert table.check(strict=True, deep=True) == []
