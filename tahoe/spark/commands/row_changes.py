"""Finds and writes changed rows with Spark, for DELETE, UPDATE, MERGE and `replaceWhere`.

    files ─with_positions─► rows with positions ─the user's condition─► selected rows ─changes_of─► bitmaps, file by file
    bitmaps ─rows_of─► the same files again: every live row, and whether it is selected ─► TableRows

Of small tables the positions reach the driver, in a job of one stage; of others only bitmaps, computed by Spark's own aggregate. No Python
worker runs. The second scan uses the bitmaps instead of the condition, so that exactly the selected rows change, even with a
non-deterministic expression. `tahoe.ops.rows.row_changes` turns the bitmaps into actions, as without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.log.replay import add_files, files_table
from tahoe.ops.rows.row_changes import FileChange, live_rows
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import StructType
from tahoe.snapshot.changes import CHANGE_TYPE
from tahoe.snapshot.row_statistics import live_row_counts
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.executors.row_tasks import CHOSEN, FILE, ROW
from tahoe.spark.scan.deleted_rows import packed
from tahoe.spark.scan.relation import Alias, named, read_rows, read_snapshot, shape_of
from tahoe.spark.scan.row_id_columns import with_row_ids
from tahoe.spark.versions.connect_frames import with_known_columns
from tahoe.spark.write.enforce import enforced
from tahoe.spark.write.fitting import fitted
from tahoe.spark.write.limited import limited_columns
from tahoe.spark.write.writer import FileOptions, write_files
from tahoe.txn.transaction import Transaction

__all__ = [
    "CHOSEN",
    "FILE",
    "ROW",
    "RowMatches",
    "TableRows",
    "TableVersion",
    "bitmaps_of",
    "changes_in",
    "changes_of",
    "matches_of",
    "of_kind",
    "of_table",
]

# `bitmap_construct_agg` makes 4 KB bitmaps: the upper bits of a row's position select the bitmap (`part`), the lower 15 the bit in it.
_BITS_OF_A_PLACE = 15
_ROWS_OF_A_BITMAP = 2**_BITS_OF_A_PLACE
_PLACES = SparkStruct([StructField(FILE, IntegerType()), StructField(ROW, LongType())])
_BITMAPS = SparkStruct(
    [
        StructField("file", IntegerType()),
        StructField("part", LongType()),
        StructField("bits", BinaryType()),
        StructField("rows", LongType()),
    ]
)
"""The columns of `bitmaps_of` without groups."""
_ROWS_ON_DRIVER = 2**22
"""The maximum rows of files whose positions are collected one by one: 12 bytes each, so 50 MB."""
_FILES_COUNTED = 4096


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The version of a table that a command changes.

    Args:
        spark: a classic session.
        alias: a name for the table in expressions.
        hadoop: options for the table's storage.
    """

    spark: SparkSession
    snapshot: Snapshot
    alias: Alias | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)

    def shape(self) -> DataFrame:
        """Return a frame under the alias with the table's columns, only for Catalyst to analyze expressions (`shape_of`)."""
        return named(shape_of(self.spark, self.snapshot), self.alias)

    def with_positions(self, files: pa.Table, *, metadata: bool = True) -> DataFrame:
        """Return the live rows of these files: the table's columns, `FILE` (the file's number in `files`), and `ROW` (the physical
        position).

        Args:
            files: of the snapshot (`tahoe.log.replay.FILES_SCHEMA`).
            metadata: whether the user's expressions may use `_metadata`.
        """
        return read_rows(self.spark, self.snapshot, _numbered(files), options=self.hadoop, metadata=metadata)

    def rows_of(self, changes: Sequence[FileChange], *, changed: bool = False) -> DataFrame:
        """Return the live rows of the changed files: the table's columns, `FILE` (the change's number), `ROW`, and `CHOSEN`.

        `CHOSEN` is true for the rows of the change. If the table tracks rows, their ids are included, as `TableRows.write` expects them.

        Args:
            changed: whether the rows of the changes get new values, so that their version becomes that of the commit.
        """
        files = _numbered(files_table([change.add for change in changes]))
        if all(change.is_whole for change in changes):
            rows = self._selected(files).withColumn(CHOSEN, sf.lit(True))
        else:
            bits = pa.array([packed(change.dead, self.snapshot.store.url) for change in changes], pa.binary())
            rows = self._selected(files.append_column(CHOSEN, bits))
        return with_row_ids(rows, self.snapshot.config, sf.col(CHOSEN) if changed else None)

    def _selected(self, files: pa.Table) -> DataFrame:
        return read_rows(self.spark, self.snapshot, files, options=self.hadoop, metadata=False)

    def remaining_rows(self, changes: Sequence[FileChange]) -> DataFrame:
        """Return the other live rows of the changed files, with the columns of `rows_of`."""
        return self.rows_of(changes).where(~sf.col(CHOSEN))


@dataclass(frozen=True, slots=True)
class TableRows:
    """Writes the rows of a command to new files, which it stages.

    Args:
        config: the table after the commit.
        files: options of the new files.
    """

    version: TableVersion
    transaction: Transaction
    config: TableConfig
    files: FileOptions

    @classmethod
    def of(cls, version: TableVersion, transaction: Transaction, config: TableConfig) -> TableRows:
        """Return the writer of a command without options of its own for files."""
        return cls(version, transaction, config, FileOptions(hadoop=version.hadoop))

    def changed(self, changes: Sequence[FileChange]) -> DataFrame:
        """Return the rows of the changes, with the columns of `TableVersion.rows_of`."""
        return self.version.rows_of(changes).where(sf.col(CHOSEN))

    def written(self, adds: Sequence[AddFile]) -> DataFrame:
        """Return the rows of files that the transaction has just written: the stored values, even of non-deterministic expressions."""
        snapshot, config = self.version.snapshot, self.config
        after = replace(snapshot, state=replace(snapshot.state, protocol=config.protocol, metadata=config.metadata))
        return read_snapshot(self.version.spark, after, files=files_table(adds), options=self.version.hadoop)

    def write(self, rows: DataFrame, *, copied: bool = False) -> list[AddFile]:
        """Write rows to new files.

        Args:
            rows: columns are matched by name. Columns other than the table's and the row id columns of `TableVersion.rows_of` are dropped;
                missing ones are null, generated, or numbered.
            copied: the rows come unchanged from the table, so its constraints need no check.
        """
        transaction, config = self.transaction, self.config
        stored = config_with_row_ids(config)
        columns = of_table(rows, stored.schema)
        completion = None if copied else Completion(transaction, columns.columns)
        if copied:
            data = fitted(columns, config.table, stored.schema)
        else:
            data = enforced(columns, stored, completion=completion)
        written = write_files(data, stored, transaction, self.files, completion=completion)
        adds = [tagged(config, without_id_statistics(config, add)) for add in written]
        transaction.row_ids_kept = True
        transaction.stage(*adds)
        return adds

    def copy(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the remaining rows of the changed files to new files.

        Args:
            changes: of files with remaining rows.
        """
        self.transaction.row_ids_kept = True
        return self.write(self.version.remaining_rows(changes), copied=True) if changes else []

    def write_change_data(self, rows: DataFrame) -> list[AddCDCFile]:
        """Write rows with their ``_change_type`` (`of_kind`) to change data files (PROTOCOL.md, "Writer Requirements for AddCDCFile")."""
        config = self.config
        schema = StructType((*config.schema.fields, CHANGE_TYPE))
        widened = replace(config, metadata=replace(config.metadata, schema_string=schema.to_json()))
        data = fitted(of_table(rows, schema), config.table, schema)
        if limited := limited_columns(data.sparkSession, config, refuses=False):
            data = data.withColumns({name: values for name, values in limited.items() if name in data.columns})
        adds = write_files(data, widened, self.transaction, replace(self.files, change_data=True))
        actions = [AddCDCFile(add.path, add.partition_values, add.size) for add in adds]
        self.transaction.stage(*actions)
        return actions


@dataclass(frozen=True, slots=True)
class RowMatches:
    """The rows of a table that an operation changes.

    Args:
        changes: of the files with such rows, in the order of the files.
        ambiguous: whether a row was selected more than once.
    """

    changes: list[FileChange]
    ambiguous: bool


def changes_of(snapshot: Snapshot, files: pa.Table, rows: DataFrame) -> RowMatches:
    """Collect the positions of the rows of each file, however many. One Spark job.

    Args:
        files: the files passed to `TableVersion.with_positions`.
        rows: rows with its columns `FILE` and `ROW`, each row of the files once at most; a row whose `FILE` is null is ignored.
    """
    if _have_few_rows(files):
        # Grouping costs a shuffle and a second stage, a fifth of a second.
        places = with_known_columns(rows.where(sf.col(FILE).isNotNull()).select(FILE, ROW), _PLACES)
        return changes_in(snapshot, files, places.toArrow())
    return matches_of(snapshot, files, bitmaps_of(rows))


def _have_few_rows(files: pa.Table) -> bool:
    """Whether the positions of all rows of the files surely fit into the driver's memory."""
    if len(files) > _FILES_COUNTED:
        return False
    rows = live_row_counts(files)
    return not rows.null_count and (pc.sum(rows).as_py() or 0) <= _ROWS_ON_DRIVER


def bitmaps_of(rows: DataFrame, **groups: Column) -> pa.Table:
    """Return the positions of the rows of each file and group, for `matches_of`. One Spark job.

    Args:
        rows: see `changes_of`.
        groups: the columns of the result by which the rows are grouped, too.

    Returns:
        ``file``, ``part``, the groups, ``bits``, and ``rows``, their number.
    """
    place = rows.select(
        sf.col(FILE).alias("file"), sf.col(ROW).alias("row"), *(values.alias(name) for name, values in groups.items())
    ).where("file is not null")
    bitmaps = place.groupBy("file", sf.shiftright("row", _BITS_OF_A_PLACE).alias("part"), *groups).agg(
        sf.bitmap_construct_agg(sf.col("row").bitwiseAND(sf.lit(_ROWS_OF_A_BITMAP - 1))).alias("bits"),
        sf.count("*").alias("rows"),
    )
    known = bitmaps if groups else with_known_columns(bitmaps, _BITMAPS)
    return known.toArrow().sort_by([("file", "ascending"), ("part", "ascending")])


def matches_of(snapshot: Snapshot, files: pa.Table, bitmaps: pa.Table) -> RowMatches:
    """Return the rows of `bitmaps_of`, or of some of its groups.

    Args:
        files: the files passed to `TableVersion.with_positions`.
    """
    numbers = bitmaps["file"].unique()
    positions = {number: _positions(bitmaps.filter(pc.equal(bitmaps["file"], number))) for number in numbers.to_pylist()}
    return _matches_at(snapshot, files, positions, pc.sum(bitmaps["rows"]).as_py() or 0)


def changes_in(snapshot: Snapshot, files: pa.Table, places: pa.Table) -> RowMatches:
    """Collect the positions of the rows of each file, for rows few enough for the driver.

    Args:
        files: the files passed to `TableVersion.with_positions`.
        places: `FILE` and `ROW` of each row.
    """
    places = places.select([FILE, ROW]).sort_by(FILE).combine_chunks()
    rows = pc.cast(places[ROW], pa.uint64()).combine_chunks()
    runs = pc.run_end_encode(places[FILE].combine_chunks())
    positions, start = {}, 0
    for number, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        positions[number] = _set_of(rows.slice(start, stop - start))
        start = stop
    return _matches_at(snapshot, files, positions, len(places))


def _matches_at(snapshot: Snapshot, files: pa.Table, positions_by_file: Mapping[int, BitMap64], rows: int) -> RowMatches:
    adds = add_files(files.take(pa.array(list(positions_by_file), pa.int64())))
    changes = [
        FileChange(add, live_rows(snapshot, add), positions)
        for positions, add in zip(positions_by_file.values(), adds, strict=True)
    ]
    return RowMatches(changes, sum(len(change.dead) for change in changes) < rows)


def of_kind(rows: DataFrame, kind: str | Column) -> DataFrame:
    """Return the rows with `_change_type`, as in the change data feed.

    Args:
        kind: ``insert``, ``update_preimage``, ``update_postimage`` or ``delete``.
    """
    return rows.withColumn(CHANGE_TYPE.name, sf.lit(kind) if isinstance(kind, str) else kind)


def _numbered(files: pa.Table) -> pa.Table:
    return files.append_column(FILE, pa.array(range(len(files)), pa.int32()))


def _positions(bitmaps: pa.Table) -> BitMap64:
    """Return the row positions of one file.

    Args:
        bitmaps: ``part``, and ``bits`` of 4,096 bytes each, the lowest bit of a byte first.
    """
    positions = BitMap64()
    for part, bits in zip(bitmaps["part"].to_pylist(), bitmaps["bits"], strict=True):
        flags = pa.Array.from_buffers(pa.bool_(), _ROWS_OF_A_BITMAP, [None, bits.as_buffer()])
        positions |= _set_of(pc.add(pc.indices_nonzero(flags), pa.scalar(part * _ROWS_OF_A_BITMAP, pa.uint64())))
    return positions


def _set_of(rows: pa.Array) -> BitMap64:
    """Return a set of uint64 numbers."""
    return BitMap64(memoryview(rows.buffers()[1]).cast("Q")[rows.offset : rows.offset + len(rows)])


def of_table(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows with only the table's columns."""
    names: Iterable[str] = (column.name for column in schema)
    stored = {name.lower() for name in names}
    columns = SparkStruct([column for column in rows.schema if column.name.lower() in stored])
    return with_known_columns(rows.select(*(sf.col(quote_identifier(name)) for name in columns.names)), columns)
