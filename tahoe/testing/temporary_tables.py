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
        columns = None if schema is None else schema_of(schema)
        data: pa.Table | SparkRows | None
        if rows is None or isinstance(rows, pa.Table | SparkRows):
            data = rows
        else:
            data = pa.Table.from_pylist(list(rows), None if columns is None else to_arrow_schema(columns))
        if columns is None:
            if data is None:
                raise ValueError(
                    "delta_table needs rows, as in delta_table([{'id': 1}]), or a schema: delta_table(schema={'id': 'long'})."
                )
            columns = schema_of(data.schema)
        self._count += 1
        path = self._folder / f"table-{self._count}"
        table = Table.create(path, columns, partition_by=partition_by, properties=properties)
        if isinstance(data, SparkRows):
            data.write.format("delta").mode("append").save(str(path))
        elif data is not None:
            table.append(data)
        return table
