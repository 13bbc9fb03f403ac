"""VACUUM LITE: find the deletable files in the log alone, and record the last vacuumed version.

A removed file is known by the commit that removed it. Files that no commit names (leftovers of crashed writers) stay, and so do files
removed before the log's first commit, unless an earlier VACUUM covered these versions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.ops.upkeep.vacuum_needed import actions_of, names_in
from tahoe.protocol.actions import AddCDCFile, RemoveFile
from tahoe.store.log_store import Entry, LogStore

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
    store: LogStore, commits: Sequence[tuple[int, Entry]], expired: int | None, cut_off_ms: int, threads: int
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
            f"VACUUM LITE cannot tell which files of {store.url} may go: the log begins with version {first}, and "
            f"{'no VACUUM noted how far it came' if last is None else f'the last VACUUM came to version {last}'}. Run VACUUM without LITE.",
            code="DELTA_CANNOT_VACUUM_LITE",
            table=store.url,
            version=first,
        )
    begin = first if last is None else last + 1
    if expired is None or begin > expired:
        return {}, last
    found: dict[str, Entry] = {}
    complete = expired
    for version, actions in actions_of(store, range(max(begin, first), expired + 1), threads):
        for action in actions:
            if isinstance(action, RemoveFile) and (action.deletion_timestamp or 0) >= cut_off_ms:
                complete = min(complete, version - 1)  # not expired by its writer's clock: left to a later VACUUM
            elif isinstance(action, RemoveFile | AddCDCFile):
                path, *others = names_in([action], store.url)
                found[path] = Entry(path, action.size or 0, 0)
                found.update({name: Entry(name, 0, 0) for name in others if name not in found})
    return found, complete


def read_last_vacuum(store: LogStore) -> int | None:
    """Return the version up to which the last VACUUM deleted removed files; None if it is not known."""
    try:
        found = json.loads(store.get(_NAME)).get(_VERSION)
    except (NotFound, ValueError, AttributeError):  # a corrupt record counts as missing
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def write_last_vacuum(store: LogStore, version: int | None) -> None:
    """Record the last vacuumed version in the file that LITE and the reference read."""
    store.put(_NAME, json.dumps({} if version is None else {_VERSION: version}).encode())
