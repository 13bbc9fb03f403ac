"""A table that writers change by turns at random, and the rows that it must have."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from tahoe import Table
from tests.cleaned_logs import start_at_the_checkpoint
from tests.interop.engines import canonical, read_deltalake, read_duckdb

__all__ = ["SCHEMA", "Turns"]

PARTITIONS = ["é", "日本", "ü ü", "a b", "50%", "%C3%A9", "a/b=c", "quote '", "plain", None]
FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, 7.25, None]
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("f", pa.float64()), ("g", pa.float32())])
CONDITIONS = ["f > 5", "f <= 5", "f = 'NaN'", "g >= 1", "f > 5 OR p = 'é'", "p = '日本' AND NOT (g < 100)", "p IS NULL"]


class Turns:
    """A table, the rows that it must have, and the steps of both writers."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.rows: dict[int, dict[str, Any]] = {}
        self.next_id = 0
        self.done: list[str] = []
        partitioned = ["p"] if self.random.random() < 0.8 else []
        if self.random.random() < 0.5:
            Table.create(root, SCHEMA, partition_by=partitioned)
        else:
            deltalake.DeltaTable.create(root, SCHEMA, partition_by=partitioned)
        self.acts: list[Callable[[], str]] = [
            *[self.tahoe_append, self.deltalake_append, self.deltalake_delete, self.tahoe_delete] * 2,
            self.tahoe_update,
            self.deltalake_update,
            self.tahoe_merge,
            self.tahoe_optimize,
            self.deltalake_optimize,
            self.tahoe_restore,
            self.tahoe_checkpoint,
            self.deltalake_checkpoint,
            self.clean_log,
            self.tahoe_vacuum,
        ]

    def step(self) -> None:
        self.done.append(self.random.choice(self.acts)() if self.done else self.tahoe_append())

    @property
    def table(self) -> Table:
        return Table(self.root)

    def new_rows(self) -> pa.Table:
        draw = self.random.choice
        ids = range(self.next_id, self.next_id + self.random.randint(1, 12))
        self.next_id = ids.stop
        rows = [{"id": each, "p": draw(PARTITIONS), "f": draw(FLOATS), "g": draw(FLOATS)} for each in ids]
        self.rows |= {row["id"]: row for row in rows}
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def some_ids(self) -> tuple[str, set[int]]:
        modulus = self.random.randint(2, 4)
        rest = self.random.randrange(modulus)
        return f"id % {modulus} = {rest}", {each for each in self.rows if each % modulus == rest}

    def tahoe_append(self) -> str:
        self.table.append(self.new_rows())
        return "Tahoe appends"

    def deltalake_append(self) -> str:
        deltalake.write_deltalake(self.root, self.new_rows(), mode="append")
        return "deltalake appends"

    def tahoe_delete(self) -> str:
        if self.random.random() < 0.4:
            self.table.delete("f > 5")
            gone = {each for each, row in self.rows.items() if row["f"] is not None and (math.isnan(row["f"]) or row["f"] > 5)}
            where = "f > 5"
        else:
            where, gone = self.some_ids()
            self.table.delete(where)
        self._forget(gone)
        return f"Tahoe deletes {where}"

    def deltalake_delete(self) -> str:
        where, gone = self.some_ids()
        deltalake.DeltaTable(self.root).delete(where)
        self._forget(gone)
        return f"deltalake deletes {where}"

    def tahoe_update(self) -> str:
        where, changed = self.some_ids()
        self.table.update({"f": "CAST('NaN' AS DOUBLE)"}, where)
        for each in changed:
            self.rows[each] = {**self.rows[each], "f": math.nan}
        return f"Tahoe updates {where}"

    def deltalake_update(self) -> str:
        where, changed = self.some_ids()
        deltalake.DeltaTable(self.root).update(updates={"p": "'é'"}, predicate=where)
        for each in changed:
            self.rows[each] = {**self.rows[each], "p": "é"}
        return f"deltalake updates {where}"

    def tahoe_merge(self) -> str:
        known = self.random.sample(sorted(self.rows), min(len(self.rows), 5))
        for each in known:
            self.rows[each] = {**self.rows[each], "g": 3.0, "p": "日本"}
        changed = [self.rows[each] for each in known]
        source = pa.concat_tables([pa.Table.from_pylist(changed, schema=SCHEMA), self.new_rows()])
        merge = self.table.merge(source, "target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        return f"Tahoe merges {known}"

    def tahoe_optimize(self) -> str:
        self.table.optimize()
        return "Tahoe optimizes"

    def deltalake_optimize(self) -> str:
        deltalake.DeltaTable(self.root).optimize.compact()
        return "deltalake optimizes"

    def tahoe_restore(self) -> str:
        """Delete all rows and bring them back, so that files are live again that were removed."""
        version = self.table.version()
        deltalake.DeltaTable(self.root).delete()
        if self.table.version() == version:
            return "deltalake deletes nothing"
        self.table.restore(version)
        return f"deltalake deletes all, Tahoe restores {version}"

    def tahoe_checkpoint(self) -> str:
        self.table.checkpoint()
        return "Tahoe writes a checkpoint"

    def deltalake_checkpoint(self) -> str:
        deltalake.DeltaTable(self.root).create_checkpoint()
        return "deltalake writes a checkpoint"

    def checkpoints(self) -> list[Callable[[], str]]:
        return [self.tahoe_checkpoint, self.deltalake_checkpoint]

    def clean_log(self) -> str:
        checkpoint = self.random.choice(self.checkpoints())()
        return f"{checkpoint}, the log starts at version {start_at_the_checkpoint(self.root)}"

    def tahoe_vacuum(self) -> str:
        self.table.vacuum(retention_hours=0, retention_check=False)
        return "Tahoe vacuums"

    def _forget(self, gone: set[int]) -> None:
        self.rows = {each: row for each, row in self.rows.items() if each not in gone}

    def expected(self) -> list[tuple[Any, ...]]:
        return canonical(pa.Table.from_pylist(list(self.rows.values()), schema=SCHEMA))

    def check(self) -> None:
        expected = self.expected()
        reported = "; ".join(self.done)
        assert canonical(self.table.to_arrow()) == expected, reported
        assert canonical(read_deltalake(str(self.root)).cast(SCHEMA)) == expected, reported
        assert canonical(read_duckdb(str(self.root)).cast(SCHEMA)) == expected, reported
        condition = self.random.choice(CONDITIONS)
        everything = self.table.to_arrow()
        ids = {row["id"] for row in everything.to_pylist() if _is_true(condition, row)}
        assert set(self.table.to_arrow(filter=condition)["id"].to_pylist()) == ids, f"{condition}: {reported}"
        assert self.table.check(deep=self.random.random() < 0.3) == [], reported


def _is_true(condition: str, row: dict[str, Any]) -> bool:
    f, g, p = row["f"], row["g"], row["p"]
    above = f is not None and (math.isnan(f) or f > 5)
    return {
        "f > 5": above,
        "f <= 5": f is not None and not above,
        "f = 'NaN'": f is not None and math.isnan(f),
        "g >= 1": g is not None and (math.isnan(g) or g >= 1),
        "f > 5 OR p = 'é'": above or p == "é",
        "p = '日本' AND NOT (g < 100)": p == "日本" and g is not None and (math.isnan(g) or g >= 100),
        "p IS NULL": p is None,
    }[condition]
