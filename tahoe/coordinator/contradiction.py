"""Contradictions between a log and its coordinator: the log has commits newer than the coordinator's last version.

This is normal for a moment: another writer had a commit ratified and published since the coordinator was asked. So the coordinator is
asked again. If it still does not name the commits, either their writer bypassed it, and readers ignore them (PROTOCOL.md, "Reading
Catalog-managed Tables"); or the coordinator has forgotten ratified commits, because its database was restored from a backup or the answer
came from a lagging replica. The second case is detected by the staged file that a ratified commit leaves beside the published one. Then
nothing is read or written: acknowledged commits would be missing, and a second commit would take the number of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.paths import STAGED_FOLDER, commit_name, staged_version
from tahoe.store.log_store import Entry, LogStore

__all__ = ["behind_error", "newest_ratified", "unratified_commit_error"]


def newest_ratified(store: LogStore, published: Sequence[tuple[int, Entry]]) -> int | None:
    """Return the newest of these commits that was once ratified, i.e. is the copy of a staged file; None if there is none.

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


def behind_error(table: str, coordinator: str, last: int, version: int) -> CorruptTable:
    """Return the error for a coordinator that names `last` as the last version but has ratified the newer `version`."""
    return CorruptTable(
        f"Table {table}: {coordinator} says that version {last} is the last, but it has ratified version {version} before. Its database was "
        "restored from an older backup, its URL names a lagging replica, or the table was dropped and recreated meanwhile. Nothing is read "
        "or written, so that no acknowledged commit is lost. Use the up-to-date database, or restore it from a newer backup. If "
        f"there is none, and {commit_name(version)} is the newest commit of the log: coordinator.forget(table.url), "
        f"coordinator.expect(table.url, {version}, ''), coordinator.adopt(table.url, {version}); unpublished commits are lost then.",
        code="TAHOE_COORDINATOR_BEHIND",
        table=table,
        version=version,
    )


def unratified_commit_error(table: str, coordinator: str, version: int) -> CorruptTable:
    """Return the error for an unratified commit in the log with the next version's number."""
    name = commit_name(version)
    return CorruptTable(
        f"Table {table}: {name} exists, but {coordinator} has not ratified it. Nothing was committed, to avoid two commits of "
        f"version {version}. A writer bypassed the coordinator: find that writer, then delete {name}.",
        code="TAHOE_UNRATIFIED_COMMIT",
        table=table,
        version=version,
        file=name,
    )
