"""Finds and writes changed rows with Spark, for DELETE, UPDATE, MERGE and `replaceWhere`.

    files ─with_positions─► rows with positions ─the user's condition─► selected rows ─changes_of─► bitmaps, file by file
    bitmaps ─rows_of─► the same files again: every live row, and whether it is selected ─► write_rows, write_change_data

Only bitmaps reach the driver, computed by Spark's own aggregate; no Python worker runs. The second scan uses the bitmaps instead of the
condition, so that exactly the selected rows change, even with a non-deterministic expression. `tahoe.ops.rows.row_changes` turns the
bitmaps into actions, as without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.log.replay import add_files, files_table
from tahoe.ops.rows.row_changes import FileChange, RowsChanged, Staged, living_rows
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.row_ids import config_with_row_ids
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import StructType
from tahoe.snapshot.changes import CHANGE_TYPE
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.settings import look_at_settings
from tahoe.spark.scan.deleted_rows import packed
from tahoe.spark.scan.relation import CHOSEN, FILE, ROW, read_rows, read_snapshot
from tahoe.spark.scan.row_id_columns import with_row_ids
from tahoe.spark.write.enforce import enforced, session_time_zone
from tahoe.spark.write.fitting import fitted
from tahoe.spark.write.idempotent import once
from tahoe.spark.write.limited import limited_columns
from tahoe.spark.write.row_ids import write_files_with_row_ids
from tahoe.spark.write.writer import FileOptions, write_files
from tahoe.txn.rearranged import retry_if_rearranged
from tahoe.txn.transaction import Transaction

__all__ = [
    "CHOSEN",
    "FILE",
    "ROW",
    "RowMatches",
    "changes_in",
    "changes_of",
    "committed",
    "copy_rows",
    "of_kind",
    "refuse_connect",
    "rows_of",
    "rows_of_new",
    "rows_that_go",
    "rows_that_stay",
    "user_metadata_of",
    "with_positions",
    "write_change_data",
    "write_rows",
]

_NONE: Mapping[str, str] = {}
_FILES = FileOptions()
# `bitmap_construct_agg` makes 4 KB bitmaps: the upper bits of a row's position select the bitmap (`part`), the lower 15 the bit in it.
_BITS_OF_A_PLACE = 15
_ROWS_OF_A_BITMAP = 2**_BITS_OF_A_PLACE


@dataclass(frozen=True, slots=True)
class RowMatches:
    """The rows of a table that an operation changes.

    Args:
        changes: of the files with such rows, in the order of the files.
        ambiguous: whether a row was selected more than once.
    """

    changes: list[FileChange]
    ambiguous: bool


def refuse_connect(spark: SparkSession, operation: str) -> None:
    """Raise `Unsupported` for a Spark Connect session, which gives no access to its JVM."""
    if not is_classic(spark):
        raise Unsupported(
            f"{operation} on a Spark Connect session is not supported by this version of Tahoe. "
            "Use tahoe.Table(path), or a classic session.",
            code="TAHOE_SPARK_CONNECT",
            operation=operation,
        )


def committed(spark: SparkSession, table: Table, stage: Callable[[Transaction], Staged]) -> RowsChanged:
    """Stage a change of rows and commit it with `Table.commit_rows` and the session's user metadata.

    Runs once for each transaction number that the session sets (`once`), and repeats if a concurrent commit only rearranged the rows.
    """
    look_at_settings(spark)

    def run() -> RowsChanged:
        transaction = table.begin()
        return once(
            spark,
            transaction,
            lambda: table.commit_rows(transaction, stage(transaction), user_metadata=user_metadata_of(spark)),
        )

    with reading(table):
        return retry_if_rearranged(run)


def user_metadata_of(spark: SparkSession) -> str | None:
    """Return the user metadata that the session sets for its commits, or None."""
    return spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None)


def with_positions(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, hadoop: Mapping[str, str] = _NONE, *, metadata: bool = True
) -> DataFrame:
    """Return the live rows of these files: the table's columns, `FILE` (the file's number in `files`), and `ROW` (the physical position).

    Args:
        files: of the snapshot (`tahoe.log.replay.FILES_SCHEMA`).
        hadoop: options for the file system.
        metadata: whether the user's expressions may use `_metadata`.
    """
    return read_rows(spark, snapshot, _numbered(files), options=hadoop, metadata=metadata)


def changes_of(snapshot: Snapshot, files: pa.Table, rows: DataFrame) -> RowMatches:
    """Collect the positions of the rows of each file, however many. One Spark job.

    Args:
        files: the files passed to `with_positions`.
        rows: any rows with its columns `FILE` and `ROW`; a row whose `FILE` is null is ignored.
    """
    place = rows.select(sf.col(FILE).alias("file"), sf.col(ROW).alias("row")).where("file is not null")
    bitmaps = (
        place.groupBy("file", sf.shiftright("row", _BITS_OF_A_PLACE).alias("part"))
        .agg(
            sf.bitmap_construct_agg(sf.col("row").bitwiseAND(sf.lit(_ROWS_OF_A_BITMAP - 1))).alias("bits"),
            sf.count("*").alias("rows"),
        )
        .toArrow()
        .sort_by([("file", "ascending"), ("part", "ascending")])
    )
    numbers = bitmaps["file"].unique()
    positions = {number: _positions(bitmaps.filter(pc.equal(bitmaps["file"], number))) for number in numbers.to_pylist()}
    return _matches_at(snapshot, files, positions, pc.sum(bitmaps["rows"]).as_py() or 0)


def changes_in(snapshot: Snapshot, files: pa.Table, places: pa.Table) -> RowMatches:
    """Collect the positions of the rows of each file, for rows few enough for the driver.

    Args:
        files: the files passed to `with_positions`.
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
        FileChange(add, living_rows(snapshot, add), positions)
        for positions, add in zip(positions_by_file.values(), adds, strict=True)
    ]
    return RowMatches(changes, sum(len(change.dead) for change in changes) < rows)


def rows_of(
    spark: SparkSession,
    snapshot: Snapshot,
    changes: Sequence[FileChange],
    hadoop: Mapping[str, str] = _NONE,
    *,
    changed: bool = False,
) -> DataFrame:
    """Return the live rows of the changed files: the table's columns, `FILE` (the change's number), `ROW`, and `CHOSEN`.

    `CHOSEN` is true for the rows of the change. If the table tracks rows, their ids are included, as `write_rows` expects them.

    Args:
        changed: whether the rows of the changes get new values, so that their version becomes that of the commit.
    """
    files = _numbered(files_table([change.add for change in changes]))
    if all(change.is_whole for change in changes):
        rows = read_rows(spark, snapshot, files, options=hadoop, metadata=False).withColumn(CHOSEN, sf.lit(True))
    else:
        bits = pa.array([packed(change.dead, snapshot.store.url) for change in changes], pa.binary())
        rows = read_rows(spark, snapshot, files.append_column(CHOSEN, bits), options=hadoop, metadata=False)
    return with_row_ids(rows, snapshot.config, sf.col(CHOSEN) if changed else None)


def rows_that_go(
    spark: SparkSession, snapshot: Snapshot, changes: Sequence[FileChange], hadoop: Mapping[str, str] = _NONE
) -> DataFrame:
    """Return the rows of the changes, with the columns of `rows_of`."""
    return rows_of(spark, snapshot, changes, hadoop).where(sf.col(CHOSEN))


def rows_that_stay(
    spark: SparkSession, snapshot: Snapshot, changes: Sequence[FileChange], hadoop: Mapping[str, str] = _NONE
) -> DataFrame:
    """Return the other live rows of the changed files, with the columns of `rows_of`."""
    return rows_of(spark, snapshot, changes, hadoop).where(~sf.col(CHOSEN))


def rows_of_new(
    spark: SparkSession, snapshot: Snapshot, config: TableConfig, adds: Sequence[AddFile], hadoop: Mapping[str, str] = _NONE
) -> DataFrame:
    """Return the rows of files that a transaction has just written: the stored values, even of non-deterministic expressions.

    Args:
        snapshot: the snapshot that the transaction started from.
        config: the table after the commit.
    """
    after = replace(snapshot, state=replace(snapshot.state, protocol=config.protocol, metadata=config.metadata))
    return read_snapshot(spark, after, files=files_table(adds), options=hadoop)


def of_kind(rows: DataFrame, kind: str | Column) -> DataFrame:
    """Return the rows with `_change_type`, as in the change data feed.

    Args:
        kind: ``insert``, ``update_preimage``, ``update_postimage`` or ``delete``.
    """
    return rows.withColumn(CHANGE_TYPE.name, sf.lit(kind) if isinstance(kind, str) else kind)


def write_rows(
    transaction: Transaction,
    config: TableConfig,
    rows: DataFrame,
    files: FileOptions = _FILES,
    *,
    copied: bool = False,
) -> list[AddFile]:
    """Write rows to new files, and stage the files.

    Args:
        config: the table after the commit.
        rows: columns are matched by name. Columns other than the table's and the row id columns of `rows_of` are dropped; missing ones are
            null, generated, or numbered.
        copied: the rows come unchanged from the table, so its constraints need no check.
    """
    stored = config_with_row_ids(config)
    columns = _of_table(rows, stored.schema)
    completion = None if copied else Completion(transaction, columns.columns, session_time_zone(rows.sparkSession))
    if copied:
        data = fitted(Jvm.of(rows.sparkSession), columns, config.table, stored.schema)
    else:
        data = enforced(columns, stored, completion=completion)
    written = write_files_with_row_ids(data, config, transaction.store, transaction.clock, files, completion)
    adds = [tagged(config, add) for add in written]
    transaction.row_ids_kept = True
    transaction.stage(*adds)
    return adds


def copy_rows(
    transaction: Transaction,
    spark: SparkSession,
    config: TableConfig,
    changes: Sequence[FileChange],
    files: FileOptions = _FILES,
) -> list[AddFile]:
    """Write the remaining rows of the changed files to new files, and stage these.

    Args:
        config: the table after the commit.
        changes: of files with remaining rows.
    """
    transaction.row_ids_kept = True
    if not changes:
        return []
    assert transaction.snapshot is not None
    rows = rows_that_stay(spark, transaction.snapshot, changes, files.hadoop)
    return write_rows(transaction, config, rows, files, copied=True)


def write_change_data(
    transaction: Transaction, config: TableConfig, rows: DataFrame, files: FileOptions = _FILES
) -> list[AddCDCFile]:
    """Write rows with their ``_change_type`` (`of_kind`) to change data files and stage these (PROTOCOL.md, "Writer Requirements for
    AddCDCFile").
    """
    schema = StructType((*config.schema.fields, CHANGE_TYPE))
    widened = replace(config, metadata=replace(config.metadata, schema_string=schema.to_json()))
    data = fitted(Jvm.of(rows.sparkSession), _of_table(rows, schema), config.table, schema)
    if limited := limited_columns(data.sparkSession, config, refuses=False):
        data = data.withColumns({name: values for name, values in limited.items() if name in data.columns})
    adds = write_files(data, widened, transaction.store, transaction.clock, files, change_data=True)
    actions = [AddCDCFile(add.path, add.partition_values, add.size) for add in adds]
    transaction.stage(*actions)
    return actions


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


def _of_table(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows with only the table's columns."""
    names: Iterable[str] = (column.name for column in schema)
    stored = {name.lower() for name in names}
    return rows.select(*(sf.col(quote_identifier(name)) for name in rows.columns if name.lower() in stored))
