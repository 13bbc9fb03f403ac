"""The files that readable versions need, and the versions that a VACUUM makes unreadable.

Needed are the files of the newest version, of each tombstone that is younger than the retention, and all files named in commits within
the retention. A commit's age is that of its file in storage, because a tombstone's timestamp comes from its writer's clock, which may be
wrong. Change data is named by commits only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from tahoe.base.exceptions import NotFound
from tahoe.base.lazy import pc
from tahoe.log.files.commits import read_commits
from tahoe.log.files.live_files import are_plain, canonical_path
from tahoe.log.files.paths import LOG_FOLDER, parse
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
from tahoe.protocol.dv import file_name
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.outside import CloneRecord
from tahoe.store.stream_records import StreamRecord


def commits_in(store: LogStore) -> list[tuple[int, Entry]]:
    """Return the commits in the log with their versions, oldest first."""
    files = ((parse(entry.name), entry) for entry in store.list_from(LOG_FOLDER))
    return sorted((name.version, entry) for name, entry in files if name is not None and name.kind == "commit")


def names_in(actions: Iterable[Action], root_url: str) -> Iterator[str]:
    """Yield the files that actions name, with their deletion vectors and change data."""
    for action in actions:
        if isinstance(action, AddFile | RemoveFile | AddCDCFile):
            yield canonical_path(action.path, root_url)
        if isinstance(action, AddFile | RemoveFile) and action.deletion_vector is not None:
            name = file_name(action.deletion_vector, root_url)
            if name is not None:
                yield name


def needed_names(snapshot: Snapshot, commits: Sequence[tuple[int, Entry]], cut_off_ms: int, pinned: Sequence[int]) -> set[str]:
    """Return the names of files that a VACUUM must not delete.

    Args:
        snapshot: the newest version.
        commits: in its log.
        cut_off_ms: by the clock of the storage.
        pinned: older versions that readers outside the log, such as Iceberg's, may still be using.
    """
    return live_names(snapshot) | names_of_the_past(snapshot, commits, cut_off_ms, pinned)


def live_names(snapshot: Snapshot) -> set[str]:
    """Return the names of the files that a version needs."""
    return set(file_names(snapshot.stored_files(), snapshot.store.url))


def names_of_the_past(
    snapshot: Snapshot, commits: Sequence[tuple[int, Entry]], cut_off_ms: int, pinned: Sequence[int]
) -> set[str]:
    """Return the names of `needed_names` that older versions need; some of them may be live."""
    store = snapshot.store
    tombstones = snapshot.tombstones()
    young = pc.fill_null(pc.greater_equal(tombstones["deletionTimestamp"], cut_off_ms), False)
    needed = set(file_names(tombstones.filter(young), store.url))
    for version in pinned:
        try:
            needed.update(live_names(Snapshot.at(store, version)))
        except NotFound:
            if version == max(pinned):  # the version that Iceberg shows now
                raise
    recent = [version for version, entry in commits if entry.modified_ms >= cut_off_ms]
    for _, actions in read_commits(store, recent):
        needed.update(names_in(actions, store.url))
    return needed


def needed_by_clones(snapshot: Snapshot, clones: Iterable[CloneRecord], cut_off_ms: int, now_ms: int) -> set[str]:
    """Return the names of files that known shallow clones of the table need; each clone applies its own retention.

    A record without a table is that of a clone in progress while it is young, later of a deleted clone.

    Args:
        snapshot: the newest version of the clones' source table.
        clones: of this table (`tahoe.store.outside.clones_of`).
        cut_off_ms, now_ms: by the clock of the storage.
    """
    store, needed = snapshot.store, set[str]()
    for record in clones:
        other = store.outside.open(record.table)
        try:
            clone = Snapshot.at(other)
        except NotFound as error:
            if error.code != "DELTA_TABLE_NOT_FOUND":
                raise
            if record.version is not None and record.modified_ms >= cut_off_ms:
                needed.update(live_names(Snapshot.at(store, record.version)))
            continue
        until_ms = now_ms - clone.config.properties.deleted_file_retention_ms
        names = needed_names(clone, commits_in(other), until_ms, ())
        needed.update(name.removeprefix(f"{store.url}/") for name in names if name.startswith(f"{store.url}/"))
    return needed


def lost_versions(store: LogStore, commits: Sequence[tuple[int, Entry]], gone: set[str], expired: int | None) -> list[int]:
    """Return the versions in the log that need one of the given files, according to the commits.

    Reads the expired commits only: `needed_names` contains each file that a later commit names.

    Args:
        gone: names of files; those that no commit names affect no version.
        expired: the newest commit that is older than the retention; None if there is none.
    """
    if not gone or not commits or expired is None:
        return []
    first, newest = commits[0][0], commits[-1][0]
    since: dict[str, int] = {}
    lost: set[int] = set()
    for version, actions in read_commits(store, [version for version, _ in commits if version <= expired]):
        removed, added = set[str](), set[str]()
        for action in actions:
            if isinstance(action, RemoveFile | AddFile):
                names = removed if isinstance(action, RemoveFile) else added
                names.update(name for name in names_in([action], store.url) if name in gone)
        for name in removed:
            lost.update(range(since.pop(name, first), version))
        for name in added:
            since.setdefault(name, version)
    for begun in since.values():  # no commit in the log removes it: all later versions lose it
        lost.update(range(begun, newest + 1))
    return sorted(lost)


def file_names(files: pa.Table, root_url: str) -> Iterator[str]:
    """Yield the names of data files and of the files of their deletion vectors.

    Args:
        files: live or removed files, with ``path`` and ``deletionVector``.
    """
    for chunk in files["path"].chunks:
        plain = are_plain(pa.chunked_array([chunk]))
        for path in chunk.to_pylist():
            yield path  # a writer may have forgotten to encode it
            if not plain:
                yield canonical_path(path, root_url)
    vectors = files["deletionVector"]
    stored = vectors.filter(pc.fill_null(pc.not_equal(pc.struct_field(vectors, "storageType"), "i"), False))
    for row in stored.to_pylist():
        name = file_name(DeletionVectorDescriptor.from_json_value(row), root_url)
        if name is not None:
            yield name


def late_streams(streams: Iterable[StreamRecord], vacuumed_version: int | None) -> tuple[StreamRecord, ...]:
    """Return the streams that may still need to read files that this VACUUM deletes.

    Args:
        streams: of this table (`tahoe.store.stream_records.streams_of`).
        vacuumed_version: files that commits up to this one removed are deleted; None for none.
    """
    # A stream of changes that has not read the last of these commits still needs the files which that commit removed.
    return () if vacuumed_version is None else tuple(stream for stream in streams if stream.version <= vacuumed_version)
