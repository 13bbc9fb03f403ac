"""Tables under a name in the session's catalog, for tests: an entry as delta-spark makes it, at a path."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.records import copied, created

__all__ = ["Named", "named"]

_NUMBERS = itertools.count(1)


class Named:
    """A table at a path, with a name in the catalog.

    Attributes:
        names: its name, and its path as a name in SQL.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path, self.name = spark, path, f"named_{next(_NUMBERS)}"
        self.table = Table(path)
        self._catalog, jvm = spark._jsparkSession.sessionState().catalog(), Jvm.of(spark)
        self._identifier = jvm.catalyst("TableIdentifier")(self.name, jvm.option("default"), jvm.option("spark_catalog"))
        place = jvm.java_class("org.apache.hadoop.fs.Path")(path).toUri()
        storage = copied(jvm.catalyst("catalog.CatalogStorageFormat").empty(), locationUri=jvm.option(place))
        schema, kind = (
            jvm.java_class("org.apache.spark.sql.types.StructType")(),
            jvm.catalyst("catalog.CatalogTableType").EXTERNAL(),
        )
        entry = created(jvm, "catalog.CatalogTable", self._identifier, kind, storage, schema, jvm.option("delta"))
        self._catalog.createTable(entry, False, False)

    @property
    def names(self) -> tuple[str, str]:
        """As the catalog knows it, and by its path."""
        return self.name, f"delta.`{self.path}`"

    def entry(self) -> str:
        """The entry in the catalog, as text."""
        return str(self._catalog.getTableMetadata(self._identifier).toString())

    def last(self) -> tuple[str, dict[str, Any]]:
        """Name and parameters of the newest commit."""
        actual = self.table.history(1)[0]
        return actual["operation"], actual["operationParameters"]

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, sorted, as Spark reads them by name."""
        return sorted((tuple(row) for row in self.spark.table(self.name).collect()), key=str)

    def forget(self) -> None:
        """Take the entry out of the catalog."""
        self._catalog.dropTable(self._identifier, True, False)


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Named]]:
    """Writes a frame (or a query) to a new table and names it: ``named("SELECT 1 AS id", partition_by=["id"])``."""
    made_here: list[Named] = []

    def make(rows: DataFrame | str, *, partition_by: list[str] | None = None, **properties: str) -> Named:
        frame = spark.sql(rows) if isinstance(rows, str) else rows
        path = str(tmp_path / f"t{len(made_here)}")
        writer = frame.coalesce(1).write.format("delta").partitionBy(*(partition_by or []))
        writer.options(**{key.replace("__", "."): value for key, value in properties.items()}).save(path)
        made_here.append(Named(spark, path))
        return made_here[-1]

    yield make
    for item in made_here:
        item.forget()
