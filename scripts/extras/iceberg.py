"""Extra `iceberg`: PyIceberg reads a table by path, and a table is published in an SQL catalog."""

import os

import pyarrow as pa

os.environ |= {"PYICEBERG_CATALOG__LOCAL__TYPE": "sql", "PYICEBERG_CATALOG__LOCAL__URI": "sqlite:///catalog.db"}

from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

import tahoe

properties = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.config.iceberg.catalogs": "local:sales.orders",
}
table = tahoe.Table.create("orders", pa.schema([("id", pa.int64())]), properties=properties)
table.append(pa.table({"id": [1, 2, 3]}))
table.uniform.sync()
status = table.uniform.status(catalog_seconds=60)
assert [catalog.lag_versions for catalog in status.catalogs] == [0], status
assert StaticTable.from_metadata(os.path.abspath("orders")).scan().to_arrow().num_rows == 3
assert load_catalog("local").load_table("sales.orders").scan().to_arrow().num_rows == 3
