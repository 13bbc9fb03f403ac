"""Rows of a table on the executors of a Spark Connect server: read with their places, and written to new files.

    files, bitmaps ─► a local relation ─► `mapInArrow` with Tahoe's code (`tahoe.spark.executors.row_tasks`) ─► rows
    rows ─► `mapInArrow` ─► files in storage ─► `AddFile`s, which alone come to the client

A task that runs twice leaves files that no commit names: the actions are those that the query returns, one set for each partition.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import BYTES_OF_A_FILE, FileChange
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.ops.write.writer import WriterOptions, tagged
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.text_limits import DECLARED_TYPE, has_char
from tahoe.schema.types import StructType as DeltaStruct
from tahoe.snapshot.changes import CHANGE_TYPE
from tahoe.snapshot.scan import BareVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.row_changes import of_table
from tahoe.spark.executors.data_source_tasks import FilledIn, WrittenFiles, binned, filled_in
from tahoe.spark.executors.file_settings import FILE_SETTINGS, config_of_files, options_of_files
from tahoe.spark.executors.row_tasks import FILE, ROW, FileRows, NewFiles, RowsOf, rows_at
from tahoe.spark.executors.shipped import mapped
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.translate import to_spark_schema, with_shown_metadata
from tahoe.spark.names.settings import settings_named
from tahoe.spark.portable.file_metadata import FILE_METADATA, METADATA, metadata_of, scanned_file
from tahoe.spark.portable.tasks import note_numbers
from tahoe.spark.scan.relation import Alias, refuse_reserved_names
from tahoe.spark.versions.connect_frames import local_table, under_name
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.fitting import nullable_schema
from tahoe.spark.write.limited import limited_columns
from tahoe.spark.write.optimized import optimizes, rebalanced
from tahoe.spark.write.server_defaults import with_server_defaults
from tahoe.spark.write.server_rules import CheckedRows, checked_by_server
from tahoe.spark.write.task_files import written_by
from tahoe.txn.transaction import Transaction

_OF_FILE = "__tahoe_of_file"
_ITEM = StructType([StructField("item", BinaryType())])


@dataclass(frozen=True, slots=True)
class RemoteVersion:
    """The version of a table that a command changes.

    Args:
        spark: a session of Spark Connect.
        alias: a name for the table in expressions.
    """

    spark: SparkSession
    snapshot: Snapshot
    alias: Alias | None = None

    @property
    def qualifier(self) -> str | None:
        """The last part of the alias, with which Spark resolves columns; None without an alias."""
        return self.alias if self.alias is None or isinstance(self.alias, str) else self.alias[-1]

    def named(self, frame: DataFrame) -> DataFrame:
        """Return the frame under the table's alias."""
        if self.alias is None or isinstance(self.alias, str):
            return frame if self.alias is None else frame.alias(self.alias)
        return under_name(frame, self.alias)

    def shape(self, *, metadata: bool = False) -> DataFrame:
        """Return an empty frame under the alias with the table's columns, only to analyze expressions.

        Args:
            metadata: whether `_metadata` is among them.
        """
        columns = _spark_columns(self.snapshot.schema)
        if metadata:
            columns = columns.add(METADATA, _spark_columns(self._metadata_struct()))
        return self.named(local_frame(self.spark, (), columns))

    def with_positions(self, files: pa.Table, *, ids: bool = False, columns: tuple[str, ...] | None = None) -> DataFrame:
        """Return the live rows of these files: the table's columns, `FILE` (the file's number in `files`), and `ROW` (the physical
        position).

        Args:
            files: of the snapshot (`tahoe.log.replay.FILES_SCHEMA`).
            ids: whether the columns of row ids follow, if the table tracks rows.
            columns: of the table; None for all. The server cannot leave out what a Python worker returns.
        """
        rows = replace(self._rows(ids), columns=columns)
        return self.read([FileRows(number, add) for number, add in enumerate(add_files(files))], rows)

    def with_metadata(self, rows: DataFrame, adds: Iterable[AddFile]) -> DataFrame:
        """Return rows with the column `_metadata`, which is that of Spark's file sources.

        Args:
            rows: of `with_positions` or `changed_rows`, with their ids.
            adds: their files.
        """
        scanned = [scanned_file(self.snapshot, add) for add in adds]
        tracked, per_row = materialized_columns(self.snapshot.config), {"row_index": sf.col(ROW)}
        if tracked is not None:
            per_row |= {"row_id": sf.col(tracked.row_id), "row_commit_version": sf.col(tracked.row_commit_version)}
        fields = self._metadata_struct()
        per_file = DeltaStruct(tuple(column for column in fields if column.name not in per_row))
        values = [[file.metadata(name) for file in scanned] for name in per_file.names]
        arrays = map(pa.array, values, to_arrow_schema(per_file).types)
        structs = pa.StructArray.from_arrays(list(arrays), per_file.names)
        columns = StructType().add(FILE, IntegerType()).add(_OF_FILE, _spark_columns(per_file))
        of_files = local_table(
            self.spark, pa.table({FILE: pa.array(range(len(scanned)), pa.int32()), _OF_FILE: structs}), columns
        )
        parts = [per_row.get(name, sf.col(f"{_OF_FILE}.{name}")).alias(name) for name in fields.names]
        return rows.join(sf.broadcast(of_files), FILE).withColumn(METADATA, sf.struct(*parts))

    def _metadata_struct(self) -> DeltaStruct:
        """Return the fields of `_metadata`. Raises `InvalidRequest` if a column of the table has the name."""
        column = metadata_of({FILE_METADATA: "true"}, self.snapshot.config, self.snapshot.store.url)
        assert column is not None and isinstance(column.column.data_type, DeltaStruct)
        return column.column.data_type

    def changed_rows(self, changes: Sequence[FileChange], *, ids: bool = False, get_new_values: bool = False) -> DataFrame:
        """Return the rows of the changes, with the columns of `with_positions`.

        Args:
            get_new_values: whether the version of the rows becomes that of the commit.
        """
        files = [FileRows(number, change.add, change.dead.serialize()) for number, change in enumerate(changes)]
        return self.read(files, self._rows(ids, get_new_values))

    def remaining_rows(self, changes: Sequence[FileChange]) -> DataFrame:
        """Return the other live rows of the changed files, with the columns of `with_positions` and the row ids."""
        files = [FileRows(number, change.add, change.dead.serialize(), True) for number, change in enumerate(changes)]
        return self.read(files, self._rows(True))

    def _rows(self, ids: bool, changed: bool = False) -> RowsOf:
        snapshot = self.snapshot
        version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
        return RowsOf(version, ids and materialized_columns(snapshot.config) is not None, changed)

    def read(self, files: Iterable[FileRows], rows: RowsOf) -> DataFrame:
        """Return rows of files, with `FILE` and `ROW`."""
        refuse_reserved_names(self.snapshot)
        items = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in binned(files)]
        columns = _spark_columns(rows.schema)
        columns = columns.add(FILE, IntegerType()).add(ROW, LongType())
        tracked = materialized_columns(rows.version.config) if rows.ids else None
        if tracked is not None:
            columns = columns.add(tracked.row_id, LongType()).add(tracked.row_commit_version, LongType())
        if not items:  # PySpark refuses an empty table of Arrow
            return local_frame(self.spark, (), columns)
        frame = local_table(self.spark, pa.table({"item": pa.array(items, pa.binary())}), _ITEM)
        return _with_padded_texts(mapped(frame, columns, rows_at, rows), rows.version.config, columns.names)


def _with_padded_texts(rows: DataFrame, config: TableConfig, names: Sequence[str]) -> DataFrame:
    """Return rows with the texts of ``char(n)`` columns padded, and declared as such: then Spark pads the texts that conditions compare with
    them. The names are an argument because `DataFrame.columns` is a request to the server.
    """
    declared = {column.name: str(column.metadata[DECLARED_TYPE]) for column in config.schema if has_char(column)}
    padded = limited_columns(rows.sparkSession, config, refuses=False) if declared.keys() & set(names) else {}
    columns = [
        padded[name].alias(name, metadata={DECLARED_TYPE: declared[name]})
        if name in declared and name in padded
        else sf.col(quote_identifier(name))
        for name in names
    ]
    return rows.select(*columns) if padded else rows


def _spark_columns(schema: DeltaStruct) -> StructType:
    shown = to_spark_schema(with_shown_metadata(nullable_schema(schema)))
    return StructType([StructField(column.name, column.dataType) for column in shown])


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """Writes the rows of a command to new files, which it stages.

    Args:
        config: of the table after the commit.
        options: ``max_rows_per_file`` and ``compression`` of the new files.
    """

    transaction: Transaction
    config: TableConfig
    options: WriterOptions = field(default_factory=lambda: WriterOptions(bytes_per_file=BYTES_OF_A_FILE))

    def write(self, rows: DataFrame, *, copied: bool = False) -> list[AddFile]:
        """Write rows of a command to new files, and stage these.

        Args:
            rows: columns are matched by name. Columns other than the table's and those of row ids are dropped; missing ones are null,
                generated, or numbered.
            copied: the rows come unchanged from the table, so its constraints need no check.
        """
        stored = config_with_row_ids(self.config)
        rows = of_table(rows, stored.schema)
        rows = rows if copied else with_server_defaults(rows, stored)
        filled = None if copied else self.filled_in(rows.sparkSession, rows.columns)
        options = replace(self.options, copied=copied)
        checked = CheckedRows(rows, stored) if copied else checked_by_server(rows, stored)
        written = self._written(checked, filled, options)
        note_numbers(self.transaction, self.config, written)
        adds = [tagged(self.config, without_id_statistics(self.config, add)) for part in written for add in part.adds]
        self.transaction.row_ids_kept = True
        self.transaction.stage(*adds)
        return adds

    def new_files(self, rows: DataFrame, optimized: bool | None) -> list[AddFile]:
        """Write new rows to files; nothing is staged, as the caller does it.

        Args:
            optimized: the option ``optimizeWrite``; None if it is not set. The sizes of the parts are those of Spark's adaptive execution.
        """
        rows = with_server_defaults(rows, self.config)
        columns = rows.columns
        if optimizes(rows.sparkSession, self.config, optimized):
            rows = rebalanced(rows, [name for name in self.config.partition_columns if name in columns])
        written = self._written(checked_by_server(rows, self.config), self.filled_in(rows.sparkSession, columns), self.options)
        note_numbers(self.transaction, self.config, written)
        return [add for part in written for add in part.adds]

    def write_change_data(self, rows: DataFrame) -> list[AddCDCFile]:
        """Write rows with their ``_change_type`` to change data files, and stage these (PROTOCOL.md, "Writer Requirements for
        AddCDCFile")."""
        schema = DeltaStruct((*self.config.schema.fields, CHANGE_TYPE))
        widened = replace(self.config, metadata=replace(self.config.metadata, schema_string=schema.to_json()))
        rows = of_table(rows, schema)
        written = self._written(CheckedRows(rows, widened), None, WriterOptions(change_data=True))
        actions = [AddCDCFile(add.path, add.partition_values, add.size) for part in written for add in part.adds]
        self.transaction.stage(*actions)
        return actions

    def _written(self, checked: CheckedRows, filled: FilledIn | None, options: WriterOptions) -> list[WrittenFiles]:
        spark = checked.rows.sparkSession
        settings = settings_named(spark, FILE_SETTINGS)
        options = options_of_files(replace(options, time_zone=session_time_zone(spark)), settings)
        target = NewFiles(
            config_of_files(checked.config, settings), self.transaction.store, filled, options, checks=checked.checks
        )
        return written_by(checked.rows, target)

    def filled_in(self, spark: SparkSession, columns: Iterable[str]) -> FilledIn:
        """Return the values of the columns that rows lack."""
        return filled_in(self.config, columns, self.transaction.clock.now_ms(), session_time_zone(spark))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRows(RemoteFiles):
    """Reads and writes the rows of a command that changes a version of a table (`tahoe.spark.commands.spark_engine.CommandRows`)."""

    version: RemoteVersion

    def changed(self, changes: Sequence[FileChange]) -> DataFrame:
        """Return the rows of the changes, with the columns of `RemoteVersion.with_positions`."""
        return self.version.changed_rows(changes)

    def copy(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the remaining rows of the changed files to new files, and stage these."""
        return self.write(self.version.remaining_rows(changes), copied=True) if changes else []

    def written(self, adds: Sequence[AddFile]) -> DataFrame:
        """Return the rows of files that the transaction has just written."""
        snapshot = self.version.snapshot
        version = BareVersion(snapshot.store, snapshot.version, self.config)
        rows = self.version.read([FileRows(number, add) for number, add in enumerate(adds)], RowsOf(version))
        return rows.drop(FILE, ROW)
