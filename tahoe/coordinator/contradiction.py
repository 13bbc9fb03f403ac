"""Where a log and its coordinator contradict each other: commits lie in the log that are newer than the last version it names.

For a moment that is as it should be: another writer had a commit ratified and published since the coordinator was asked. So it is asked once
more. What it does not name then is of a writer who passed it by, and readers pass over it (PROTOCOL.md, "Reading Catalog-managed Tables");
or the coordinator has forgotten what it ratified, because its database was restored from a backup, or because what was asked is a copy that
lags. That is seen by the staged file that a ratified commit leaves beside the published one. Then nothing is read and nothing is written:
acknowledged commits would be missing, and a second commit would take the number of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.exceptions import CorruptTable
from tahoe.log.files.paths import STAGED_FOLDER, commit_name, staged_version
from tahoe.store.log_store import Entry, LogStore

__all__ = ["forgotten", "ratified_before", "unknown_commit"]


def ratified_before(store: LogStore, published: Sequence[tuple[int, Entry]]) -> int | None:
    """The newest of these commits that was ratified once: it is the copy of a staged file. None where none is.

    Args:
        store: the table's own storage.
        published: commits in the log, each with its version.
    """
    if not published:
        return None
    staged: dict[int, list[Entry]] = {}
    for entry in store.list_from(STAGED_FOLDER, f"{min(version for version, _ in published):020d}"):
        version = staged_version(entry.name)
        if version is not None:
            staged.setdefault(version, []).append(entry)
    for version, commit in sorted(published, reverse=True):
        same_size = [entry.name for entry in staged.get(version, ()) if entry.size == commit.size]
        if same_size and store.get(commit.name) in (store.get(name) for name in same_size):
            return version
    return None


def forgotten(table: str, coordinator: str, last: int, version: int) -> CorruptTable:
    """The error for a coordinator that names `last` as the last version, and has ratified `version`, a newer one."""
    return CorruptTable(
        f"Table {table}: {coordinator} says that version {last} is the last, and it has ratified version {version} before. Its database was "
        "restored from an older backup, or its URL names a copy that lags, or the table was dropped and made anew meanwhile. Nothing is read "
        "or written, so that no acknowledged commit is lost. Name the database that is up to date, or restore it from a newer backup. Where "
        f"there is none, and {commit_name(version)} is the newest commit of the log: coordinator.forget(table.url), "
        f"coordinator.expect(table.url, {version}, ''), coordinator.adopt(table.url, {version}); what was not published is lost then.",
        code="TAHOE_COORDINATOR_BEHIND",
        table=table,
        version=version,
    )


def unknown_commit(table: str, coordinator: str, version: int) -> CorruptTable:
    """The error for a commit in the log where the next one is to be."""
    name = commit_name(version)
    return CorruptTable(
        f"Table {table}: {name} is there, and {coordinator} has not ratified it; nothing was committed, for that would make two commits of "
        f"version {version}. Somebody wrote it who did not ask the coordinator: find that writer, then delete {name}.",
        code="TAHOE_UNRATIFIED_COMMIT",
        table=table,
        version=version,
        file=name,
    )
