"""Extra `sql`: `tahoe sql` runs a query in DuckDB's SQL."""

import subprocess

import pyarrow as pa

import tahoe

table = tahoe.Table.create("t", pa.schema([("id", pa.int64())]))
table.append(pa.table({"id": [1, 2, 3]}))
command = ["tahoe", "sql", "t", "SELECT count(*) AS total FROM t", "--output", "json"]
printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
assert '"total": 3' in printed, printed
