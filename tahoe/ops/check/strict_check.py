"""The check of a whole table against the specification, rule by rule.

    listing ──► rules of the log
    commits ──fold──► each commit in sequence ──► rules of commits, files, history          settings in force ──► rules of protocol and schema
                         └─at v─► checkpoint, checksum and compaction of v ──► their rules
    live files, vectors and change files that the newest version names ──► rules of data; its rows against statistics ──► one rule more

Like the other check it never raises: an unreadable part becomes a finding and the rest is still checked. A linter, not a reader: it keeps a
dictionary for each file that was ever added, and opens every data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.progress import Progress, silent
from tahoe.ops.check.data_check import check_data
from tahoe.ops.check.live_file_check import LiveFiles
from tahoe.ops.check.rules import (
    checkpoint_rules,
    commit_rules,
    data_rules,
    file_rules,
    history_rules,
    iceberg_rules,
    log_rules,
    member_rules,
    protocol_rules,
    schema_rules,
    summary_rules,
)
from tahoe.ops.check.rules.checkpoint_rules import CheckpointFile
from tahoe.ops.check.rules.data_rules import NamedFile
from tahoe.ops.check.rules.summary_rules import ChecksumFile, CompactionFile
from tahoe.ops.check.subjects.raw_log import Commit, RawLog
from tahoe.ops.check.subjects.replayed_log import ReplayedLog, Step
from tahoe.ops.check.subjects.rule import Broken, Rule
from tahoe.ops.check.subjects.table_settings import Settings
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

__all__ = ["ALL_RULES", "strict_violations"]

S = TypeVar("S")

_STEP_RULES: tuple[Rule[Step], ...] = (
    *member_rules.RULES,
    *commit_rules.RULES,
    *file_rules.RULES,
    *history_rules.RULES,
    *iceberg_rules.RULES,
)
_SETTINGS_RULES: tuple[Rule[Settings], ...] = (
    *protocol_rules.RULES,
    *schema_rules.RULES,
    *iceberg_rules.SETTINGS_RULES,
)
_ROWS = ("Per-file Statistics", "statistics-hold-for-the-rows")

ALL_RULES: tuple[tuple[str, str], ...] = (
    *(
        (each.section, each.name)
        for rules in (
            log_rules.RULES,
            _STEP_RULES,
            _SETTINGS_RULES,
            checkpoint_rules.RULES,
            summary_rules.RULES,
            summary_rules.COMPACTION_RULES,
            data_rules.RULES,
            data_rules.VECTOR_RULES,
            data_rules.CHANGE_RULES,
        )
        for each in rules
    ),
    _ROWS,
)
"""Section and name of every rule."""


def strict_violations(store: LogStore, progress: Progress = silent) -> list[Violation]:
    """Return all violations of the specification. Raises only if there is no table, or if its storage cannot be listed.

    Args:
        progress: receives the progress over commits and data files.
    """
    log = RawLog(store)
    if not log.commits and not log.checkpoints:
        raise NotFound(
            f"There is no Delta table at {store.url}: its log has no commit. Give the path of the table's root.",
            code="DELTA_TABLE_NOT_FOUND",
            table=store.url,
        )
    return list(_StrictCheck(log, progress).run())


class _StrictCheck:
    """One run over one listing."""

    def __init__(self, log: RawLog, progress: Progress) -> None:
        self._log = log
        self._progress = progress
        self._state = ReplayedLog(log.store.url)
        self._change_files: list[tuple[int, NamedFile]] = []

    def run(self) -> Iterator[Violation]:
        yield from _broken(log_rules.RULES, self._log)
        versions = sorted(self._log.commits)
        yield from self._begin(versions)
        for done, version in enumerate(versions, start=1):
            yield from self._version(version)
            self._progress("versions checked", done, len(versions))
        yield from self._compactions()
        yield from self._data()

    def _begin(self, versions: Sequence[int]) -> Iterator[Violation]:
        """If the first commits are gone, start from the oldest checkpoint whose commit exists."""
        if versions[:1] == [0] or not self._log.checkpoints:
            return
        first = min(
            (version for version in self._log.checkpoints if version in self._log.commits), default=min(self._log.checkpoints)
        )
        contents = self._log.checkpoint(self._log.checkpoints[first][0])
        yield from _broken(checkpoint_rules.RULES, CheckpointFile(contents, None), first, contents.name)
        self._state.begin(first, contents.all_rows)

    def _version(self, version: int) -> Iterator[Violation]:
        commit = self._log.commit(version)
        if version <= self._state.version:
            return  # included in the checkpoint that the state began with
        settings = self._state.settings_with(commit)
        if settings is not None:
            step = Step(commit, self._state, settings)
            yield from _broken(_STEP_RULES, step, version, commit.name)
            if settings is not self._state.settings:
                yield from _broken(_SETTINGS_RULES, settings, version, commit.name)
            self._change_files += [(version, NamedFile(self._log.store, value, settings, settings)) for value in commit.of("cdc")]
        else:
            yield from _broken(
                (commit_rules.a_line_is_one_action, commit_rules.the_first_version_has_metadata),
                _bare(commit, self._state),
                version,
                commit.name,
            )
        self._state.fold(commit)
        yield from self._summaries(commit)

    def _summaries(self, commit: Commit) -> Iterator[Violation]:
        version = commit.version
        for checkpoint in self._log.checkpoints.get(version, ()):
            contents = self._log.checkpoint(checkpoint)
            yield from _broken(checkpoint_rules.RULES, CheckpointFile(contents, self._state), version, contents.name)
        entry = self._log.checksums.get(version)
        if entry is not None:
            try:
                data = self._log.store.get(entry.name)
            except TahoeError as error:
                yield violation_of(error, "checksum", f"Checksum {entry.name}", version, entry.name)
                return
            yield from _broken(summary_rules.RULES, ChecksumFile(data, commit, self._state), version, entry.name)

    def _compactions(self) -> Iterator[Violation]:
        for entry, parsed in self._log.compactions:
            covered = range(parsed.version, parsed.last_version + 1)
            if all(version in self._log.commits for version in covered):
                rows, unreadable = self._log.lines(entry.name)
                compaction = CompactionFile(self._log.store.url, rows, unreadable, tuple(map(self._log.commit, covered)))
                yield from _broken(summary_rules.COMPACTION_RULES, compaction, parsed.last_version, entry.name)

    def _data(self) -> Iterator[Violation]:
        settings, version = self._state.settings, self._state.version
        if settings is None:
            return
        adds = list(self._state.adds.values())
        for done, action in enumerate(adds, start=1):
            named = NamedFile(self._log.store, action, settings, self._state.written_under.get(self._state.path(action)))
            file = named.name or str(action.get("path"))
            yield from _broken(data_rules.RULES, named, version, file)
            if action.get("deletionVector") is not None:
                yield from _broken(data_rules.VECTOR_RULES, named, version, file)
            self._progress("data files checked", done, len(adds))
        for of, named in self._change_files:
            yield from _broken(data_rules.CHANGE_RULES, named, of, named.name or str(named.action.get("path")))
        yield from self._rows()

    def _rows(self) -> Iterator[Violation]:
        """Compare the rows with the statistics. Other rules, or `tahoe check`, report a table that cannot be read at all."""
        section, name = _ROWS
        try:
            snapshot = Snapshot.at(self._log.store)
            files = LiveFiles(snapshot, snapshot.files())
        except TahoeError:
            return
        for violation in check_data(files, self._progress):
            if violation.code == "statistics":
                yield Violation(name, violation.message, self._state.version, violation.file, violation.error, section)


def _bare(commit: Commit, state: ReplayedLog) -> Step:
    """Return a commit for which no settings are in force."""
    return Step(commit, state, Settings({}, {}))


def _broken(rules: Iterable[Rule[S]], subject: S, version: int | None = None, file: str | None = None) -> Iterator[Violation]:
    for rule in rules:
        violations: list[Violation] = []
        with Reported(violations.append, rule.name, f"The rule {rule.name}", version, file):
            for breach in rule.breaches(subject):
                message, breaking = (breach.message, breach.file) if isinstance(breach, Broken) else (breach, file)
                text = f"{breaking}: {message}" if breaking else message
                violations.append(Violation(rule.name, text, version, breaking, section=rule.section))
        yield from violations
