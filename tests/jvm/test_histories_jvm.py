"""Random histories of tables that Tahoe, delta-spark and deltalake change in turn: all of them read the same rows after each step.

delta-spark names folders with any letters, and deltalake does not find files that it removes below such folders: here it only appends and
writes checkpoints; `tests/interop/test_path_spellings.py` has the rest. `make interop` runs a few seeds, or `TAHOE_JVM_TURNS` of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.interop.engines import canonical
from tests.interop.turns import SCHEMA, Turns

pytestmark = pytest.mark.jvm

HISTORIES = int(os.environ.get("TAHOE_JVM_TURNS", "4"))
STEPS = 6
DDL = "id BIGINT, p STRING, f DOUBLE, g FLOAT"


class TurnsOfThree(Turns):
    def __init__(self, root: Path, seed: int, jvm: SparkSession) -> None:
        super().__init__(root, seed)
        self.jvm = jvm
        self.acts = [
            *[self.spark_append, self.spark_delete, self.tahoe_append, self.tahoe_delete, self.deltalake_append] * 2,
            self.spark_update,
            self.spark_optimize,
            self.spark_checkpoint,
            self.spark_restore,
            self.tahoe_update,
            self.tahoe_merge,
            self.tahoe_optimize,
            self.tahoe_checkpoint,
            self.deltalake_checkpoint,
            self.clean_log,
            self.tahoe_vacuum,
        ]

    def spark_append(self) -> str:
        rows = self.new_rows().to_pylist()
        frame = self.jvm.createDataFrame([tuple(row.values()) for row in rows], DDL)
        frame.coalesce(1).write.format("delta").mode("append").save(str(self.root))
        return "delta-spark appends"

    def spark_delete(self) -> str:
        where, gone = self.some_ids()
        self.jvm.sql(f"DELETE FROM delta.`{self.root}` WHERE {where}")
        self._forget(gone)
        return f"delta-spark deletes {where}"

    def spark_update(self) -> str:
        where, changed = self.some_ids()
        self.jvm.sql(f"UPDATE delta.`{self.root}` SET p = '日本' WHERE {where}")
        for each in changed:
            self.rows[each] = {**self.rows[each], "p": "日本"}
        return f"delta-spark updates {where}"

    def spark_optimize(self) -> str:
        self.jvm.sql(f"OPTIMIZE delta.`{self.root}`")
        return "delta-spark optimizes"

    def spark_restore(self) -> str:
        version = self.table.version()
        self.table.delete()
        if self.table.version() == version:
            return "Tahoe deletes nothing"
        self.jvm.sql(f"RESTORE TABLE delta.`{self.root}` TO VERSION AS OF {version}")
        return f"Tahoe deletes all, delta-spark restores {version}"

    def spark_checkpoint(self) -> str:
        log = self.jvm._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.jvm._jsparkSession, str(self.root))
        log.checkpoint()
        return "delta-spark writes a checkpoint"

    def checkpoints(self) -> list[Callable[[], str]]:
        return [*super().checkpoints(), self.spark_checkpoint]

    def check(self) -> None:
        self.jvm._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # a log is cleaned below it
        read = self.jvm.read.format("delta").load(str(self.root)).toArrow()
        assert canonical(read.select(SCHEMA.names).cast(pa.schema(list(SCHEMA)))) == self.expected(), "; ".join(self.done)
        super().check()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_history_of_three_writers_is_read_equal_after_each_step(jvm: SparkSession, tmp_path: Path, seed: int) -> None:
    turns = TurnsOfThree(tmp_path / "table", seed, jvm)
    for _ in range(STEPS):
        turns.step()
        turns.check()
