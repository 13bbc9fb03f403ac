"""The consistency check of a table: the tests' oracle and a user's fsck.

    commits ──fold──► live files at v ──compare──► checkpoint at v, checksum at v          log_replay
                                       └─at the end─► Snapshot                             here
    compactions ──compare──► commits                                                       rules/compaction_rules
    live files ──► storage, statistics, partition values, deletion vectors, row ids        rules/live_file_rules
               ──deep──► every row of every file                                           rules/row_rules
    strict: every rule of the specification                                                strict_check

Corruption never raises: it becomes a finding, and the remaining parts are still checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.lazy import late_modules
from tahoe.base.progress import Progress, silent
from tahoe.log.files.paths import ParsedLogPath, parse
from tahoe.ops.check.log_replay import LogReplay, difference, file_texts
from tahoe.ops.check.rules import compaction_rules, live_file_rules, log_rules
from tahoe.ops.check.rules.compaction_rules import CompactionFile, compaction_files
from tahoe.ops.check.rules.live_file_rules import LiveFiles
from tahoe.ops.check.subjects.raw_log import RawLog
from tahoe.ops.check.subjects.rule import Level
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Entry, LogStore

if TYPE_CHECKING:
    from tahoe.ops.check import strict_check
    from tahoe.ops.check.rules import row_rules
else:  # the quick check needs neither
    (strict_check,) = late_modules("tahoe.ops.check", "strict_check")
    (row_rules,) = late_modules("tahoe.ops.check.rules", "row_rules")

__all__ = ["TableCheck", "Violation", "check_table", "iceberg_violations", "strict_violations"]


def check_table(store: LogStore, *, deep: bool = False, strict: bool = False, progress: Progress = silent) -> list[Violation]:
    """Return all violations in a table.

    Checked: commits are contiguous and parse; transaction ids are unique, in-commit timestamps increase; each complete checkpoint,
    compaction and checksum equals the replay of the commits; the snapshot equals it too; each live file exists and has its size; each
    deletion vector decodes to its cardinality and marks existing rows; statistics are JSON with a row count; partition values can be
    read; the footers of data files (the newest `MOST_FOOTERS`) are intact and agree with the statistics; where rows are tracked, no row
    id is assigned twice or beyond the high-water mark.

    Args:
        deep: read every live file and every change-data file too: see `tahoe.ops.check.rules.row_rules`.
        strict: check the whole log against every rule of the specification too: see `strict_violations`.
        progress: receives the progress over commits, vectors and files.

    Raises an error only if there is no table, or if its storage cannot be listed.
    """
    return TableCheck(store).violations(deep=deep, strict=strict, progress=progress)


def strict_violations(store: LogStore, progress: Progress = silent) -> list[Violation]:
    """Return all violations of the specification's rules (`tahoe.ops.check.strict_check`), each with its section.

    Raises an error only if there is no table, or if its storage cannot be listed.
    """
    log = RawLog(store)
    if not log.commits and not log.checkpoints:
        raise NotFound(
            f"{store.url} is not a Delta table: its log has no commit. Give the path of the table's root.",
            code="DELTA_TABLE_NOT_FOUND",
            table=store.url,
        )
    check = strict_check.StrictCheck(log, progress)
    for files in log.versions(sorted(log.commits)):
        check.fold(files)
    check.compactions(compaction_files(log))
    try:
        snapshot = Snapshot.at(store)
        in_data = row_rules.check_data(LiveFiles(snapshot, snapshot.files()), (Level.STRICT,), progress)
    except TahoeError:
        in_data = iter(())  # reported by other rules, or by the level QUICK
    return check.finish(in_data)


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

    def violations(self, *, deep: bool = False, strict: bool = False, progress: Progress = silent) -> list[Violation]:
        """Return all violations, as `check_table` does."""
        log = RawLog(self._store)
        changed = self._changes(log)
        if strict or self._in_commits or not self._continues({parse(name) for name, _ in changed}):
            self._replay, self._in_commits, self._newest = LogReplay(self._store), [], None
        check = strict_check.StrictCheck(log, progress) if strict else None
        self._fold(log, check, progress)
        compactions = list(compaction_files(log))
        violations = [*log_rules.RULES.violations(Level.QUICK, log), *self._in_commits]
        for compaction in compactions:
            violations += compaction_rules.RULES.violations(
                Level.QUICK, compaction, compaction.rows.version, compaction.rows.name
            )
        try:
            if changed or self._newest is None:
                snapshot = Snapshot.at(self._store)
                self._newest = LiveFiles(snapshot, snapshot.files())
            self._newest = replace(self._newest, progress=progress, reads_rows=deep)
        except Exception as error:
            if not log.files and isinstance(error, TahoeError):
                raise  # there is no table
            return [*violations, violation_of(error, "snapshot", "The newest version"), *self._strict(check, compactions, [])]
        violations += _snapshot(self._newest, self._replay)
        violations += live_file_rules.RULES.violations(Level.QUICK, self._newest)
        levels = [level for level, includes in ((Level.DEEP, deep), (Level.STRICT, strict)) if includes]
        in_data = list(row_rules.check_data(self._newest, levels, progress)) if levels else []
        if deep:
            violations += [violation for violation in in_data if violation.section is None]
            violations += row_rules.check_change_files(self._newest, self._replay.change_files, progress)
        return violations + self._strict(check, compactions, in_data)

    def _changes(self, log: RawLog) -> set[tuple[str, Entry]]:
        """Return the log files that appeared, disappeared or changed since the last run."""
        seen, self._seen = self._seen, {entry.name: entry for entry, _ in log.files}
        return seen.items() ^ self._seen.items()

    def _continues(self, changed: set[ParsedLogPath | None]) -> bool:
        """Whether the changed log files are all newer than the last version seen, or checkpoints of that version."""
        last = self._replay.version
        return all(
            path is not None and (path.version > last or (path.version == last and path.kind == "checkpoint")) for path in changed
        )

    def _fold(self, log: RawLog, check: strict_check.StrictCheck | None, progress: Progress) -> None:
        """Fold the commits that are newer than those folded before; read each once, for all levels."""
        self._in_commits += self._replay.begin(log)
        versions = sorted(version for version in log.commits if version > self._replay.version)
        for done, files in enumerate(log.versions(versions), start=1):
            self._in_commits += self._replay.fold(files, log.checkpoints.get(files.version, ()))
            if check is not None:
                check.fold(files)
            progress("commits checked", done, len(versions))

    def _strict(
        self, check: strict_check.StrictCheck | None, compactions: Sequence[CompactionFile], in_data: list[Violation]
    ) -> list[Violation]:
        if check is None:
            return []
        check.compactions(compactions)
        return check.finish(in_data)


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
