"""`Table`: the public API without Spark. Each method calls one function of the package."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.api.readable import Readable
from tahoe.base.argument_checks import checked_arguments
from tahoe.base.clock import SYSTEM_CLOCK, Clock, zone_of
from tahoe.base.events import observe_with
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, NotFound, TahoeError
from tahoe.base.html import Listing, html_pairs, html_part
from tahoe.base.lazy import late_modules
from tahoe.base.method_options import arguments_of
from tahoe.base.progress import Progress, shown, tracked
from tahoe.observe.lineage import Lineage
from tahoe.observe.log_records import LogRecords
from tahoe.observe.spans import Spans
from tahoe.ops import copying, maintenance, reporting
from tahoe.ops.tables import altering
from tahoe.snapshot.read_options import skipping_of
from tahoe.store.object_store import open_store
from tahoe.stream.tail_options import TailOptions

# The modules of the operations are imported at their first use: a process that only reads a table loads no writer.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tahoe.api import process
    from tahoe.coordinator import coordinated_store
    from tahoe.coordinator.coordinator import Coordinator
    from tahoe.expr import condition_forms
    from tahoe.expr.condition_forms import Condition
    from tahoe.expr.tree.python_values import SqlValues
    from tahoe.log import history as log_history
    from tahoe.log.files import commits
    from tahoe.ops.check import table_check
    from tahoe.ops.copies import symlink_manifests
    from tahoe.ops.layout import auto_compact, optimize
    from tahoe.ops.layout.optimize import Rewrite
    from tahoe.ops.layout.optimize_plan import OptimizeRequest
    from tahoe.ops.layout.optimize_report import Optimized
    from tahoe.ops.merge import clauses, merge
    from tahoe.ops.reports import table_report
    from tahoe.ops.reports.table_report import TableReport
    from tahoe.ops.rows import delete, insert, row_changes, update
    from tahoe.ops.rows.insert import ArrowData, WriteOptions
    from tahoe.ops.rows.row_changes import RowsChanged, Staged
    from tahoe.ops.tables import create, detail
    from tahoe.ops.upkeep import upgrade_uniform
    from tahoe.protocol import iceberg_compat, iceberg_upgrade
    from tahoe.schema import schema_forms
    from tahoe.schema.schema_forms import SchemaLike
    from tahoe.schema.types import StructType
    from tahoe.snapshot import changes
    from tahoe.snapshot import snapshot as snapshots
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.log_store import LogStore
    from tahoe.stream import tail_batch
    from tahoe.txn import hooks as txn_hooks
    from tahoe.txn import rearranged
    from tahoe.txn import transaction as transactions
    from tahoe.txn.commit import Committed, RetryPolicy
    from tahoe.txn.hooks import Hook
    from tahoe.txn.transaction import Operation, Transaction
    from tahoe.uniform import handle
    from tahoe.uniform.convert import conversion
    from tahoe.uniform.external import recent_versions
    from tahoe.uniform.handle import UniformHandle

    _Stage = Callable[[Transaction, Progress], Staged]
    _Compactor = Callable[["Table", Committed], None]
    _Metadata = Callable[[], str | None]
else:
    (process,) = late_modules("tahoe.api", "process")
    (coordinated_store,) = late_modules("tahoe.coordinator", "coordinated_store")
    (condition_forms,) = late_modules("tahoe.expr", "condition_forms")
    (log_history,) = late_modules("tahoe.log", "history")
    (commits,) = late_modules("tahoe.log.files", "commits")
    (symlink_manifests,) = late_modules("tahoe.ops.copies", "symlink_manifests")
    auto_compact, optimize = late_modules("tahoe.ops.layout", "auto_compact", "optimize")
    clauses, merge = late_modules("tahoe.ops.merge", "clauses", "merge")
    (table_report,) = late_modules("tahoe.ops.reports", "table_report")
    delete, insert, row_changes, update = late_modules("tahoe.ops.rows", "delete", "insert", "row_changes", "update")
    (table_check,) = late_modules("tahoe.ops.check", "table_check")
    create, detail = late_modules("tahoe.ops.tables", "create", "detail")
    (upgrade_uniform,) = late_modules("tahoe.ops.upkeep", "upgrade_uniform")
    (iceberg_compat,) = late_modules("tahoe.protocol", "iceberg_compat")
    (schema_forms,) = late_modules("tahoe.schema", "schema_forms")
    changes, snapshots = late_modules("tahoe.snapshot", "changes", "snapshot")
    (tail_batch,) = late_modules("tahoe.stream", "tail_batch")
    txn_hooks, rearranged, transactions = late_modules("tahoe.txn", "hooks", "rearranged", "transaction")
    (handle,) = late_modules("tahoe.uniform", "handle")
    (conversion,) = late_modules("tahoe.uniform.convert", "conversion")
    (recent_versions,) = late_modules("tahoe.uniform.external", "recent_versions")


logger = logging.getLogger(__name__)

# A module is loaded once, and all operations begin at a table.
observe_with(LogRecords(), Spans(), Lineage())  # each looks for itself whether it is switched on


@dataclass(slots=True)
class _Newest:
    """The newest snapshot of a table that any of the handles with this value has read."""

    snapshot: Snapshot | None = None


@checked_arguments
class Table(Readable):
    """A Delta table, read and written in this process, without Spark and without a JVM.

    Args:
        path: a folder, or a URL (``file:``, ``s3:``, ``gs:``, ``az:``, ``memory:``).
        storage_options: for the object store (``aws_access_key_id``, ``endpoint``, …); never shown.
        clock: time and random numbers; tests pass their own.
        hooks: functions to run after each commit made through this value. A hook that raises is logged; the commit succeeds.
        compactor: compacts the small files of a commit; None compacts in this process, for tables whose properties ask for it.
        time_zone: in which generated columns, constraints, defaults and conditions read the wall clock of a timestamp, and timestamps
            without a time zone are read. Give that of the table's other writers, such as ``spark.sql.session.timeZone``.
        coordinator: the `tahoe.SqlCoordinator` that decides which commits a catalog-managed table has; it has no effect on other tables.
            `add_feature("catalogManaged")` makes a table catalog-managed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        store: LogStore | None = None,
        policy: RetryPolicy | None = None,
        hooks: Sequence[Hook] = (),
        compactor: Callable[[Table, Committed], None] | None = None,
        time_zone: str = "UTC",
        coordinator: Coordinator | None = None,
    ) -> None:
        self.store: LogStore = store if store is not None else open_store(path, storage_options)
        if coordinator is not None:
            self.store = coordinated_store.CoordinatedStore(self.store, coordinator, clock)
        self.clock, self.policy = clock, policy
        zone_of(time_zone)
        self.time_zone = time_zone
        self._more_hooks = tuple(hooks)
        self._compactor = compactor
        self._usual_metadata: _Metadata | None = None
        self._newest, self._has_read = _Newest(), False
        self._shares_with: Table | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: SchemaLike,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        store: LogStore | None = None,
        time_zone: str = "UTC",
        coordinator: Coordinator | None = None,
    ) -> Table:
        """Create an empty table.

        Args:
            schema: of pyarrow, of Delta, or names and types: ``{"id": "long", "name": "string"}``.
            cluster_by: columns by which OPTIMIZE clusters the rows, at most four; see `tahoe.ops.tables.cluster_by.stage_clustering`.

        Raises `InvalidRequest`: the path has a table (`DELTA_TABLE_ALREADY_EXISTS`), or other files, which VACUUM would delete later
            (`DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        """
        table = cls(path, storage_options=storage_options, clock=clock, store=store, time_zone=time_zone, coordinator=coordinator)
        if table.exists():
            raise create.exists_already(table.url, "Append to it, or choose another place.")
        create.refuse_files(table.store, table.url, exists=False)
        transaction = transactions.Transaction(table.store, None, clock, table.time_zone)
        metadata = create.new_metadata(
            schema_forms.schema_of(schema),
            clock,
            partition_by=partition_by,
            properties=properties,
            name=name,
            description=description,
        )
        table.commit(transaction, create.stage_create(transaction, metadata, cluster_by))
        return table

    @property
    def url(self) -> str:
        """The table's root, without credentials and without a trailing slash."""
        return self.store.url

    _url_in_errors = url

    def __repr__(self) -> str:
        try:
            newest = self.snapshot()
        except Exception as error:  # noqa: BLE001
            # A repr never fails: it shows the error.
            return f"Table({self.url}, {type(error).__name__})"
        partitioned = f", partitioned by {', '.join(newest.partition_columns)}" if newest.partition_columns else ""
        return f"Table({self.url}, version {newest.version}, {len(newest.schema)} columns{partitioned})"

    def _repr_html_(self) -> str:
        try:
            return html_part(html_pairs(detail.shown_detail(self.snapshot()), title=self.url))
        except TahoeError as error:
            return html_part(f"<p>{escape(str(error))}</p>")

    def exists(self) -> bool:
        """Return whether the table exists."""
        try:
            self.snapshot()
        except NotFound:
            return False
        return True

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the newest version, or an older one by number or by time (the newest version at that time).

        Raises:
            NotFound: no table, or no such version or time; the message names the versions that exist.
            LostVersions: the log has lost a version that was read through this handle.
        """
        if version is not None and timestamp is not None:
            raise InvalidRequest(
                "Give a version or a timestamp, not both.", code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
            )
        if timestamp is not None:
            version = self.snapshot().times.version_at(log_history.parse_timestamp(timestamp, self.time_zone))
        if version is not None:
            return snapshots.Snapshot.at(self.store, version)
        newest = self._refreshed()
        self._has_read = True
        return newest

    def _refreshed(self) -> Snapshot:
        last_read = self._newest.snapshot
        try:
            newest = snapshots.Snapshot.at(self.store) if last_read is None else last_read.refreshed()
        except snapshots.LostVersions as lost:
            if self._has_read:
                raise
            newest = snapshots.Snapshot.at(self.store)
            logger.warning("%s This handle has not read the table before, and goes on with version %d.", lost, newest.version)
            self._newest = _Newest()
            if self._shares_with is not None:
                self._shares_with._newest = self._newest
        self._newest.snapshot = newest
        return newest

    def bytes_in_memory(self) -> int:
        """Return the size in bytes of the live file list that the newest snapshot read by this value keeps in memory."""
        newest = self._newest.snapshot
        return 0 if newest is None or not newest.has_files_in_memory else int(newest.files().nbytes)

    def version(self) -> int:
        """The newest version."""
        return self.snapshot().version

    def schema(self) -> StructType:
        """The newest version's schema, in Delta's types."""
        return self.snapshot().schema

    def files(
        self,
        filter: Condition | None = None,
        *,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
    ) -> pa.Table:
        """Return the live files that may contain rows for which `filter` is true, one row a file (`tahoe.log.replay.FILES_SCHEMA`)."""
        snapshot = self.snapshot(version, timestamp)
        return snapshot.files_matching(skipping_of(filter, snapshot, self._moment()))

    def history(self, limit: int | None = None) -> Listing[dict[str, Any]]:
        """Return the commits in the log, newest first; see `tahoe.log.history.history`."""
        if limit is not None and limit < 0:
            raise InvalidRequest(f"limit must be 0 or more, found {limit}.", code="DELTA_ILLEGAL_OPTION", option="limit")
        newest = self.snapshot()
        with shown(self.clock) as progress:
            commits = log_history.history(self.store, newest.config, newest.version, limit)
            return Listing(tracked(commits, progress, "commits read"))

    def detail(self) -> dict[str, Any]:
        """Return the values of DESCRIBE DETAIL; see `tahoe.ops.tables.detail.detail`."""
        return detail.detail(self.snapshot())

    def append(
        self,
        data: ArrowData,
        *,
        max_rows_per_file: int | None = None,
        merge_schema: bool = False,
        app: tuple[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> int:
        """Append rows and return the new version; create the table if it does not exist.

        Args:
            data: a `pyarrow.Table`, record batch or reader; its columns are matched by name.
            max_rows_per_file: begin another file after this many rows.
            merge_schema: add columns that only the data has.
            app: (application id, version): the write is skipped if the table has this or a later version of the application.
        """
        options = insert.WriteOptions("append", merge_schema=merge_schema, max_rows_per_file=max_rows_per_file, app=app)
        return self.write(data, options, user_metadata=user_metadata)

    def overwrite(
        self,
        data: ArrowData,
        *,
        replace_where: Condition | None = None,
        overwrite_schema: bool = False,
        partition_by: Sequence[str] | None = None,
        dynamic_partitions: bool = False,
        max_rows_per_file: int | None = None,
        merge_schema: bool = False,
        app: tuple[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> int:
        """Replace all rows, the rows of a predicate, or the partitions in the data; return the new version.

        Args: as Spark's writer options of the same names; see `tahoe.ops.rows.insert.WriteOptions`.
        """
        if replace_where is not None and not isinstance(replace_where, str):
            replace_where = str(condition_forms.predicate_of(replace_where, self.schema(), self.time_zone))
        options = insert.WriteOptions(
            "overwrite",
            partition_by=None if partition_by is None else tuple(partition_by),
            merge_schema=merge_schema,
            overwrite_schema=overwrite_schema,
            replace_where=replace_where,
            dynamic_partitions=dynamic_partitions,
            max_rows_per_file=max_rows_per_file,
            app=app,
        )
        return self.write(data, options, user_metadata=user_metadata)

    def write(self, data: ArrowData, options: WriteOptions, *, user_metadata: str | None = None) -> int:
        """Write rows with `options`; return the new version, or the newest if there are no rows or they were written before."""
        transaction = self.begin()
        if insert.already_written(transaction, options.app):
            return self.version()
        with shown(self.clock) as progress:
            operation = insert.stage_write(transaction, data, options, progress)
        if insert.changes_nothing(transaction):
            return self.version()
        try:
            return self.commit(transaction, operation, user_metadata=user_metadata).version
        except DeltaConcurrentModificationException:
            # The same idempotent write was sent twice concurrently: the other commit has already written these rows.
            if options.app is not None and insert.already_written(self.begin(), options.app):
                return self.version()
            # Two writers may both try to create the table; the one that fails appends to the other's table.
            if transaction.snapshot is None and options.mode == "append" and isinstance(data, (pa.Table, pa.RecordBatch)):
                return self.write(data, options, user_metadata=user_metadata)
            raise

    def delete(self, where: Condition | None = None, *, user_metadata: str | None = None) -> RowsChanged:
        """Delete the rows for which `where` is true, all rows without it; see `tahoe.ops.rows.delete`."""
        return self._changed_rows("delete", lambda *at: delete.stage_delete(at[0], where, progress=at[1]), user_metadata)

    def update(self, values: SqlValues, where: Condition | None = None, *, user_metadata: str | None = None) -> RowsChanged:
        """Update columns in the rows for which `where` is true, in all rows without it; see `tahoe.ops.rows.update`.

        Args:
            values: column, or nested field as ``a.b`` → SQL expression over the old row, or a number, a truth value, a date, bytes
                or None: ``{"price": "price * 1.1", "left": 0}``. A text is always SQL: the constant is ``"'text'"``.
            where: SQL text, a list of comparisons (``[("id", ">", 1)]``), or a pyarrow expression.
        """
        return self._changed_rows("update", lambda *at: update.stage_update(at[0], values, where, progress=at[1]), user_metadata)

    def merge(
        self,
        source: ArrowData,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        user_metadata: str | None = None,
    ) -> clauses.MergeBuilder:
        """Merge the rows of `source` into the table with the clauses that are added to the result; `execute` runs the merge.

        ``table.merge(rows, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()``

        Args:
            source: Arrow data; read once.
            on: SQL text; a row of the source matches a row of the table if it is true.
        """
        can_run_again = not isinstance(source, pa.RecordBatchReader)

        def run(statement: clauses.MergeStatement) -> RowsChanged:
            return self._changed_rows(
                "merge", lambda *at: merge.stage_merge(at[0], statement, at[1]), user_metadata, can_run_again
            )

        statement = clauses.MergeStatement(source, on, source_alias=source_alias, target_alias=target_alias)
        return clauses.MergeBuilder(statement, run, lambda statement: merge.explain_merge(self.begin(), statement), self.url)

    def changes(
        self,
        start_version: int | None = None,
        end_version: int | None = None,
        *,
        start_timestamp: str | date | datetime | None = None,
        end_timestamp: str | date | datetime | None = None,
    ) -> pa.Table:
        """Return the change data feed from one commit to another, both included: the inserted, updated and deleted rows.

        Args:
            start_version: the first version, or `start_timestamp` instead.
            start_timestamp: the first commit at that time or after it.
            end_version: the last version, or `end_timestamp` instead; by default the newest version.
            end_timestamp: the last commit at that time or before it.

        Returns:
            The table's columns, ``_change_type`` (insert, update_preimage, update_postimage or delete), ``_commit_version`` and
            ``_commit_timestamp``.

        Raises: see `tahoe.snapshot.changes.feed`.
        """
        times = (start_timestamp, end_timestamp)
        first, last = (None if time is None else log_history.parse_timestamp(time, self.time_zone) for time in times)
        return changes.feed(self.store, self.snapshot(), changes.Bounds(start_version, end_version, first, last)).to_arrow()

    @arguments_of(TailOptions)
    def tail(self, options: TailOptions) -> Iterator[tail_batch.TailBatch]:
        """Yield the table's rows as a stream of batches: the current rows first, then appended ones, each row once.

        ``for batch in table.tail(position=stored): process(batch.to_arrow()); stored = str(batch.position)``

        All rows have the table's current schema. Raises: see `tahoe.stream.source.Source.plan`, when the batches are read.
        """
        return tail_batch.tail_of(self.snapshot, options, self.clock, self.time_zone)

    def report(self) -> TableReport:
        """Return a report: health, growth, storage, layout, commits, Iceberg, and recommended actions. A notebook shows it as a page."""
        with shown(self.clock) as progress:
            return table_report.report_of(self.snapshot(), self.uniform.status().facts, self.clock, progress)

    def check(
        self, *, deep: bool = False, strict: bool = False, progress: Progress | None = None
    ) -> Listing[table_check.Violation]:
        """Return the violations found in the table and in its Iceberg metadata; see `tahoe.ops.check.table_check`.

        Args:
            deep: read every row.
            strict: check the whole log against every rule of the specification (`tahoe.ops.check.strict_check`).
        """
        with shown(self.clock) as bar:
            violations = table_check.check_table(self.store, deep=deep, strict=strict, progress=progress or bar)
            return Listing(violations + table_check.iceberg_violations(self.snapshot, lambda: self.uniform.foreign_changes()))

    # Definition, copies and maintenance: functions of `tahoe.ops`.

    add_columns = altering.add_columns
    add_constraint = altering.add_constraint
    add_feature = altering.add_feature
    change_column = altering.change_column
    cluster_by = altering.cluster_by
    drop_columns = altering.drop_columns
    drop_constraint = altering.drop_constraint
    rename_column = altering.rename_column
    replace_columns = altering.replace_columns
    sync_identity = altering.sync_identity
    upgrade_protocol = altering.upgrade_protocol
    allow_shallow_clone = copying.allow_shallow_clone
    clone = copying.clone
    convert_to_delta = copying.convert_to_delta
    generate = copying.generate
    column_statistics = reporting.column_statistics
    diff = reporting.diff
    storage_use = reporting.storage_use
    checkpoint = maintenance.checkpoint
    compat = maintenance.compat
    compute_statistics = maintenance.compute_statistics
    drop_feature = maintenance.drop_feature
    fsck = maintenance.fsck
    layout = maintenance.layout
    optimize = maintenance.optimize
    purge = maintenance.purge
    repair_log = maintenance.repair_log
    restore = maintenance.restore
    set_properties = maintenance.set_properties
    unset_properties = maintenance.unset_properties
    vacuum = maintenance.vacuum

    @cached_property
    def uniform(self) -> UniformHandle:
        """The table's Iceberg side: `sync()`, `wait(version, timeout)`, `status()`, `upgrade(compat_version)`."""
        return handle.UniformHandle(self._delta_side(), process.UNIFORM_RUNTIME, self.append, self._upgrade_uniform)

    def pinned_versions(self, snapshot: Snapshot, now_ms: int) -> Sequence[int]:
        """Return older versions that Iceberg readers of a UniForm table may still use; see `tahoe.uniform.external.recent_versions`."""
        if not iceberg_compat.uniform_is_enabled(snapshot.config.properties):
            return ()
        return recent_versions.recent_versions(self.store, now_ms)

    def begin(self) -> Transaction:
        """Begin a transaction on the newest version, or without one if the table does not exist."""
        try:
            snapshot: Snapshot | None = self.snapshot()
        except NotFound as error:
            if error.code != "DELTA_TABLE_NOT_FOUND":
                raise
            snapshot = None
        return transactions.Transaction(self.store, snapshot, self.clock, self.time_zone)

    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Prepare and commit a transaction, then run the hooks."""
        metadata = user_metadata if user_metadata is not None or self._usual_metadata is None else self._usual_metadata()
        return txn_hooks.commit_transaction(transaction, operation, self.policy, self._hooks, user_metadata=metadata)

    def after_commit(self, committed: Committed) -> None:
        """Run the hooks after a commit to this table that a transaction over several tables has made."""
        txn_hooks.run_hooks(self._hooks, committed)

    def commit_rows(self, transaction: Transaction, staged: Staged, *, user_metadata: str | None = None) -> RowsChanged:
        """Commit the staged changes of a DELETE, UPDATE or MERGE; without changed rows, nothing is committed."""
        version, metrics = None, {}
        if staged.operation is not None:
            metrics = dict(staged.operation.metrics)
            version = self.commit(transaction, staged.operation, user_metadata=user_metadata).version
        return row_changes.RowsChanged(
            version, staged.num_updated_rows, staged.num_deleted_rows, staged.num_inserted_rows, metrics
        )

    def _changed_rows(self, command: str, stage: _Stage, user_metadata: str | None, can_run_again: bool = True) -> RowsChanged:
        def run() -> RowsChanged:
            with shown(self.clock) as progress:
                staged = stage(transaction := self.begin(), progress)
            return self.commit_rows(transaction, staged, user_metadata=user_metadata)

        again = partial(rearranged.retry_if_rearranged, run, can_run_again=can_run_again)
        return row_changes.observed_rows(command, self.url, again)

    @cached_property
    def _hooks(self) -> list[Hook]:
        def remember(committed: Committed) -> None:
            self._newest.snapshot, self._has_read = committed.snapshot, True

        def convert_to_iceberg(committed: Committed) -> None:
            # Loading the Iceberg conversion costs time, so only tables with UniForm load it.
            if iceberg_compat.uniform_is_enabled(committed.snapshot.config.properties):
                handle.after_commit(self._delta_side(), process.UNIFORM_RUNTIME)(committed)

        def write_manifests(committed: Committed) -> None:
            if committed.snapshot.config.properties.get("delta.compatibility.symlinkFormatManifest.enabled"):
                symlink_manifests.generate_after_commit(committed.snapshot.refreshed(), committed.actions)

        # Compaction is a commit of its own, with hooks of its own: it comes last.
        hooks = (write_manifests, convert_to_iceberg, *self._more_hooks, self._compact)
        return [remember, *txn_hooks.default_hooks(self.clock), *hooks]

    def _compact(self, committed: Committed) -> None:
        if self._compactor is not None:
            self._compactor(self, committed)
        elif committed.snapshot.config.properties.auto_compacts:
            run = partial(self.compact_gently, partial(optimize.rewritten_here, self.clock))
            auto_compact.compaction_after(committed, auto_compact.AutoCompaction(), process.COMPACTED_NOW, run)

    def compact_gently(self, rewrite: Rewrite, request: OptimizeRequest) -> Optimized:
        """Optimize after a write, without asking other writers to wait; see `tahoe.ops.layout.optimize.optimize`."""
        commit = partial(txn_hooks.commit_transaction, policy=auto_compact.GENTLE, hooks=self._hooks)
        return optimize.optimize(self.begin, commit, request, rewrite)

    def _delta_side(self) -> conversion.DeltaSide:
        return conversion.DeltaSide(self.store, self.snapshot, partial(commits.read_commit, self.store), self.clock)

    def _upgrade_uniform(self, compat_version: int, dry_run: bool) -> iceberg_upgrade.Upgrade:
        with shown(self.clock) as progress:
            return upgrade_uniform.upgrade_uniform(self.begin, self.commit, compat_version, dry_run=dry_run, progress=progress)


def another_handle(table: Table, compactor: _Compactor | None = None, usual_metadata: _Metadata | None = None) -> Table:
    """Return a new handle that shares the newest snapshot, with another compactor and user metadata for commits without their own.

    The new handle has read nothing itself. If the log has lost versions that were read before, because the folder was restored from a
    copy, the new handle logs a warning and reads the present log; handles that have read those versions continue to raise `LostVersions`.
    """
    other = Table(table.url, store=table.store, clock=table.clock, policy=table.policy, hooks=table._more_hooks)
    other.time_zone, other._compactor, other._usual_metadata = table.time_zone, compactor or table._compactor, usual_metadata
    other._newest, other._shares_with = table._newest, table
    return other
