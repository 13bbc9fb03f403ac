"""UniForm on S3: put-if-absent there, and PyIceberg's own S3 client as the reader."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.table import StaticTable

import tahoe
from tests.interop.engines import canonical


def test_pyiceberg_reads_a_table_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": pa.array(["a b", "50%", None])})
    properties = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
    table = tahoe.Table.create(
        f"{s3_url}/a table", rows.schema, partition_by=["p"], properties=properties, storage_options=s3_options
    )
    table.append(rows)
    table.overwrite(rows.slice(1), replace_where="id > 1")
    location = table.uniform.wait().metadata_location
    theirs = StaticTable.from_metadata(
        location,
        {
            "s3.endpoint": s3_options["aws_endpoint"],
            "s3.access-key-id": s3_options["aws_access_key_id"],
            "s3.secret-access-key": s3_options["aws_secret_access_key"],
            "s3.region": s3_options["aws_region"],
        },
    )
    assert canonical(theirs.scan().to_arrow()) == canonical(table.to_arrow())
