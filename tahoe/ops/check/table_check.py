"""The consistency check of a table: the tests' oracle and a user's fsck.

    commits ──fold──► live files at v ──compare──► checkpoint at v, checksum at v          check_log, check_compactions
                                       └─at the end─► Snapshot                             here
    live files ──► storage, statistics, partition values, deletion vectors, row ids        check_files
               ──deep──► every row of every file                                           check_data, check_statistics

Corruption never raises: it becomes a finding, and the remaining parts are still checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tahoe.base.exceptions import TahoeError
from tahoe.base.progress import Progress, silent
from tahoe.log.files.paths import LOG_FOLDER, ParsedLogPath, parse
from tahoe.log.segment import checkpoints_in
from tahoe.ops.check.compaction_check import check_compactions
from tahoe.ops.check.data_check import check_change_files, check_data
from tahoe.ops.check.live_file_check import LiveFiles, check_live_files
from tahoe.ops.check.log_replay import LogFiles, LogReplay, difference, file_texts
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Entry, LogStore

__all__ = ["TableCheck", "Violation", "check_table", "iceberg_violations"]


def check_table(store: LogStore, *, deep: bool = False, progress: Progress = silent) -> list[Violation]:
    """Return all violations in a table.

    Checked: commits are contiguous and parse; transaction ids are unique, in-commit timestamps increase; each complete checkpoint,
    compaction and checksum equals the replay of the commits; the snapshot equals it too; each live file exists and has its size; each
    deletion vector decodes to its cardinality and marks existing rows; statistics are JSON with a row count; partition values can be
    read; the footers of data files (the newest `MOST_FOOTERS`) are intact and agree with the statistics; where rows are tracked, no row
    id is assigned twice or beyond the high-water mark.

    Args:
        deep: read every live file and every change-data file too: see `tahoe.ops.check.data_check`.
        progress: receives the progress over commits, vectors and files.

    Raises an error only if there is no table, or if its storage cannot be listed.
    """
    return TableCheck(store).violations(deep=deep, progress=progress)


def iceberg_violations(
    snapshot_at: Callable[[], Snapshot], foreign_changes: Callable[[], Sequence[tuple[str, str]]]
) -> list[Violation]:
    """Return the changes that another writer made to the Iceberg metadata of a table with UniForm enabled.

    Args:
        foreign_changes: returns a message and a location for each change. A callback, because this layer does not import Iceberg code.
    """
    violations: list[Violation] = []
    with Reported(violations.append, "iceberg", "The Iceberg side"):
        try:
            enabled = uniform_is_enabled(snapshot_at().config.properties)
        except TahoeError:
            return []  # reported by the check of the log
        if enabled:
            changes = foreign_changes()
            violations += [
                Violation("iceberg", text, file=location, error="TAHOE_UNIFORM_FOREIGN_WRITER") for text, location in changes
            ]
    return violations


class TableCheck:
    """A repeatable check of one table, which reads only the commits since its last run.

    A log normally grows only at its end. After any other change (a checkpoint or checksum of an older version appeared or disappeared,
    commits were cleaned up, the table was recreated) the whole log is checked again.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._replay = LogReplay(store)
        self._seen: dict[str, Entry] = {}
        self._in_commits: list[Violation] = []
        self._newest: LiveFiles | None = None

    def violations(self, *, deep: bool = False, progress: Progress = silent) -> list[Violation]:
        """Return all violations, as `check_table` does."""
        store = self._store
        entries = store.list_from(LOG_FOLDER)
        parsed = [(entry, path) for entry in entries if (path := parse(entry.name)) is not None]
        names = {entry.name: entry for entry, _ in parsed}
        changed = names.items() ^ self._seen.items()
        self._seen = names
        if self._in_commits or not self._continues({parse(name) for name, _ in changed}):
            self._replay, self._in_commits, self._newest = LogReplay(store), [], None
        self._in_commits += self._replay.run(_log_files(parsed, entries), progress)
        violations = [*_contiguous(parsed), *self._in_commits, *check_compactions(store, parsed)]
        try:
            if changed or self._newest is None:
                snapshot = Snapshot.at(store)
                self._newest = LiveFiles(snapshot, snapshot.files())
        except Exception as error:
            if not parsed and isinstance(error, TahoeError):
                raise  # there is no table
            return [*violations, violation_of(error, "snapshot", "The newest version")]
        violations += _snapshot(self._newest, self._replay)
        violations += check_live_files(self._newest, progress, footers=not deep)
        if deep:
            violations += check_data(self._newest, progress)
            violations += check_change_files(self._newest, self._replay.change_files, progress)
        return violations

    def _continues(self, changed: set[ParsedLogPath | None]) -> bool:
        """Whether the changed log files are all newer than the last version seen, or checkpoints of that version."""
        last = self._replay.version
        return all(
            path is not None and (path.version > last or (path.version == last and path.kind == "checkpoint")) for path in changed
        )


def _log_files(parsed: list[tuple[Entry, ParsedLogPath]], entries: list[Entry]) -> LogFiles:
    commits = {path.version: entry for entry, path in parsed if path.kind == "commit"}
    checksums = {path.version: entry for entry, path in parsed if path.kind == "checksum"}
    return LogFiles(commits, checksums, checkpoints_in(entries))


def _contiguous(parsed: list[tuple[Entry, ParsedLogPath]]) -> Iterator[Violation]:
    versions = [path.version for _, path in parsed if path.kind == "commit"]
    for before, after in pairwise(versions):
        if after != before + 1:
            yield Violation("log-gap", f"versions {before + 1} to {after - 1} are missing from the log.", after)


def _snapshot(files: LiveFiles, state: LogReplay) -> list[Violation]:
    """Return the differences between the columnar replay and the folded log."""
    snapshot = files.snapshot
    version = snapshot.version
    if state.version != version:
        return [
            Violation("snapshot", f"the snapshot is of version {version}, the last commit is {state.version}.", state.version)
        ]
    violations = []
    if state.live is not None:
        wrong = difference("the snapshot", file_texts(files.table), state.live, snapshot.store.url)
        if wrong is not None:
            violations.append(Violation("snapshot", wrong, version))
    differences = state.differences("the snapshot", snapshot.protocol, snapshot.metadata)
    return violations + [Violation("snapshot", wrong, version) for wrong in differences]
