"""Convert deleted and new rows to the actions of a commit, for DELETE, UPDATE and MERGE; nothing is committed here.

file + positions of deleted rows ─┬─ all of its rows ─────► remove
                                  ├─ deletion vectors on ─► remove + add of the same path with the merged vector
                                  └─ else ────────────────► remove, and new files with the remaining rows
new rows ─────────────────────────────────────────────────► add
rows of the change data feed ─────────────────────────────► cdc
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.events import Fields, observed
from tahoe.base.html import ShownAsText
from tahoe.base.lazy import pc, pq
from tahoe.base.packing import packed
from tahoe.ops.write.arrow_data import ArrowData
from tahoe.ops.write.row_ids import RowIds, config_with_row_ids, with_id_columns, without_id_statistics
from tahoe.ops.write.writer import WriterOptions, random_prefix, tagged, write_arrow
from tahoe.protocol.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import bitmap_to_bytes, descriptor_in_file, new_file_name, pack
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.arrow_values import empty_table
from tahoe.schema.types import StructType
from tahoe.snapshot.changes import CHANGE_TYPE, with_change_type
from tahoe.snapshot.data_reader import VectorReader
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.files_ahead import with_files_ahead
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Operation, Transaction

if TYPE_CHECKING:
    from pyroaring import BitMap64


BYTES_OF_A_FILE = 32 * 1024 * 1024
"""The approximate size in memory of a file of changed or copied rows, on disk less than half of it: while a file is written, the rows of
the next file are read."""
_ROWS_OF_A_BIT = 16
"""Setting a bit in Python takes as long as looking up so many rows in a hash table."""
VECTOR_FILE_BYTES = 2 * 1024 * 1024
"""Deletion vectors are packed into files of about this size."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The rows to delete from a file.

    Args:
        add: the file as it was read.
        living: the number of its live rows before the change.
        dead: the physical positions of the rows to delete.
    """

    add: AddFile
    living: int
    dead: BitMap64

    @property
    def is_whole(self) -> bool:
        """Whether all live rows of the file are deleted."""
        return len(self.dead) == self.living


@dataclass(frozen=True, slots=True)
class Staged:
    """The result of staging a change of rows on a transaction.

    Args:
        operation: the operation of the commit; None if no row changes, so that there is nothing to commit.
    """

    operation: Operation | None
    num_updated_rows: int = 0
    num_deleted_rows: int = 0
    num_inserted_rows: int = 0


@dataclass(frozen=True, slots=True)
class RowsChanged(ShownAsText):
    """The result of a DELETE, UPDATE or MERGE.

    Args:
        version: the version of the commit; None if no row changed, so that there was no commit.
        metrics: the metrics as in the history.
    """

    version: int | None
    num_updated_rows: int
    num_deleted_rows: int
    num_inserted_rows: int
    metrics: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def num_affected_rows(self) -> int:
        """The number of updated, deleted and inserted rows together, as in the result of the SQL statement."""
        return self.num_updated_rows + self.num_deleted_rows + self.num_inserted_rows

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The numbers of affected, updated, deleted and inserted rows, as in the result of MERGE."""
        return self.num_affected_rows, self.num_updated_rows, self.num_deleted_rows, self.num_inserted_rows


def observed_rows(command: str, table: str, run: Callable[[], RowsChanged]) -> RowsChanged:
    """Run a row command for the observers of the process.

    Args:
        command: ``delete``, ``update`` or ``merge``.
        table: the table's URL.
    """
    with observed(command, table) as observation:
        changed = run()
        observation.record(changed.version, lambda: _fields(changed))
    return changed


def _fields(changed: RowsChanged) -> Fields:
    return {
        "rows_updated": changed.num_updated_rows,
        "rows_deleted": changed.num_deleted_rows,
        "rows_inserted": changed.num_inserted_rows,
    }


def snapshot_to_change(transaction: Transaction) -> Snapshot:
    """Return the snapshot from which the transaction started, after all checks that need no rows.

    Raises:
        NotFound: there is no table.
        Unsupported: the table has a feature that this version of Tahoe cannot write.
    """
    snapshot = transaction.existing()
    transaction.enforces = ENFORCED
    transaction.ensure_writable(snapshot.config, transaction.enforces)
    return snapshot


def snapshot_to_delete_from(transaction: Transaction) -> Snapshot:
    """Return the snapshot of `snapshot_to_change`. Raises `InvalidRequest`, too: the table is append-only."""
    snapshot = snapshot_to_change(transaction)
    snapshot.config.refuse_if_append_only()
    return snapshot


def uses_vectors(config: TableConfig) -> bool:
    """Whether rows are deleted by deletion vectors, not by rewriting files."""
    return config.is_active(Feature.DELETION_VECTORS)


def position_column(schema: StructType) -> str:
    """Return a name for the column of row positions that differs from all columns of the table."""
    name = "_row_position"
    while schema.find(name) is not None:
        name += "_"
    return name


def file_with_positions(snapshot: Snapshot, add: AddFile, columns: Sequence[str] | None = None) -> tuple[pa.Table, pa.Array]:
    """Return the live rows of a file, with all columns or the named ones, and the physical position of each row."""
    parts = list(parts_with_positions(snapshot, add, columns))
    schema = to_arrow_schema(_scan_of(snapshot, columns).schema)
    rows = pa.concat_tables([empty_table(schema), *(part for part, _ in parts)]) if schema.names else None
    positions = pa.concat_arrays([place for _, place in parts]) if parts else pa.nulls(0, pa.int64())
    # Dropping the only column of an Arrow table preserves its row count.
    if rows is None:
        rows = pa.table({"": pa.nulls(len(positions))}).select([])
    return rows, positions


def parts_with_positions(
    snapshot: Snapshot, add: AddFile, columns: Sequence[str] | None = None
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Like `file_with_positions`, but yield the rows in parts, in the order of the file, so that a file may be larger than memory."""
    name = position_column(snapshot.schema)
    for batch in _scan_of(snapshot, columns).read_with_positions(add, name):
        places = batch.column(batch.num_columns - 1)
        rows = pa.table({"": places}).select([]) if batch.num_columns == 1 else pa.Table.from_batches([batch])
        yield (rows if batch.num_columns == 1 else rows.select(rows.column_names[:-1])), places


def reading_ahead(snapshot: Snapshot, adds: Iterable[AddFile]) -> Snapshot:
    """Return the snapshot for reading these files in their order: small neighbours are fetched from object stores together."""
    url = snapshot.store.url
    return replace(
        snapshot, store=with_files_ahead(snapshot.store, ((decode_path(a.path, url, outside=True), a.size) for a in adds))
    )


def _scan_of(snapshot: Snapshot, columns: Sequence[str] | None) -> Scan:
    return Scan(snapshot, None, None if columns is None else tuple(columns))


def bitmap(positions: pa.Array) -> BitMap64:
    """Convert positions (int64, no nulls) to a bitmap."""
    from pyroaring import BitMap64

    if not len(positions):
        return BitMap64()
    values = memoryview(positions.buffers()[1]).cast("q")
    return BitMap64(values[positions.offset : positions.offset + len(positions)])


def is_in(positions: pa.Array, dead: BitMap64) -> pa.Array:
    """Return a mask of the ascending positions that are in the set."""
    from pyroaring import BitMap64

    if not len(positions):
        return pa.nulls(0, pa.bool_())
    first, last = positions[0].as_py(), positions[-1].as_py() + 1
    if not dead.range_cardinality(first, last):
        return pc.is_null(positions)
    window = BitMap64()
    window.add_range(first, last)
    window &= dead
    if last - first == len(positions) and len(window) * _ROWS_OF_A_BIT <= len(positions):
        bits = bytearray(-(-len(positions) // 8))
        for position in window:
            bits[position - first >> 3] |= 1 << (position - first & 7)
        return pa.Array.from_buffers(pa.bool_(), len(positions), [None, pa.py_buffer(bits)])
    dead_here = pa.Array.from_buffers(pa.int64(), len(window), [None, pa.py_buffer(window.to_array())])
    return pc.is_in(positions, value_set=dead_here)


def all_rows(snapshot: Snapshot, add: AddFile) -> FileChange:
    """Return the deletion of all rows of a file; reads no rows."""
    from pyroaring import BitMap64

    living = live_rows(snapshot, add)
    dead = VectorReader(snapshot.store).bitmap(add.deletion_vector) if add.deletion_vector else BitMap64()
    return FileChange(add, living, BitMap64(range(living + len(dead))) - dead)


def live_rows(snapshot: Snapshot, add: AddFile) -> int:
    """Return the number of live rows of a file, from its statistics or else from its footer."""
    dead = add.deletion_vector.cardinality if add.deletion_vector else 0
    return physical_rows(snapshot.store, add) - dead


def remaining_rows(snapshot: Snapshot, changes: Iterable[FileChange]) -> Iterator[pa.Table]:
    """Yield the remaining rows in parts, file by file, with all columns, and with row ids if the table tracks rows."""
    for change in changes:
        ids, start = RowIds.of(snapshot, change.add), 0
        for rows, positions in parts_with_positions(snapshot, change.add):
            stay = pc.invert(is_in(positions, change.dead))
            yield ids.part(start, rows.num_rows).onto(rows.filter(stay), stay, changed=False)
            start += rows.num_rows


def change_rows(snapshot: Snapshot, changes: Iterable[FileChange], kind: str) -> Iterator[pa.Table]:
    """Yield the deleted rows in parts, file by file, for the change data feed."""
    for change in changes:
        for rows, positions in parts_with_positions(snapshot, change.add):
            yield with_change_type(rows.filter(is_in(positions, change.dead)), kind)


def without_dead_files(changes: Iterable[FileChange]) -> list[FileChange]:
    """Return the changes of files of which rows remain."""
    return [change for change in changes if not change.is_whole]


def remove_files(transaction: Transaction, adds: Iterable[AddFile], *, data_change: bool = True) -> list[RemoveFile]:
    """Stage the removal of files, and register them as read for conflict detection."""
    now = transaction.clock.now_ms()
    removed = [add.remove(now, data_change) for add in adds]
    transaction.read_files(remove.key for remove in removed)
    transaction.stage(*removed)
    return removed


def mark_dead(transaction: Transaction, config: TableConfig, changes: Sequence[FileChange]) -> list[AddFile]:
    """Stage the files with deletion vectors that include the newly deleted rows, and register these rows for conflict detection.

    Args:
        changes: the changes of files of which rows remain.
    """
    vectors = VectorReader(transaction.store)
    merged = [_merged(change, vectors) for change in changes]
    with_vectors = files_with_vectors(transaction, config, [change.add for change in changes], merged)
    marked = [replace(add, data_change=True) for add in with_vectors]
    now = transaction.clock.now_ms()
    for change in changes:
        # Not the whole file: another writer may change other rows of it at the same time.
        transaction.read_rows(change.add.key, change.dead)
        transaction.stage(change.add.remove(now))
    transaction.stage(*marked)
    return marked


def files_with_vectors(
    transaction: Transaction, config: TableConfig, adds: Sequence[AddFile], dead: Sequence[BitMap64]
) -> list[AddFile]:
    """Write deletion vectors, and return the files with them in place of their old ones. Nothing is staged.

    Args:
        dead: for each file, the positions of all its deleted rows.
    """
    store = transaction.store
    descriptors = _write_vectors(config, store, transaction.clock, dead)
    return [
        replace(add, stats=_wide_statistics(store, add), deletion_vector=descriptor)
        for add, descriptor in zip(adds, descriptors, strict=True)
    ]


def write_rows(transaction: Transaction, config: TableConfig, rows: Iterable[pa.Table], *, copied: bool = False) -> list[AddFile]:
    """Write rows to new files, and stage these.

    Args:
        rows: the rows, in the table's schema; if the table tracks rows, its existing rows have their ids (`RowIds.onto`).
        copied: whether the rows are unchanged rows of the table.
    """
    data = _stream(with_id_columns(config, table) for table in rows)
    stored = config_with_row_ids(config)
    options = WriterOptions(bytes_per_file=BYTES_OF_A_FILE, copied=copied, time_zone=transaction.time_zone)
    written = [] if data is None else write_arrow(stored, transaction.store, data, transaction.clock, options)
    adds = [tagged(config, without_id_statistics(config, add)) for add in written]
    transaction.row_ids_kept = True
    transaction.stage(*adds)
    return adds


def write_change_data(transaction: Transaction, config: TableConfig, rows: Iterable[pa.Table]) -> list[AddCDCFile]:
    """Write rows with their ``_change_type`` to change data files, and stage these (PROTOCOL.md, "Writer Requirements for AddCDCFile")."""
    schema = StructType((*config.schema.fields, CHANGE_TYPE))
    data = _stream(rows)
    if data is None:
        return []
    widened = replace(config, metadata=replace(config.metadata, schema_string=schema.to_json()))
    adds = write_arrow(widened, transaction.store, data, transaction.clock, WriterOptions(change_data=True))
    files = [AddCDCFile(add.path, add.partition_values, add.size) for add in adds]
    transaction.stage(*files)
    return files


def vector_metrics(changes: Iterable[FileChange], marked: bool) -> dict[str, int]:
    """Return the counts of deletion vectors, as in delta-spark: a replaced one counts as added and as removed.

    Args:
        marked: whether rows are deleted by deletion vectors, not by rewriting files.
    """
    added = removed = 0
    for change in changes:
        stays = marked and not change.is_whole
        added += stays
        removed += change.add.deletion_vector is not None
    return {"numDeletionVectorsAdded": added, "numDeletionVectorsRemoved": removed}


def _merged(change: FileChange, vectors: VectorReader) -> BitMap64:
    vector = change.add.deletion_vector
    return change.dead if vector is None else change.dead | vectors.bitmap(vector)


def _write_vectors(
    config: TableConfig, store: LogStore, clock: Clock, bitmaps: Sequence[BitMap64]
) -> list[DeletionVectorDescriptor]:
    """Write the bitmaps to as few files as `VECTOR_FILE_BYTES` allows, and return their descriptors."""
    length = int(config.properties.get("delta.randomPrefixLength"))
    descriptors: list[DeletionVectorDescriptor] = []
    for group in packed(bitmaps, lambda bitmap: len(bitmap_to_bytes(bitmap)), VECTOR_FILE_BYTES):
        content, places = pack(group)
        uuid = clock.uuid()
        prefix = random_prefix(clock, length) if config.random_prefixes else ""
        store.put(new_file_name(uuid, prefix), content)
        descriptors += [descriptor_in_file(uuid, place, prefix) for place in places]
    return descriptors


def _wide_statistics(store: LogStore, add: AddFile) -> str:
    """Return statistics for a file with a vector: with the row count, and with wide bounds, because these may be of deleted rows.

    PROTOCOL.md, "Per-file Statistics".
    """
    if add.stats is None:
        return FileStatistics(physical_rows(store, add), tight_bounds=False).to_json()
    return FileStatistics.from_json(add.stats).widened().to_json()


def physical_rows(store: LogStore, add: AddFile) -> int:
    """Return the number of rows of a file including deleted ones, from its statistics or else from its footer."""
    if add.num_records is not None:
        return add.num_records
    with store.open_input(decode_path(add.path, store.url, outside=True)) as source:
        return int(pq.read_metadata(source).num_rows)


def _stream(tables: Iterable[pa.Table]) -> ArrowData | None:
    """Join the tables to a stream of batches; None if there is no row. All columns are nullable: the writer checks NOT NULL."""
    filled = (table for table in tables if table.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    schema = pa.schema([column.with_nullable(True) for column in first.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for table in chain([first], filled):
            yield from table.cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
