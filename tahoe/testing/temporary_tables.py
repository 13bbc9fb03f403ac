"""Tables for one test, made from rows of Python, Arrow or Spark; the factory of the fixture `delta_table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.schema_forms import SchemaLike, schema_of

__all__ = ["TemporaryTables"]


@runtime_checkable
class SparkRows(Protocol):
    """A DataFrame of PySpark, in a session in which Tahoe is enabled."""

    @property
    def write(self) -> SparkWriter:
        """The writer of its rows."""

    @property
    def schema(self) -> SchemaLike:
        """Its columns."""


class SparkWriter(Protocol):
    """The writer of a DataFrame."""

    def format(self, source: str) -> SparkWriter:
        """Choose the format."""

    def mode(self, mode: str) -> SparkWriter:
        """Choose the save mode."""

    def save(self, path: str) -> None:
        """Write the rows."""


Rows: TypeAlias = pa.Table | SparkRows | Sequence[Mapping[str, object]]


class TemporaryTables:
    """Creates tables below a folder; each call creates one.

    Args:
        folder: need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def __call__(
        self,
        rows: Rows | None = None,
        *,
        schema: SchemaLike | None = None,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Create a table as version 0, append the rows as version 1, and return the table; Spark reads it by its `url`.

        Args:
            rows: mappings from column to value, Arrow data, or a Spark DataFrame, which Spark writes. None creates an empty table.
            schema: as in `Table.create`; None for that of the rows.

        Raises:
            ValueError: there are neither rows nor a schema.
            TahoeError: the errors of `Table.create` and `Table.append`.
        """
        if rows is None and schema is None:
            raise ValueError("delta_table needs rows or a schema: delta_table([{'id': 1}]) or delta_table(schema={'id': 'long'}).")
        if rows is not None and not isinstance(rows, pa.Table | SparkRows):
            rows = pa.Table.from_pylist(list(rows), None if schema is None else to_arrow_schema(schema_of(schema)))
        self._count += 1
        path = self._folder / f"table-{self._count}"
        columns = schema if schema is not None else rows.schema
        table = Table.create(path, columns, partition_by=partition_by, properties=properties)
        if isinstance(rows, SparkRows):
            rows.write.format("delta").mode("append").save(str(path))
        elif rows is not None:
            table.append(rows)
        return table
