"""VACUUM: delete the files that no readable version needs, while others read and write.

    storage's clock ─► list, or read the log ─► needed files, read after the listing ─► deletable files
      ─► VACUUM START; files committed until then stay ─► delete ─► VACUUM END ─► record the last vacuumed version

A writer that began before VACUUM START, and whose files are so old that they may be among the deleted ones, conflicts with that commit and
fails (`tahoe.txn.vanished`). A crash leaves the table unchanged; the next VACUUM deletes the leftover files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from tahoe.base.events import Fields, observed
from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeError
from tahoe.base.html import ShownAsText
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent
from tahoe.base.wording import counted
from tahoe.log.files.commits import read_commits
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.ops.tables.requests import VacuumRequest
from tahoe.ops.upkeep.vacuum_files import (
    confirmed,
    delete_clock,
    delete_empty_folders,
    delete_files,
    entries_of_inventory,
    listed,
    store_time_ms,
    without_links,
)
from tahoe.ops.upkeep.vacuum_needed import (
    commits_in,
    file_names,
    late_streams,
    live_names,
    lost_versions,
    names_in,
    names_of_the_past,
    needed_by_clones,
)
from tahoe.ops.upkeep.vacuum_plan import HOUR_MS, THREADS, VacuumPlan, deletable, partition_prefixes, retention_of
from tahoe.protocol.actions import AddCDCFile, RemoveFile
from tahoe.protocol.protocols import check_writable
from tahoe.settings.warn_once import warn_once
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.local_links import real_names
from tahoe.store.location import split_url
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.outside import CloneRecord, clones_of
from tahoe.store.side_by_side import both
from tahoe.store.stream_records import StreamRecord, streams_of
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

Begin = Callable[[], Transaction]
Commit = Callable[[Transaction, Operation], Committed]
PinnedVersions = Callable[[Snapshot, int], Sequence[int]]
"""Maps a snapshot and the storage's current time to older versions that readers outside the log, such as Iceberg's, may still use."""

_UNLOGGED_SCHEMES = frozenset({"s3"})
"""Storage where the reference commits VACUUM START and END only on request: its commits there are safe from one cluster only."""


@dataclass(frozen=True, slots=True)
class Vacuumed(ShownAsText):
    """The result of a VACUUM. `print` shows it.

    Args:
        plan: the files that were to be deleted.
        deleted: the number of deleted files; 0 for a dry run.
        version: of the commit ``VACUUM END``; None if nothing was committed.
    """

    plan: VacuumPlan
    deleted: int = 0
    version: int | None = None

    def __str__(self) -> str:
        plan = self.plan
        files = f"{counted(len(plan.files), 'file')} of {plan.size:,} bytes"
        if not plan.request.dry_run:
            return f"VACUUM of {plan.table} deleted {files} in {counted(plan.folders, 'folder')}."
        text = f"VACUUM of version {plan.version} of {plan.table} would delete {files} in {counted(plan.folders, 'folder')}."
        if plan.lost_versions:
            versions = counted(len(plan.lost_versions), "version")
            text += f" {versions} would become unreadable: {_ranges(plan.lost_versions)}."
        return text


def vacuum(
    begin: Begin,
    commit: Commit,
    request: VacuumRequest,
    pinned: PinnedVersions = lambda snapshot, now_ms: (),
    progress: Progress = silent,
) -> Vacuumed:
    """Delete the files that no reader may need, and report the result.

    Args:
        begin: returns a transaction on the newest version.
        commit: commits a transaction.
        pinned: returns the older versions that must stay readable; called once.
        progress: receives the progress over listed and deleted files.

    Raises:
        NotFound: there is no table.
        Unsupported: the table needs a feature that this version of Tahoe does not write, so it may have files that Tahoe does not know.
        InvalidRequest: see `tahoe.ops.upkeep.vacuum_plan.retention_of`, `tahoe.ops.upkeep.vacuum.removed_files` and
            `tahoe.ops.upkeep.vacuum_files.entries_of_inventory`.
        StorageFailure: some files could not be deleted; the others were.
    """
    transaction = begin()
    with observed("vacuum", transaction.store.url) as observation:
        plan = plan_vacuum(transaction, request, pinned, progress)
        done = _executed(transaction.store, plan, _LoggedVacuum(begin, commit, plan), progress)
        observation.record(done.version, lambda: _fields(done))
    return done


def _fields(done: Vacuumed) -> Fields:
    plan = done.plan
    return {
        "dry_run": plan.request.dry_run,
        "files_found": len(plan.files),
        "bytes_found": plan.size,
        "files_deleted": done.deleted,
    }


def _executed(store: LogStore, plan: VacuumPlan, logged: _LoggedVacuum, progress: Progress) -> Vacuumed:
    """Delete the files of the plan unless it is for a dry run."""
    request = plan.request
    _warn_of_late_streams(plan)
    if request.dry_run:
        return Vacuumed(plan)
    transaction = logged.begin()
    newest = transaction.existing()
    done = logged if _is_logged(request, plan, newest) else None
    files = _unnamed(store, plan, newest.version if done is None else done.start(transaction) - 1)
    with _logging_failure(done):
        deleted = delete_files(store, files, THREADS, progress)
        if not request.lite and request.inventory is None:
            emptied_before_ms = plan.cut_off_ms + min(0, plan.retention_ms - HOUR_MS)
            delete_empty_folders(store, partition_prefixes(newest.config), emptied_before_ms)

    def record() -> None:
        step = "VACUUM of %s deleted its files, but did not record the vacuumed version; the next VACUUM LITE reads more commits"
        with logged_after_commit(step, store.url, extra=about(store.url)):
            write_last_vacuum(store, plan.vacuumed_version)

    version, _ = both(store, lambda: None if done is None else done.end(deleted), record)
    return Vacuumed(replace(plan, files=tuple(files)), deleted, version)


def plan_vacuum(
    transaction: Transaction, request: VacuumRequest, pinned: PinnedVersions, progress: Progress = silent
) -> VacuumPlan:
    """Return the plan of a VACUUM. Raises the errors of `vacuum`."""
    snapshot = transaction.existing()
    check_writable(snapshot.protocol, snapshot.store.url)
    retention_ms, store, prefixes = retention_of(request, snapshot.config), snapshot.store, partition_prefixes(snapshot.config)
    cut_off_ms = store_time_ms(store, snapshot.segment.last_modified_ms) - retention_ms
    if store.asks_cheaply:
        delete_clock(store)
        stored = _stored_files(snapshot, request, cut_off_ms, progress)
    else:
        stored, _ = both(store, lambda: _stored_files(snapshot, request, cut_off_ms, progress), lambda: delete_clock(store))
    # All commits up to now are read here: a writer that commits a listed file later conflicts with VACUUM START.
    newest, (commits, (clones, streams)) = both(store, lambda: Snapshot.at(store), lambda: _recorded(store))
    if commits[-1][0] < newest.version:
        commits = commits_in(store)
    versions = tuple(pinned(newest, cut_off_ms + retention_ms))
    needed = names_of_the_past(newest, commits, cut_off_ms, versions)
    if (newest.version, newest.state) != (snapshot.version, snapshot.state):
        needed |= live_names(newest)
    needed |= needed_by_clones(newest, clones, cut_off_ms, cut_off_ms + retention_ms)
    needed |= real_names(store, [*stored.missing, *(needed - stored.entries.keys())])
    files = without_links(store, deletable(stored.entries.values(), needed, cut_off_ms, prefixes, store.url))
    if request.lite or request.inventory is not None:
        files = confirmed(store, files, cut_off_ms, THREADS)
    old = expired_version(commits, cut_off_ms)
    expired = stored.complete if request.lite else old
    vacuumed_version = None if expired is None else min([expired, *versions])
    lost = lost_versions(store, commits, {entry.name for entry in files}, old) if request.dry_run else []
    return VacuumPlan(
        table=store.url,
        version=newest.version,
        request=request,
        files=tuple(files),
        folders=stored.folders,
        retention_ms=retention_ms,
        cut_off_ms=cut_off_ms,
        vacuumed_version=vacuumed_version,
        lost_versions=tuple(lost),
        late_streams=late_streams(streams, vacuumed_version) if files else (),
    )


def _recorded(store: LogStore) -> tuple[list[tuple[int, Entry]], tuple[list[CloneRecord], list[StreamRecord]]]:
    """Return the commits in the log, the shallow clones of the table, and its streams."""
    others = partial(both, store, lambda: list(clones_of(store)), lambda: list(streams_of(store)))
    return both(store, lambda: commits_in(store), others)


def _warn_of_late_streams(plan: VacuumPlan) -> None:
    for stream in plan.late_streams:
        reported_at = datetime.fromtimestamp(stream.modified_ms / 1000, UTC).isoformat(" ", "seconds")
        warn_once(
            f"{plan.table} {stream.name} {plan.vacuumed_version}",
            f"VACUUM of table {plan.table} deletes the files that commits up to version {plan.vacuumed_version} removed. The stream with the "
            f"checkpoint {stream.checkpoint} had read only the versions before {stream.version} when it last reported its position "
            f"({reported_at}), so it may still need these files. Run the query until it has read version {plan.vacuumed_version}, or use a "
            f"longer retention, before VACUUM. If the query no longer exists, delete {stream.name}.",
        )


@dataclass(frozen=True, slots=True)
class _StoredFiles:
    """The files in storage.

    Args:
        entries: by name: old files that are not live. A table has far fewer of them than live files, whose entries are not kept.
        missing: live files that were not found.
        folders: the number of folders of all files, including the table's own.
        complete: for LITE, the version up to which the files are complete.
    """

    entries: Mapping[str, Entry]
    missing: Sequence[str]
    folders: int
    complete: int | None = None


def _stored_files(snapshot: Snapshot, request: VacuumRequest, cut_off_ms: int, progress: Progress) -> _StoredFiles:
    store, complete = snapshot.store, None
    candidates: Iterable[Entry]
    if request.lite:
        commits = commits_in(store)
        removed, complete = removed_files(store, commits, expired_version(commits, cut_off_ms), cut_off_ms)
        candidates = removed.values()
    elif request.inventory is not None:
        candidates = entries_of_inventory(request.inventory, store)
    else:
        candidates = listed(store, partition_prefixes(snapshot.config), THREADS, progress)
    was_found = dict.fromkeys(file_names(snapshot.stored_files(), store.url), False)
    pa.default_memory_pool().release_unused()  # as much again as the names
    entries, folders = dict[str, Entry](), {""}
    for entry in candidates:
        folders.add(entry.name.rpartition("/")[0])
        if entry.name in was_found:
            was_found[entry.name] = True
        elif entry.modified_ms < cut_off_ms:
            entries[entry.name] = entry
    return _StoredFiles(entries, [name for name, was in was_found.items() if not was], len(folders), complete)


def _is_logged(request: VacuumRequest, plan: VacuumPlan, snapshot: Snapshot) -> bool:
    """Whether to commit VACUUM START and END: as the reference does, and always if files of running writers may be deleted."""
    if request.logs is not None:
        return request.logs
    is_short = plan.retention_ms < snapshot.config.properties.deleted_file_retention_ms
    return is_short or split_url(plan.table)[0] not in _UNLOGGED_SCHEMES


@dataclass(frozen=True, slots=True)
class _LoggedVacuum:
    """The commits of a VACUUM in the history."""

    begin: Begin
    commit: Commit
    plan: VacuumPlan

    def start(self, transaction: Transaction) -> int:
        """Commit ``VACUUM START``, and return its version."""
        plan, request = self.plan, self.plan.request
        own = transaction.existing().config.properties.deleted_file_retention_ms
        parameters: dict[str, int | bool] = {"retentionCheckEnabled": request.retention_check, "defaultRetentionMillis": own}
        if request.retention_hours is not None:
            parameters["specifiedRetentionMillis"] = plan.retention_ms
        metrics = {"numFilesToDelete": len(plan.files), "sizeOfDataToDelete": plan.size}
        return self.commit(transaction, Operation("VACUUM START", parameters, metrics)).version

    def end(self, deleted: int) -> int:
        """Commit ``VACUUM END``, and return its version."""
        metrics = {"numDeletedFiles": deleted, "numVacuumedDirectories": self.plan.folders}
        return self.commit(self.begin(), Operation("VACUUM END", {"status": "COMPLETED"}, metrics)).version

    def failed(self) -> None:
        """Commit the failure of the VACUUM."""
        self.commit(self.begin(), Operation("VACUUM END", {"status": "FAILED"}))


def _unnamed(store: LogStore, plan: VacuumPlan, version: int) -> list[Entry]:
    """Return the plan's files without those named in commits since the plan, up to a version."""
    since = read_commits(store, range(plan.version + 1, version + 1))
    named = {name for _, actions in since for name in names_in(actions, store.url)}
    return [entry for entry in plan.files if entry.name not in named]


@contextmanager
def _logging_failure(logged: _LoggedVacuum | None) -> Iterator[None]:
    """A block whose failure is committed to the history."""
    try:
        yield
    except Exception:
        if logged is not None:
            with suppress(TahoeError):
                logged.failed()
        raise


def _ranges(versions: Sequence[int]) -> str:
    """``0 to 4, 7``."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], version]
        else:
            runs.append([version])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


_NAME = f"{LOG_FOLDER}/_last_vacuum_info"
_VERSION = "latestCommitVersionOutsideOfRetentionWindow"


def expired_version(commits: Sequence[tuple[int, Entry]], cut_off_ms: int) -> int | None:
    """Return the newest commit that is older than the retention, or None.

    Args:
        commits: in the log, oldest first.
    """
    young = next((place for place, (_, entry) in enumerate(commits) if entry.modified_ms >= cut_off_ms), len(commits))
    return commits[young - 1][0] if young else None


def removed_files(
    store: LogStore, commits: Sequence[tuple[int, Entry]], expired: int | None, cut_off_ms: int
) -> tuple[dict[str, Entry], int | None]:
    """Return the files older than the retention that commits removed since the last VACUUM, and the change data of these commits.

    Args:
        expired: see `expired_version`.

    Returns:
        The files by name, with the sizes in the log; and the version up to which the files are complete.

    Raises `InvalidRequest` (``DELTA_CANNOT_VACUUM_LITE``): commits since the last VACUUM are no longer in the log.
    """
    last, first = read_last_vacuum(store), commits[0][0]
    if first > 0 and (last is None or last + 1 < first):
        raise InvalidRequest(
            f"VACUUM LITE cannot determine the deletable files of {store.url}: the log begins with version {first}, and "
            f"{'no VACUUM recorded a version' if last is None else f'the last VACUUM recorded {last}'}. Run VACUUM without LITE.",
            code="DELTA_CANNOT_VACUUM_LITE",
            table=store.url,
            version=first,
        )
    begin = first if last is None else last + 1
    if expired is None or begin > expired:
        return {}, last
    removed: dict[str, Entry] = {}
    complete = expired
    for version, actions in read_commits(store, range(max(begin, first), expired + 1)):
        for action in actions:
            if isinstance(action, RemoveFile) and (action.deletion_timestamp or 0) >= cut_off_ms:
                complete = min(complete, version - 1)  # not expired by its writer's clock: left to a later VACUUM
            elif isinstance(action, RemoveFile | AddCDCFile):
                path, *others = names_in([action], store.url)
                removed[path] = Entry(path, action.size or 0, 0)
                removed.update({name: Entry(name, 0, 0) for name in others if name not in removed})
    return removed, complete


def read_last_vacuum(store: LogStore) -> int | None:
    """Return the version up to which the last VACUUM deleted removed files; None if it is not known."""
    try:
        version = json.loads(store.get(_NAME)).get(_VERSION)
    except (NotFound, ValueError, AttributeError):  # a corrupt record counts as missing
        return None
    return version if isinstance(version, int) and not isinstance(version, bool) and version >= 0 else None


def write_last_vacuum(store: LogStore, version: int | None) -> None:
    """Record the last vacuumed version in the file that LITE and the reference read."""
    store.put(_NAME, json.dumps({} if version is None else {_VERSION: version}).encode())
