"""Extras `hive` and `glue`: a table is published in a catalog. PYICEBERG_CATALOG__LOCAL__… configures it."""

import pyarrow as pa
from pyiceberg.catalog import load_catalog

import tahoe

properties = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.config.iceberg.catalogs": "local:sales.orders",
}
table = tahoe.Table.create("orders", pa.schema([("id", pa.int64())]), properties=properties)
for number in range(2):
    table.append(pa.table({"id": [number]}))
    table.uniform.sync()
status = table.uniform.status(catalog_seconds=60)
assert [catalog.lag_versions for catalog in status.catalogs] == [0], status
assert load_catalog("local").load_table("sales.orders").scan().to_arrow().num_rows == 2
