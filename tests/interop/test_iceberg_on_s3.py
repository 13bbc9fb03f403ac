"""UniForm on S3: put-if-absent there, and PyIceberg's own S3 client as the reader."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical


def client_options(s3_options: dict[str, str]) -> dict[str, str]:
    """Return the options of PyIceberg's own S3 client."""
    return {
        "s3.endpoint": s3_options["aws_endpoint"],
        "s3.access-key-id": s3_options["aws_access_key_id"],
        "s3.secret-access-key": s3_options["aws_secret_access_key"],
        "s3.region": s3_options["aws_region"],
    }


def test_pyiceberg_reads_a_table_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": pa.array(["a b", "50%", None])})
    properties = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
    table = tahoe.Table.create(
        f"{s3_url}/a table", rows.schema, partition_by=["p"], properties=properties, storage_options=s3_options
    )
    table.append(rows)
    table.overwrite(rows.slice(1), replace_where="id > 1")
    location = table.uniform.wait().metadata_location
    theirs = StaticTable.from_metadata(location, client_options(s3_options))
    assert canonical(theirs.scan().to_arrow()) == canonical(table.to_arrow())


def test_pyiceberg_writes_a_table_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    client = LocalClient(writable_catalog(s3_url, s3_options), **client_options(s3_options))
    client.create_namespace("sales", {"owner": "me"})
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    orders = client.create_table("sales.orders", schema, partition_spec=spec)
    orders.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": pa.array(["a b", "50%", None])}))
    orders.delete("id = 2")
    orders.upsert(pa.table({"id": pa.array([1, 4], pa.int64()), "p": pa.array(["a b", "new"])}), ["id"])
    table = tahoe.Table(f"{s3_url}/sales/orders", storage_options=s3_options)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert canonical(client.load_table("sales.orders").scan().to_arrow()) == canonical(table.to_arrow())
    assert table.check(deep=True) == []
    client.purge_table("sales.orders")
    client.drop_namespace("sales")
    assert client.list_namespaces() == [("default",)]


def test_rows_of_duckdb_stay_when_it_deletes_its_files_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    client = LocalClient(writable_catalog(s3_url, s3_options), **client_options(s3_options))
    client._session.headers["X-Client-Version"] = "duckdb/v1.5.5(linux_amd64)"
    client.create_namespace("ducks")
    client.create_table("ducks.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    table = tahoe.Table(f"{s3_url}/ducks/t", storage_options=s3_options)
    live = set(table.files()["path"].to_pylist())
    gone = [entry.name for entry in table.store.walk("data") if entry.name not in live]
    for name in gone:
        table.store.delete(name)
    assert len(gone) == 1
    assert table.to_arrow()["id"].to_pylist() == [1, 2]
    assert client.load_table("ducks.t").scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert table.history(1)[0]["operationMetrics"]["numRewrittenFiles"] == "1"


def test_an_iceberg_table_on_s3_is_converted_where_it_is(s3_url: str, s3_options: dict[str, str]) -> None:
    """One that Tahoe's own Iceberg side has left, with partitions and dead rows."""
    rows = pa.table({"id": pa.array(range(300), pa.int64()), "p": pa.array(["a b", "50%", None] * 100)})
    properties = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.enableIcebergCompatV2": "true",
        "delta.columnMapping.mode": "name",
    }
    url = f"{s3_url}/iceberg table"
    table = tahoe.Table.create(url, rows.schema, partition_by=["p"], properties=properties, storage_options=s3_options)
    table.append(rows)
    table.overwrite(rows.slice(150), replace_where="id >= 150")
    table.uniform.wait()
    assert UNIFORM_RUNTIME.drain(120, 0, table.url) == []  # the conversion writes its record to the log after it has published
    expected = canonical(table.to_arrow())
    for entry in list(table.store.walk("_delta_log")):
        table.store.delete(entry.name)
    again = tahoe.Table(url, storage_options=s3_options)
    done = again.convert_to_delta()
    assert done.version == 0 and again.history()[0]["operationParameters"]["sourceFormat"] == "iceberg"
    assert canonical(again.to_arrow()) == expected
    assert again.check(deep=True) == []


def test_a_folder_on_s3_is_converted_where_it_is(s3_url: str, s3_options: dict[str, str]) -> None:
    table = tahoe.Table(f"{s3_url}/a folder", storage_options=s3_options)
    for day in ("2026-03-01", "__HIVE_DEFAULT_PARTITION__"):
        sink = BytesIO()
        pq.write_table(pa.table({"id": [1, 2]}), sink)
        table.store.put(f"day={day}/a b.parquet", sink.getvalue())
    assert table.convert_to_delta({"day": "date"}).files == 2
    assert table.to_arrow(filter="day = '2026-03-01'").num_rows == 2 and table.to_arrow().num_rows == 4
    assert table.check(deep=True) == []
