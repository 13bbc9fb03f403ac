"""A small table, and the operations that the tests of crashes and lost answers run on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store

__all__ = ["BEFORE", "OPERATIONS", "SCHEMA", "Operation", "contents", "prepared", "rows"]

SCHEMA = pa.schema({"part": pa.string(), "id": pa.int64()})
BEFORE = {("a", 1), ("a", 2), ("a", 3), ("b", 11), ("b", 12), ("b", 13)}


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of the prepared table, and the expected rows."""

    run: Callable[[Table], object]
    after: set[tuple[str, int]]


def rows(part: str, *ids: int) -> pa.Table:
    return pa.table({"part": [part] * len(ids), "id": pa.array(ids, pa.int64())}, SCHEMA)


def prepared(store: LogStore) -> None:
    """Create a table in `store` at version 3 with the rows `BEFORE` and a checkpoint at 2; version 4 writes another one."""
    for name, data in _prepared_files():
        store.put(name, data)


@lru_cache(maxsize=1)
def _prepared_files() -> list[tuple[str, bytes]]:
    store = open_store("memory://prepared/table")
    properties = {"delta.checkpointInterval": "2", "note": "to be unset"}
    table = Table.create(store.url, SCHEMA, partition_by=["part"], properties=properties, store=store)
    for number in (1, 2, 3):
        table.append(pa.concat_tables([rows("a", number), rows("b", 10 + number)]))
    return [(entry.name, store.get(entry.name)) for entry in store.walk()]


def contents(table: Table) -> list[tuple[str, int]]:
    read = table.to_arrow(columns=["part", "id"])
    return sorted(zip(read["part"].to_pylist(), read["id"].to_pylist(), strict=True))


OPERATIONS: dict[str, Operation] = {
    "append": Operation(lambda table: table.append(rows("a", 100)), BEFORE | {("a", 100)}),
    "append of several files": Operation(
        lambda table: table.append(pa.concat_tables([rows("a", 100), rows("b", 200), rows("c", 300)])),
        BEFORE | {("a", 100), ("b", 200), ("c", 300)},
    ),
    "append with a new column": Operation(
        lambda table: table.append(rows("a", 100).append_column("new", [["x"]]), merge_schema=True), BEFORE | {("a", 100)}
    ),
    "append of an application": Operation(lambda table: table.append(rows("a", 100), app=("job", 1)), BEFORE | {("a", 100)}),
    "overwrite": Operation(lambda table: table.overwrite(rows("a", 100)), {("a", 100)}),
    "overwrite of a partition": Operation(
        lambda table: table.overwrite(rows("a", 100), replace_where="part = 'a'"), {("a", 100), ("b", 11), ("b", 12), ("b", 13)}
    ),
    "overwrite of rows": Operation(
        lambda table: table.overwrite(rows("a", 5), replace_where="id >= 2 and id < 12"),
        {("a", 1), ("a", 5), ("b", 12), ("b", 13)},
    ),
    "overwrite of the partitions written": Operation(
        lambda table: table.overwrite(rows("b", 100), dynamic_partitions=True), {("a", 1), ("a", 2), ("a", 3), ("b", 100)}
    ),
    "optimize": Operation(lambda table: table.optimize().version, BEFORE),
    "restore": Operation(lambda table: table.restore(2).version, {row for row in BEFORE if row[1] % 10 < 3}),
    "set properties": Operation(lambda table: table.set_properties({"owner": "me"}), BEFORE),
    "unset properties": Operation(lambda table: table.unset_properties(["note"]), BEFORE),
}
