"""`LogSegment`: the fewest files of the log that give one version, with no gap and at most one complete checkpoint."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.log_fields import about
from tahoe.log.files.last_checkpoint import LastCheckpoint, read_last_checkpoint
from tahoe.log.files.listing import Checkpoint, Listing, checkpoints_in, fill_gaps, probe_upward
from tahoe.log.files.paths import LOG_FOLDER, commit_name, file_name, parse
from tahoe.store.location import local_path
from tahoe.store.log_store import Entry, LogStore, is_paged
from tahoe.store.side_by_side import both

__all__ = [
    "Checkpoint",
    "LogSegment",
    "TailFile",
    "checkpoints_in",
    "newest_listed_segment",
    "no_table",
    "not_to_be_joined",
    "segment_for",
]

logger = logging.getLogger(__name__)

_VERSIONS_BEFORE = 250
"""The number of versions before an old one that are listed to find a checkpoint: about one page. If they have none, all are listed."""

_MOST_ENTRIES = 1000
"""The maximum number of entries of a folder without a table that are examined for an error."""


@dataclass(frozen=True, slots=True)
class TailFile:
    """A commit or a compaction: the actions of the versions `first` to `last`."""

    first: int
    last: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files of the log from which one version is read.

    Args:
        version: the version.
        checkpoint: the start of replay; None if it starts with version 0.
        commits: the commits after the checkpoint, oldest first, preceded by the checkpoint's own commit for its `commitInfo`, if the log
            still has it.
        compactions: read only instead of missing or corrupt commits: nothing in the table confirms a compaction.
        checksum: the version's ``.crc``, which may be missing; None if it is known to be.
        checkpoint_checksum: the ``.crc`` of the checkpoint's version.
        hint: the entry of ``_last_checkpoint``, if it is for this checkpoint.
        last_modified_ms: the modification time of the version's commit, by the store's clock; of the checkpoint if the commit is gone.
    """

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[Entry, ...]
    compactions: tuple[Entry, ...] = ()
    checksum: Entry | None = None
    checkpoint_checksum: Entry | None = None
    hint: LastCheckpoint | None = None
    last_modified_ms: int = 0

    @property
    def first_version(self) -> int:
        """The first version that is read as commits."""
        return 0 if self.checkpoint is None else self.checkpoint.version + 1

    def tail(self, without: Collection[str] = ()) -> tuple[TailFile, ...] | None:
        """Return the commits after the checkpoint in the order of replay, and compactions instead of missing commits; each version once.

        Args:
            without: names of commits and compactions that must not be used.

        Returns:
            None if the remaining files do not cover every version.
        """
        files = [TailFile(version, version, entry) for version, entry in self._commits_by_version().items()]
        for entry in self.compactions:
            parsed = parse(entry.name)
            if parsed is not None:
                files.append(TailFile(parsed.version, parsed.last_version, entry))
        return _fewest_compactions([file for file in files if file.entry.name not in without], self.first_version, self.version)

    def commit(self) -> Entry | None:
        """The commit of `version` itself, if it is in the log."""
        newest = self.commits[-1] if self.commits else None
        return newest if newest is not None and newest.name == commit_name(self.version) else None

    def _commits_by_version(self) -> dict[int, Entry]:
        commits = {}
        for entry in self.commits:
            version = int(file_name(entry.name).partition(".")[0])
            if version >= self.first_version:
                commits[version] = entry
        return commits


def segment_for(store: LogStore, version: int | None = None, *, without: Collection[str] = ()) -> LogSegment:
    """Return the files from which `version`, or the newest version, is read.

    Args:
        without: corrupt checkpoint files that must not be used.

    Raises:
        NotFound: ``DELTA_TABLE_NOT_FOUND`` if there is no table, ``DELTA_VERSION_NOT_FOUND`` if the log does not have the version, or no
            longer has it; the message names the versions in the log.
        CorruptTable: the files in the log do not form a complete history.
    """
    if version is not None and version >= 0 and is_paged(store):
        start = max(0, version - _VERSIONS_BEFORE)
        hint, listing = both(store, lambda: read_last_checkpoint(store), lambda: Listing.read(store, start, version))
        if version in listing.commits and (0 in listing.commits or any(listing.checkpoints(version, without))):
            return _segment(store, listing, version, without, hint)
    else:
        hint = read_last_checkpoint(store)
    if hint is not None and (version is None or hint.version <= version):
        listing = Listing.read(store, hint.version)
        if any(c.version >= hint.version for c in listing.checkpoints(version, without)):
            return _segment(store, listing, version, without, hint)
    return _segment(store, Listing.read(store, None), version, without, hint)


def newest_listed_segment(store: LogStore) -> tuple[LogSegment, bool]:
    """Return the files of the newest version in a listing, and whether it is known to be the newest version of the table.

    A listing may lag behind the newest writes: if the version is not known to be the newest, the caller requests the next commit by its name,
    at the same time as it reads these files. Raises the errors of `segment_for`.
    """
    hint = read_last_checkpoint(store)
    listing = Listing.read(store, None if hint is None else hint.version)
    if hint is not None and not any(listing.checkpoints(None, ())):
        listing = Listing.read(store, None)
    newest = listing.newest()
    lacks_commits = newest is None or any(version > newest for version in listing.checksums) or (hint and hint.version > newest)
    return _segment(store, listing, None if lacks_commits else newest, (), hint), bool(lacks_commits)


def no_table(url: str) -> NotFound:
    """Return the error for a folder without a table. On a local disk it says what is there instead."""
    return NotFound(
        f"{url} is not a Delta table: its folder {LOG_FOLDER} is missing or empty. {_remedy(local_path(url))}",
        code="DELTA_TABLE_NOT_FOUND",
        table=url,
    )


def _remedy(path: str | None) -> str:
    if path is not None and os.path.isfile(path):
        return "The path is a file: pass the folder of the table."
    if path is not None and os.path.isdir(path):
        with os.scandir(path) as entries:
            if any(entry.name.endswith(".parquet") for entry in islice(entries, _MOST_ENTRIES)):
                return "The folder contains Parquet files: convert them with `tahoe convert`, Table.convert_to_delta or CONVERT TO DELTA."
    return "Check the path, or create the table."


def not_to_be_joined(store: LogStore, segment: LogSegment) -> CorruptTable:
    """Return the error for overlapping compactions that cannot replace the missing commits."""
    there = {entry.name for entry in segment.commits}
    return _gap(
        store,
        next(v for v in range(segment.first_version, segment.version + 1) if commit_name(v) not in there),
        segment.version,
    )


def _segment(
    store: LogStore, listing: Listing, version: int | None, without: Collection[str], hint: LastCheckpoint | None
) -> LogSegment:
    newest = _newest(store, listing, version, hint)
    target = newest if version is None else version
    if target > newest or target < 0:
        raise _no_version(store, target, newest)
    checkpoint = next(listing.checkpoints(target, without), None)
    first = 0 if checkpoint is None else checkpoint.version + 1
    compactions = tuple(
        entry for parsed, entry in listing.compactions if parsed.version >= first and parsed.last_version <= target
    )
    # A generator: if a stray file has a version in the far future, the first gap ends the search.
    fill_gaps(store, listing, (v for v in range(first, target + 1) if v not in listing.commits))
    if checkpoint is not None and target == checkpoint.version:
        _require_own_commit(store, listing, target, newest)
    _check_whole(store, listing, checkpoint, compactions, target, newest, without)
    loaded_version = first if checkpoint is None else checkpoint.version
    last = listing.commits.get(target)
    return LogSegment(
        version=target,
        checkpoint=checkpoint,
        commits=tuple(listing.commits[v] for v in range(loaded_version, target + 1) if v in listing.commits),
        compactions=compactions,
        checksum=listing.checksums.get(target),
        checkpoint_checksum=None if checkpoint is None else listing.checksums.get(checkpoint.version),
        hint=_hint_of(checkpoint, hint),
        last_modified_ms=last.modified_ms
        if last
        else max((e.modified_ms for e in checkpoint.entries), default=0)
        if checkpoint
        else 0,
    )


def _newest(store: LogStore, listing: Listing, version: int | None, hint: LastCheckpoint | None) -> int:
    """Return the newest version of the table, or a version that is at least `version`."""
    newest = listing.newest()
    if newest is None:
        first = store.head(commit_name(0))
        if first is None:
            raise _no_table(store, listing, hint)
        listing.commits[0] = first
        newest = 0
    if version is not None and version <= newest:
        return newest
    newest = probe_upward(store, listing, newest, version)
    if version is None:
        orphans = [v for v in listing.checksums if v > newest]
        if orphans:
            raise CorruptTable(
                f"Table {store.url}: the checksum of version {max(orphans)} is in the log, but the commit "
                f"{commit_name(newest + 1)} is missing, so the newest changes of the table are lost. Restore the "
                "missing commits from "
                f"a backup, or read version {newest} by its number.",
                code="DELTA_LOG_FILE_NOT_FOUND",
                table=store.url,
                version=newest + 1,
            )
        if hint is not None and hint.version > newest:
            message = "%s: _last_checkpoint names version %d, but the log ends with %d"
            logger.warning(message, store.url, hint.version, newest, extra=about(store.url, newest))
    return newest


def _require_own_commit(store: LogStore, listing: Listing, target: int, newest: int) -> None:
    """Require the commit of the checkpoint's version: the specification keeps it, and without it the last commits may be lost too."""
    if any(version >= target for version in listing.commits) or newest > target:
        return
    entry = store.head(commit_name(target))
    if entry is None:
        raise CorruptTable(
            f"Table {store.url}: the log has a checkpoint of version {target}, but neither the commit "
            f"{commit_name(target)} nor a "
            "later one, so commits are lost. Restore the missing commits from a backup.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=store.url,
            version=target,
        )
    listing.commits[target] = entry


def _check_whole(
    store: LogStore,
    listing: Listing,
    checkpoint: Checkpoint | None,
    compactions: tuple[Entry, ...],
    target: int,
    newest: int,
    without: Collection[str],
) -> None:
    """Require every version after the checkpoint as a commit or in a compaction."""
    first = 0 if checkpoint is None else checkpoint.version + 1
    covered = set(listing.commits)
    for entry in compactions:
        parsed = parse(entry.name)
        if parsed is not None:
            covered.update(range(parsed.version, parsed.last_version + 1))
    missing = next((v for v in range(first, target + 1) if v not in covered), None)
    if missing is None:
        return
    if checkpoint is not None or missing != 0:
        raise _gap(store, missing, target)
    later = sorted(listing.complete_checkpoints)
    if later and not without and later[0] > target:
        raise _no_version(store, target, newest)
    raise CorruptTable(
        f"Table {store.url}: version {target} cannot be read, because its log begins with "
        f"{_shown(min(listing.commits, default=None))} and has no {'other ' if without else ''}complete checkpoint "
        "to begin from. "
        f"Restore {commit_name(0)} and what follows, or a checkpoint, from a backup.",
        code="DELTA_TRUNCATED_TRANSACTION_LOG",
        table=store.url,
        version=target,
    )


def _hint_of(checkpoint: Checkpoint | None, hint: LastCheckpoint | None) -> LastCheckpoint | None:
    """Return the hint if it is for this checkpoint."""
    if checkpoint is None or hint is None or hint.version != checkpoint.version:
        return None
    if hint.v2 is not None and hint.v2.path.rpartition("/")[2] != file_name(checkpoint.names[0]):
        return None  # two writers made a checkpoint of this version, each with the tombstones unexpired at its time
    parts = len(checkpoint.entries) if checkpoint.kind == "multi-part" else None
    return hint if hint.parts == parts else None


def _fewest_compactions(files: list[TailFile], first: int, last: int) -> tuple[TailFile, ...] | None:
    """Choose the files that cover each version once with the fewest compactions: the shortest path over versions, backwards.

    Returns None if a version is in none of the files.
    """
    starting: dict[int, list[TailFile]] = {}
    for file in files:
        if file.last <= last:
            starting.setdefault(file.first, []).append(file)
    best: dict[int, tuple[int, TailFile | None]] = {last + 1: (0, None)}
    for version in range(last, first - 1, -1):
        choices = [(best[f.last + 1][0] + (f.first != f.last), f) for f in starting.get(version, ()) if f.last + 1 in best]
        if choices:
            best[version] = min(choices, key=lambda choice: choice[0])
    path = []
    version = first
    while version <= last:
        step = best.get(version, (0, None))[1]
        if step is None:
            return None
        path.append(step)
        version = step.last + 1
    return tuple(path)


def _no_table(store: LogStore, listing: Listing, hint: LastCheckpoint | None) -> NotFound | CorruptTable:
    if hint is None and listing.is_empty:
        return no_table(store.url)
    return CorruptTable(
        f"Table {store.url}: its folder {LOG_FOLDER} contains files, but neither a commit nor a complete checkpoint. "
        f"Restore the commits ({commit_name(0)}, …) from a backup.",
        code="DELTA_LOG_FILE_NOT_FOUND",
        table=store.url,
    )


def _no_version(store: LogStore, asked: int, newest: int) -> NotFound:
    whole = Listing.read(store, None)
    earliest = 0 if 0 in whole.commits else min(whole.complete_checkpoints, default=newest)
    return NotFound(
        f"Table {store.url} has no version {asked}: the versions that can be read are {earliest} to {newest}. Ask "
        "for one of them.",
        code="DELTA_VERSION_NOT_FOUND",
        table=store.url,
        version=asked,
        earliest=earliest,
        latest=newest,
    )


def _gap(store: LogStore, missing: int, target: int) -> CorruptTable:
    return CorruptTable(
        f"Table {store.url}: version {target} cannot be read, because the commit {commit_name(missing)} is missing from the log. "
        f"Restore it from a backup, or read a version before {missing}.",
        code="DELTA_VERSIONS_NOT_CONTIGUOUS",
        table=store.url,
        version=missing,
        file=commit_name(missing),
    )


def _shown(version: int | None) -> str:
    return "no commit" if version is None else file_name(commit_name(version))
