"""Random small histories of tables, made with the core API, as input for comparing readers of any version.

    history = History(folder, seed, FORMS["puffin"])          # creates the table
    for step in history.steps(8):                # each makes one or more commits; `step` describes it
        …history.table…, history.table.version()

The same seed gives the same table, down to its rows. Steps append, delete, update, merge, overwrite, restore, purge vectors, write
checkpoints, and add, rename and drop columns; types are nested, and values and partition values unusual. The module is independent of
readers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.log.replay import add_files
from tahoe.ops.tables.create import with_schema
from tahoe.schema.types import StructType
from tahoe.txn.transaction import Operation

__all__ = ["FORMS", "PER_COMMIT", "V2", "V3", "History", "restore"]

_VECTORS = {"delta.enableDeletionVectors": "true", "delta.universalFormat.enabledFormats": "iceberg"}
V2 = {**_VECTORS, "delta.enableIcebergCompatV2": "true", "delta.universalFormat.config.iceberg.deletes": "position"}
V3 = {**_VECTORS, "delta.enableIcebergCompatV3": "true"}
PER_COMMIT = {"delta.universalFormat.config.iceberg.snapshot-per-commit": "true"}
_REWRITING = {"delta.enableDeletionVectors": "false"}
FORMS: dict[str, dict[str, str]] = {
    "position deletes": V2,
    "puffin": V3,
    "position deletes, each commit": {**V2, **PER_COMMIT},
    "puffin, each commit": {**V3, **PER_COMMIT},
    "format 2, rewriting": {**V2, **_REWRITING},
    "format 3, rewriting": {**V3, **_REWRITING},
}
"""Property sets that show a table to Iceberg readers, by name."""

_PLACE = pa.struct([("x", pa.int32()), ("deep", pa.struct([("day", pa.date32())]))])
_COLUMNS = {
    "id": pa.int64(),
    "name": pa.string(),
    "ratio": pa.float64(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "flag": pa.bool_(),
    "single": pa.float32(),
    "price": pa.decimal128(12, 2),
    "large": pa.decimal128(38, 10),
    "raw": pa.binary(),
    "tags": pa.list_(pa.string()),
    "place": _PLACE,
    "counts": pa.map_(pa.string(), pa.int64()),
    "places": pa.list_(pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])),
}
_TEXTS = ["", "x", "naïve 日本", "\U0010ffff" * 40, "z" * 31 + "\uffff\uffff", "it's 50%"]
_PARTITIONS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a b", "50%", "%41", "ünïcode 日本", "a/b=c", "quote '", None]),
    (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), None]),
    (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-99999999.99"), None]),
    (pa.bool_(), [True, False, None]),
    (pa.float64(), [1.5, float("-inf"), 0.0, None]),
    (pa.timestamp("us", "UTC"), [datetime(2013, 1, 1, 12, 30, 0, 123999, UTC), datetime(1969, 12, 31, tzinfo=UTC), None]),
]


class History:
    """One table and its history.

    Args:
        folder: the parent folder of the table.
        seed: determines everything.
        properties: the table's properties; see `FORMS` for those that show it to Iceberg readers. If they do not set row tracking, the
            seed does; column names are unusual, so that the table has column mapping.
    """

    def __init__(self, folder: Path, seed: int, properties: Mapping[str, str]) -> None:
        self.random = random.Random(seed)
        self.part_type, self.parts = self.random.choice(_PARTITIONS)
        is_partitioned = self.random.random() < 0.7
        columns = [(name, data_type) for name, data_type in _COLUMNS.items() if name == "id" or self.random.random() < 0.7]
        self.added = 0
        self.next_id = 0
        self.done: list[str] = []
        drawn = {"delta.enableRowTracking": "true"} if self.random.random() < 0.3 else {}
        self.table = Table.create(
            folder / f"history-{seed}",
            pa.schema([*columns, ("part 1/ü", self.part_type)]),
            partition_by=["part 1/ü"] if is_partitioned else [],
            properties={"delta.columnMapping.mode": "name", **drawn, **properties},
        )

    def __repr__(self) -> str:
        """Describe the steps so far, for the message of a failing test."""
        return f"{self.table.url}: " + "; ".join(self.done)

    def steps(self, count: int) -> Iterator[str]:
        """Carry out `count` steps, one after the other."""
        acts: list[tuple[int, Callable[[], str]]] = [
            (5, self.append),
            (6, self.delete),
            (3, self.update),
            (3, self.merge),
            (1, self.overwrite),
            (2, self.restore),
            (1, self.add_column),
            (1, self.rename_column),
            (1, self.drop_column),
            (1, self.purge),
            (1, self.optimize),
            (1, self.checkpoint),
        ]
        self.done.append(self.append())
        yield self.done[-1]
        for _ in range(count - 1):
            (act,) = self.random.choices([act for _, act in acts], [weight for weight, _ in acts])
            self.done.append(f"{self.table.version()}: {act()}")
            yield self.done[-1]

    def rows(self, count: int, first: int | None = None) -> pa.Table:
        """Return new rows of the current schema; ids continue, or restart at `first`."""
        first = self.next_id if first is None else first
        self.next_id = max(self.next_id, first + count)
        schema = self.table.to_arrow().schema
        ids = range(first, first + count)
        return pa.table(
            {field.name: pa.array([self._value(field.name, field.type, i) for i in ids], field.type) for field in schema}
        )

    def append(self) -> str:
        """Append up to 40 rows, in one or several files."""
        count = self.random.randint(1, 40)
        self.table.append(self.rows(count), max_rows_per_file=self.random.choice([None, 3, 10]))
        return f"append {count}"

    def delete(self) -> str:
        """Delete by a condition."""
        where = self._condition()
        self.table.delete(where)
        return f"delete {where}"

    def update(self) -> str:
        """Update by a condition: ids, or the partition column."""
        where = self._condition()
        self.table.update({"id": "id + 1000"} if self.random.random() < 0.5 else {"`part 1/ü`": "null"}, where)
        return f"update {where}"

    def merge(self) -> str:
        """MERGE rows that partly exist: delete, update and insert."""
        first = self.random.randint(0, max(self.next_id, 1))
        source = self.rows(self.random.randint(1, 15), first)
        merge = self.table.merge(source, "target.id = source.id")
        merge = merge.when_matched_delete("source.id % 3 = 0").when_matched_update_all()
        # Ids that occur twice after an update are matched by one source row each, which is allowed.
        merge.when_not_matched_insert_all().execute()
        return f"merge {source.num_rows} from {first}"

    def overwrite(self) -> str:
        """Overwrite all rows, or those that satisfy a condition."""
        if self.random.random() < 0.5:
            self.table.overwrite(self.rows(5))
            return "overwrite"
        self.table.overwrite(self.rows(5, 10_000 + self.next_id), replace_where="id >= 10000")
        return "overwrite id >= 10000"

    def restore(self) -> str:
        """Restore an older version."""
        version = self.random.randint(0, self.table.version())
        return f"restore {version}" if restore(self.table, version) else "restore nothing"

    def purge(self) -> str:
        """Rewrite files with deletion vectors."""
        self.table.purge()
        return "purge"

    def optimize(self) -> str:
        """Compact small files into one, or cluster all files."""
        columns = self.random.choice([[], [], ["id"]])
        done = self.table.optimize(zorder_by=columns, target_file_size=self.random.choice([None, 4000]))
        return f"optimize {columns}" if done.version is not None else "optimize nothing"

    def checkpoint(self) -> str:
        """Write a checkpoint."""
        self.table.checkpoint()
        return "checkpoint"

    def add_column(self) -> str:
        """Append rows with an additional column."""
        self.added += 1
        name = f"extra {self.added}"
        rows = self.rows(3)
        self.table.append(rows.append_column(name, pa.array([1, None, 3], pa.int32())), merge_schema=True)
        return f"add column {name}"

    def rename_column(self) -> str:
        """Rename a column."""
        return self._alter(
            "RENAME COLUMN", lambda column, columns: [replace(c, name=f"new {c.name}") if c is column else c for c in columns]
        )

    def drop_column(self) -> str:
        """Drop a column."""
        return self._alter("DROP COLUMNS", lambda column, columns: [c for c in columns if c is not column])

    def _alter(self, name: str, change: Callable[[Any, list[Any]], list[Any]]) -> str:
        """Change one column that is neither a partition column nor used by conditions."""
        snapshot = self.table.snapshot()
        free = [column for column in snapshot.schema if column.name not in ("id", "part 1/ü")]
        if not free:
            return f"{name}: no column"
        column = self.random.choice(free)
        transaction = self.table.begin()
        transaction.read_whole_table()
        schema = StructType(tuple(change(column, list(snapshot.schema))))
        transaction.set_metadata(with_schema(snapshot.config, schema, self.table.clock))
        self.table.commit(transaction, Operation(name))
        return f"{name} {column.name}"

    def _condition(self) -> str:
        k = self.random.randint(2, 9)
        return self.random.choice(
            [
                f"id % {k} = {self.random.randrange(k)}",
                f"id < {self.random.randint(0, self.next_id + 1)}",
                f"id between {self.next_id // 3} and {self.next_id // 2}",
                "`part 1/ü` is null",
                f"`part 1/ü` is not null and id % {k} = 0",
            ]
        )

    def _value(self, name: str, data_type: pa.DataType, i: int) -> Any:
        draw = self.random.random
        if name == "part 1/ü":
            return self.random.choice(self.parts)
        if name == "id":
            return i
        has_structs = pa.types.is_list(data_type) and pa.types.is_struct(data_type.value_type)
        if draw() < 0.15 and not has_structs:  # PyIceberg 0.12 reads a null list of structs as an empty one
            return None
        if pa.types.is_string(data_type):
            return self.random.choice([*_TEXTS, f"n{i}" * 20])
        if pa.types.is_floating(data_type):
            return self.random.choice([float("nan"), -0.0, float("inf"), i / 7])
        if pa.types.is_timestamp(data_type):
            timestamp = datetime(1969, 12, 31, 23, 59, 30, tzinfo=UTC) + timedelta(microseconds=i * 1_234_567)
            return timestamp if data_type.tz else timestamp.replace(tzinfo=None)
        if pa.types.is_decimal(data_type):
            if data_type.precision > 18:
                return Decimal(10**27 - i if i % 2 else -(10**27) + i) + Decimal(i).scaleb(-10)
            return Decimal((i - 20) * 37).scaleb(-2)
        if pa.types.is_boolean(data_type):
            return i % 3 == 0
        if pa.types.is_binary(data_type):
            return bytes([i % 256, 0, 255])
        if pa.types.is_map(data_type):
            return [("a", i), ("b", None)]
        if pa.types.is_list(data_type):
            if has_structs:
                return [{"x": i, "names": [None, str(i)]}, None, {"x": None, "names": None}][: i % 4]
            return [None, "", str(i)][: i % 4]
        if pa.types.is_struct(data_type):
            return {"x": i - 20, "deep": None if i % 5 == 0 else {"day": date(2024, 1, 1) + timedelta(days=i % 1000)}}
        return i


def restore(table: Table, version: int) -> bool:
    """Restore the files of an old version, as RESTORE does, including rows that vectors had deleted; return False if the schema has
    changed since, or nothing would change."""
    now, old = table.snapshot(), table.snapshot(version)
    if now.metadata.schema_string != old.metadata.schema_string or now.version == version:
        return False
    transaction = table.begin()
    transaction.read_whole_table()
    current, target = ({add.key: add for add in add_files(snapshot.files())} for snapshot in (now, old))
    removes = [add.remove(table.clock.now_ms()) for key, add in current.items() if key not in target]
    adds = [replace(add, data_change=True) for key, add in target.items() if key not in current]
    if not removes and not adds:
        return False
    transaction.read_files(remove.key for remove in removes)
    transaction.stage(*removes, *adds)
    table.commit(transaction, Operation("RESTORE", {"version": version, "timestamp": None}))
    return True
