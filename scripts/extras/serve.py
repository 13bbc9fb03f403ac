"""Extra `serve`: `tahoe serve` lists a table with UniForm in Iceberg's REST protocol, and shows it to a browser."""

import json
import re
import subprocess
import urllib.request

import pyarrow as pa

import tahoe

properties = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
tahoe.Table.create("warehouse/sales/orders", pa.schema([("id", pa.int64())]), properties=properties).uniform.sync()
command = ["tahoe", "serve", "--iceberg", "warehouse", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
    try:
        address = next(actual[0] for line in server.stdout if (actual := re.search(r"http://127\.0\.0\.1:\d+", line)))
        with urllib.request.urlopen(f"{address}/v1/namespaces/sales/tables") as response:
            assert [table["name"] for table in json.load(response)["identifiers"]] == ["orders"]
        request = urllib.request.Request(address, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request) as response:
            assert b"orders" in response.read()
    finally:
        server.terminate()
