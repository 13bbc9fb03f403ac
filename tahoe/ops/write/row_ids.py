"""Preservation of row ids when rows move to other files (PROTOCOL.md, "Writer Requirements for Row Tracking").

    file ──RowIds.of──► ids and versions of its live rows ──onto──► rows to be written, with two more columns
    config ──with_row_ids──► the table as data files see it, including these two columns

A copied row keeps its id and its version. A changed row keeps its id and gets the version of the commit, which a null in the
column means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import ROW_COMMIT_VERSION_FIELD_ID, ROW_ID_FIELD_ID, materialized_columns
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.mapping import ID_KEY
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RowIds:
    """The ids and the row commit versions of the live rows of one file, in file order; None if the table does not track rows."""

    ids: pa.Table | None

    @classmethod
    def of(cls, snapshot: Snapshot, add: AddFile) -> RowIds:
        """Read the ids of a file of the snapshot: those that are not stored with the rows are computed from the rows' positions."""
        return cls(None if materialized_columns(snapshot.config) is None else Scan(snapshot).read_row_ids(add))

    def part(self, start: int, count: int) -> RowIds:
        """Return the ids of `count` live rows, beginning with number `start`."""
        return RowIds(None if self.ids is None else self.ids.slice(start, count))

    def onto(self, rows: pa.Table, chosen: pa.Array | pa.ChunkedArray, *, changed: bool) -> pa.Table:
        """Return the rows with the columns of ids and versions.

        Args:
            rows: as they will be written.
            chosen: their live rows in the file: booleans for all live rows, or numbers, in the order of `rows`.
            changed: whether their values differ from before.
        """
        if self.ids is None:
            return rows
        ids = self.ids.filter(chosen) if pa.types.is_boolean(chosen.type) else self.ids.take(chosen)
        row_id, version = ids.column_names
        rows = rows.append_column(row_id, ids.column(row_id))
        return rows.append_column(version, pa.nulls(len(ids), pa.int64()) if changed else ids.column(version))


def config_with_row_ids(config: TableConfig) -> TableConfig:
    """Return the configuration with the columns of ids and versions at the end of its schema; unchanged if it tracks no rows."""
    fields = _fields(config)
    if not fields:
        return config
    schema = StructType((*config.schema.fields, *fields))
    return replace(config, metadata=replace(config.metadata, schema_string=schema.to_json()))


def with_id_columns(config: TableConfig, rows: pa.Table) -> pa.Table:
    """Add missing columns of ids and versions to rows, as null, the value for new rows."""
    for column in _fields(config):
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, pa.int64()))
    return rows


def without_id_statistics(config: TableConfig, add: AddFile) -> AddFile:
    """Return the file without statistics of ids and versions, which are not columns of the table."""
    names = {column.name for column in _fields(config)}
    if not names or add.stats is None:
        return add
    # Parsing keeps every digit of decimals.
    return replace(add, stats=FileStatistics.from_json(add.stats).without(names).to_json())


def _fields(config: TableConfig) -> tuple[StructField, ...]:
    columns = materialized_columns(config)
    if columns is None:
        return ()
    ids = {columns.row_id: ROW_ID_FIELD_ID, columns.row_commit_version: ROW_COMMIT_VERSION_FIELD_ID}
    return tuple(StructField(name, PrimitiveType("long"), True, {ID_KEY: number}) for name, number in ids.items())
