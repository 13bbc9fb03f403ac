"""The level `STRICT` of a check: a table against the specification, rule by rule.

    listing ──► rules of the log
    commits ──fold──► each commit in sequence ──► rules of commits, files, history          settings in force ──► rules of protocol and schema
                         └─at v─► checkpoint and checksum of v ──► their rules
    live files, vectors and change files that the newest version names ──► rules of data; its rows against statistics ──► one rule more

A linter, not a reader: it keeps a dictionary for each file that was ever added, and opens every data file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from tahoe.base.exceptions import TahoeError
from tahoe.base.progress import Progress
from tahoe.ops.check.rules import (
    checkpoint_rules,
    checksum_rules,
    commit_rules,
    compaction_rules,
    data_rules,
    file_rules,
    history_rules,
    iceberg_rules,
    log_rules,
    member_rules,
    protocol_rules,
    row_rules,
    schema_rules,
)
from tahoe.ops.check.rules.checkpoint_rules import CheckpointFile
from tahoe.ops.check.rules.checksum_rules import ChecksumOfFiles
from tahoe.ops.check.rules.compaction_rules import CompactionFile
from tahoe.ops.check.rules.data_rules import NamedFile
from tahoe.ops.check.subjects.raw_log import Commit, RawLog, VersionFiles
from tahoe.ops.check.subjects.replayed_log import ReplayedLog, Step
from tahoe.ops.check.subjects.rule import Level, RuleList
from tahoe.ops.check.subjects.table_settings import Settings
from tahoe.ops.check.subjects.violation import Violation, violation_of

S = TypeVar("S")

_STEP_RULES: RuleList[Step] = RuleList(
    member_rules.RULES, commit_rules.RULES, file_rules.RULES, history_rules.RULES, iceberg_rules.RULES
)
_SETTINGS_RULES: RuleList[Settings] = RuleList(protocol_rules.RULES, schema_rules.RULES, iceberg_rules.SETTINGS_RULES)

ALL_RULES: tuple[tuple[str, str], ...] = tuple(
    (rule.section, rule.codes[Level.STRICT])
    for rules in (
        log_rules.RULES,
        commit_rules.FORMAT_RULES,
        _STEP_RULES,
        _SETTINGS_RULES,
        checkpoint_rules.RULES,
        checksum_rules.RULES,
        checksum_rules.FILE_RULES,
        compaction_rules.RULES,
        data_rules.RULES,
        data_rules.VECTOR_RULES,
        data_rules.CHANGE_RULES,
        row_rules.RULES,
    )
    for rule in rules
    if Level.STRICT in rule.codes
)
"""Section and name of every rule of the level `STRICT`."""


class StrictCheck:
    """One run over one listing: `fold` for each version, `compactions`, `finish`.

    Attributes:
        violations: those found so far.
    """

    def __init__(self, log: RawLog, progress: Progress) -> None:
        self.violations: list[Violation] = []
        self._log = log
        self._progress = progress
        self._state = ReplayedLog(log.store.url)
        self._change_files: list[tuple[int, NamedFile]] = []
        self._check(log_rules.RULES, log)
        if log.checkpoints and 0 not in log.commits:
            self._begin(log)

    def _begin(self, log: RawLog) -> None:
        """Start from the oldest checkpoint whose commit exists."""
        first = min((version for version in log.checkpoints if version in log.commits), default=min(log.checkpoints))
        contents = log.checkpoint(log.checkpoints[first][0])
        self._check(checkpoint_rules.RULES, CheckpointFile(contents, None), first, contents.name)
        self._state.begin(first, contents.all_rows)

    def fold(self, files: VersionFiles) -> None:
        """Check the next commit, and its checkpoints and checksum."""
        if files.version <= self._state.version:
            return  # included in the checkpoint that the state began with
        commit, version = files.lines(), files.version
        self._check(commit_rules.FORMAT_RULES, commit, version, commit.name)
        settings = self._state.settings_with(commit)
        if settings is not None:
            self._check(_STEP_RULES, Step(commit, self._state, settings), version, commit.name)
            if settings is not self._state.settings:
                self._check(_SETTINGS_RULES, settings, version, commit.name)
            self._change_files += [(version, NamedFile(self._log.store, value, settings, settings)) for value in commit.of("cdc")]
        self._state.fold(commit)
        for checkpoint in self._log.checkpoints.get(version, ()):
            contents = self._log.checkpoint(checkpoint)
            self._check(checkpoint_rules.RULES, CheckpointFile(contents, self._state), version, contents.name)
        self._checksum(files, commit)

    def _checksum(self, files: VersionFiles, commit: Commit) -> None:
        if files.checksum is None:
            return
        name = self._log.checksums[files.version].name
        if isinstance(files.checksum, TahoeError):
            self.violations.append(violation_of(files.checksum, "checksum", f"Checksum {name}", files.version, name))
        else:
            info = next(iter(commit.of("commitInfo")), {})
            checksum = ChecksumOfFiles(files.checksum, info, self._state)
            self._check(checksum_rules.RULES, checksum, files.version, name)
            self._check(checksum_rules.FILE_RULES, checksum, files.version, name)

    def compactions(self, compactions: Iterable[CompactionFile]) -> None:
        """Check the compactions."""
        for compaction in compactions:
            self._check(compaction_rules.RULES, compaction, compaction.rows.version, compaction.rows.name)

    def finish(self, in_data: Iterable[Violation]) -> list[Violation]:
        """Check the files that the newest version names, and return all violations.

        Args:
            in_data: the violations that reading all rows found (`tahoe.ops.check.rules.row_rules`).
        """
        settings, version = self._state.settings, self._state.version
        if settings is not None:
            self._data(settings, version)
            in_rows = [violation for violation in in_data if violation.section is not None]
            self.violations += [replace(violation, version=version) for violation in in_rows]
        return self.violations

    def _data(self, settings: Settings, version: int) -> None:
        adds = list(self._state.adds.values())
        for done, action in enumerate(adds, start=1):
            file = NamedFile(self._log.store, action, settings, self._state.written_under.get(self._state.path(action)))
            self._check(data_rules.RULES, file, version, file.shown)
            if action.get("deletionVector") is not None:
                self._check(data_rules.VECTOR_RULES, file, version, file.shown)
            self._progress("data files checked", done, len(adds))
        for added_at, file in self._change_files:
            self._check(data_rules.CHANGE_RULES, file, added_at, file.shown)

    def _check(self, rules: RuleList[S], subject: S, version: int | None = None, file: str | None = None) -> None:
        self.violations += rules.violations(Level.STRICT, subject, version, file)
