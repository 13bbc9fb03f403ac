"""Random histories of the operations of a table in SQL, against those of a list of rows (`tests.model.all_operations`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tests.interop.engines import canonical
from tests.model.all_operations import FEATURES, LATER, OPERATIONS, History, Row, rows_of

STEPS = 25


class SqlHistory(History):
    """A history whose operations are statements and DataFrames."""

    refusals = (*History.refusals, PySparkException)

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.spark = spark

    @property
    def path(self) -> str:
        """The path of the table."""
        return self.table.url.removeprefix("file://")

    def sql(self, statement: str) -> None:
        """Run a statement, in which ``{t}`` is the table."""
        self.spark.sql(statement.format(t=f"delta.`{self.path}`")).collect()

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        """Return rows as a DataFrame with the columns of the table."""
        return self.spark.createDataFrame(rows_of(rows, self.expected.columns))

    def operations(self) -> Mapping[str, Callable[[Any], object]]:
        """Return the operations by name."""
        return STATEMENTS

    def compare(self) -> None:
        """Compare the table with the list of rows, also as Spark reads it."""
        self.table = Table(self.table.url)
        super().compare()
        assert canonical(self.spark.read.format("delta").load(self.path).toArrow()) == canonical(self.table.to_arrow())


def write(history: SqlHistory) -> None:
    rows, replaces = history.new_rows(), history.chance.random() < 0.1
    history.frame(rows).write.format("delta").mode("overwrite" if replaces else "append").save(history.path)
    history.becomes(rows if replaces else [*history.expected.rows, *rows])


def delete(history: SqlHistory) -> None:
    number, above = history.some_id(), history.chance.random() < 0.2
    history.sql(f"DELETE FROM {{t}} WHERE id {'>' if above else '='} {number}")
    history.loses(number=number, above=above)


def delete_all(history: SqlHistory) -> None:
    if history.chance.random() < 0.2:
        history.sql("DELETE FROM {t}")
        history.becomes([])


def update(history: SqlHistory) -> None:
    numbers = {history.some_id(), history.some_id()}
    history.sql(f"UPDATE {{t}} SET name = 'updated' WHERE id IN ({', '.join(map(str, numbers))})")
    history.is_updated(numbers)


def merge(history: SqlHistory) -> None:
    source = history.source()
    history.frame(source).createOrReplaceTempView("source")
    history.sql("MERGE INTO {t} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    history.is_merged(source)


def rename_column(history: SqlHistory) -> None:
    name, new = history.free_column(), f"renamed{len(history.steps)}"
    if name is not None:
        history.sql(f"ALTER TABLE {{t}} RENAME COLUMN {name} TO {new}")
        history.is_renamed(name, new)


def drop_column(history: SqlHistory) -> None:
    name = history.free_column()
    if name is not None:
        history.sql(f"ALTER TABLE {{t}} DROP COLUMN {name}")
        history.is_dropped(name)


def widen_column(history: SqlHistory) -> None:
    name = history.free_column(pa.int32())
    if name is not None:
        history.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE BIGINT")
        history.becomes(history.expected.rows, {**history.expected.columns, name: pa.int64()})


def set_property(history: SqlHistory) -> None:
    key = history.chance.choice(list(LATER))
    history.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}' = '{history.chance.choice(LATER[key])}')")


def restore(history: SqlHistory) -> None:
    version = history.chance.choice(list(history.earlier))
    history.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
    history.expected = history.earlier[version]


def clone(history: SqlHistory) -> None:
    if history.chance.random() < 0.3:
        target = history.folder / f"clone{len(history.steps)}"
        history.sql(f"CREATE TABLE delta.`{target}` {history.chance.choice(['DEEP', 'SHALLOW'])} CLONE {{t}}")
        history.table, history.earlier = Table(target), {}


STATEMENTS: Mapping[str, Callable[[SqlHistory], object]] = {
    **OPERATIONS,
    "append": write,
    "overwrite": write,
    "delete": delete,
    "delete_all": delete_all,
    "update": update,
    "merge": merge,
    "rename_column": rename_column,
    "drop_column": drop_column,
    "widen_column": widen_column,
    "set_property": set_property,
    "restore": restore,
    "clone": clone,
    "upgrade": lambda history: history.sql(
        f"REORG TABLE {{t}} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {history.chance.choice([2, 3])}))"
    ),
    "drop_feature": lambda history: history.sql(f"ALTER TABLE {{t}} DROP FEATURE {history.chance.choice(FEATURES)}"),
    "add_constraint": lambda history: history.sql(
        f"ALTER TABLE {{t}} ADD CONSTRAINT positive{len(history.steps)} CHECK (id > 0)"
    ),
    "optimize": lambda history: history.sql(f"OPTIMIZE {{t}} {history.chance.choice(['', 'ZORDER BY (id)'])}"),
    "purge": lambda history: history.sql("REORG TABLE {t} APPLY (PURGE)"),
    "compute_statistics": lambda history: history.sql("ANALYZE TABLE {t} COMPUTE DELTA STATISTICS"),
    "fsck": lambda history: history.sql("FSCK REPAIR TABLE {t}"),
}


@pytest.mark.every_case
@pytest.mark.breaks_rules("iceberg-allows-no-vectors")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 60))])
def test_every_statement_equals_the_one_on_a_list_of_rows(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    SqlHistory(spark, tmp_path, seed).run(STEPS)
