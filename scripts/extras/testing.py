"""Extra `testing`: the invariants of a table, and a random history of one."""

from uuid import uuid4

import pyarrow as pa

import tahoe
from tahoe.store.object_store import open_store
from tahoe.testing.table_laws import assert_laws
from tahoe.testing.table_machine import TableMachine, run_histories

table = tahoe.Table.create("t", pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})
table.append(pa.table({"id": [1, 2, 3]}))
table.delete("id = 2")
assert_laws(table)


class InMemory(TableMachine):
    def new_store(self):
        return open_store(f"memory://{uuid4().hex}/t")


run_histories(InMemory, range(1), steps=4)
