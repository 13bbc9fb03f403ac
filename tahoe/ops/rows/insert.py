"""Write Arrow data without Spark: append, overwrite, and replace the rows of a predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.base.json_values import compact_json
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.expr.row_condition import RowCondition, row_condition
from tahoe.expr.tree.predicate import And, Column, Comparison, IsNull, Literal, Or, Predicate
from tahoe.log.replay import add_files
from tahoe.ops.rows.assignments import assigned
from tahoe.ops.rows.conditions import whole_files
from tahoe.ops.rows.engine import ArrowEngine, Engine
from tahoe.ops.rows.row_changes import (
    FileChange,
    change_rows,
    mark_dead,
    remove_files,
    uses_vectors,
    without_dead_files,
    write_change_data,
)
from tahoe.ops.tables.cluster_by import check_same_clustering, check_still_clusterable, is_clustered, stage_clustering
from tahoe.ops.tables.create import new_metadata, with_schema
from tahoe.ops.write.arrow_data import ArrowData, in_hand
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.writer import WriterOptions, tagged, write_arrow
from tahoe.protocol.actions import AddCDCFile, AddFile, Metadata, RemoveFile
from tahoe.protocol.column_values.identity import refuse_explicit
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import check_dependents, with_optional_generated
from tahoe.protocol.features import ENFORCED
from tahoe.protocol.partition import deserialize
from tahoe.schema.arrow import from_arrow_schema, to_arrow_schema
from tahoe.schema.evolve import can_store, check_same_types, check_writable, merge_schemas, replace_schema
from tahoe.schema.types import DataType, StructType
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import with_change_type
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

__all__ = [
    "ArrowData",
    "OverwriteActions",
    "WriteOptions",
    "already_written",
    "changes_nothing",
    "check_replaced",
    "prepare_schema",
    "stage_adds",
    "stage_replaced",
    "stage_replaced_files",
    "stage_rows",
    "stage_write",
    "write_operation",
]


@checked_arguments
@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write, named like Spark's writer options.

    Args:
        mode: ``append`` or ``overwrite``.
        partition_by: the partition columns of a new table, or with `overwrite_schema`; otherwise checked against the table's.
        cluster_by: the clustering columns of a new table, or with ``overwrite`` of a whole table; otherwise checked against the table's.
            An overwrite of the schema without clustering columns, or of all rows with an empty tuple, makes the table unclustered; any
            other write keeps its clustering.
        properties: table properties of a new table.
        merge_schema: add columns that only the data has.
        overwrite_schema: with ``overwrite``, use the data's schema and partitioning.
        replace_where: with ``overwrite``, SQL text: only rows for which it is true are replaced, and new rows must satisfy it.
        replaces_data: whether `replace_where` may refer to other columns than partition columns.
        checks_rows: whether new rows must satisfy `replace_where`; if it may only refer to partition columns, they always must.
        replaces_matches: with ``overwrite``, the caller finds and removes the rows that the new rows replace.
        dynamic_partitions: with ``overwrite``, replace only the partitions of the new rows.
        keeps_null_partitions: with `dynamic_partitions`, do not replace partitions with a NULL among their values.
        app: application id and version of an idempotent write.
        data_change: False if the rows are only rearranged; then `replace_where` may only refer to partition columns.
        automatic_widening: the types that `merge_schema` widens in a table with ``delta.enableTypeWidening``; one of
            `tahoe.schema.widening.WIDENING_MODES`.
        same_types: whether columns must have the table's types, as those of a DataFrame must; else values are cast, and a value that does
            not fit is an error.
        stores: whether the first type may be cast to the second; an engine that casts itself may allow more than SQL's store assignment.
    """

    mode: str = "append"
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    replaces_data: bool = True
    checks_rows: bool = True
    replaces_matches: bool = False
    dynamic_partitions: bool = False
    keeps_null_partitions: bool = False
    max_rows_per_file: int | None = None
    app: tuple[str, int] | None = None
    data_change: bool = True
    same_types: bool = False
    stores: Callable[[DataType, DataType], bool] = can_store
    automatic_widening: str = "ALWAYS"

    def __post_init__(self) -> None:
        overwrite = self.mode == "overwrite"
        if self.mode not in ("append", "overwrite"):
            raise InvalidRequest(
                f"The mode of a write is 'append' or 'overwrite', found '{self.mode}'.", code="DELTA_MODE_NOT_SUPPORTED"
            )
        if self.replace_where is not None and not overwrite:
            raise InvalidRequest("replaceWhere goes with mode 'overwrite' only.", code="DELTA_REPLACE_WHERE_IN_OVERWRITE")
        if self.overwrite_schema and not overwrite:
            raise InvalidRequest(
                "overwriteSchema goes with mode 'overwrite' only; to add columns use mergeSchema.", code="DELTA_ILLEGAL_USAGE"
            )
        if self.dynamic_partitions and self.replace_where is not None:
            raise InvalidRequest(
                "replaceWhere and partitionOverwriteMode 'dynamic' exclude each other; use one of the two.",
                code="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )


@dataclass(frozen=True, slots=True)
class OverwriteActions:
    """The actions that an overwrite has staged besides the new rows.

    Args:
        removed: the tombstones of the replaced files.
        copied: new files with the remaining rows of removed files.
        change_files: the number of written change data files.
        deleted_rows: the number of replaced rows; None if it is not in the log, or without ``replaceWhere``.
    """

    removed: tuple[RemoveFile, ...] = ()
    copied: tuple[AddFile, ...] = ()
    change_files: int = 0
    deleted_rows: int | None = None


def stage_write(transaction: Transaction, data: ArrowData, options: WriteOptions, progress: Progress = silent) -> Operation:
    """Write the rows as data files and stage everything that the commit needs; nothing is visible before the commit.

    Args:
        progress: called with the number of rows written and, with ``replaceWhere``, of files searched and rewritten.
    """
    snapshot = transaction.snapshot
    rows = in_hand(data, None if snapshot is None or options.overwrite_schema else snapshot.schema)
    transaction.enforces = ENFORCED
    config = prepare_schema(transaction, from_arrow_schema(rows.schema), options)
    condition = None
    if options.replace_where is not None:
        condition = row_condition(options.replace_where, config.schema, transaction.time_zone, transaction.clock.now_ms())
    if condition is not None and check_replaced(condition.columns, config, options):
        rows = _checked(rows, condition, config)
    store, clock, most = transaction.store, transaction.clock, options.max_rows_per_file
    completion = Completion(transaction, rows.schema.names)
    written = WriterOptions(most, progress=progress, completion=completion, time_zone=transaction.time_zone)
    adds = write_arrow(config, store, rows, clock, written)
    return stage_adds(transaction, config, adds, condition, options, progress)


def stage_adds(
    transaction: Transaction,
    config: TableConfig,
    adds: Sequence[AddFile],
    condition: RowCondition | None,
    options: WriteOptions,
    progress: Progress = silent,
) -> Operation:
    """Stage files that are already written, and the removal of the rows that they replace."""
    staged = [tagged(config, replace(add, data_change=options.data_change)) for add in adds]
    replaced = OverwriteActions()
    if options.mode == "overwrite" and transaction.snapshot is not None:
        write = _Overwrite(transaction, transaction.snapshot, config, staged, condition, options, progress)
        replaced = _stage_removals(write)
    return stage_rows(transaction, staged, replaced, options)


def stage_rows(
    transaction: Transaction,
    adds: Sequence[AddFile],
    replaced: OverwriteActions,
    options: WriteOptions,
    *,
    counts_rows: bool = False,
) -> Operation:
    """Stage the new files of a write, whose removals are staged already, and the number of an idempotent write; return the operation.

    Args:
        counts_rows: whether the metrics include the counts of replaced rows; with ``replaceWhere`` they always do.
    """
    transaction.stage(*adds)
    if options.mode == "overwrite" and transaction.snapshot is None:
        transaction.read_whole_table()  # as in delta-spark, an overwrite is no blind append, even if it creates the table
    if options.app is not None:
        transaction.stage_app(*options.app)
    return write_operation(adds, replaced, options, created=transaction.snapshot is None, counts_rows=counts_rows)


def already_written(transaction: Transaction, app: tuple[str, int] | None) -> bool:
    """Whether the table contains an idempotent write of this application with this version or a later one."""
    if app is None:
        return False
    last = transaction.read_app(app[0])
    return last is not None and last >= app[1]


def check_replaced(columns: Iterable[str], config: TableConfig, options: WriteOptions) -> bool:
    """Refuse a ``replaceWhere`` on data columns if only partition columns are allowed; return whether new rows must be checked against it.

    A condition without columns is never checked.

    Args:
        columns: the columns of the table to which the condition refers.

    Raises:
        InvalidRequest: ``DELTA_NON_PARTITION_COLUMN_REFERENCE``, ``DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET``.
    """
    named, partitions = list(columns), {name.lower() for name in config.partition_columns}
    data = [name for name in named if name.lower() not in partitions]
    if data and not options.replaces_data:
        raise InvalidRequest(
            f"replaceWhere '{options.replace_where}' names column '{data[0]}', which does not partition table {config.table}; its partition "
            f"columns are ({', '.join(config.partition_columns)}). Name these, or set "
            "spark.databricks.delta.replaceWhere.dataColumns.enabled to true.",
            code="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            table=config.table,
            column=data[0],
        )
    if data and not options.data_change:
        raise InvalidRequest(
            f"dataChange = false goes with a replaceWhere of whole partitions only, and '{options.replace_where}' names column '{data[0]}', "
            f"which does not partition table {config.table}. Leave dataChange out.",
            code="DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
            table=config.table,
            column=data[0],
        )
    return bool(named) and (options.checks_rows or not options.replaces_data)


def changes_nothing(transaction: Transaction) -> bool:
    """Whether a staged write adds and removes no file and leaves the metadata unchanged: delta-spark does not commit such a write."""
    snapshot = transaction.snapshot
    if snapshot is None or transaction.staged:
        return False
    config = future_config(transaction)
    return config.metadata == snapshot.metadata and config.protocol == snapshot.protocol


def prepare_schema(transaction: Transaction, data_schema: StructType, options: WriteOptions) -> TableConfig:
    """Set the metadata that the write needs, and return the configuration of the table after the commit.

    Raises:
        SchemaMismatch: the data does not fit the table; the message names the column, the types and a remedy.
        InvalidRequest: the partition columns differ from the table's; the data has a column whose values only the table may generate;
            ``DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE``.
    """
    snapshot = transaction.snapshot
    if snapshot is None:
        metadata = new_metadata(
            data_schema, transaction.clock, partition_by=options.partition_by or (), properties=options.properties
        )
        transaction.set_metadata(metadata)
        stage_clustering(transaction, options.cluster_by)
        return _future(transaction, options)
    transaction.ensure_writable(snapshot.config, transaction.enforces)
    config = snapshot.config
    refuse_explicit(config.schema, data_schema.names, config.table)
    if options.mode == "overwrite" and options.overwrite_schema:
        schema = replace_schema(config.schema, data_schema)
        changed = with_schema(config, schema, transaction.clock, options.partition_by, files_stay=False)
    else:
        _check_partitioning(config, options.partition_by, data_schema)
        with naming_table_with_id(config):
            schema = _schema_with(config, data_schema, options)
        changed = with_schema(config, schema, transaction.clock) if schema != config.schema else config.metadata
    if changed != config.metadata:
        transaction.set_metadata(changed)
    _stage_clustering(transaction, snapshot, changed, options)
    return _future(transaction, options)


def _future(transaction: Transaction, options: WriteOptions) -> TableConfig:
    config = future_config(transaction)
    if options.dynamic_partitions and options.overwrite_schema and config.partition_columns:
        raise InvalidRequest(
            "overwriteSchema and partitionOverwriteMode 'dynamic' exclude each other; use one of the two.",
            code="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            table=config.table,
        )
    return config


def _schema_with(config: TableConfig, data_schema: StructType, options: WriteOptions) -> StructType:
    """Return the schema of an existing table with the columns and wider types that the data adds. Raises `SchemaMismatch`."""
    schema = config.schema
    if options.merge_schema:
        widening = replace(config.automatic_widening(options.automatic_widening), stored_alike=options.same_types)
        schema = merge_schemas(schema, data_schema, widening, options.stores)
    if options.same_types:
        check_same_types(data_schema, schema)
    if options.merge_schema:
        check_dependents(config, schema)
    check_writable(data_schema, with_optional_generated(schema), options.stores)
    return schema


@contextmanager
def naming_table_with_id(config: TableConfig) -> Iterator[None]:
    """Add the table and its id to the message of a `SchemaMismatch`."""
    try:
        yield
    except SchemaMismatch as error:
        error.facts.update(table=config.table, table_id=config.metadata.id)
        raise error.located(table=f"{config.table} (Table ID: {config.metadata.id})") from None


def _stage_clustering(transaction: Transaction, snapshot: Snapshot, metadata: Metadata, options: WriteOptions) -> None:
    """Stage the clustering columns of an existing table after a write, or check those that the write names."""
    is_partial = options.replace_where is not None or options.dynamic_partitions or options.replaces_matches
    replaces = options.mode == "overwrite" and not is_partial
    if not replaces:
        if options.cluster_by:
            check_same_clustering(snapshot, options.cluster_by)
    elif options.cluster_by or options.overwrite_schema or (options.cluster_by is not None and is_clustered(snapshot)):
        transaction.set_metadata(metadata)
        stage_clustering(transaction, options.cluster_by or None)
    elif transaction.metadata is not None:
        check_still_clusterable(snapshot, metadata)


def _rows_in(adds: Sequence[AddFile]) -> int | None:
    """Return the number of live rows in files; None if a file has no statistics."""
    counts = [add.num_records for add in adds]
    dead = sum(add.deletion_vector.cardinality for add in adds if add.deletion_vector is not None)
    return None if None in counts else sum(count or 0 for count in counts) - dead


def write_operation(
    adds: Sequence[AddFile], replaced: OverwriteActions, options: WriteOptions, *, created: bool, counts_rows: bool = False
) -> Operation:
    """Return the operation WRITE with delta-spark's parameters and metrics.

    Args:
        created: whether the commit creates the table.
        counts_rows: see `stage_rows`.
    """
    parameters: dict[str, Any] = {
        "mode": options.mode.capitalize(),
        # The partition columns that this write names; a write to a partitioned table may omit them.
        "partitionBy": compact_json(list(options.partition_by or ())),
    }
    if options.replace_where is not None:
        parameters["predicate"] = options.replace_where
    if options.dynamic_partitions:
        parameters["isDynamicPartitionOverwrite"] = True
    if options.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if options.merge_schema:
        parameters["canMergeSchema"] = True
    metrics: dict[str, int | str] = {
        "numFiles": len(adds) + len(replaced.copied),
        "numOutputBytes": sum(add.size for add in (*adds, *replaced.copied)),
        "numOutputRows": sum(add.num_records or 0 for add in (*adds, *replaced.copied)),
    }
    if options.mode == "overwrite" and not created:
        metrics["numRemovedFiles"] = len(replaced.removed)
        metrics["numRemovedBytes"] = sum(remove.size or 0 for remove in replaced.removed)
        if counts_rows or (options.replace_where is not None and options.replaces_data):
            metrics["numCopiedRows"] = sum(add.num_records or 0 for add in replaced.copied)
            metrics["numAddedChangeFiles"] = replaced.change_files
            if replaced.deleted_rows is not None:
                metrics["numDeletedRows"] = replaced.deleted_rows
    return Operation("WRITE", parameters, metrics)


def _check_partitioning(config: TableConfig, partition_by: tuple[str, ...] | None, data_schema: StructType) -> None:
    if partition_by is None:
        return
    # As in delta-spark: the names are resolved case-insensitively in the data, and the data's spelling is compared.
    columns = [data_schema.find(name) for name in partition_by]
    asked = [name if column is None else column.name for name, column in zip(partition_by, columns, strict=True)]
    if asked != list(config.partition_columns):
        raise InvalidRequest(
            f"Table {config.table} is partitioned by ({', '.join(config.partition_columns)}), the write asks for "
            f"({', '.join(partition_by)}). Leave partitionBy out, or overwrite with overwriteSchema.",
            code="DELTA_METADATA_MISMATCH",
            table=config.table,
            partition_by=partition_by,
        )


@dataclass(frozen=True, slots=True)
class _Overwrite:
    """An overwrite of an existing table.

    Args:
        snapshot: the version to overwrite.
        config: the configuration of the table after the commit.
        adds: the new files, whether staged already or later.
        condition: selects the rows to replace; None for all rows, or those of the new files' partitions.
    """

    transaction: Transaction
    snapshot: Snapshot
    config: TableConfig
    adds: Sequence[AddFile]
    condition: RowCondition | None
    options: WriteOptions
    progress: Progress


def _stage_removals(write: _Overwrite) -> OverwriteActions:
    """Stage the removal of the replaced rows, and the files with the remaining rows; register the reads for conflict detection."""
    transaction, options, condition = write.transaction, write.options, write.condition
    if condition is not None:
        met = whole_files(write.snapshot, condition)
        if met is None:
            return _replaced_rows(write, condition)
        return stage_replaced_files(transaction, condition.predicate, met, options)
    now = transaction.clock.now_ms()
    if options.dynamic_partitions and write.config.partition_columns:
        removed = _dynamic(write, now)
    else:
        transaction.read_whole_table()
        removed = [add.remove(now, options.data_change) for add in add_files(write.snapshot.files())]
    transaction.stage(*removed)
    return OverwriteActions(tuple(removed))


def _dynamic(write: _Overwrite, now: int) -> list[RemoveFile]:
    """Return tombstones of all files in the partitions of the new files."""
    partitions = {tuple(sorted(add.partition_values.items())) for add in write.adds}
    if write.options.keeps_null_partitions:
        partitions = {values for values in partitions if all(value is not None for _, value in values)}
    if not partitions:
        return []
    predicate = Or(tuple(_in_partition(write.config, dict(values)) for values in partitions))
    write.transaction.read(predicate)
    met = add_files(write.snapshot.files_matching(predicate))
    write.transaction.read_files(add.key for add in met)
    return [add.remove(now, write.options.data_change) for add in met]


def _in_partition(config: TableConfig, values: Mapping[str, str | None]) -> Predicate:
    """Return a predicate for the rows of a partition, from its serialized values."""
    parts: list[Predicate] = []
    for column in config.partition_schema:
        value = deserialize(values[column.physical_name], column.data_type)
        name = Column((column.name,))
        parts.append(IsNull(name) if value is None else Comparison("=", name, Literal(value, column.data_type)))
    return And(tuple(parts))


def _replaced_rows(write: _Overwrite, condition: RowCondition) -> OverwriteActions:
    write.config.refuse_if_append_only()
    engine = _ArrowReplacement(write.transaction, write.snapshot, write.config, condition, write.progress, write.adds)
    return stage_replaced(write.transaction, write.config, engine, data_change=write.options.data_change)


@dataclass(frozen=True, slots=True)
class _ArrowReplacement(ArrowEngine):
    """The engine of an overwrite in this process, without Spark.

    Args:
        adds: the new files.
    """

    adds: Sequence[AddFile]

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        deleted = (_in_schema(rows, self.config) for rows in change_rows(self.snapshot, changes, "delete"))
        inserted = (with_change_type(rows, "insert") for rows in _rows_of(self.adds, self.config, self.transaction.store))
        return write_change_data(self.transaction, self.config, chain(deleted, inserted))


def stage_replaced_files(
    transaction: Transaction, predicate: Predicate, adds: Sequence[AddFile], options: WriteOptions
) -> OverwriteActions:
    """Stage the removal of files all of whose rows are replaced.

    Args:
        predicate: true for the rows that are replaced.
    """
    transaction.read(predicate)
    removed = remove_files(transaction, adds, data_change=options.data_change)
    return OverwriteActions(tuple(removed), deleted_rows=_rows_in(adds))


def stage_replaced(
    transaction: Transaction, config: TableConfig, engine: Engine, *, data_change: bool = True
) -> OverwriteActions:
    """Stage the deletion of the engine's rows like a DELETE: by deletion vectors, or by copying the other rows.

    Args:
        config: of the table after the commit.
        engine: its change data feed includes the new rows.
        data_change: False if the rows of whole partitions are only rearranged, so that the change data feed has no rows.
    """
    changes = engine.find_rows()
    marked = uses_vectors(config)
    stay = without_dead_files(changes)
    gone = (change.add for change in changes if change.is_whole or not marked)
    removed = remove_files(transaction, gone, data_change=data_change)
    copied: list[AddFile] = []
    change_files = 0
    if marked:
        # Readers of the feed derive the deleted rows from the old and the new vector of a file, and the new rows from the new files.
        mark_dead(transaction, config, stay)
        # All written rows are new.
        transaction.row_ids_kept = True
    else:
        copied = engine.copy_rows(stay)
        if changes and data_change and config.properties.enable_change_data_feed:
            # If a commit has change data files, readers of the feed ignore all other files: the new rows must be in them too.
            change_files = len(engine.write_change_data(changes))
    return OverwriteActions(tuple(removed), tuple(copied), change_files, sum(len(change.dead) for change in changes))


def _in_schema(rows: pa.Table, config: TableConfig) -> pa.Table:
    """Add the new columns of this commit to changed rows."""
    kinds = rows.column(rows.num_columns - 1)
    return assigned(rows, config.schema, (), rows).append_column(rows.schema.field(rows.num_columns - 1), kinds)


def _rows_of(adds: Sequence[AddFile], config: TableConfig, store: LogStore) -> Iterator[pa.Table]:
    """Yield the rows of newly written files, file by file."""
    schema, files = to_arrow_schema(config.schema), DataFiles(store, config)
    for add in adds:
        task = ReadTask(decode_path(add.path, store.url, outside=True), add.size, add.partition_values)
        yield pa.Table.from_batches(files.read(task), schema)


def _checked(
    data: pa.Table | pa.RecordBatch | pa.RecordBatchReader, condition: RowCondition, config: TableConfig
) -> pa.RecordBatchReader:
    """Return the data, and check each batch when it is read: a row that does not satisfy the condition is an error before the commit."""

    def batches() -> Iterator[pa.RecordBatch]:
        parts = data.to_batches() if isinstance(data, pa.Table) else [data] if isinstance(data, pa.RecordBatch) else data
        for batch in parts:
            table = pa.Table.from_batches([batch])
            mask = condition.mask(_with_table_names(table, config))
            if not pc.all(mask, min_count=0).as_py():
                row = table.filter(pc.invert(mask)).slice(0, 1).to_pylist()[0]
                row_values = {name: value for name, value in row.items() if name in condition.columns}
                raise InvalidRequest(
                    f"A row to be written to table {config.table} does not satisfy replaceWhere '{condition.text}': {row_values}. "
                    "Write only rows that satisfy it, or change the condition.",
                    code="DELTA_REPLACE_WHERE_MISMATCH",
                    table=config.table,
                )
            yield batch

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def _with_table_names(table: pa.Table, config: TableConfig) -> pa.Table:
    """Rename the columns to the table's spelling, so that the condition can refer to them."""
    names = [column.name if (column := config.schema.find(name)) else name for name in table.column_names]
    return table.rename_columns(names)
