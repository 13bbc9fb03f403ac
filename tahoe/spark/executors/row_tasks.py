"""The tasks of commands in sessions of Spark Connect: read rows of files with their places, and write rows to new files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pc
from tahoe.ops.rows.row_changes import is_in, parts_with_positions
from tahoe.ops.write.row_ids import RowIds
from tahoe.ops.write.writer import WriterOptions, write_arrow
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import StructType
from tahoe.snapshot.scan import BareVersion
from tahoe.spark.executors.data_source_tasks import FilledIn, RowCheck, WrittenFiles, checked_rows
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64

FILE, ROW = "__tahoe_file", "__tahoe_row"
"""The columns of a row's location: the number of its file, an int, and its physical position there, a long."""
CHOSEN = "__tahoe_chosen"
"""The column of rows that is true for those that a command selects; and the column of their files with packed bits of the positions
(`tahoe.spark.scan.deleted_rows.packed`), null for none.
"""


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of one file.

    Args:
        number: the value of `FILE`.
        places: the physical positions of some live rows, as a serialized bitmap; None for all live rows.
        without: whether the live rows at other positions are wanted.
    """

    number: int
    add: AddFile
    places: bytes | None = None
    without: bool = False

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.add.size


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The version whose rows are read, and the columns that are wanted besides the table's.

    Args:
        ids: whether the columns of row ids follow, if the table tracks rows.
        changed: whether the rows get new values, so that their version becomes that of the commit.
        columns: of the table; None for all.
    """

    version: BareVersion
    ids: bool = False
    changed: bool = False
    columns: tuple[str, ...] | None = None

    @property
    def schema(self) -> StructType:
        """The columns of the table that are read."""
        schema = self.version.schema
        return schema if self.columns is None else schema.select(list(self.columns))


def rows_at(rows: RowsOf, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of files: the table's columns, `FILE`, `ROW`, and the row ids.

    Args:
        items: one column of pickled tuples of `FileRows`.
    """
    for batch in items:
        for item in batch.column(0).to_pylist():
            for file in pickle.loads(item):
                yield from _rows_of_file(rows, file)


def _rows_of_file(rows: RowsOf, file: FileRows) -> Iterator[pa.RecordBatch]:
    version: Any = rows.version
    ids = RowIds.of(version, file.add) if rows.ids else RowIds(None)
    places, start = _bitmap(file.places), 0
    target = to_arrow_schema(rows.schema)
    for part, positions in parts_with_positions(version, file.add, rows.columns):
        count = len(positions)
        mask = pc.is_valid(positions) if places is None else is_in(positions, places)
        mask = pc.invert(mask) if file.without else mask
        rows_of_part = part.filter(mask) if part.num_columns else part
        if part.num_columns:
            rows_of_part = rows_of_part.cast(target)
        selected = positions.filter(mask)
        rows_of_part = _with(rows_of_part, FILE, pa.repeat(pa.scalar(file.number, pa.int32()), len(selected)))
        rows_of_part = _with(rows_of_part, ROW, selected)
        rows_of_part = ids.part(start, count).onto(rows_of_part, mask, changed=rows.changed)
        start += count
        yield from rows_of_part.combine_chunks().to_batches()


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.append_column(name, values) if rows.num_columns else pa.table({name: values})


def _bitmap(places: bytes | None) -> BitMap64 | None:
    from pyroaring import BitMap64

    return None if places is None else BitMap64.deserialize(places)


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The target of new rows.

    Args:
        config: of the table after the commit; with the columns of row ids if rows keep them.
        filled_in: the values that tasks fill in; None if the rows are complete.
        names: of the rows' columns, if the batches have other ones.
        checks: their columns are not written.
    """

    config: TableConfig
    store: LogStore
    filled_in: FilledIn | None = None
    options: WriterOptions = field(default_factory=WriterOptions)
    names: tuple[str, ...] | None = None
    checks: tuple[RowCheck, ...] = ()


def written_rows(target: NewFiles, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of one task; yield one row with the pickled `WrittenFiles`, or the error of Tahoe that occurred."""
    try:
        answer: object = _written(target, batches)
    except TahoeError as error:
        answer = error
    yield pa.RecordBatch.from_pydict({"answer": [pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)]})


def _written(target: NewFiles, batches: Iterator[pa.RecordBatch]) -> WrittenFiles:
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return WrittenFiles(())
    completion = None if target.filled_in is None else target.filled_in.of_this_task()
    names = target.names or first.schema.names
    schema = pa.schema([column.with_name(name).with_nullable(True) for column, name in zip(first.schema, names, strict=True)])
    # Not cast: Arrow refuses to cast a struct that is null where its fields must not be.
    renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in chain((first,), filled))
    data = checked_rows(schema, renamed, target.checks, target.config.table)
    options = replace(target.options, completion=completion)
    adds = write_arrow(target.config, target.store, data, SYSTEM_CLOCK, options)
    return WrittenFiles(tuple(adds), None, {} if completion is None else completion.furthest)
