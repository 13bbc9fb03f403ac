"""REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)): convert an existing table to one that is readable as Iceberg.

    1  properties: IcebergCompat, column mapping; no deletion vectors if Iceberg does not allow them       REORG TABLE UPGRADE UNIFORM
    2  files that Iceberg's readers would misread are rewritten; the other files are tagged                REORG
    3  delta.universalFormat.enabledFormats = iceberg, which starts the conversion                         SET TBLPROPERTIES

Each step is a commit of its own, as in the reference: after the first, other writers write compatible files, which need no rewrite, and the
second does not block them. A run that was interrupted is continued by the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.log.replay import add_files
from tahoe.ops.tables.create import with_properties
from tahoe.ops.write.file_layout import expected_schema, iceberg_faults
from tahoe.ops.write.rewrite import footers, reorg_operation, stage_rewrite
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.iceberg_compat import check_iceberg_compat, deletes_form, uniform_is_enabled
from tahoe.protocol.iceberg_upgrade import Upgrade
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

_ENABLED_FORMATS = "delta.universalFormat.enabledFormats"
_VECTORS = "delta.enableDeletionVectors"
_MAPPING = "delta.columnMapping.mode"
_TAG = "ICEBERG_COMPAT_VERSION"
# Other writers may change the same files concurrently.
_ATTEMPTS = 5


Begin = Callable[[], Transaction]
Commit = Callable[[Transaction, Operation], Committed]


def upgrade_uniform(
    begin: Begin, commit: Commit, compat_version: int, *, dry_run: bool = False, progress: Progress = silent
) -> Upgrade:
    """Convert a table to one that is readable as Iceberg; commits nothing if it already is.

    Args:
        begin, commit: `Table.begin` and `Table.commit`.
        compat_version: of IcebergCompat: 1, 2, or 3 (Iceberg's format 3, with deletion vectors and row lineage).
        dry_run: report the effect and commit nothing.
        progress: receives the progress over footers and rewritten files.

    Raises:
        NotFound: there is no table.
        InvalidRequest: the table uses a feature that Iceberg does not support (``DELTA_ICEBERG_COMPAT_VIOLATION.…``).
        DeltaConcurrentModificationException: other writers changed the files on every attempt.
    """
    snapshot = begin().existing()
    if compat_version not in (1, 2, 3):
        raise InvalidRequest(
            f"There is no IcebergCompatV{compat_version}, which was requested for table {snapshot.store.url}. Use 1, 2 or 3.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
            table=snapshot.store.url,
        )
    steps = _steps(snapshot.config, compat_version)
    if dry_run:
        return _planned(begin(), snapshot, compat_version, steps, progress)
    properties: dict[str, str] = {}
    for operation, step in steps:
        _set(begin, commit, operation, step)
        properties |= step
    rewritten, noted = _upgrade_files(begin, commit, compat_version, progress)
    newest = begin().existing()
    version = newest.version
    if not uniform_is_enabled(newest.config.properties):
        version = _set(begin, commit, "SET TBLPROPERTIES", {_ENABLED_FORMATS: "iceberg"})
        properties[_ENABLED_FORMATS] = "iceberg"
    return Upgrade(compat_version, version, properties, rewritten, noted)


# -- properties --------------------------------------------------------------------------------------------------------------

_Steps = list[tuple[str, dict[str, str]]]


def _steps(config: TableConfig, compat_version: int) -> _Steps:
    """Return the properties to set before files are rewritten, one entry per commit."""
    steps: _Steps = []
    key = f"delta.enableIcebergCompatV{compat_version}"
    changed = {} if config.properties.get(key) else {key: "true"}
    for other in {1, 2, 3} - {compat_version}:
        if config.properties.get(f"delta.enableIcebergCompatV{other}"):
            changed[f"delta.enableIcebergCompatV{other}"] = "false"
    if config.properties.column_mapping_mode == "none":
        changed[_MAPPING] = "name"
    removes_vectors = compat_version != 3 and deletes_form(config.properties) != "position"
    if removes_vectors and config.properties.enable_deletion_vectors:
        # A commit of its own: otherwise a writer that began before it could add vectors to a table that must not have any.
        steps.append(("SET TBLPROPERTIES", {_VECTORS: "false"}))
    if changed:
        steps.append(("REORG TABLE UPGRADE UNIFORM", changed))
    return steps


def _set(begin: Begin, commit: Commit, operation: str, properties: Mapping[str, str]) -> int:
    transaction = begin()
    snapshot = transaction.existing()
    transaction.read_whole_table()
    transaction.set_metadata(with_properties(snapshot.config, properties, transaction.clock))
    return commit(transaction, Operation(operation, {"properties": json.dumps(properties, separators=(",", ":"))})).version


def _planned(transaction: Transaction, snapshot: Snapshot, compat_version: int, steps: _Steps, progress: Progress) -> Upgrade:
    properties: dict[str, str] = {}
    config = snapshot.config
    for _, step in steps:
        properties |= step
        transaction.set_metadata(with_properties(config, step, transaction.clock))
        before, config = config, future_config(transaction)
        check_iceberg_compat(config, before, ())
    if not uniform_is_enabled(config.properties):
        properties[_ENABLED_FORMATS] = "iceberg"
    plans = list(_plans(snapshot, config, compat_version, progress))
    return Upgrade(compat_version, snapshot.version, properties, *_reasons(plans))


# -- files -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """The change that one file needs: a rewrite because of `faults`, or only the log entry `noted` because of `notes`."""

    add: AddFile
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    noted: AddFile | None = None


_Reasons = dict[str, tuple[str, ...]]


def _upgrade_files(begin: Begin, commit: Commit, compat_version: int, progress: Progress) -> tuple[_Reasons, _Reasons]:
    """Rewrite and tag files until none needs it; return path → reasons of the rewritten files, and of the tagged ones."""
    rewritten: _Reasons = {}
    noted: _Reasons = {}
    for attempt in range(_ATTEMPTS):
        transaction = begin()
        snapshot = transaction.existing()
        plans = list(_plans(snapshot, snapshot.config, compat_version, progress))
        if not plans:
            return rewritten, noted
        operation = stage_rewrite(transaction, snapshot, [plan.add for plan in plans if plan.faults], progress)
        tagged_adds = [plan.noted for plan in plans if plan.noted is not None]
        transaction.read_files(add.key for add in tagged_adds)
        transaction.stage(*tagged_adds)
        if not any(plan.faults for plan in plans):
            operation = reorg_operation([], [])
        try:
            commit(transaction, operation)
        except DeltaConcurrentModificationException:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        rewrite_reasons, note_reasons = _reasons(plans)
        rewritten |= rewrite_reasons
        noted |= note_reasons
    left = [plan.add.path for plan in plans]
    raise InvalidRequest(
        f"Another writer repeatedly added files to table {snapshot.store.url} that IcebergCompatV{compat_version} does not allow, such as "
        f"{left[0]}. It does not support the table property. Stop it, and run the upgrade again.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.FILES_NOT_ICEBERG_COMPAT",
        table=snapshot.store.url,
        file=left[0],
    )


def _reasons(plans: list[_Plan]) -> tuple[_Reasons, _Reasons]:
    """Return path → reasons of the rewritten files, and of those with only a new log entry."""
    return (
        {plan.add.path: plan.faults for plan in plans if plan.faults},
        {plan.add.path: plan.notes for plan in plans if not plan.faults},
    )


def _plans(snapshot: Snapshot, config: TableConfig, compat_version: int, progress: Progress) -> Iterator[_Plan]:
    """Yield the plans of the files that need a change.

    Args:
        config: the table's configuration at the time of the rewrite.
    """
    removes_vectors = deletes_form(config.properties) == "none"
    unsure: list[AddFile] = []
    for add in add_files(snapshot.files()):
        if removes_vectors and add.deletion_vector is not None:
            yield _Plan(add, ("deletion vector",))
        elif compat_version == 1 or not _has_layout(add) or add.num_records is None:  # files of version 1 have no tag
            unsure.append(add)
        elif _tag(add) != str(compat_version):
            yield _Plan(add, (), ("tag",), _noted(tagged(config, add)))
    expected, partition = expected_schema(config), [column.physical_name for column in config.partition_schema]
    read = tracked(footers(snapshot, unsure), progress, "footers read", len(unsure))
    for add, footer in zip(unsure, read, strict=True):
        faults = iceberg_faults(footer, expected, partition)
        if faults:
            yield _Plan(add, faults)
            continue
        notes = ("tag",) if compat_version > 1 and _tag(add) != str(compat_version) else ()
        counted = add
        if add.num_records is None:
            notes, counted = (*notes, "statistics"), _with_statistics(config, add, footer)
        if notes:
            yield _Plan(add, (), notes, _noted(tagged(config, counted)))


def _noted(add: AddFile) -> AddFile:
    return replace(add, data_change=False)


def _tag(add: AddFile) -> str | None:
    return (add.tags or {}).get(_TAG)


def _has_layout(add: AddFile) -> bool:
    """Whether the file's tags state the layout that IcebergCompatV2 and V3 require of files; both require the same."""
    return _tag(add) in ("2", "3")


def _with_statistics(config: TableConfig, add: AddFile, footer: pq.FileMetaData) -> AddFile:
    configuration = config.metadata.configuration
    indexed = indexed_columns(config.schema, config.partition_columns, configuration)
    statistics = statistics_of_footer(
        footer,
        config.schema,
        indexed,
        column_mapping_mode=config.column_mapping_mode,
        prefix_length=string_prefix_length(configuration),
    )
    return with_statistics(add, statistics if add.deletion_vector is None else statistics.widened(), indexed)
