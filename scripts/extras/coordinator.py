"""Extra `coordinator`: the driver of PostgreSQL is installed, and a transaction changes two tables with a coordinator in SQLite."""

import psycopg
import pyarrow as pa

import tahoe

assert psycopg.pq.__impl__ == "binary"  # no compiler, no system library
coordinator = tahoe.SqlCoordinator("sqlite:///coordinator.db")
managed = {"delta.feature.catalogManaged": "supported"}
schema = pa.schema([("id", pa.int64())])
first, two = (tahoe.Table.create(name, schema, properties=managed, coordinator=coordinator) for name in ("one", "two"))
with tahoe.transaction(first, two) as together:
    together[first].append(pa.table({"id": [1]}))
    together[two].append(pa.table({"id": [2]}))
assert [snapshot.scan().to_arrow().num_rows for snapshot in tahoe.read_together(first, two)] == [1, 1]
