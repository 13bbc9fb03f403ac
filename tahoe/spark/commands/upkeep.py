"""OPTIMIZE, REORG, VACUUM, RESTORE and auto compaction on Spark, with their result rows (`delta-features`, 2.4).

    the core plans the bins ─► an executor rewrites each, as the core does ─► the core commits, and resolves conflicts

Data files go from storage to an executor and back; only actions reach the driver. An executor loads some row groups of a bin at a time, and
spills rows to be clustered to its disk. VACUUM and RESTORE run in the core: they list, delete and commit, and read no data.
"""

# ruff: noqa: N802, N803 - the names of the builder are delta-spark's

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.process import COMPACTED_NOW
from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.base.progress import shown
from tahoe.expr.row_condition import RowCondition
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.cubes import LEAST_BYTES, TARGET_BYTES
from tahoe.ops.layout.optimize import RewrittenBin, optimize, rewritten_here, written_as_cube
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.layout.optimize_report import Optimized, OptimizeRun, metrics_row
from tahoe.ops.repair.statistics import collected_here, compute_statistics, statistics_of_file
from tahoe.ops.upkeep.purge import stage_purge
from tahoe.ops.upkeep.restore import RestoreRequest, restore
from tahoe.protocol.actions import AddFile
from tahoe.protocol.properties import parse_size
from tahoe.schema.types import StructType
from tahoe.snapshot.scan import BareVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.checked_arguments import check_kind, wrong_argument
from tahoe.spark.commands.conditions import is_that_of_session
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.executors.bin_tasks import rewritten_bin
from tahoe.spark.executors.file_settings import FILE_SETTINGS, config_of_files
from tahoe.spark.executors.shipped import raised, run_on
from tahoe.spark.jvm.bridge import active_session, is_classic
from tahoe.spark.jvm.errors import quiet_errors
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.jvm.local_rows import Result, local_frame
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.spark.jvm.translate import to_spark_schema
from tahoe.spark.names.server_catalog import rows_of_sql
from tahoe.spark.names.settings import is_on, look_at_settings, setting_of, settings_named
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.spark.write.enforce import in_session_zone
from tahoe.spark.write.spread import clustered_by_tasks, is_worth_joining, is_worth_spreading, joined_by_tasks
from tahoe.sql.expression_text import in_brackets
from tahoe.sql.selects import has_subquery
from tahoe.store.location import decode_path, needs_jvm
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Transaction

_SIZES = "struct<min: bigint, max: bigint, avg: double, totalFiles: bigint, totalSize: bigint>"
_CUBE = "struct<num: bigint, size: bigint>"
_CLUSTER = "struct<numFiles: bigint, size: bigint>"
OPTIMIZE_ROW = f"""path string, metrics struct<
    numFilesAdded: bigint, numFilesRemoved: bigint, filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: bigint,
    zOrderStats: struct<strategyName: string, inputCubeFiles: {_CUBE}, inputOtherFiles: {_CUBE}, inputNumCubes: bigint,
        mergedFiles: {_CUBE}, numOutputCubes: bigint, mergedNumCubes: bigint>,
    clusteringStats: struct<inputZCubeFiles: {_CLUSTER}, inputOtherFiles: {_CLUSTER}, inputNumZCubes: bigint, mergedFiles: {_CLUSTER},
        numOutputZCubes: bigint>,
    numBins: bigint, numBatches: bigint, totalConsideredFiles: bigint, totalFilesSkipped: bigint, preserveInsertionOrder: boolean,
    numFilesSkippedToReduceWriteAmplification: bigint, numBytesSkippedToReduceWriteAmplification: bigint,
    startTimeMs: bigint, endTimeMs: bigint, totalClusterParallelism: bigint, totalScheduledTasks: bigint,
    autoCompactParallelismStats: struct<maxClusterActiveParallelism: bigint, minClusterActiveParallelism: bigint,
        maxSessionActiveParallelism: bigint, minSessionActiveParallelism: bigint>,
    deletionVectorStats: struct<numDeletionVectorsRemoved: bigint, numDeletionVectorRowsRemoved: bigint>,
    numTableColumns: bigint, numTableColumnsWithStats: bigint>"""
"""The result columns of OPTIMIZE and REORG."""

VACUUM_ROW = "path string"
"""The result column of VACUUM: the table's path, or, with DRY RUN, the paths of the files to delete."""

RESTORE_ROW = (
    "table_size_after_restore bigint, num_of_files_after_restore bigint, num_removed_files bigint, num_restored_files bigint, "
    "removed_files_size bigint, restored_files_size bigint"
)
"""The result columns of RESTORE."""

FSCK_ROW = "dataFilePath string, dataFileMissing boolean, deletionVectorPath string, deletionVectorFileMissing boolean"
"""The result columns of FSCK REPAIR TABLE, one row per file."""

Row = tuple[str, dict[str, object]]
Value = TypeVar("Value")

_DELTA = "spark.databricks.delta."
_PREFIX = f"{_DELTA}optimize."


def optimize_table(
    spark: SparkSession,
    table: Table,
    conditions: Sequence[str] = (),
    zorder_by: Sequence[str] = (),
    *,
    is_full: bool = False,
) -> list[Row]:
    """Run OPTIMIZE; return a row of `OPTIMIZE_ROW`.

    Args:
        spark: its settings ``spark.databricks.delta.optimize.…`` apply.
        conditions: SQL conditions on partition columns; only partitions that fulfill all of them are optimized.
        zorder_by: the columns to cluster rows by.
        is_full: for a clustered table: also rewrite files that are clustered by other columns than the current ones.

    Raises: the errors of `tahoe.ops.layout.optimize.optimize`; `Unsupported` for a table in this process's memory.
    """
    look_at_settings(spark)
    if table.url.startswith("memory:"):
        raise Unsupported(
            f"Executors cannot reach {table.url}, a store of this Python process; use tahoe.Table(…).optimize().",
            code="TAHOE_STORE_WITHOUT_SPARK",
        )
    request = replace(_request(spark, table, conditions, zorder_by), full=is_full)
    row = _RowOf(spark, table)
    return row.of(_optimized(spark, table, request).metrics)


def _optimized(spark: SparkSession, table: Table, request: OptimizeRequest) -> Optimized:
    with job_progress(spark, table.clock), quiet_errors(spark):
        return optimize(lambda: in_session_zone(spark, table.begin()), table.commit, request, partial(on_executors, spark))


class DeltaOptimizeBuilder:
    """Selects partitions and executes OPTIMIZE. Created by `DeltaTable.optimize`."""

    def __init__(self, spark: SparkSession, table: Table, conditions: tuple[str, ...] = ()) -> None:
        self._spark = spark
        self._table = table
        self._conditions = conditions

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Restrict to the partitions for which this is true, in addition to earlier filters.

        Args:
            partitionFilter: SQL text on partition columns.
        """
        check_kind(partitionFilter, "Partition filter", str, parameter="partitionFilter")
        self._conditions = (*self._conditions, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Combine small files into few large ones.

        Returns:
            One row: ``path``, and ``metrics``.

        Raises: see `tahoe.ops.layout.optimize.optimize`.
        """
        return self._execute(())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rewrite all files of these partitions with rows clustered by columns, so that conditions on any of them skip files.

        Args:
            cols: names of columns, or a list of them.

        Returns:
            The row of `executeCompaction`.
        """
        return self._execute(_names(cols))

    def explain(self, *cols: str | list[str] | tuple[str, ...]) -> Optimized:
        """Return the plan of `executeCompaction` or, with columns, of `executeZOrderBy`; ``print`` shows it. Nothing is changed."""
        request = _request(self._spark, self._table, self._conditions, _names(cols))
        return _optimized(self._spark, self._table, replace(request, dry_run=True))

    def _execute(self, zorder_by: Sequence[str]) -> DataFrame:
        result = Result(self._spark, OPTIMIZE_ROW)
        return result.of(optimize_table(self._spark, self._table, self._conditions, zorder_by))


def _names(cols: Sequence[str | list[str] | tuple[str, ...]]) -> list[str]:
    names = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    for name in names:
        if not isinstance(name, str):
            raise wrong_argument(f"Z-order column must be str. Found {name} with type {type(name)}", "cols")
    return [str(name) for name in names]


def purge(spark: SparkSession, table: Table, where: str | None = None) -> list[Row]:
    """Purge the table (`tahoe.api.table.Table.purge`); return a row of `OPTIMIZE_ROW` as delta-spark does.

    Args:
        where: a condition on partition columns; only these partitions are purged.
    """
    row, transaction = _RowOf(spark, table), in_session_zone(spark, table.begin())
    started = table.clock.now_ms()
    with shown(table.clock) as progress, quiet_errors(spark):
        shown_where = None if where is None else _shown(spark, where, table.url)
        operation = stage_purge(
            transaction,
            where,
            progress,
            shown_where=shown_where,
            engine=_PartitionsBySpark(spark, table.url),
        )
    metrics = _purged(transaction, transaction.existing(), started, table.clock.now_ms())
    if operation is not None:
        table.commit(transaction, operation)
    return row.of(metrics | {"endTimeMs": table.clock.now_ms()})


class _RowOf:
    """The row of `OPTIMIZE_ROW` of a table; Spark is queried before anything is committed."""

    def __init__(self, spark: SparkSession, table: Table) -> None:
        # A server of Spark Connect does not tell how many tasks run at once.
        self._parallelism = spark.sparkContext.defaultParallelism if is_classic(spark) else None
        self._path = hadoop_path(table.url)

    def of(self, metrics: dict[str, object]) -> list[Row]:
        return [(self._path, metrics | {"totalClusterParallelism": self._parallelism})]


def _purged(transaction: Transaction, snapshot: Snapshot, started: int, ended: int) -> dict[str, object]:
    indexed, columns = int(snapshot.config.properties.get("delta.dataSkippingNumIndexedCols")), len(snapshot.schema)
    with_statistics = min(indexed, columns) if indexed >= 0 else columns
    run = OptimizeRun(snapshot.files().num_rows, started, ended, columns, with_statistics)
    return metrics_row(transaction.removes, transaction.adds, run)


def vacuum_table(
    target: CommandTarget,
    retain_hours: float | None = None,
    *,
    is_lite: bool | None = None,
    inventory: str | None = None,
    dry_run: bool = False,
) -> list[tuple[str]]:
    """Delete unreferenced files; return rows of `VACUUM_ROW`.

    Args:
        target: the session's settings ``spark.databricks.delta.vacuum.…`` and ``…retentionDurationCheck.enabled`` apply.
        retain_hours: None for the table's own retention.
        is_lite: None for the session's setting.
        inventory: a query with the columns ``path``, ``length``, ``isDir`` and ``modificationTime``.

    Raises: the errors of `tahoe.ops.upkeep.vacuum.vacuum`.
    """
    spark, table = target.spark, target.table
    look_at_settings(spark)
    if retain_hours and _is_on(spark, "vacuum.retentionWindowIgnore.enabled", False):
        retain_hours = None
    logs = spark.conf.get(_DELTA + "vacuum.logging.enabled", None)
    with quiet_errors(spark):
        done = table.vacuum(
            retain_hours,
            dry_run=dry_run,
            retention_check=_is_on(spark, "retentionDurationCheck.enabled", True),
            lite=inventory is None and _is_on(spark, "vacuum.lite.enabled", False) if is_lite is None else is_lite,
            inventory=None if inventory is None else _inventory(spark, inventory),
            logs=None if logs is None else _is_on(spark, "vacuum.logging.enabled", False),
        )
    place = hadoop_path(table.url)
    return [(f"{place}/{entry.name}",) for entry in done.plan.files] if dry_run else [(place,)]


def _inventory(spark: SparkSession, query: str) -> pa.Table:
    """Return the rows of an inventory without folders; the core checks its columns."""
    frame = spark.sql(query)
    columns = [name for name in ("path", "length", "isDir", "modificationTime") if name in frame.columns]
    if dict(frame.dtypes).get("isDir") == "boolean":
        frame = frame.where("not isDir")
    with job_progress(spark):
        return frame.select(columns).toArrow()


def compute_statistics_of(spark: SparkSession, table: Table) -> None:
    """Recompute the statistics of all files, each in its own task. Raises the errors of `tahoe.ops.repair.statistics.compute_statistics`."""

    def collect(snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[str]:
        if table.url.startswith("memory:") or not adds:
            return collected_here(snapshot, adds)
        version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
        return raised(run_on(spark, statistics_of_file, adds, version))

    with job_progress(spark, table.clock), quiet_errors(spark):
        compute_statistics(table.begin, table.commit, collect)


def drop_feature_of(spark: SparkSession, table: Table, feature: str, *, truncates_history: bool = False) -> None:
    """Drop a table feature; files that must be rewritten are rewritten in this process.

    Args:
        spark: its setting ``spark.databricks.delta.tableFeatures.fastDropFeature.enabled`` applies.

    Raises: the errors of `tahoe.ops.features.drop_feature.drop_feature`.
    """
    look_at_settings(spark)
    is_fast = _is_on(spark, "tableFeatures.fastDropFeature.enabled", True)
    with quiet_errors(spark):
        table.drop_feature(feature, truncate_history=truncates_history, is_fast=is_fast)


def fsck_table(table: Table, *, dry_run: bool = False) -> list[tuple[str, bool, str | None, bool]]:
    """Remove files missing in storage from the log; return rows of `FSCK_ROW`. Raises the errors of `tahoe.ops.repair.fsck.fsck`."""
    lost = table.fsck(dry_run=dry_run).lost
    return [(file.path, file.is_missing, file.vector, file.vector_is_missing) for file in lost]


def restore_table(
    spark: SparkSession, table: Table, version: int | None = None, timestamp: str | None = None
) -> list[tuple[int, ...]]:
    """Restore the table to an older version; return a row of `RESTORE_ROW`, or none if the version is the newest one.

    Args:
        spark: ``spark.sql.files.ignoreMissingFiles`` applies.
        timestamp: in Spark's format, in the session's time zone.

    Raises: the errors of `tahoe.ops.upkeep.restore.restore`.
    """
    look_at_settings(spark)
    request = RestoreRequest(
        version,
        None if timestamp is None else parsed_timestamp(spark, timestamp),
        ignore_missing_files=is_on(spark, "spark.sql.files.ignoreMissingFiles"),
        shown_timestamp=timestamp,
        accepts_newest=True,
    )
    with shown(table.clock) as progress, quiet_errors(spark):
        metrics = restore(table.begin(), table.commit, request, progress).metrics
    return [tuple(metrics.values())] if metrics else []


def _is_on(spark: SparkSession, name: str, default: bool) -> bool:
    return is_on(spark, _DELTA + name, usual=default)


# -- requests ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PartitionsBySpark:
    """Lets Spark evaluate conditions on partitions (`tahoe.ops.rows.conditions.PartitionFilter`), such as ``day >= current_date()``."""

    spark: SparkSession
    table: str

    def agrees(self, condition: RowCondition) -> bool:
        """See `PartitionFilter`."""
        return is_that_of_session(self.spark, condition)

    def __call__(self, where: str, columns: StructType, partitions: Sequence[tuple[Any, ...]]) -> list[int]:
        """See `PartitionFilter`."""
        spark_columns = SparkStruct([StructField(_PLACE, LongType()), *to_spark_schema(columns)])
        rows = local_frame(self.spark, [(place, *values) for place, values in enumerate(partitions)], spark_columns)
        try:
            return [int(row[0]) for row in rows.where(where).select(_PLACE).collect()]
        except ParseException as error:
            raise _unrecognized(where, error) from error
        except AnalysisException as error:
            if not str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
                raise
            column = dict(error.getMessageParameters() or {}).get("objectName", "of the table")
            raise InvalidRequest(
                f"The condition {where[:200]} names column {column}, which does not partition table {self.table}. Only the partition "
                f"columns may be referenced: [{', '.join(columns.names)}]. Leave the column out of the condition.",
                code="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                table=self.table,
                column=column,
            ) from error


_PLACE = "_tahoe_place"


def _shown(spark: SparkSession, condition: str, table: str) -> str:
    """Return a condition as delta-spark logs an unresolved one.

    Raises: `Unsupported` (``DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES``) for a condition with a query.
    """
    if not is_classic(spark):
        _refuse_subquery(condition, table)
        return _shown_by_server(spark, condition)
    try:
        shown_condition = str(spark._jsparkSession.sessionState().sqlParser().parseExpression(in_brackets(condition)).toString())
    except ParseException as error:
        raise _unrecognized(condition, error) from error
    _refuse_subquery(condition, table)
    return shown_condition


def _refuse_subquery(condition: str, table: str) -> None:
    if has_subquery(condition):
        raise Unsupported(
            f"Subquery is not supported in partition predicates: {condition[:200]} (table {table}). Compute its value first.",
            code="DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
            table=table,
        )


def _unrecognized(condition: str, error: ParseException) -> InvalidRequest:
    return InvalidRequest(
        f"'{condition[:200]}' is not a condition on partition columns: {error}", code="DELTA_FAILED_RECOGNIZE_PREDICATE"
    )


def _shown_by_server(spark: SparkSession, condition: str) -> str:
    """The same in a session of Spark Connect, from the plan that EXPLAIN shows."""
    plan = rows_of_sql(spark, f"EXPLAIN EXTENDED SELECT 1 WHERE {condition}")[0][0]
    shown = _PARSED.search(str(plan))
    return condition if shown is None else shown[1]


_PARSED = re.compile(r"^\+- '?Filter (.*)$", re.MULTILINE)


def _request(spark: SparkSession, table: Table, conditions: Sequence[str], zorder_by: Sequence[str]) -> OptimizeRequest:
    def setting(name: str, parse: Callable[[str], Value], default: Value) -> Value:
        text = setting_of(spark, _PREFIX + name)
        try:
            return default if text is None else parse(str(text))
        except ValueError as error:
            raise InvalidRequest(
                f"The setting {_PREFIX}{name} = '{text}' is no value for it; unset it, or set it to a number.",
                code="DELTA_ILLEGAL_OPTION",
                option=_PREFIX + name,
            ) from error

    return OptimizeRequest(
        where=" AND ".join(f"({condition})" for condition in conditions) if conditions else None,
        shown_where=tuple(_shown(spark, condition, table.url) for condition in conditions),
        zorder_by=tuple(zorder_by),
        target_file_size=setting("maxFileSize", parse_size, None),
        min_file_size=setting("minFileSize", parse_size, None),
        max_deleted_rows_ratio=setting("maxDeletedRowsRatio", float, 0.05),
        batch_size=setting("batchSize", parse_size, None),
        threads=1,  # in each task
        min_cube_size=setting("clustering.mergeStrategy.minCubeSize.threshold", int, LEAST_BYTES),
        target_cube_size=setting("clustering.mergeStrategy.minCubeSize.targetCubeSize", int, TARGET_BYTES),
        need_statistics=setting("zorder.checkStatsCollection.enabled", lambda text: text.strip().lower() != "false", True),
        engine=_PartitionsBySpark(spark, table.url),
    )


# -- executors ---------------------------------------------------------------------------------------------------------------


def on_executors(spark: SparkSession, snapshot: Snapshot, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[RewrittenBin]:
    """Rewrite bins like `rewritten_here`, each in its own task; a large clustered bin and a bin of very many files are spread over many
    tasks. On HDFS, which Python on executors cannot open, the driver rewrites all bins.
    """
    config = config_of_files(snapshot.config, settings_named(spark, FILE_SETTINGS))
    version = BareVersion(snapshot.store, snapshot.version, config)
    if needs_jvm(snapshot.store.url):
        return rewritten_here(SYSTEM_CLOCK, version, bins, plan)
    by_many = {place for place, group in enumerate(bins) if _is_for_many(spark, group, plan, len(bins))}
    alone = [group for place, group in enumerate(bins) if place not in by_many]
    written = list[RewrittenBin]()
    try:
        answers = run_on(spark, rewritten_bin, alone, version, replace(plan, bins=()), tasks=len(alone))
        written += [replace(answer, bin=group) for answer, group in zip(_all(snapshot, answers), alone, strict=True)]
        for place in sorted(by_many):
            written.append(_by_many(spark, snapshot, version, bins[place], plan))
    except BaseException:
        _take_back(snapshot, written)
        raise
    return iter(sorted(written, key=lambda group: bins.index(group.bin)))


def _is_for_many(spark: SparkSession, group: Bin, plan: OptimizePlan, bins: int) -> bool:
    if not is_classic(spark):
        return False
    return is_worth_spreading(spark, group, plan) if plan.clusters else is_worth_joining(spark, group, bins)


def _by_many(spark: SparkSession, snapshot: Snapshot, version: BareVersion, group: Bin, plan: OptimizePlan) -> RewrittenBin:
    """Rewrite a bin in many tasks: clustered, or joined."""
    answers = clustered_by_tasks(spark, version, group, plan) if plan.clusters else joined_by_tasks(spark, version, group)
    parts = _all(snapshot, [RewrittenBin(group, (new,)) if isinstance(new, AddFile) else new for new in answers])
    files = tuple(add for part in parts for add in part.added)
    return (
        written_as_cube(group, files, plan, SYSTEM_CLOCK) if plan.clusters else RewrittenBin(group, files, has_known_places=True)
    )


def _all(snapshot: Snapshot, answers: Sequence[RewrittenBin | TahoeError]) -> list[RewrittenBin]:
    """Return the results of tasks; if one failed, delete the files of the others."""
    written = [answer for answer in answers if isinstance(answer, RewrittenBin)]
    failed = next((answer for answer in answers if isinstance(answer, TahoeError)), None)
    if failed is not None:
        _take_back(snapshot, written)
        raise failed
    return written


def _take_back(snapshot: Snapshot, written: Sequence[RewrittenBin]) -> None:
    for add in (add for rewritten in written for add in rewritten.added):
        with suppress(StorageFailure):
            snapshot.store.delete(decode_path(add.path, snapshot.store.url))


# -- auto compaction: the core's, with the session's settings, on its executors --------------------------------------------------

_AUTO = f"{_DELTA}autoCompact."
_SWITCHES = {"true": True, "auto": True, "legacy": True, "false": False}


def compact_after(spark: SparkSession, table: Table, committed: Committed) -> None:
    """The hook: compact files after a commit of the active session, or else of this one, if the session or the table enables it.

    A session of Spark Connect is its own active session.

    Raises: the errors of OPTIMIZE; `InvalidRequest` (`DELTA_INVALID_AUTO_COMPACT_TYPE`) for an invalid setting.
    """
    session = active_session(spark) if is_classic(spark) else spark
    enabled = setting_of(session, _AUTO + "enabled")
    if (enabled is None and not committed.snapshot.config.properties.auto_compacts) or table.url.startswith("memory:"):
        return
    settings, reserves = compaction_of(lambda name: setting_of(session, _AUTO + name))
    run = partial(table.compact_gently, partial(on_executors, session))
    compaction_after(committed, settings, COMPACTED_NOW if reserves else PartitionReservations(), run)


def compaction_of(setting: Callable[[str], str | None]) -> tuple[AutoCompaction, bool]:
    """Return a session's ``autoCompact.…`` settings, and whether only one thread at a time compacts a partition.

    Raises `InvalidRequest` for an invalid value.
    """

    def value(name: str, parse: Callable[[str], Value], default: Value) -> Value:
        text = setting(name)
        try:
            return default if text is None else parse(str(text).strip().lower())
        except (ValueError, KeyError) as error:
            raise InvalidRequest(
                f"The setting {_AUTO}{name} = '{text}' is no value for it; unset it.",
                code="DELTA_INVALID_AUTO_COMPACT_TYPE" if name == "enabled" else "DELTA_ILLEGAL_OPTION",
                option=_AUTO + name,
            ) from error

    skips_early = value("earlySkipPartitionTable.enabled", _is_true, True)
    defaults = AutoCompaction()
    settings = AutoCompaction(
        enabled=value("enabled", _SWITCHES.__getitem__, None),
        target=value("maxFileSize", parse_size, defaults.target),
        least=value("minFileSize", parse_size, None),
        min_files=value("minNumFiles", int, defaults.min_files) if skips_early else 0,
        modified_only=value("modifiedPartitionsOnly.enabled", _is_true, True),
        most_partitions=value("maxNumModifiedPartitions", int, defaults.most_partitions),
        not_after_appends=value("nonBlindAppend.enabled", _is_true, False),
    )
    return settings, value("reservePartitions.enabled", _is_true, True)


def _is_true(text: str) -> bool:
    return {"true": True, "false": False}[text]
