"""RESTORE: make the newest version equal to an older one. One commit adds the removed files back and removes the files added since.

    the older version's files, less the newest's ─► do they exist? ─► add       schema, properties ─► metaData
    the newest's files, less the older version's ─► remove                      the protocol stays, or rises

Only the commit is written, without change data, because the added and removed files already describe the change. The commit is never
rebased: a concurrent commit makes it fail, as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.html import ShownAsText
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.base.wording import counted
from tahoe.log.files.live_files import canonical_path, file_keys, without_rows
from tahoe.log.files.removed_files import added, adds_of
from tahoe.log.history import parse_timestamp
from tahoe.ops.rows.row_changes import snapshot_to_change
from tahoe.ops.tables.cluster_by import restored_clustering
from tahoe.ops.tables.create import with_kept_marks
from tahoe.ops.tables.requests import RestoreOptions
from tahoe.protocol.actions import AddFile, Metadata
from tahoe.protocol.dv import file_name
from tahoe.protocol.protocols import features_of, upgraded
from tahoe.protocol.row_tracking import assigns_row_ids, has_row_tracking, high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction
from tahoe.txn.vanished import entries_of

_MOST_NAMED = 100
_TIMESTAMP_PROPERTIES = (
    # If in-commit timestamps were disabled, the timestamps of versions would change.
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
_COLUMN_ID = "delta.columnMapping.maxColumnId"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest(RestoreOptions):
    """The options of a RESTORE, with those that a session sets.

    Args:
        shown_timestamp: the timestamp as the history shows it; None for the text itself.
        accepts_newest: whether restoring the newest version does nothing, as in SQL, instead of raising an error.
    """

    shown_timestamp: str | None = None
    accepts_newest: bool = False


@dataclass(frozen=True, slots=True)
class Restored(ShownAsText):
    """The result of a RESTORE or of its dry run. `print` shows it.

    Args:
        table: its URL.
        target: the restored version.
        version: the commit; None for a dry run, and if nothing was to be done.
        metrics: by the reference's names, as the SQL statement returns them; none if nothing was to be done.
        missing: for a dry run, the missing files that the version needs.
    """

    table: str
    target: int
    version: int | None
    metrics: dict[str, int]
    missing: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        metrics = self.metrics
        if not metrics:
            return f"Version {self.target} of {self.table} is the newest one: nothing was restored."
        restored = f"{counted(metrics['num_restored_files'], 'file')} of {metrics['restored_files_size']:,} bytes"
        removed = f"{counted(metrics['num_removed_files'], 'file')} of {metrics['removed_files_size']:,} bytes"
        if self.version is not None:
            return f"Version {self.version} of {self.table} is equal to version {self.target}: {restored} were restored, {removed} removed."
        text = f"RESTORE of {self.table} to version {self.target} would restore {restored} and remove {removed}."
        if self.missing:
            text += f" It would fail: {counted(len(self.missing), 'file')} are missing, such as {', '.join(self.missing[:3])}."
        return text


def restore(
    transaction: Transaction,
    commit: Callable[[Transaction, Operation], Committed],
    request: RestoreRequest,
    progress: Progress = silent,
) -> Restored:
    """Restore an older version.

    Args:
        transaction: on the newest version.
        commit: commits it.
        progress: receives the progress over the files whose existence is checked.

    Raises:
        NotFound: there is no table; ``DELTA_CANNOT_RESTORE_TABLE_VERSION``, ``DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER`` and ``…_GREATER``: the
            log has no such version. ``TAHOE_MISSING_FILES``: files of it are missing; the message names the first ones.
        InvalidRequest: the version is the newest one, unless the request accepts it; the table is append-only and files would be removed.
        ConcurrentWriteException: another writer committed concurrently.
    """
    newest = snapshot_to_change(transaction)
    version = _version(newest, request, transaction.time_zone)
    if version == newest.version:
        return Restored(newest.store.url, version, None, {})
    target = Snapshot.at(newest.store, version)
    url, new, old = newest.store.url, newest.files(), target.files_with_texts()
    adds, removes = _files_only_in(old, new, url), _files_only_in(new, old, url)
    missing = [] if request.ignore_missing_files else _missing(newest, adds, progress)
    metrics = _metrics(old, adds, removes)
    if request.dry_run:
        return Restored(newest.store.url, target.version, None, metrics, tuple(missing))
    if missing:
        raise _missing_files(newest, target.version, missing)
    transaction.looks_for = "none" if request.ignore_missing_files else "all"
    _stage(transaction, newest, target, adds, removes)
    committed = commit(transaction, _operation(request, metrics, transaction.time_zone))
    return Restored(newest.store.url, target.version, committed.version, metrics)


def _version(newest: Snapshot, request: RestoreRequest, time_zone: str) -> int:
    store = newest.store
    version = request.version
    if request.timestamp is not None:
        try:
            version = newest.times.version_at(parse_timestamp(request.timestamp, time_zone))
        except NotFound as error:
            which = "EARLIER" if "EARLIER" in error.code else "GREATER"
            raise NotFound(
                f"Cannot restore the table to {request.timestamp}. {error.message}",
                code=f"DELTA_CANNOT_RESTORE_TIMESTAMP_{which}",
                table=store.url,
            ) from error
    assert version is not None
    if version == newest.version:
        if request.accepts_newest:
            return version
        raise InvalidRequest(
            f"Version to restore ({version}) should be less than the last available version ({newest.version}) of table {store.url}: it is "
            "the newest one, and there is nothing to restore.",
            code="DELTA_CANNOT_RESTORE_TABLE_VERSION",
            table=store.url,
            version=version,
        )
    if not 0 <= version < newest.version:
        raise _no_version(newest, version, None)
    try:
        Snapshot.at(store, version)
    except NotFound as error:
        raise _no_version(newest, version, error) from error
    return version


def _no_version(newest: Snapshot, version: int, error: NotFound | None) -> NotFound:
    reason = f"Available versions: up to {newest.version}." if error is None else error.message
    return NotFound(
        f"Cannot restore table {newest.store.url} to version {version}. {reason}",
        code="DELTA_CANNOT_RESTORE_TABLE_VERSION",
        table=newest.store.url,
        version=version,
    )


def _files_only_in(files: pa.Table, others: pa.Table, url: str) -> Sequence[AddFile]:
    """Return the logical files of the first version that the second lacks."""
    other_keys = pa.chunked_array(_keys(others, url), pa.string())
    are_there = [pc.is_in(keys, value_set=other_keys) for keys in _keys(files, url)]
    return adds_of(without_rows(files, pa.chunked_array(are_there, pa.bool_())))


def _keys(files: pa.Table, url: str) -> Iterator[pa.Array]:
    return (file_keys(batch, url) for batch in files.select(["path", "deletionVector"]).to_batches())


def _missing(newest: Snapshot, adds: Sequence[AddFile], progress: Progress) -> list[str]:
    """Return the files and deletion vectors that do not exist in storage."""
    store = newest.store
    stored = (file_name(add.deletion_vector, store.url) for add in adds if add.deletion_vector is not None)
    vectors = dict.fromkeys(name for name in stored if name is not None)
    names = chain((canonical_path(add.path, store.url) for add in adds), vectors)
    missing = []
    for done, (name, entry) in enumerate(entries_of(store, names), start=1):
        missing += [name] if entry is None else []
        progress("files checked", done, len(adds) + len(vectors))
    return missing


def _missing_files(newest: Snapshot, version: int, missing: Sequence[str]) -> NotFound:
    more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
    return NotFound(
        f"Table {newest.store.url} cannot be restored to version {version}: {counted(len(missing), 'file')} of that version are missing, "
        f"deleted by VACUUM or manually: {', '.join(missing[:_MOST_NAMED])}{more}. Restore a newer version, or restore this one without "
        "these files: ignore_missing_files=True, or spark.sql.files.ignoreMissingFiles = true.",
        code="TAHOE_MISSING_FILES",
        table=newest.store.url,
        version=version,
        files=list(missing[:_MOST_NAMED]),
    )


def _stage(
    transaction: Transaction, newest: Snapshot, target: Snapshot, adds: Sequence[AddFile], removes: Sequence[AddFile]
) -> None:
    transaction.read_whole_table()
    transaction.may_be_moved = False
    transaction.set_metadata(_metadata(newest.metadata, target.metadata))
    # Never lower the protocol: readers of this version must still be able to read older versions.
    transaction.set_protocol(upgraded(newest.protocol, features_of(target.protocol)))
    transaction.stage_files(removes, added(adds, partial(_restored, _row_ids_given_since(newest, target))))
    transaction.stage(*restored_clustering(newest, target))
    mark = high_water_mark(target.state.domains)
    if mark is not None:  # the newest version may have lost it with the feature, and the restored rows have these ids
        transaction.row_id_mark = mark


def _restored(row_ids: Mapping[str, tuple[int, int]], add: AddFile) -> AddFile:
    base_row_id, commit_version = row_ids.get(add.path, (add.base_row_id, add.default_row_commit_version))
    return replace(add, data_change=True, base_row_id=base_row_id, default_row_commit_version=commit_version)


def _row_ids_given_since(newest: Snapshot, target: Snapshot) -> dict[str, tuple[int, int]]:
    """Return the base row id and the commit version that removed files got after the target version, by path.

    A file keeps its row ids when it is added again (PROTOCOL.md, "Writer Requirements for Row Tracking").
    """
    if not assigns_row_ids(newest.config) or has_row_tracking(target.config):
        return {}
    tombstones = newest.tombstones().select(["path", "baseRowId", "defaultRowCommitVersion"])
    rows = tombstones.filter(pc.and_(tombstones["baseRowId"].is_valid(), tombstones["defaultRowCommitVersion"].is_valid()))
    return {path: (base_row_id, version) for path, base_row_id, version in zip(*rows.to_pydict().values(), strict=True)}


def _metadata(newest: Metadata, target: Metadata) -> Metadata:
    """The target's metadata without regressions: no column id is assigned twice, and timestamps of versions stay unchanged."""
    configuration = {key: value for key, value in target.configuration.items() if key not in _TIMESTAMP_PROPERTIES}
    if newest.configuration.get(_TIMESTAMP_PROPERTIES[0], "").lower() == "true":
        configuration |= {key: newest.configuration[key] for key in _TIMESTAMP_PROPERTIES if key in newest.configuration}
    elif _TIMESTAMP_PROPERTIES[0] in target.configuration:
        configuration[_TIMESTAMP_PROPERTIES[0]] = target.configuration[_TIMESTAMP_PROPERTIES[0]]
    ids = [int(metadata.configuration[_COLUMN_ID]) for metadata in (newest, target) if _COLUMN_ID in metadata.configuration]
    if _COLUMN_ID in configuration:
        configuration[_COLUMN_ID] = str(max(ids))
    return with_kept_marks(replace(target, id=newest.id, configuration=configuration), newest)


def _metrics(target: pa.Table, adds: Sequence[AddFile], removes: Sequence[AddFile]) -> dict[str, int]:
    return {
        "table_size_after_restore": int(pc.sum(target["size"]).as_py() or 0),
        "num_of_files_after_restore": target.num_rows,
        "num_removed_files": len(removes),
        "num_restored_files": len(adds),
        "removed_files_size": sum(add.size for add in removes),
        "restored_files_size": sum(add.size for add in adds),
    }


def _operation(request: RestoreRequest, metrics: dict[str, int], time_zone: str) -> Operation:
    shown = request.shown_timestamp
    if shown is None and request.timestamp is not None:
        timestamp = datetime.fromtimestamp(parse_timestamp(request.timestamp, time_zone) / 1000, zone_of(time_zone))
        shown = f"{timestamp:%Y-%m-%d %H:%M:%S}.{timestamp.microsecond // 1000}"
    parameters: dict[str, Any] = {"version": request.version, "timestamp": shown}
    return Operation("RESTORE", parameters, {_camel(name): value for name, value in metrics.items()})


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
